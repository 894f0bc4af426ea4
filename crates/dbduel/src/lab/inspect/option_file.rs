//! Option files: sections, includes, and what a server of some version would make of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::text::{self, TextError};
use crate::judge::audit::{
    Machine, Product, ServerEvidence, Version, check_value, expected, predict, variable_name,
};

/// Includes nested deeper than this are refused, as servers do.
const DEPTH_MAX: usize = 10;
/// Most files of one configuration.
const FILES_MAX: usize = 200;
/// Most settings of one configuration.
const SETTINGS_MAX: usize = 10_000;

/// A setting and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name in the form of variables.
    pub name: String,
    /// Value as written; empty for an option without one.
    pub value: String,
    /// Its file.
    pub path: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// Where the value begins, or the name of an option without one; in characters, from 1.
    pub column: usize,
}

/// The settings of a configuration in the order in which they take effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The settings.
    pub settings: Vec<Setting>,
    /// The files, the given one first.
    pub files: Vec<PathBuf>,
}

/// Reads an option file with everything that it includes. Sections for other products or versions are
/// left out; without a product every server section counts.
///
/// # Errors
/// When a file cannot be read or understood, or includes form a circle.
pub fn read(
    path: &Path,
    product: Option<Product>,
    version: Option<Version>,
) -> Result<Settings, TextError> {
    let mut reader = Reader {
        product,
        version,
        found: Settings::default(),
        open: Vec::new(),
        seen: BTreeSet::new(),
    };
    reader.file(path, None)?;
    Ok(reader.found)
}

/// Evidence of a server with these settings on this machine: the defaults of its version, then each setting.
///
/// # Errors
/// When product or version are not given, no defaults are recorded for the product, or a value is none
/// that the server takes.
pub fn evidence(
    name: &str,
    settings: &Settings,
    product: Option<Product>,
    version: Option<Version>,
    machine: Machine,
) -> Result<ServerEvidence> {
    let (Some(product), Some(version)) = (product, version) else {
        bail!(
            "an option file does not say for which server it is; add its product and version, for example --product-a mysql --version-a 5.6.24"
        );
    };
    let mut evidence = expected(name, product, version, machine)
        .context("no defaults are recorded for this product")?;
    let files: Vec<String> = settings
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    evidence.source = format!("{} over {}", files.join(", "), evidence.source);
    for setting in &settings.settings {
        check_value(&evidence, &setting.name, &setting.value).map_err(|why| TextError::Value {
            path: setting.path.clone(),
            line: setting.line,
            column: setting.column,
            why,
        })?;
        predict(&mut evidence, &setting.name, &setting.value);
    }
    Ok(evidence)
}

struct Reader {
    product: Option<Product>,
    version: Option<Version>,
    found: Settings,
    /// Files being read, each included by the one before it.
    open: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
}

