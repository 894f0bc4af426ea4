//! Short constructors for the parameter tables of workloads.

use super::parameters::{Default, Kind, ParameterSpec};

/// A whole number from `min` to `max`.
pub(super) const fn integer(
    name: &'static str,
    min: i64,
    max: i64,
    default: i64,
    about: &'static str,
) -> ParameterSpec {
    ParameterSpec {
        name,
        kind: Kind::Integer { min, max },
        default: Default::Integer(default),
        about,
    }
}

/// A number from `min` to `max`.
pub(super) const fn number(
    name: &'static str,
    min: f64,
    max: f64,
    default: f64,
    about: &'static str,
) -> ParameterSpec {
    ParameterSpec {
        name,
        kind: Kind::Number { min, max },
        default: Default::Number(default),
        about,
    }
}

/// On or off.
pub(super) const fn switch(
    name: &'static str,
    default: bool,
    about: &'static str,
) -> ParameterSpec {
    ParameterSpec {
        name,
        kind: Kind::Switch,
        default: Default::Switch(default),
        about,
    }
}

/// One of the words; the first is the default.
pub(super) const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    about: &'static str,
) -> ParameterSpec {
    ParameterSpec {
        name,
        kind: Kind::Choice(words),
        default: Default::Text(words[0]),
        about,
    }
}

/// Any text.
pub(super) const fn text(
    name: &'static str,
    default: &'static str,
    about: &'static str,
) -> ParameterSpec {
    ParameterSpec {
        name,
        kind: Kind::Text,
        default: Default::Text(default),
        about,
    }
}

/// The engine of all tables.
pub(super) const ENGINE: ParameterSpec = text("engine", "innodb", "Storage engine of the tables.");

/// Row format of all tables.
pub(super) const ROW_FORMAT: ParameterSpec = choice(
    "row_format",
    &["default", "dynamic", "compact", "redundant", "compressed"],
    "ROW_FORMAT of the tables; `default` leaves it to the server.",
);
