//! Options that a script declares, their types and their values.

use std::fmt::Write as _;

use dbduel_text::nearest;

/// A value in `sysbench.opt`.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// On or off.
    Bool(bool),
    /// Any number.
    Number(f64),
    /// Text; empty when there is none.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

/// Type of an option's value, under sysbench's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// No type.
    Null,
    /// On or off.
    Bool,
    /// A whole number.
    Int,
    /// A whole number with suffix K, M, G or T.
    Size,
    /// A number.
    Double,
    /// Any text.
    String,
    /// Texts separated by commas.
    List,
    /// A file's name.
    File,
}

/// An option that a script declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredOption {
    /// Its name as the script spells it.
    pub name: String,
    /// Description.
    pub description: String,
    /// Type of its value.
    pub kind: OptionKind,
    /// Its default as text.
    pub default: Option<String>,
}

/// An option that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// Neither the script nor sysbench has it.
    #[error("invalid option: --{name}{}", nearest.as_ref().map(|name| format!("; did you mean --{name}?")).unwrap_or_default())]
    Unknown {
        /// The name, as given.
        name: String,
        /// The most similar declared option.
        nearest: Option<String>,
    },
    /// Its value has another type, or the script rejects it.
    #[error("invalid value for the '{name}' option: '{value}'; it takes {takes}")]
    Invalid {
        /// The name, as declared.
        name: String,
        /// The value, as given.
        value: String,
        /// Allowed values.
        takes: &'static str,
    },
}

impl OptionKind {
    /// The kind with this number in `sysbench.cmdline.ARG_…`.
    pub(super) fn from_code(code: u32) -> Self {
        use OptionKind::{Bool, Double, File, Int, List, Null, Size, String};
        let kinds = [Null, Bool, Int, Size, Double, String, List, File];
        kinds.get(code as usize).copied().unwrap_or(Null)
    }

    /// Text after the name in a list of options.
    #[must_use]
    pub fn pattern(self) -> &'static str {
        match self {
            OptionKind::Null => "",
            OptionKind::Bool => "[=on|off]",
            OptionKind::Int | OptionKind::Double => "=N",
            OptionKind::Size => "=SIZE",
            OptionKind::String => "=STRING",
            OptionKind::List => "=[LIST,...]",
            OptionKind::File => "=FILENAME",
        }
    }

    fn takes(self) -> &'static str {
        match self {
            OptionKind::Bool => "on or off",
            OptionKind::Int => "a whole number",
            OptionKind::Size => "a whole number, optionally followed by K, M, G or T",
            OptionKind::Double => "a number",
            _ => "another text",
        }
    }

    /// Parses the value; without a text it is on, 0, empty or an empty list.
    ///
    /// # Errors
    /// The allowed values.
    pub fn read(self, text: Option<&str>) -> Result<OptionValue, &'static str> {
        let whole = text.unwrap_or_default();
        let text = text.map(str::trim);
        let value = match self {
            OptionKind::Bool => match text {
                None | Some("" | "on" | "true" | "1") => Some(OptionValue::Bool(true)),
                Some("off" | "false" | "0") => Some(OptionValue::Bool(false)),
                Some(_) => None,
            },
            OptionKind::Int | OptionKind::Double | OptionKind::Size
                if text.is_none_or(str::is_empty) =>
            {
                Some(OptionValue::Number(0.0))
            }
            OptionKind::Int => {
                let number = text.and_then(|text| text.parse::<i64>().ok());
                number.map(|number| OptionValue::Number(number as f64))
            }
            OptionKind::Double => {
                let number = text.and_then(|text| text.parse::<f64>().ok());
                number.map(OptionValue::Number)
            }
            OptionKind::Size => text.and_then(size).map(OptionValue::Number),
            OptionKind::List => Some(OptionValue::List(
                text.filter(|text| !text.is_empty())
                    .map(|text| text.split(',').map(|one| one.trim().to_owned()).collect())
                    .unwrap_or_default(),
            )),
            // Spaces are part of it: it may be a password.
            OptionKind::Null | OptionKind::String | OptionKind::File => {
                Some(OptionValue::Text(whole.to_owned()))
            }
        };
        value.ok_or_else(|| self.takes())
    }
}

/// A whole number with a suffix of powers of 1024.
fn size(text: &str) -> Option<f64> {
    let (number, factor) = match text.char_indices().next_back()? {
        (at, 'K' | 'k') => (&text[..at], 1_u64 << 10),
        (at, 'M' | 'm') => (&text[..at], 1 << 20),
        (at, 'G' | 'g') => (&text[..at], 1 << 30),
        (at, 'T' | 't') => (&text[..at], 1 << 40),
        _ => (text, 1),
    };
    Some((number.parse::<u64>().ok()?.checked_mul(factor)?) as f64)
}

/// Key of an option in `sysbench.opt`.
pub(super) fn key(name: &str) -> String {
    name.replace('-', "_")
}

