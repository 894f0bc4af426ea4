//! The options that sysbench defines, with their types and defaults.

mod general;
mod own;

use dbduel_lua::{DeclaredOption, OptionKind};

pub use general::GENERAL;
pub use own::{CPU, FILE_IO, MEMORY, MUTEX, OLTP, RANDOM_POINTS, RANDOM_RANGES, THREADS};

/// An option.
#[derive(Debug)]
pub struct Spec {
    /// Its name, with hyphens; underscores are accepted everywhere.
    pub name: &'static str,
    /// Type of its values.
    pub kind: OptionKind,
    /// Its default, as text.
    pub default: Option<&'static str>,
    /// Its help text.
    pub about: &'static str,
}

/// A group of options in the help.
pub struct Section {
    /// The line above them; empty for none.
    pub title: &'static str,
    pub options: &'static [Spec],
}

const fn spec(
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    about: &'static str,
) -> Spec {
    Spec {
        name,
        kind,
        default: Some(default),
        about,
    }
}

const fn bare(name: &'static str, kind: OptionKind, about: &'static str) -> Spec {
    Spec {
        name,
        kind,
        default: None,
        about,
    }
}

impl Spec {
    /// The option as scripts declare theirs.
    pub fn declared(&self) -> DeclaredOption {
        DeclaredOption {
            name: self.name.to_owned(),
            description: self.about.to_owned(),
            kind: self.kind,
            default: self.default.map(str::to_owned),
        }
    }
}
