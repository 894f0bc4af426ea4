//! Compiled defaults: as recorded from servers, and, for the versions between those, as documented.
//!
//! A default that no recorded server confirms is marked as inferred. A default that follows from the machine or from
//! the build is computed for the described machine, or left open.

mod documented;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use dbduel_record::facts::Host;
use dbduel_text::Version;

use super::evidence::{ServerEvidence, Texts};
use super::server::Product;

pub use documented::following;

/// The recorded defaults, one column per server in each table.
const RECORDED: &[&str] = &[
    include_str!("../../data/defaults.tsv"),
    POSTGRESQL,
    include_str!("../../data/defaults-sqlite.tsv"),
];

/// Those of PostgreSQL, in bytes and seconds, with the units of bare numbers.
pub(crate) const POSTGRESQL: &str = include_str!("../../data/defaults-postgresql.tsv");

/// A recorded build that stands for no other: a 32-bit server under the name of a 64-bit one.
const ODD_BUILD: &str = "mysql-5.6.21";

/// The machine that a server is meant to run on, as far as it is described.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    /// Logical processors that the server may use.
    pub cpus: Option<u32>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Files that the server may open.
    pub files: Option<u64>,
}

impl Machine {
    /// The same facts of a machine that was read.
    #[must_use]
    pub fn of(host: &Host) -> Self {
        Machine {
            cpus: host.cpus,
            memory_bytes: host.memory_bytes,
            files: host.open_files_limit,
        }
    }
}

/// How reliably the variables of a server are known when they were not read from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefaultsBasis {
    /// The machine that defaults are computed for.
    pub machine: Machine,
    /// Variables whose default, or absence, is taken from another series that may differ in it.
    pub inferred: BTreeSet<String>,
    /// Variables whose default follows from a machine or a build that is not described.
    pub undetermined: BTreeSet<String>,
}

/// Variables with their compiled defaults, from a recorded server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    /// The server that they were read from, `mysql-5.6.24`.
    pub server: String,
    /// Every variable with its value.
    pub variables: Texts,
}

impl Defaults {
    /// The recorded servers, as product and version.
    pub fn servers() -> impl Iterator<Item = (&'static str, Product, Version)> {
        let headers = RECORDED.iter().flat_map(|table| table.lines().next());
        let cells = headers.flat_map(|header| header.split('\t').skip(1));
        cells.filter_map(|server| {
            let (product, version) = server.split_once('-')?;
            Some((server, Product::named(product)?, Version::parse(version)?))
        })
    }

    /// The defaults of the recorded server called `server`.
    #[must_use]
    pub fn of(server: &str) -> Option<Self> {
        let column_in = |table: &&str| {
            let mut names = table.lines().next()?.split('\t');
            names.position(|name| name == server)
        };
        let table = RECORDED.iter().find(|table| column_in(table).is_some())?;
        let column = column_in(table)?;
        let lines = table.lines().skip(1);
        let variables = lines
            .filter_map(|line| {
                let mut cells = line.split('\t');
                let name = cells.next()?;
                let value = cells.nth(column - 1)?;
                (value != "-").then(|| (name.to_owned(), value.to_owned()))
            })
            .collect();
        Some(Defaults {
            server: server.to_owned(),
            variables,
        })
    }

