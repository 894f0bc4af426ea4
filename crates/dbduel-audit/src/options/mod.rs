//! Which options a server takes in its option file, and under which forms of their names.
//!
//! `data/options.tsv` has what recorded servers list themselves and what they accept without effect;
//! `data/option-changes.tsv` has changes within a series and between recorded ones, as documented.

mod recorded;

use dbduel_text::Version;
use dbduel_text::nearest;

use super::server::Product;
use super::{postgresql, sqlite};
pub use recorded::recorded_names;
use recorded::{
    Known, is_recorded, known, misspelt, takers, unlike_its_neighbours, whole_name, whole_names,
};

/// How a server handles an option in its option file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionFate {
    /// It takes the option.
    Taken {
        /// The whole name of the option, lower case with underscores.
        name: String,
        /// Effect of the form of the name on the value.
        form: OptionForm,
    },
    /// It accepts the option and does nothing.
    Ignored,
    /// It does not start; the reason is a clause that follows the option's name.
    Refused(String),
    /// It probably does not start: its series is not recorded, and the nearest recorded ones reject the option. The
    /// reason is a clause that follows the option's name and says that it is inferred.
    ProbablyRefused(String),
    /// Unknown: plugins bring options of their own, and not every series is recorded.
    Unknown,
}

/// Effect of a prefix before the name of an option on its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionForm {
    /// No prefix: the value is what is written.
    Plain,
    /// `enable-`: on, and off for the value 0.
    On,
    /// `skip-` or `disable-`: off, and on for the value 0.
    Off,
    /// `maximum-`, `autoset-` or the name of a key cache and a dot: a bound of what sessions may set, the server's own
    /// choice, or a setting of that cache; not a value of the variable.
    Bound,
}

/// What a server of this version does with the option `written` in its option file.
///
/// Follows `my_getopt` of both products: a name may be shortened while it is unambiguous (MySQL before 5.7 and
/// MariaDB), may have prefixes, and is lower case (but for recent versions of MariaDB).
#[must_use]
pub fn option_fate(product: Product, version: Version, written: &str) -> OptionFate {
    match product {
        Product::PostgreSql => return postgresql::option_fate(version, written),
        Product::Sqlite => return sqlite::option_fate(written),
        Product::MySql | Product::MariaDb | Product::Percona => {}
    }
    let written = written.trim().trim_start_matches("--");
    let name = written.to_ascii_lowercase().replace('-', "_");
    let (key_cache, mut bare) = split_key_cache(product, version, &name);
    let mut form = OptionForm::Plain;
    let mut is_loose = false;
    let mut tried = Vec::new();
    loop {
        tried.push(bare);
        match find(product, version, bare) {
            Found::Takes(_)
                if written.chars().any(|c| c.is_ascii_uppercase())
                    && is_lower_case_only(product, version) =>
            {
                return match is_loose {
                    true => OptionFate::Ignored,
                    false => OptionFate::Refused(
                        "is not in lower case, as option names must be".to_owned(),
                    ),
                };
            }
            Found::Takes(name) => {
                let is_of_other_cache =
                    KEY_CACHE.contains(&name) && key_cache.is_some_and(|cache| cache != "default");
                return OptionFate::Taken {
                    name: name.to_owned(),
                    form: if is_of_other_cache {
                        OptionForm::Bound
                    } else {
                        form
                    },
                };
            }
            Found::Ignores => return OptionFate::Ignored,
            Found::Several(names) => {
                return OptionFate::Refused(format!("may stand for {}", names.join(" or ")));
            }
            Found::Nothing => {}
        }
        let Some((prefix, rest)) = split_prefix(bare) else {
            break;
        };
        match prefix {
            "loose" => is_loose = true,
            "skip" | "disable" => form = OptionForm::Off,
            "enable" => form = OptionForm::On,
            _ => form = OptionForm::Bound,
        }
        bare = rest;
    }
    let begins_ignored = |name: &&str| begins_ignored(product, version, name);
    if is_loose || tried.iter().any(begins_ignored) {
        return OptionFate::Ignored;
    }
    match known(product, version, bare) {
        Known::Refuses => OptionFate::Refused(why_refused(product, version, bare)),
        _ => match misspelt(product, version, bare) {
            Some(near) => OptionFate::Refused(is_none_but(near)),
            None => match unlike_its_neighbours(product, version, bare).as_slice() {
                [] => OptionFate::Unknown,
                neighbours => OptionFate::ProbablyRefused(format!(
                    "{}, inferred from {}",
                    why_refused(product, version, bare),
                    neighbours.join(" and ")
                )),
            },
        },
    }
}

/// Options whose variable has another name.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("default_character_set", "character_set_server"),
    ("default_collation", "collation_server"),
    ("default_time_zone", "time_zone"),
    ("key_buffer", "key_buffer_size"),
    ("log_slow_query", "slow_query_log"),
    ("storage_engine", "default_storage_engine"),
    ("table_cache", "table_open_cache"),
    ("transaction_isolation", "tx_isolation"),
    ("transaction_read_only", "tx_read_only"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
];

/// The variable that shows an option where no variable has the option's name.
#[must_use]
pub fn other_name(option: &str) -> Option<&'static str> {
    let mut names = OTHER_NAMES.iter();
    names
        .find(|(name, _)| *name == option)
        .map(|(_, variable)| *variable)
}