impl Reader {
    /// Reads one file; `from` is the file and line that includes it.
    fn file(&mut self, path: &Path, from: Option<(&Path, usize)>) -> Result<(), TextError> {
        let blame = |why: String| match from {
            Some((file, line)) => TextError::at(file, line, why),
            None => TextError::at(path, 1, why),
        };
        let whole = fs::canonicalize(path).map_err(|source| match from {
            Some((file, line)) => TextError::at(
                file,
                line,
                format!("`{}` cannot be included: {source}", path.display()),
            ),
            None => TextError::Read {
                path: path.to_owned(),
                source,
            },
        })?;
        if self.open.contains(&whole) {
            return Err(blame(format!(
                "`{}` includes itself in a circle",
                path.display()
            )));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(blame(format!(
                "includes are nested deeper than {DEPTH_MAX}"
            )));
        }
        self.seen.insert(whole.clone());
        if self.found.files.len() >= FILES_MAX {
            return Err(blame(format!(
                "the configuration has more than {FILES_MAX} files"
            )));
        }
        let lines = text::lines(path).map_err(|error| match error {
            TextError::NotAFile(path) if from.is_some() => blame(format!(
                "`{}` cannot be included: it is not a regular file",
                path.display()
            )),
            other => other,
        })?;
        self.found.files.push(path.to_owned());
        self.open.push(whole);
        let mut applies = false;
        let mut has_section = false;
        for (index, written) in lines.iter().enumerate() {
            let number = index + 1;
            let line = written.trim();
            if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
                continue;
            }
            if let Some(directive) = line.strip_prefix('!') {
                self.include(path, number, directive)?;
            } else if let Some(rest) = line.strip_prefix('[') {
                let name = rest.split(']').next().filter(|_| rest.contains(']'));
                let name = name.ok_or_else(|| {
                    TextError::at(path, number, "the name of a section has no `]`")
                })?;
                applies = self.is_for_this_server(name.trim());
                has_section = true;
            } else if !has_section {
                return Err(TextError::at(
                    path,
                    number,
                    "a setting before the first section, such as [mysqld]",
                ));
            } else if applies {
                self.setting(path, number, written)?;
            }
        }
        self.open.pop();
        Ok(())
    }

    fn include(&mut self, path: &Path, number: usize, directive: &str) -> Result<(), TextError> {
        let (word, target) = directive
            .split_once(char::is_whitespace)
            .unwrap_or((directive, ""));
        let target = Path::new(target.trim());
        let target = match path.parent() {
            Some(parent) if target.is_relative() => parent.join(target),
            _ => target.to_owned(),
        };
        match word {
            "include" => self.file(&target, Some((path, number))),
            "includedir" => {
                let unreadable = |error: std::io::Error| {
                    TextError::at(
                        path,
                        number,
                        format!("`{}` cannot be included: {error}", target.display()),
                    )
                };
                let mut files: Vec<PathBuf> = Vec::new();
                for entry in fs::read_dir(&target)
                    .map_err(unreadable)?
                    .take(FILES_MAX * 10)
                {
                    let file = entry.map_err(unreadable)?.path();
                    if file.extension().is_some_and(|extension| extension == "cnf") {
                        files.push(file);
                    }
                }
                files.sort();
                files
                    .iter()
                    .try_for_each(|file| self.file(file, Some((path, number))))
            }
            _ => Err(TextError::at(
                path,
                number,
                format!("`!{word}` is neither !include nor !includedir"),
            )),
        }
    }

    fn setting(&mut self, path: &Path, number: usize, written: &str) -> Result<(), TextError> {
        let line = written.trim();
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, plain(value)),
            None => (line.split('#').next().unwrap_or_default(), String::new()),
        };
        let name = variable_name(name);
        if name.is_empty() || name.contains(char::is_whitespace) {
            let shown: String = name.chars().take(40).collect();
            return Err(TextError::at(
                path,
                number,
                format!("`{shown}` is not the name of a setting"),
            ));
        }
        if self.found.settings.len() >= SETTINGS_MAX {
            return Err(TextError::at(
                path,
                number,
                format!("the configuration has more than {SETTINGS_MAX} settings"),
            ));
        }
        self.found.settings.push(Setting {
            name,
            value,
            path: path.to_owned(),
            line: number,
            column: column_of_value(written),
        });
        Ok(())
    }

    /// `[mysqld]`, `[server]`, `[mariadb-10.1]` … as far as this server reads them.
    fn is_for_this_server(&self, section: &str) -> bool {
        let (word, version) = match section.split_once('-') {
            Some((word, version)) if version.starts_with(|first: char| first.is_ascii_digit()) => {
                (word, Some(version))
            }
            _ => (section, None),
        };
        let is_word = match word {
            "mysqld" | "server" => true,
            "mariadb" | "mariadbd" | "client-server" | "galera" => self
                .product
                .is_none_or(|product| product == Product::MariaDb),
            _ => false,
        };
        let is_version = match (version, self.version) {
            (None, _) => true,
            (Some(written), Some(version)) => {
                written == format!("{}.{}", version.major, version.minor)
            }
            (Some(_), None) => false,
        };
        is_word && is_version
    }
}

/// Where the value of a line begins, in characters from 1; the name, where there is no value.
fn column_of_value(written: &str) -> usize {
    let before = written.find('=').map_or(0, |at| at + 1);
    let blanks = written[before..].len() - written[before..].trim_start().len();
    written[..before + blanks].chars().count() + 1
}

/// A value without quotes, escapes and the comment after it.
fn plain(value: &str) -> String {
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote)
            && let Some(end) = rest.find(quote)
        {
            return rest[..end].to_owned();
        }
    }
    let mut plain = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '#' if plain.is_empty() || plain.ends_with(char::is_whitespace) => break,
            '\\' => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('s') => plain.push(' '),
                Some('\\') | None => plain.push('\\'),
                Some(other) => plain.extend(['\\', other]),
            },
            other => plain.push(other),
        }
    }
    plain.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
