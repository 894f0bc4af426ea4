//! Where the parts of a server are in a tree, by product.

use std::fs;
use std::path::{Path, PathBuf};

/// Positions of the parts of a product's servers, relative to the folder above that of the daemon.
pub struct Layout {
    /// File names of the daemon, the preferred one first.
    pub daemons: &'static [&'static str],
    /// Candidate folders of the files that every server needs, for a base folder.
    pub shares: fn(&Path) -> Vec<PathBuf>,
    /// A file that identifies such a folder.
    pub share_mark: &'static str,
    /// Name of its content in errors.
    pub share_holds: &'static str,
    /// Candidate folders of dynamic plugins.
    pub plugins: &'static [&'static str],
    /// Folders of libraries that its programs expect at their build location.
    pub libraries: &'static [&'static str],
    /// Arguments that make the daemon print its version.
    pub version_arguments: &'static [&'static str],
}

/// MySQL and its relatives.
pub static MYSQL: Layout = Layout {
    daemons: &["mariadbd", "mysqld"],
    shares: |base| {
        let mut places = ["share", "share/mysql", "share/mariadb"]
            .map(|place| base.join(place))
            .to_vec();
        // Oracle has `share/mysql-8.4`, Percona `share/percona-server`.
        let others = fs::read_dir(base.join("share"));
        let others = others.into_iter().flatten();
        let mut others: Vec<PathBuf> = others
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("mysql-") || name.starts_with("percona-")
            })
            .collect();
        others.sort();
        places.extend(others);
        places
    },
    share_mark: "charsets/Index.xml",
    share_holds: "character sets",
    plugins: &[
        "lib/mysql/plugin",
        "lib/plugin",
        "lib64/mysql/plugin",
        "lib/mariadb/plugin",
        "lib64/mariadb/plugin",
    ],
    libraries: &[],
    version_arguments: &["--no-defaults", "--version"],
};

/// PostgreSQL.
pub static POSTGRESQL: Layout = Layout {
    daemons: &["postgres"],
    shares: |base| {
        let own = ["share", "share/postgresql"].map(|place| base.join(place));
        // Debian has `usr/lib/postgresql/16` and `usr/share/postgresql/16`.
        let apart = base.file_name().zip(base.ancestors().nth(3));
        let apart = apart.map(|(version, usr)| usr.join("share/postgresql").join(version));
        own.into_iter().chain(apart).collect()
    },
    share_mark: "postgres.bki",
    share_holds: "system catalogue",
    plugins: &["lib/postgresql", "lib"],
    libraries: &["lib"],
    version_arguments: &["--version"],
};