    /// The variables of the recorded PostgreSQL of this series, in the form of evidence.
    #[must_use]
    pub fn postgresql(version: Version) -> Option<&'static Texts> {
        static BY_SERIES: LazyLock<BTreeMap<(u32, u32), Texts>> = LazyLock::new(|| {
            let recorded = standing(Product::PostgreSql);
            let of = |(server, version)| {
                let variables = Defaults::of(server)?.variables;
                Some((Product::PostgreSql.series(version), variables))
            };
            recorded.filter_map(of).collect()
        });
        BY_SERIES.get(&Product::PostgreSql.series(version))
    }

    /// The PRAGMAs of the newest recorded SQLite, in the form of evidence.
    #[must_use]
    pub fn sqlite() -> &'static Texts {
        static NEWEST: LazyLock<Texts> = LazyLock::new(|| {
            let newest = standing(Product::Sqlite).max_by_key(|(_, version)| *version);
            let defaults = newest.and_then(|(server, _)| Defaults::of(server));
            defaults.map_or_else(Texts::new, |defaults| defaults.variables)
        });
        &NEWEST
    }

    /// Evidence of this very server, on the machine that it was recorded on, with nothing set.
    #[must_use]
    pub fn evidence(&self, name: &str) -> Option<ServerEvidence> {
        let mut evidence = ServerEvidence::of_variables(name, self.variables.clone())?;
        evidence.is_predicted = true;
        evidence.source = format!("compiled defaults of {}", self.server);
        Some(evidence)
    }
}

/// The units of PostgreSQL's settings.
pub struct PostgresqlUnits;

impl PostgresqlUnits {
    /// The unit of a bare number, as `pg_settings.unit` has it; `None` for a setting without one.
    #[must_use]
    pub fn of(setting: &str) -> Option<&'static str> {
        static UNITS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
            let cells = |line: &'static str| {
                let mut cells = line.split('\t');
                Some((cells.next()?, cells.next().filter(|unit| !unit.is_empty())?))
            };
            POSTGRESQL.lines().skip(1).filter_map(cells).collect()
        });
        UNITS.get(setting).copied()
    }
}

/// The variables that a server of this version shows on this machine with nothing set, and how reliably they are
/// known. A version without a patch stands for its series. `None` for a product without recorded servers.
#[must_use]
pub fn expected(
    name: &str,
    product: Product,
    version: Version,
    machine: Machine,
) -> Option<ServerEvidence> {
    let release = release_of(product, version);
    let recorded = Recorded::around(product, release)?;
    let mut evidence = ServerEvidence::new(name, product, release);
    if version.patch == 0 {
        evidence.version_text = match product.series(version) {
            (major, 0) if product == Product::PostgreSql && version.minor == 0 => major.to_string(),
            _ => format!("{}.{}", version.major, version.minor),
        };
    }
    evidence.is_predicted = true;
    evidence.basis.machine = machine;
    evidence.variables.clone_from(&recorded.nearest.variables);
    let version_text = evidence.version_text.clone();
    evidence
        .variables
        .insert(version_variable(product).to_owned(), version_text);
    let mut derived = Vec::new();
    for variable in recorded.names(product) {
        if is_of_the_build(&variable) {
            evidence.variables.remove(&variable);
            evidence.basis.undetermined.insert(variable);
            continue;
        }
        let documented = documented::row(&variable, product, release);
        let is_inferred = match documented {
            Some(row) => !row.is_confirmed || !recorded.is_enclosed(),
            None => !recorded.agree_on(&variable),
        };
        if is_inferred {
            evidence.basis.inferred.insert(variable.clone());
        }
        match documented {
            Some(row) if row.is_derived() => derived.push(row),
            Some(row) if !row.on.includes(product, recorded.nearest_version) => {
                row.put_constant(&mut evidence);
            }
            _ => {}
        }
    }
    documented::compute(&mut evidence, &derived);
    evidence.source = recorded.describe(&evidence);
    Some(evidence)
}

/// True for a variable that is fixed when a server is built and that follows from neither version nor settings.
#[must_use]
pub fn is_of_the_build(variable: &str) -> bool {
    const OTHERS: &[&str] = &[
        "innodb_version",
        "license",
        // Distributions and bindings of SQLite compile these in as they like.
        "foreign_keys",
        "secure_delete",
    ];
    variable.starts_with("version_") || variable.starts_with("have_") || OTHERS.contains(&variable)
}

/// The variable that says which version it is.
#[must_use]
pub fn version_variable(product: Product) -> &'static str {
    match product {
        Product::PostgreSql => "server_version",
        Product::Sqlite => "sqlite_version",
        Product::MySql | Product::MariaDb | Product::Percona => "version",
    }
}