/// The values of all declared options, and undeclared ones.
pub(super) struct Resolved {
    /// Key in `sysbench.opt`, the name as declared, the text if there is one, and the value.
    pub(super) values: Vec<ResolvedOption>,
    /// Options that the script does not declare.
    pub(super) unknown: Vec<(String, Option<String>)>,
}

pub(super) struct ResolvedOption {
    pub(super) key: String,
    pub(super) name: String,
    pub(super) given: Option<String>,
    pub(super) value: OptionValue,
}

/// Resolves the given options; the last of several wins.
pub(super) fn resolve(
    declared: &[DeclaredOption],
    given: &[(String, Option<String>)],
) -> Result<Resolved, OptionError> {
    let is = |option: &DeclaredOption, name: &str| key(&option.name) == key(name);
    let unknown = given
        .iter()
        .filter(|(name, _)| !declared.iter().any(|option| is(option, name)));
    let mut values = Vec::new();
    for option in declared {
        let last = given.iter().rev().find(|(name, _)| is(option, name));
        let text = match last {
            Some((_, text)) => text.clone(),
            None => option.default.clone(),
        };
        let value = option
            .kind
            .read(text.as_deref())
            .map_err(|takes| OptionError::Invalid {
                name: option.name.clone(),
                value: text.clone().unwrap_or_default(),
                takes,
            })?;
        values.push(ResolvedOption {
            key: key(&option.name),
            name: option.name.clone(),
            given: last.and_then(|(_, text)| text.clone()),
            value,
        });
    }
    Ok(Resolved {
        values,
        unknown: unknown.cloned().collect(),
    })
}

/// The error for an undeclared option.
pub(super) fn unknown(name: &str, declared: &[DeclaredOption]) -> OptionError {
    let names = declared.iter().map(|option| option.name.as_str());
    OptionError::Unknown {
        name: name.to_owned(),
        nearest: nearest(name, names).map(str::to_owned),
    }
}

/// The list of options as in help, with an empty line at its end.
#[must_use]
pub fn options_text(declared: &[DeclaredOption]) -> String {
    let length = |option: &DeclaredOption| option.name.len() + option.kind.pattern().len();
    let longest = declared.iter().map(length).max().unwrap_or_default();
    let mut text = String::new();
    for option in declared {
        let head = format!("{}{}", option.name, option.kind.pattern());
        let _ = write!(
            text,
            "  --{head:<width$} {}",
            option.description,
            width = longest
        );
        if let Some(default) = &option.default {
            let _ = write!(text, " [{default}]");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str, kind: OptionKind, default: Option<&str>) -> DeclaredOption {
        DeclaredOption {
            name: name.to_owned(),
            description: format!("About {name}"),
            kind,
            default: default.map(str::to_owned),
        }
    }

    #[test]
    fn values_are_read_in_their_types() {
        use OptionValue::{Bool, List, Number, Text};
        assert_eq!(OptionKind::Bool.read(None), Ok(Bool(true)));
        assert_eq!(OptionKind::Bool.read(Some("off")), Ok(Bool(false)));
        assert_eq!(OptionKind::Size.read(Some("2K")), Ok(Number(2048.0)));
        assert_eq!(OptionKind::Double.read(Some("0.5")), Ok(Number(0.5)));
        assert_eq!(OptionKind::Int.read(None), Ok(Number(0.0)));
        assert_eq!(OptionKind::String.read(None), Ok(Text(String::new())));
        assert_eq!(
            OptionKind::String.read(Some(" a ")),
            Ok(Text(" a ".to_owned()))
        );
        assert_eq!(OptionKind::Double.read(Some(" 2 ")), Ok(Number(2.0)));
        let list = List(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(OptionKind::List.read(Some("a,b")), Ok(list));
        for (kind, bad) in [
            (OptionKind::Bool, "maybe"),
            (OptionKind::Int, "1.5"),
            (OptionKind::Size, "2X"),
        ] {
            assert!(kind.read(Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn both_spellings_mean_the_same_option_and_the_last_wins() {
        let declared = [option("table-size", OptionKind::Double, Some("10"))];
        let given = [("table_size", "5"), ("table-size", "7"), ("tabel", "1")]
            .map(|(name, text)| (name.to_owned(), Some(text.to_owned())));
        let resolved = resolve(&declared, &given).unwrap();
        assert_eq!(resolved.values[0].key, "table_size");
        assert_eq!(resolved.values[0].value, OptionValue::Number(7.0));
        assert_eq!(resolved.unknown.len(), 1);
        let error = unknown("tabel-size", &declared).to_string();
        assert_eq!(
            error,
            "invalid option: --tabel-size; did you mean --table-size?"
        );
    }

    #[test]
    fn help_lines_up() {
        let declared = [
            option("auto_inc", OptionKind::Bool, Some("on")),
            option("tables", OptionKind::Double, None),
        ];
        assert_eq!(
            options_text(&declared),
            "  --auto_inc[=on|off] About auto_inc [on]\n  --tables=N          About tables\n\n"
        );
    }
}
