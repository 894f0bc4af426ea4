//! Parameters as users give them: by name, as a line of `-D` options, or in the configuration file of the program that
//! a workload comes from.
//!
//! Reads files only; the workload defines the keys. The nearer source wins: a name before `options` before the file
//! before the file that it refers to.

use std::path::{Path, PathBuf};

use dbduel_record::foreign::read_text;
use dbduel_record::plan::Parameters;
use serde_json::Value;

use super::Workload;
use super::parameters::{ParameterError, ScriptAccess, resolve_with};

/// The key that names a configuration file.
pub const CONFIG: &str = "config";
/// The key whose value is a line of `-D` options.
pub const OPTIONS: &str = "options";
/// Largest configuration file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Content of a configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Import {
    /// Parameters of the workload, each with its line number, from 1.
    pub parameters: Vec<(String, Value, usize)>,
    /// A further file, whose values apply where this one has none.
    pub next_file: Option<String>,
    /// Clients.
    pub clients: Option<u32>,
    /// Transactions per second of each client, with exponential gaps.
    pub rate_each: Option<f64>,
}

/// An invalid line of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ImportError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Parameters that cannot be completed.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError {
    /// One of them is invalid.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The workload has no configuration files.
    #[error("workload `{workload}` cannot import configuration files or options")]
    NothingToImport {
        /// Name of the workload.
        workload: &'static str,
    },
    /// A value that must be text is not.
    #[error("`{key}` must be a text")]
    NoText {
        /// The key.
        key: &'static str,
    },
    /// A file cannot be read.
    #[error("could not read the configuration file `{}`: {why}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system. Part of the text, since this error is also shown without its source.
        why: std::io::Error,
    },
    /// A line of a file is invalid.
    #[error("{}:{line}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// One of the `-D` options is invalid.
    #[error("option {number} of `options`: {why}")]
    Option {
        /// Its number, from 1.
        number: usize,
        /// What is wrong.
        why: String,
    },
}

/// Complete parameters, and the configuration's settings for the load.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// Every parameter of the workload.
    pub parameters: Parameters,
    /// Clients that the configuration sets.
    pub clients: Option<u32>,
    /// Transactions per second of each client that the configuration sets.
    pub rate_each: Option<f64>,
}

/// Completes parameters. A relative path is resolved against `directory`; a script is run with `access` to find its
/// options.
///
/// # Errors
/// [`CompletionError`]; an invalid line of a file is reported with file and line.
pub fn complete(
    workload: &dyn Workload,
    given: &Parameters,
    directory: &Path,
    access: ScriptAccess,
) -> Result<Completed, CompletionError> {
    let mut given = given.clone();
    let config = take_text(&mut given, CONFIG)?;
    let options = take_text(&mut given, OPTIONS)?;
    let mut completed = Completed {
        parameters: given,
        clients: None,
        rate_each: None,
    };
    if let Some(options) = options {
        completed.take_options(workload, &options)?;
    }
    if let Some(file) = config {
        let path = directory.join(file);
        if let Some(next) = completed.take_file(workload, &path)? {
            completed.take_file(workload, &beside(&path, &next))?;
        }
    }
    completed.parameters = resolve_with(workload, &completed.parameters, access)?;
    Ok(completed)
}

impl Completed {
    /// Adds the values of a file that are not set yet; returns the file that it refers to.
    fn take_file(
        &mut self,
        workload: &dyn Workload,
        path: &Path,
    ) -> Result<Option<String>, CompletionError> {
        let text = read_text(path, FILE_BYTES_MAX).map_err(|why| CompletionError::Read {
            path: path.to_owned(),
            why,
        })?;
        let wrong = |line, why| CompletionError::File {
            path: path.to_owned(),
            line,
            why,
        };
        self.take(workload, &text, wrong)
    }

    /// Adds options, one per word, with or without the `-D` of the original command line.
    fn take_options(
        &mut self,
        workload: &dyn Workload,
        options: &str,
    ) -> Result<(), CompletionError> {
        let lines: Vec<&str> = options
            .split_whitespace()
            .map(|word| word.strip_prefix("-D").unwrap_or(word))
            .collect();
        let wrong = |number, why| CompletionError::Option { number, why };
        self.take(workload, &lines.join("\n"), wrong).map(|_| ())
    }

