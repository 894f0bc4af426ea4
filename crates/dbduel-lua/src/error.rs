//! Why a script cannot go on.

use std::fmt;

use dbduel_driver::{LostError, ServerError};

/// A line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as Lua calls it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// Why a script cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// There is no such file and no such module.
    #[error(
        "cannot find script `{name}`: there is no such file, and no module of that name in {searched}"
    )]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where modules are looked for.
        searched: String,
    },
    /// A file cannot be read.
    #[error("cannot read script `{path}`: {why}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        why: std::io::Error,
    },
    /// The script is no Lua.
    #[error("{message}")]
    Syntax {
        /// Where and what, in Lua's words.
        message: String,
    },
    /// The script raised an error.
    #[error("{}{message}", prefix(place.as_ref(), message))]
    Raised {
        /// What it says; it usually begins with the place.
        message: String,
        /// Where in the script it came up.
        place: Option<Place>,
        /// The function of the script that was called, under the name that sysbench has for it; none for its text.
        function: Option<String>,
        /// The calls that led there, innermost first, one per line.
        trace: String,
        /// The server's error behind it, if it was one.
        sql: Option<Box<ServerError>>,
    },
    /// The script lacks a function.
    #[error("cannot find the {function}() function in {script}")]
    Lacks {
        /// The function.
        function: String,
        /// The script.
        script: String,
    },
    /// A connection is of no use any more, where nothing else can be used.
    #[error(transparent)]
    Lost(#[from] LostError),
    /// A connection was asked for when the client's driver did not wait for it any more.
    #[error("the time is over and there is no connection: {why}")]
    Over {
        /// Why there is none.
        why: String,
    },
    /// Its result is not wanted any more.
    #[error("the script was asked to end")]
    Cancelled,
    /// The system gave no thread or event loop, or a thread broke.
    #[error("cannot run the script's clients: {0}")]
    System(#[from] std::io::Error),
}

/// The place, when the message does not say it itself.
fn prefix(place: Option<&Place>, message: &str) -> String {
    match place {
        Some(place) if !message.contains(&format!("{place}:")) => format!("{place}: "),
        _ => String::new(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

impl ScriptError {
    /// An error that a function raised, which sysbench has under this name.
    pub(super) fn in_function(name: &str, error: mlua::Error) -> Self {
        match error.into() {
            ScriptError::Raised {
                message,
                place,
                trace,
                sql,
                ..
            } => ScriptError::Raised {
                message: message.trim_start_matches("runtime error: ").to_owned(),
                place,
                function: Some(name.to_owned()),
                trace,
                sql,
            },
            other => other,
        }
    }

    /// The calls that led to the error, when it was raised in the script.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        match self {
            ScriptError::Raised { trace, .. } if !trace.trim().is_empty() => Some(trace.trim()),
            _ => None,
        }
    }

    /// What went wrong in one line, as sysbench reports it.
    #[must_use]
    pub fn line(&self) -> String {
        let text = self.to_string();
        let text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        match self {
            ScriptError::Raised {
                function: Some(function),
                ..
            } => format!("`{function}' function failed: {text}"),
            _ => text,
        }
    }

    /// What went wrong, and below it the calls that led there.
    #[must_use]
    pub fn message(&self) -> String {
        match self.trace() {
            Some(trace) => format!("{self}\n{trace}"),
            None => self.to_string(),
        }
    }
}

impl From<mlua::Error> for ScriptError {
    fn from(error: mlua::Error) -> Self {
        match error {
            mlua::Error::SyntaxError { message, .. } => ScriptError::Syntax { message },
            error => {
                let text = error.to_string();
                let (message, trace) = match text.split_once("\nstack traceback:") {
                    Some((message, trace)) => (message.to_owned(), trace.to_owned()),
                    None => (text, String::new()),
                };
                ScriptError::Raised {
                    message,
                    place: None,
                    function: None,
                    trace,
                    sql: None,
                }
            }
        }
    }
}
