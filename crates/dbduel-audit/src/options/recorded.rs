//! The tables: what recorded servers list and accept, and documented changes between them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::LazyLock;

use dbduel_text::Version;
use strsim::damerau_levenshtein;

use crate::defaults::POSTGRESQL;
use crate::server::{Product, Servers};

const OPTIONS: &str = include_str!("../../data/options.tsv");
const CHANGES: &str = include_str!("../../data/option-changes.tsv");

/// How a server handles a whole name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Takes,
    Ignores,
    Refuses,
    Unknown,
}

/// Options by name, with what each recorded server does with them.
pub(super) struct Recorded {
    servers: Vec<(Product, Version)>,
    options: BTreeMap<&'static str, Vec<Known>>,
}

/// A documented change.
pub(super) struct Change {
    option: &'static str,
    on: Servers,
    takes: bool,
}

/// Names of all options and settings of recorded servers, each as its server writes it and several of them more than once.
pub fn recorded_names() -> impl Iterator<Item = &'static str> {
    let tables = [OPTIONS, POSTGRESQL];
    let rows = tables.into_iter().flat_map(|table| table.lines().skip(1));
    rows.filter_map(|row| row.split('\t').next())
}

static RECORDED: LazyLock<Recorded> =
    LazyLock::new(|| parse(OPTIONS).expect("the table that is compiled in parses"));
static DOCUMENTED: LazyLock<Vec<Change>> =
    LazyLock::new(|| parse_changes(CHANGES).expect("the table that is compiled in parses"));

/// Shorter names lie one letter apart without being each other's misspelling.
const MISSPELT_LENGTH_MIN: usize = 8;

/// Prefixes of options that plugins and other builds bring, so that no server lists them.
const OF_PLUGINS: &[&str] = &[
    "audit_log",
    "auth_",
    "authentication_",
    "aws_key_management",
    "clone",
    "columnstore",
    "component_",
    "connect_",
    "connection_control",
    "cracklib_",
    "daemon_memcached",
    "ddl_rewriter",
    "disks",
    "example_",
    "federated",
    "feedback",
    "file_key_management",
    "group_replication",
    "gssapi_",
    "handlersocket",
    "hashicorp_",
    "keyring_",
    "locales",
    "metadata_lock_info",
    "mroonga",
    "mysql_firewall",
    "mysqlx",
    "ndb",
    "oqgraph",
    "pam_",
    "parsec",
    "password_reuse",
    "provider_",
    "query_cache_info",
    "query_response_time",
    "rewriter_",
    "rocksdb",
    "rpl_semi_sync",
    "s3",
    "semisync",
    "server_audit",
    "simple_password_check",
    "sphinx",
    "spider",
    "sql_error_log",
    "telemetry",
    "thread_pool",
    "tokudb",
    "user_variables",
    "validate_password",
    "version_tokens",
    "wsrep",
];

/// How a server handles an option of this whole name.
pub(super) fn known(product: Product, version: Version, name: &str) -> Known {
    let change = DOCUMENTED
        .iter()
        .find(|change| change.option == name && change.on.includes(product, version));
    if let Some(change) = change {
        return if change.takes {
            Known::Takes
        } else {
            Known::Refuses
        };
    }
    let row = RECORDED.options.get(name);
    let (columns, is_of_series) = columns(product, version);
    let cells = columns.iter().filter_map(|&column| row?.get(column));
    if let Some(best) = cells.min_by_key(|cell| **cell as u8)
        && matches!(best, Known::Takes | Known::Ignores)
    {
        return *best;
    }
    // Between two recorded servers only what neither of them knows and another does is certain.
    let is_certain = is_of_series || (columns.len() > 1 && row.is_some());
    // Percona Server has options of its own, some of which MariaDB took over with XtraDB; an Aria engine it never had.
    let may_be_own = product == Product::Percona && !name.starts_with("aria_");
    if may_be_own || is_of_plugin(product, version, name) || !is_certain {
        Known::Unknown
    } else {
        Known::Refuses
    }
}

fn is_of_plugin(product: Product, version: Version, name: &str) -> bool {
    let may_have_dot = !super::has_classic_getopt(product, version);
    name.contains('.') && may_have_dot || OF_PLUGINS.iter().any(|start| name.starts_with(start))
}

/// The option that was meant by a name of one letter more, less or other, in a series that is not recorded: the servers recorded
/// before and after it take that option, and none of any age knows the name.
pub(super) fn misspelt(product: Product, version: Version, name: &str) -> Option<&'static str> {
    let (neighbours, is_of_series) = columns(product, version);
    // Percona Server has options that no recorded server lists.
    if is_of_series
        || neighbours.len() < 2
        || is_shortened(product, version, name)
        || product == Product::Percona
        || name.len() < MISSPELT_LENGTH_MIN
        || whole_name(name).is_some()
        || is_of_plugin(product, version, name)
    {
        return None;
    }
    let mut taken = RECORDED
        .options
        .iter()
        .filter(|(_, cells)| neighbours.iter().all(|&at| cells[at] == Known::Takes));
    let (option, _) = taken.find(|(option, _)| damerau_levenshtein(option, name) == 1)?;
    Some(option)
}