    fn take(
        &mut self,
        workload: &dyn Workload,
        text: &str,
        wrong: impl Fn(usize, String) -> CompletionError,
    ) -> Result<Option<String>, CompletionError> {
        let Some(import) = workload.import(text) else {
            return Err(CompletionError::NothingToImport {
                workload: workload.name(),
            });
        };
        let Import {
            parameters,
            next_file,
            clients,
            rate_each,
        } = import.map_err(|error| wrong(error.line, error.why))?;
        let specs = workload.parameters();
        let mut own = Parameters::new();
        for (name, value, line) in parameters {
            let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
                return Err(wrong(
                    line,
                    format!("workload `{}` has no parameter `{name}`", workload.name()),
                ));
            };
            let value = spec
                .check(&value)
                .map_err(|error| wrong(line, error.to_string()))?;
            // As in the original, a later line wins.
            own.insert(name, value);
        }
        for (name, value) in own {
            if !self
                .parameters
                .keys()
                .any(|known| known.replace('-', "_") == name)
            {
                self.parameters.insert(name, value);
            }
        }
        self.clients = self.clients.or(clients);
        self.rate_each = self.rate_each.or(rate_each);
        Ok(next_file)
    }
}

fn take_text(given: &mut Parameters, key: &'static str) -> Result<Option<String>, CompletionError> {
    match given.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(CompletionError::NoText { key }),
    }
}

/// Path of a file that another one refers to: relative to that file's directory, or else to its parent, since programs
/// keep configurations in a folder of their home and name files from there.
fn beside(path: &Path, file: &str) -> PathBuf {
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let near = directory.join(file);
    let above = directory.join("..").join(file);
    if !near.exists() && above.exists() {
        above
    } else {
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    fn completed(given: &[(&str, &str)], directory: &Path) -> Result<Completed, CompletionError> {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect();
        complete(
            find("linkbench").unwrap(),
            &given,
            directory,
            ScriptAccess::Confined,
        )
    }

    #[test]
    fn what_stands_nearer_wins() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("config")).unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join("config").join(name), text).unwrap();
        };
        write(
            "LinkConfig.properties",
            "workload_file = config/Workload.properties\nrequesters = 32\nrequestrate = 5\nmaxid1 = 3001\nloaders=4\n",
        );
        write(
            "Workload.properties",
            "maxid1 = 10000001\nlink_datasize = 16\nread_shape = 0.7\nwrite_shape = 0.6\n",
        );
        let given = [
            ("config", "config/LinkConfig.properties"),
            ("options", "-Dread_shape=0.75 loaders=6"),
            ("write_shape", "0.65"),
        ];
        let completed = completed(&given, directory.path()).unwrap();
        for (name, value) in [
            ("maxid1", Value::from(3_001)),
            ("link_datasize", 16.0.into()),
            ("read_shape", 0.75.into()),
            ("loaders", 6.into()),
            ("write_shape", 0.65.into()),
        ] {
            assert_eq!(completed.parameters[name], value, "{name}");
        }
        assert_eq!(
            (completed.clients, completed.rate_each),
            (Some(32), Some(5.0))
        );
    }

    #[test]
    fn mistakes_are_told_with_file_and_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.properties");
        for (text, line, part) in [
            ("\n# a comment\nmaxid1 = many\n", 3, "whole number"),
            ("maxid = 5\n", 1, "did you mean `maxid1`?"),
            ("maxid1\n", 1, "no value"),
            ("requesters = none\n", 1, "requesters"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = completed(&[("config", "a.properties")], directory.path())
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with(&format!("{}:{line}: ", file.display())),
                "{error}"
            );
            assert!(error.contains(part), "{error}");
        }
        let error = completed(&[("config", "b.properties")], directory.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("b.properties"), "{error}");
        let error =
            completed(&[("options", "-Dmaxid1=9 -Dread_shap=1")], directory.path()).unwrap_err();
        assert!(error.to_string().starts_with("option 2"), "{error}");
    }

    #[test]
    fn a_configuration_without_an_end_is_refused_at_once() {
        let error = completed(&[("config", "/dev/zero")], Path::new("/"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn other_workloads_have_nothing_to_import() {
        let given = Parameters::from([("config".to_owned(), "x".into())]);
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("x"), "").unwrap();
        let outcome = complete(
            find("oltp-read-write").unwrap(),
            &given,
            directory.path(),
            ScriptAccess::Confined,
        );
        assert!(
            matches!(outcome, Err(CompletionError::NothingToImport { .. })),
            "{outcome:?}"
        );
    }
}