/// Names by which earlier lines of an option file may have set what `option` sets: the later line counts.
pub fn other_spellings(option: &str) -> impl Iterator<Item = String> + '_ {
    const SWITCHES: &[&str] = &["skip_", "disable_", "enable_"];
    let mut switches = SWITCHES.iter();
    let bare = switches.find_map(|switch| option.strip_prefix(switch));
    let bare = bare.unwrap_or(option);
    let names = OTHER_NAMES.iter().filter(move |(name, variable)| {
        *variable == bare || *name == bare || other_name(bare) == Some(*variable)
    });
    let names = names.flat_map(|(name, variable)| [*name, *variable]);
    let switched = SWITCHES.iter().map(move |switch| format!("{switch}{bare}"));
    std::iter::once(bare.to_owned())
        .chain(names.map(str::to_owned))
        .chain(switched)
        .filter(move |name| name != option)
}

/// Options that each key cache has.
const KEY_CACHE: &[&str] = &[
    "key_buffer_size",
    "key_cache_age_threshold",
    "key_cache_block_size",
    "key_cache_division_limit",
    "key_cache_file_hash_size",
    "key_cache_segments",
];

/// The name of a key cache before the first dot, and the option after it. MariaDB and MySQL before 8.0 take one before every
/// option, and disregard it where the option is none of key caches.
#[must_use]
pub fn split_key_cache(product: Product, version: Version, name: &str) -> (Option<&str>, &str) {
    let is_any = has_classic_getopt(product, version);
    match name.split_once('.') {
        Some((cache, option))
            if !cache.is_empty()
                && !option.is_empty()
                && (is_any || KEY_CACHE.contains(&option)) =>
        {
            (Some(cache), option)
        }
        _ => (None, name),
    }
}

/// The product whose option this is, when it is that of one product alone.
#[must_use]
pub fn only_product(written: &str) -> Option<Product> {
    let name = written.trim().to_ascii_lowercase().replace('-', "_");
    let mut products: Vec<Product> = takers(&name).map(|(product, _)| product).collect();
    products.dedup();
    match products.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

enum Found {
    Takes(&'static str),
    Ignores,
    Several(Vec<&'static str>),
    Nothing,
}

/// The option that a name stands for: its own, or the only one that begins with it.
fn find(product: Product, version: Version, name: &str) -> Found {
    match known(product, version, name) {
        Known::Takes => return whole_name(name).map_or(Found::Nothing, Found::Takes),
        Known::Ignores => return Found::Ignores,
        Known::Refuses | Known::Unknown => {}
    }
    if !may_be_shortened(product, version) || name.is_empty() {
        return Found::Nothing;
    }
    match longer(product, version, name, Known::Takes).as_slice() {
        [] => Found::Nothing,
        [only] => Found::Takes(only),
        // Between two recorded servers it is not known which of them there are.
        _ if !is_recorded(product, version) => Found::Nothing,
        several => Found::Several(several.to_vec()),
    }
}

/// True for the beginning of one option that is accepted without effect. Such options are looked for last, after prefixes too, and
/// are not known between two recorded servers.
fn begins_ignored(product: Product, version: Version, name: &str) -> bool {
    may_be_shortened(product, version)
        && !name.is_empty()
        && is_recorded(product, version)
        && longer(product, version, name, Known::Ignores).len() == 1
}

/// The options that begin with a name.
fn longer(product: Product, version: Version, name: &str, wanted: Known) -> Vec<&'static str> {
    let longer = whole_names(name).take_while(|option| option.starts_with(name));
    longer
        .filter(|option| known(product, version, option) == wanted)
        .collect()
}

fn split_prefix(name: &str) -> Option<(&str, &str)> {
    let (prefix, rest) = name.split_once('_')?;
    ["loose", "skip", "disable", "enable", "maximum", "autoset"]
        .contains(&prefix)
        .then_some((prefix, rest))
}

/// True where names may be shortened: in MariaDB, and in MySQL before 5.7 (WL#6978, Deprecate unique option prefixes).
fn may_be_shortened(product: Product, version: Version) -> bool {
    product == Product::MariaDb || (version.major, version.minor) < (5, 7)
}

/// True where any name may follow the name of a key cache.
fn has_classic_getopt(product: Product, version: Version) -> bool {
    product == Product::MariaDb || version.major < 8
}

/// True when a name with a capital is refused. When MariaDB ceased to do so is not recorded: after 10.5, before 10.11.
fn is_lower_case_only(product: Product, version: Version) -> bool {
    product != Product::MariaDb || (version.major, version.minor) <= (10, 5)
}

fn why_refused(product: Product, version: Version, name: &str) -> String {
    let of: Vec<String> = [Product::MySql, Product::MariaDb]
        .into_iter()
        .filter_map(|product| {
            let mut versions = takers(name).filter(|(taker, _)| *taker == product);
            let (_, first) = versions.next()?;
            let last = versions.last().map_or(first, |(_, last)| last);
            let series = |version: Version| format!("{}.{}", version.major, version.minor);
            Some(if series(first) == series(last) {
                format!("{product} {}", series(first))
            } else {
                format!("{product} {} to {}", series(first), series(last))
            })
        })
        .collect();
    if !of.is_empty() {
        return format!("is an option of {}", of.join(" and of "));
    }
    let taken = whole_names("").filter(|option| known(product, version, option) == Known::Takes);
    match nearest(name, taken) {
        Some(near) => is_none_but(near),
        None => "is not an option of this server".to_owned(),
    }
}

fn is_none_but(near: &str) -> String {
    format!("is not an option of this server (did you mean `{near}`?)")
}

#[cfg(test)]
mod tests;
