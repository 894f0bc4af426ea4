//! Why a script cannot continue.

use std::fmt;

use dbduel_driver::{LostError, ServerError};

/// A line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as Lua names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// Why a script cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// There is no such file and no such module.
    #[error(
        "cannot find script `{name}`: there is no such file, and no module of that name in {searched}"
    )]
    NotFound {
        /// The requested name.
        name: String,
        /// Search path of modules.
        searched: String,
    },
    /// A file cannot be read.
    #[error("cannot read script `{path}`: {why}")]
    Read {
        /// The file.
        path: String,
        /// Error of the operating system.
        why: std::io::Error,
    },
    /// The script is not valid Lua.
    #[error("{message}")]
    Syntax {
        /// Position and error, in Lua's words.
        message: String,
    },
    /// The script raised an error.
    #[error("{}{message}", prefix(place.as_ref(), message))]
    Raised {
        /// Its message, which usually begins with the position.
        message: String,
        /// Position of the error in the script.
        place: Option<Place>,
        /// The function of the script that was called, under sysbench's name; `None` for the script's text.
        function: Option<String>,
        /// The calls that led there, innermost first, one per line.
        trace: String,
        /// The server's error that caused it, if any.
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
    /// A connection is unusable, and there is no other.
    #[error(transparent)]
    Lost(#[from] LostError),
    /// A connection was requested when the client's driver no longer waited for it.
    #[error("the run is over and there is no connection: {why}")]
    Over {
        /// The error of the connection.
        why: String,
    },
    /// The script was cancelled.
    #[error("the script was asked to end")]
    Cancelled,
    /// The system gave no thread or event loop, or a thread failed.
    #[error("cannot run the script's clients: {0}")]
    System(#[from] std::io::Error),
}

/// The position, when the message does not have it itself.
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
    /// An error raised by a function, under sysbench's name for it.
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

    /// The calls that led to the error, if it was raised in the script.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        match self {
            ScriptError::Raised { trace, .. } if !trace.trim().is_empty() => Some(trace.trim()),
            _ => None,
        }
    }

    /// The error in one line, as sysbench reports it.
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

    /// The error, followed by the calls that led to it.
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