/// The recorded series that a server of an unrecorded one is inferred to be like when it meets an option that none of them
/// accepts; empty where nothing follows. Beyond the newest recorded series only an option of another server is judged, as new
/// options are not known; before the oldest none is, as options go.
pub(super) fn unlike_its_neighbours(product: Product, version: Version, name: &str) -> Vec<String> {
    let (neighbours, is_of_series) = columns(product, version);
    let is_newest = !neighbours
        .iter()
        .any(|&at| RECORDED.servers[at].1 > version);
    let has_before = neighbours
        .iter()
        .any(|&at| RECORDED.servers[at].1 < version);
    if is_of_series
        || !has_before
        || is_newest && whole_name(name).is_none()
        || product == Product::Percona
        || is_shortened(product, version, name)
        || is_of_plugin(product, version, name)
        || matches!(known(product, version, name), Known::Takes | Known::Ignores)
    {
        return Vec::new();
    }
    let series = neighbours.iter().map(|&at| {
        let (product, version) = RECORDED.servers[at];
        format!("{product} {}.{}", version.major, version.minor)
    });
    series.collect()
}

/// True for the beginning of an option of whatever server, where names may be shortened.
fn is_shortened(product: Product, version: Version, name: &str) -> bool {
    let mut longer = whole_names(name);
    super::may_be_shortened(product, version)
        && longer
            .next()
            .is_some_and(|option| option != name && option.starts_with(name))
}

/// True when a server of this series is recorded.
pub(super) fn is_recorded(product: Product, version: Version) -> bool {
    columns(product, version).1
}

/// Recorded servers that stand for this one: those of its series, otherwise the nearest before and after it.
fn columns(product: Product, version: Version) -> (Vec<usize>, bool) {
    let wanted = product.recorded_as();
    let of_product = || {
        let servers = RECORDED.servers.iter().enumerate();
        servers.filter(move |(_, (product, _))| *product == wanted)
    };
    let series = |version: Version| (version.major, version.minor);
    let of_series: Vec<usize> = of_product()
        .filter(|(_, (_, recorded))| series(*recorded) == series(version))
        .map(|(column, _)| column)
        .collect();
    if !of_series.is_empty() {
        return (of_series, true);
    }
    let before = of_product()
        .filter(|(_, (_, recorded))| *recorded < version)
        .max_by_key(|(_, (_, recorded))| *recorded);
    let after = of_product()
        .filter(|(_, (_, recorded))| *recorded > version)
        .min_by_key(|(_, (_, recorded))| *recorded);
    let neighbours = before.into_iter().chain(after);
    (neighbours.map(|(column, _)| column).collect(), false)
}

/// The option of this name, of whatever server.
pub(super) fn whole_name(name: &str) -> Option<&'static str> {
    let recorded = RECORDED
        .options
        .get_key_value(name)
        .map(|(whole, _)| *whole);
    recorded.or_else(|| {
        let change = DOCUMENTED.iter().find(|change| change.option == name);
        change.map(|change| change.option)
    })
}

/// Recorded options in the order of their names, from `first` on.
pub(super) fn whole_names(first: &str) -> impl Iterator<Item = &'static str> + '_ {
    let from_first = (Bound::Included(first), Bound::Unbounded);
    let options = RECORDED.options.range::<str, _>(from_first);
    options.map(|(option, _)| *option)
}

/// Recorded servers that take an option.
pub(super) fn takers(name: &str) -> impl Iterator<Item = (Product, Version)> {
    let cells = RECORDED.options.get(name).into_iter().flatten();
    let servers = RECORDED.servers.iter().zip(cells);
    servers
        .filter(|(_, cell)| **cell == Known::Takes)
        .map(|(server, _)| *server)
}

pub(super) fn parse(text: &'static str) -> Result<Recorded, String> {
    let mut lines = text.lines();
    let server = |name: &str| {
        let (product, version) = name.split_once('-')?;
        Some((Product::named(product)?, Version::parse(version)?))
    };
    let header = lines.next().unwrap_or_default().split('\t').skip(1);
    let servers: Vec<(Product, Version)> = header
        .map(|name| server(name).ok_or_else(|| format!("`{name}` is no server")))
        .collect::<Result<_, _>>()?;
    let row = |line: &'static str| {
        let mut cells = line.split('\t');
        let option = cells.next().unwrap_or_default();
        let cells = cells.map(|cell| match cell {
            "yes" => Ok(Known::Takes),
            "ignored" => Ok(Known::Ignores),
            "-" => Ok(Known::Refuses),
            other => Err(format!("{option}: `{other}` is neither yes, ignored nor -")),
        });
        let cells: Vec<Known> = cells.collect::<Result<_, _>>()?;
        if cells.len() != servers.len() {
            return Err(format!(
                "{option}: {} cells for {} servers",
                cells.len(),
                servers.len()
            ));
        }
        Ok((option, cells))
    };
    let options = lines.map(row).collect::<Result<_, _>>()?;
    Ok(Recorded { servers, options })
}

pub(super) fn parse_changes(text: &'static str) -> Result<Vec<Change>, String> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [option, on, takes, source] = cells[..] else {
            return Err(format!("`{line}` has not four cells"));
        };
        if source.is_empty() || !matches!(takes, "yes" | "no") {
            return Err(format!("{option}: needs yes or no, and a source"));
        }
        Ok(Change {
            option,
            on: Servers::parse(on)?,
            takes: takes == "yes",
        })
    };
    text.lines().skip(1).map(row).collect()
}