/// The recorded servers of a product that stand for others, in order.
fn standing(product: Product) -> impl Iterator<Item = (&'static str, Version)> {
    let wanted = product.recorded_as();
    Defaults::servers()
        .filter(move |(server, product, _)| *product == wanted && *server != ODD_BUILD)
        .map(|(server, _, version)| (server, version))
}

/// The release that a version stands for: itself; of a version without a patch, the newest recorded one of the
/// series, or else the last of the series. A patch of 0 was released of MySQL since 8.1 only, whose series hardly
/// change within.
fn release_of(product: Product, version: Version) -> Version {
    if version.patch > 0 {
        return version;
    }
    let series = |version: Version| product.series(version);
    let in_series = standing(product).filter(|(_, other)| series(*other) == series(version));
    let newest = in_series.map(|(_, other)| other).max();
    newest.unwrap_or_else(|| version.last_of_series())
}

/// The recorded servers that a version lies between.
struct Recorded {
    /// Fallback where nothing else is known.
    nearest: Defaults,
    nearest_version: Version,
    /// True when it is of the same series.
    is_of_series: bool,
    below: Option<Defaults>,
    above: Option<Defaults>,
}

impl Recorded {
    fn around(product: Product, version: Version) -> Option<Self> {
        let all = || standing(product);
        let series = |version: Version| product.series(version);
        let before = |major: bool| {
            all()
                .filter(move |(_, other)| {
                    *other < version && (!major || other.major == version.major)
                })
                .max_by_key(|(_, other)| *other)
        };
        let after = |major: bool| {
            all()
                .filter(move |(_, other)| {
                    *other > version && (!major || other.major == version.major)
                })
                .min_by_key(|(_, other)| *other)
        };
        let of_series = all()
            .filter(|(_, other)| series(*other) == series(version))
            .min_by_key(|(_, other)| other.patch.abs_diff(version.patch));
        let (server, nearest_version) = of_series
            .or_else(|| before(true))
            .or_else(|| after(true))
            .or_else(|| before(false))
            .or_else(|| after(false))?;
        Some(Recorded {
            nearest: Defaults::of(server)?,
            nearest_version,
            is_of_series: of_series.is_some(),
            below: before(false).and_then(|(server, _)| Defaults::of(server)),
            above: after(false).and_then(|(server, _)| Defaults::of(server)),
        })
    }

    /// Every variable that may exist.
    fn names(&self, product: Product) -> BTreeSet<String> {
        let recorded = [
            Some(&self.nearest),
            self.below.as_ref(),
            self.above.as_ref(),
        ];
        let recorded = recorded.into_iter().flatten();
        let recorded = recorded.flat_map(|defaults| defaults.variables.keys().cloned());
        recorded.chain(documented::variables(product)).collect()
    }

    /// True when defaults of the series are recorded, or of one before and one after it.
    fn is_enclosed(&self) -> bool {
        self.is_of_series || (self.below.is_some() && self.above.is_some())
    }

    /// True when recorded servers alone determine the default: one of this series, or equal defaults before and after
    /// it.
    fn agree_on(&self, variable: &str) -> bool {
        let of = |defaults: &Option<Defaults>| {
            let defaults = defaults.as_ref()?;
            Some(defaults.variables.get(variable).cloned())
        };
        self.is_of_series
            || of(&self.below)
                .zip(of(&self.above))
                .is_some_and(|(below, above)| below == above)
    }

    /// Source of the defaults, for messages.
    fn describe(&self, evidence: &ServerEvidence) -> String {
        if self.is_of_series {
            return format!("the defaults of {}", self.nearest.server);
        }
        let neighbours: Vec<&str> = [&self.below, &self.above]
            .into_iter()
            .flatten()
            .map(|defaults| defaults.server.as_str())
            .collect();
        format!(
            "the documented defaults of {} {}, with those recorded of {}",
            evidence.product,
            evidence.version_text,
            neighbours.join(" and ")
        )
    }
}
