//! Values as servers print them, brought to one form: numbers, switches and words.

use std::cmp::Ordering;
use std::fmt;

use serde::{Serialize, Serializer};

/// A value that can be compared across products.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number in the unit of its fact.
    Number(f64),
    /// On or off.
    Switch(bool),
    /// Anything else, in lower case where case does not matter.
    Word(String),
}

impl Value {
    pub fn word(text: &str) -> Self {
        Value::Word(text.to_owned())
    }

    /// The form in which variables are compared: a number where it is one, otherwise trimmed and in
    /// lower case. `ON` and `1` are not made equal here; only facts about switches do that.
    #[must_use]
    pub fn read(raw: &str) -> Self {
        let text = raw.trim();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && !text.is_empty() => Value::Number(number),
            _ => Value::Word(text.to_ascii_lowercase()),
        }
    }

    /// The number, when it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The switch: `ON`, `TRUE`, `YES`, 1 or their opposites.
    #[must_use]
    pub fn switch(&self) -> Option<bool> {
        match self {
            Value::Switch(on) => Some(*on),
            Value::Number(number) if *number == 1.0 => Some(true),
            Value::Number(number) if *number == 0.0 => Some(false),
            Value::Number(_) => None,
            Value::Word(word) => match word.to_ascii_lowercase().as_str() {
                "on" | "true" | "yes" | "enabled" => Some(true),
                "off" | "false" | "no" | "disabled" => Some(false),
                _ => None,
            },
        }
    }

    /// Order of two values of one kind.
    #[must_use]
    pub fn order(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Number(one), Value::Number(two)) => one.partial_cmp(two),
            (Value::Word(one), Value::Word(two)) => {
                Some(one.to_ascii_lowercase().cmp(&two.to_ascii_lowercase()))
            }
            // A switch on one side and `ON` or 1 on the other are one kind.
            _ => Some(self.switch()?.cmp(&other.switch()?)),
        }
    }

    /// True when both are the same, whatever way they are written.
    #[must_use]
    pub fn is_same(&self, other: &Value) -> bool {
        self.order(other) == Some(Ordering::Equal)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What is computed of decimal fractions has digits beyond those that are meant.
            Value::Number(number) if number.abs() < 1e6 => {
                write!(out, "{}", (number * 1e9).round() / 1e9)
            }
            Value::Number(number) => write!(out, "{number}"),
            Value::Switch(true) => out.write_str("on"),
            Value::Switch(false) => out.write_str("off"),
            Value::Word(word) if word.is_empty() => out.write_str("''"),
            Value::Word(word) => out.write_str(word),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Switch(on) => serializer.serialize_bool(*on),
            Value::Word(word) => serializer.serialize_str(word),
        }
    }
}

/// A name in the form that variables have: lower case, underscores, no `loose` before it.
#[must_use]
pub fn variable_name(written: &str) -> String {
    let name = written
        .trim()
        .trim_start_matches("--")
        .to_ascii_lowercase()
        .replace('-', "_");
    name.strip_prefix("loose_").unwrap_or(&name).to_owned()
}

/// A value as an option file has it, with the suffixes of sizes resolved: `16K` is 16384.
#[must_use]
pub fn option_value(written: &str) -> String {
    let text = written.trim();
    let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &text[..text.len() - suffix.len()];
    let shift = match suffix.chars().next().map(|c| c.to_ascii_lowercase()) {
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        Some('t') => 40,
        Some('p') => 50,
        Some('e') => 60,
        _ => return text.to_owned(),
    };
    match number
        .parse::<u64>()
        .ok()
        .and_then(|digits| digits.checked_mul(1 << shift))
    {
        Some(bytes) => bytes.to_string(),
        None => text.to_owned(),
    }
}

/// True when a server that shows `effective` does what `asked` says.
#[must_use]
pub fn is_in_effect(asked: &str, effective: &str) -> bool {
    let bare = |text: &str| option_value(text.trim().trim_matches(['"', '\'']));
    let (asked, effective) = (Value::read(&bare(asked)), Value::read(&bare(effective)));
    if asked.is_same(&effective) {
        return true;
    }
    match (&asked, &effective) {
        (Value::Word(asked), Value::Word(effective)) => {
            // Lists have no order.
            let parts = |list: &str| {
                let mut parts: Vec<String> =
                    list.split(',').map(|part| part.trim().to_owned()).collect();
                parts.sort();
                parts
            };
            parts(asked) == parts(effective)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_however_they_are_written() {
        for (asked, effective) in [
            ("1G", "1073741824"),
            ("8GB", "8589934592"),
            ("75", "75.000000"),
            ("ON", "1"),
            ("off", "OFF"),
            ("O_DIRECT", "o_direct"),
            ("\"crc32\"", "crc32"),
            ("B,A", "A,B"),
        ] {
            assert!(is_in_effect(asked, effective), "{asked} {effective}");
        }
        for (asked, effective) in [
            ("1G", "1073741825"),
            ("ON", "OFF"),
            ("2", "1"),
            ("crc32", "innodb"),
            ("", "1"),
        ] {
            assert!(!is_in_effect(asked, effective), "{asked} {effective}");
        }
    }

    #[test]
    fn sizes_lose_their_suffix_and_words_stay() {
        assert_eq!(option_value("16K"), "16384");
        assert_eq!(
            option_value("99999999999999999P"),
            "99999999999999999P",
            "too large to be a size"
        );
        assert_eq!(option_value("ibdata1:12M"), "ibdata1:12M");
        assert_eq!(option_value("Größe"), "Größe");
        assert_eq!(option_value(""), "");
    }

    #[test]
    fn names_are_written_in_many_ways() {
        for name in [
            "innodb-doublewrite",
            "--innodb_doublewrite",
            "loose-innodb-doublewrite",
            " INNODB_DOUBLEWRITE",
        ] {
            assert_eq!(variable_name(name), "innodb_doublewrite");
        }
    }
}
