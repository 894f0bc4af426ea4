//! The tables of facts, as they stand in `data`: compiled in, parsed once.
//!
//! A table that breaks its own rules is a mistake in the program, which the tests here find.

#[cfg(test)]
mod coverage;
mod notation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use dbduel_text::{Version, shortened};

use super::classes::{Class, Weight};
use super::expression::Expression;
use super::server::{Product, Servers};
use super::value::Value;

/// Most characters shown of a value: a server may have one of megabytes.
const SHOWN_CHARACTERS: usize = 2000;

const FILES: &[&str] = &[
    include_str!("../../data/durability.toml"),
    include_str!("../../data/semantics.toml"),
    include_str!("../../data/performance.toml"),
    include_str!("../../data/information.toml"),
    include_str!("../../data/postgresql.toml"),
    include_str!("../../data/sqlite.toml"),
];

/// How two values of a fact are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compare {
    /// They must be the same.
    Equal,
    /// Numbers may differ by this share of the larger.
    Within(f64),
    /// Numbers may differ by this factor.
    Ratio(f64),
    /// Lists; what only one of them has is named.
    List,
    /// Lists of `name=value`; only names that both have count.
    Flags,
    /// Numbers that must be equal where both sides have the feature; 0 means that a side has none.
    WhereBoth,
}

/// Which value is the faster one.
#[derive(Debug, Clone, PartialEq)]
pub enum Faster {
    /// It depends.
    Unknown,
    /// The larger number.
    Larger,
    /// The smaller number.
    Smaller,
    /// These words, fastest first.
    Words(Vec<String>),
}

/// A property that every server has, whatever its settings are called.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Stable name.
    pub name: String,
    /// The class that it belongs to.
    pub class: &'static Class,
    /// Title, for messages.
    pub title: String,
    /// Unit of a number; empty without one.
    pub unit: String,
    /// How values are compared.
    pub compare: Compare,
    /// How much a difference weighs.
    pub weight: Weight,
    /// How much it weighs when a side set it on purpose.
    pub asked_weight: Weight,
    /// Which value is the faster one.
    pub faster: Faster,
    /// The target of an equalised experiment; the baseline's value when absent.
    pub target: Option<Expression>,
    /// Names of values, where a bare value would be unclear.
    pub labels: BTreeMap<String, String>,
    /// Why a difference matters.
    pub why: String,
    /// Action where no setting makes it equal.
    pub remedy: Option<String>,
    /// How the value is found, by server.
    pub rows: Vec<Row>,
    /// Variable of one name and meaning everywhere; where it does not exist it is not compared.
    pub is_plain: bool,
}

/// How a fact's value is found on some servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Which servers.
    pub on: Servers,
    /// How it is computed.
    pub value: Expression,
    /// Settings that bring it about; `target` is the value wanted.
    pub set: Vec<(String, Expression)>,
    /// True when no setting changes it, or one only among servers of related products.
    pub is_architecture: bool,
    /// True when a fix may make the value larger and not smaller.
    pub is_raise_only: bool,
    /// The target where one of these servers takes part; the fact's target when absent.
    pub target: Option<Expression>,
    /// Labels of values on these servers; the fact's own labels when absent.
    pub labels: BTreeMap<String, String>,
    /// Source of the row.
    pub source: String,
}

impl Row {
    /// True when the product's design determines the value, beside a server of a related product or of another one.
    #[must_use]
    pub fn is_by_design(&self, is_beside_relative: bool) -> bool {
        self.is_architecture && (self.set.is_empty() || !is_beside_relative)
    }
}

impl Fact {
    /// The row about this server.
    #[must_use]
    pub fn row(&self, product: Product, version: Version) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.on.includes(product, version))
    }

    /// The value as people read it.
    #[must_use]
    pub fn show(&self, value: &Value) -> String {
        if let Some(label) = self.labels.get(&value.to_string()) {
            return label.clone();
        }
        match (value, self.unit.as_str()) {
            (Value::Number(bytes), "bytes") => show_bytes(*bytes),
            (Value::Number(1.0), "threads") => "1 thread".to_owned(),
            (Value::Number(_), unit) if !unit.is_empty() => format!("{value} {unit}"),
            _ => shortened(&value.to_string(), SHOWN_CHARACTERS).into_owned(),
        }
    }
}

/// Bytes with a binary prefix, when it comes out even or nearly so.
#[must_use]
pub fn show_bytes(bytes: f64) -> String {
    let mut number = bytes;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if number < 1024.0 {
            break;
        }
        number /= 1024.0;
        unit = larger;
    }
    let rounded = (number * 100.0).round() / 100.0;
    format!("{rounded} {unit}")
}

/// Reason for not comparing variables that differ between any two servers.
const OF_THE_INSTANCE: &str = "name of an instance, a place or a moment";

#[derive(Debug)]
/// All facts, and the variables that are not compared or not recorded.
pub struct Table {
    /// The facts, in the order of the classes.
    pub facts: Vec<Fact>,
    /// Patterns of variables that are not compared, with the reason.
    pub ignored: Vec<(String, String)>,
    /// Patterns of variables that the recorded defaults leave out.
    unrecorded: Vec<String>,
    mapped: BTreeSet<String>,
}

