//! `[attribute]`: divides the difference of two contenders among the settings in which they differ.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::document::{Located, Report, Section, describe, string};

/// `[attribute]`.
#[derive(Debug, Clone, Default)]
pub struct Attribute {
    /// Its place.
    pub span: Range<usize>,
    /// The contender whose difference to the baseline is divided; by default the other one of two.
    pub to: Option<Located<String>>,
    /// The factors; empty means all differences.
    pub factors: Vec<WrittenFactor>,
}

/// Settings that change as one.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenFactor {
    /// Their names.
    pub names: Vec<Located<String>>,
    /// Why they are grouped, where dbduel grouped them.
    pub grouped_because: Option<String>,
}

pub(super) fn read_attribute(report: &Report<'_>, section: &Section<'_, '_>) -> Attribute {
    let attribute = Attribute {
        span: section.span(),
        to: section.get("to", string),
        factors: section
            .value("factors")
            .map(|value| read_factors(report, value))
            .unwrap_or_default(),
    };
    section.refuse_unknown_keys();
    attribute
}

fn read_factors(report: &Report<'_>, value: &Spanned<DeValue<'_>>) -> Vec<WrittenFactor> {
    let wrong = |value: &Spanned<DeValue<'_>>| {
        let message = format!(
            "`factors` in [attribute] is a list of settings, or of lists of settings that change together, such as \
             [\"innodb_doublewrite\", [\"log_bin\", \"sync_binlog\"]]; found {}",
            describe(value.get_ref())
        );
        report.add(&value.span(), message);
    };
    let Some(list) = value.get_ref().as_array().filter(|list| !list.is_empty()) else {
        wrong(value);
        return Vec::new();
    };
    let name = |entry: &Spanned<DeValue<'_>>| match string(entry.get_ref()) {
        Ok(value) => Some(Located {
            value,
            span: entry.span(),
        }),
        Err(_) => {
            wrong(entry);
            None
        }
    };
    let factor = |entry: &Spanned<DeValue<'_>>| WrittenFactor {
        names: match entry.get_ref().as_array() {
            Some(names) if !names.is_empty() => names.iter().filter_map(name).collect(),
            _ => name(entry).into_iter().collect(),
        },
        grouped_because: None,
    };
    list.iter().map(factor).collect()
}