impl Table {
    /// The fact called `name`.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.name == name)
    }

    /// The reason for not comparing a variable; `None` for one that is compared.
    #[must_use]
    pub fn why_ignored(&self, variable: &str) -> Option<&str> {
        self.ignored
            .iter()
            .find(|(pattern, _)| matches(pattern, variable))
            .map(|(_, why)| why.as_str())
    }

    /// True for a variable that the recorded defaults leave out, so that nothing is known of its default, nor
    /// which servers have it.
    #[must_use]
    pub fn is_unrecorded(&self, variable: &str) -> bool {
        let mut patterns = self.unrecorded.iter();
        patterns.any(|pattern| matches(pattern, variable))
    }

    /// True when a variable names an instance, a place or a moment, and so differs between any two servers.
    #[must_use]
    pub fn is_of_the_instance(&self, variable: &str) -> bool {
        self.why_ignored(variable) == Some(OF_THE_INSTANCE)
    }

    /// True when a fact follows from this variable, on whatever server.
    #[must_use]
    pub fn is_mapped(&self, variable: &str) -> bool {
        self.mapped.contains(variable)
    }
}

/// True when a variable is the one, or among those, that a pattern stands for.
fn matches(pattern: &str, variable: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            variable.len() >= start.len() + end.len()
                && variable.starts_with(start)
                && variable.ends_with(end)
        }
        None => variable == pattern,
    }
}

/// The tables that are compiled in.
///
/// # Panics
/// When they break their own notation, which the tests of this module exclude.
#[must_use]
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> =
        LazyLock::new(|| notation::parse(FILES).expect("the tables that are compiled in parse"));
    &TABLE
}

#[cfg(test)]
mod tests {
    use super::notation::parse;
    use super::*;
    use crate::expression;

    #[test]
    fn the_readme_has_the_number_of_facts_to_the_nearest_ten() {
        // The others are single variables, which are compared by name.
        let facts = FILES.iter().map(|file| file.matches("[[fact]]\n").count());
        let number = (facts.sum::<usize>() + 5) / 10 * 10;
        for (page, said) in [
            ("README.md", format!("about {number} facts")),
            ("README.zh-CN.md", format!("约 {number} 项")),
        ] {
            let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&said), "{page}: `{said}`");
        }
    }

    #[test]
    fn the_tables_parse_and_no_fact_stands_twice() {
        let table = parse(FILES).unwrap();
        let mut seen = BTreeSet::new();
        for fact in &table.facts {
            assert!(seen.insert(&fact.name), "`{}` stands twice", fact.name);
            assert!(
                fact.why.ends_with('.'),
                "{}: the reason is a sentence",
                fact.name
            );
            assert!(!fact.rows.is_empty(), "{} has no row", fact.name);
            assert!(
                fact.rows.iter().all(|row| !row.source.is_empty()),
                "{}: no source",
                fact.name
            );
        }
        assert!(table.facts.len() > 100);
    }

    #[test]
    fn names_look_where_there_is_something_and_facts_refer_only_to_facts_that_do_not_refer_back() {
        const PLACES: &[&str] = &[
            "status",
            "session",
            "connection",
            "table",
            "host",
            "probe",
            "asked",
            "derived",
            "fact",
        ];
        let table = table();
        for fact in &table.facts {
            for name in fact
                .rows
                .iter()
                .flat_map(|row| expression::names(&row.value))
            {
                let Some((place, rest)) = name.split_once('.') else {
                    continue;
                };
                assert!(PLACES.contains(&place), "{}: `{name}`", fact.name);
                if place == "fact" {
                    let other = table
                        .fact(rest)
                        .unwrap_or_else(|| panic!("{}: there is no fact `{rest}`", fact.name));
                    let refers_back = |row: &Row| {
                        expression::names(&row.value)
                            .iter()
                            .any(|name| name.starts_with("fact."))
                    };
                    assert!(
                        !other.rows.iter().any(refers_back),
                        "{}: `{rest}` depends on facts itself",
                        fact.name
                    );
                }
            }
        }
    }

    #[test]
    fn broken_tables_are_refused() {
        let fact = |line: &str| {
            format!(
                "[[fact]]\nname='a'\nclass='P1'\ntitle='a'\nwhy='b.'\nrows=[{{on='any',value='1',source='s'}}]\n{line}"
            )
        };
        assert!(parse(&[&fact("")]).is_ok());
        for line in [
            "class='P1'",
            "compare='about'",
            "compare='ratio'",
            "target='('",
            "colour='red'",
        ] {
            assert!(parse(&[&fact(line)]).is_err(), "{line}");
        }
        assert!(parse(&["[[same]]\nclass='X'\nwhy='b.'\nvariables=['a']"]).is_err());
    }

    #[test]
    fn patterns_stand_for_any_ending() {
        let table = table();
        assert!(
            table
                .why_ignored("performance_schema_max_table_instances")
                .is_some()
        );
        assert!(table.why_ignored("net_read_timeout").is_some());
        assert!(table.why_ignored("innodb_io_capacity").is_none());
    }

    #[test]
    fn bytes_are_shown_with_binary_prefixes() {
        assert_eq!(show_bytes(104_857_600.0), "100 MiB");
        assert_eq!(show_bytes(1_610_612_736.0), "1.5 GiB");
        assert_eq!(show_bytes(512.0), "512 B");
    }
}
