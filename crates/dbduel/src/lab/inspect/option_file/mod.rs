//! Option files: sections, includes, and what a server of some version would make of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::text::{self, TextError};
use super::{postgresql, sqlite};
use crate::judge::audit::{
    Machine, MissingInclude, OptionFate, Product, RefusedOption, ServerEvidence, Version, expected,
    option_fate, set_option,
};
use crate::judge::finding::at_most;

/// Includes nested deeper than this are refused, as servers do.
const DEPTH_MAX: usize = 10;
/// Most files of one configuration.
const FILES_MAX: usize = 200;
/// Files of a configuration that its source names.
const FILES_NAMED: usize = 3;
/// Most settings of one configuration.
const SETTINGS_MAX: usize = 10_000;

/// A setting and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name as written, with dashes or underscores.
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
    pub settings: Vec<Setting>,
    /// The files, the given one first.
    pub files: Vec<PathBuf>,
    /// What they include and is not at hand.
    pub missing: Vec<MissingInclude>,
}

impl Settings {
    /// Adds what they ask for to evidence of a server that shows its variables.
    pub fn asked_of(&self, evidence: &mut ServerEvidence) {
        for setting in &self.settings {
            match option_fate(evidence.product, evidence.version, &setting.name) {
                OptionFate::Refused(why) => {
                    let why = format!("`{}` {why}", setting.name);
                    evidence.refused.push(setting.refused(why));
                }
                _ => evidence.ask(&setting.name, &setting.value),
            }
        }
    }
}

/// Reads an option file with everything that it includes. Groups for other products or versions are left out; without
/// a product every group of a server counts. What an option file in the directory `archive` includes is looked for in
/// that directory, since its paths are those of another machine.
///
/// # Errors
/// When a file cannot be read or understood, or includes form a circle.
pub fn read(
    path: &Path,
    product: Option<Product>,
    version: Option<Version>,
    archive: Option<&Path>,
) -> Result<Settings, TextError> {
    match product {
        Some(Product::PostgreSql) => return postgresql::option_file(path),
        Some(Product::Sqlite) => return sqlite::script(path),
        _ => {}
    }
    let mut reader = Reader {
        product,
        version,
        archive: archive.and_then(|archive| fs::canonicalize(archive).ok()),
        found: Settings::default(),
        open: Vec::new(),
        seen: BTreeSet::new(),
    };
    reader.file(path, None)?;
    Ok(reader.found)
}

/// Evidence of a server with these settings on this machine: the defaults of its version, then each setting that the
/// server takes; the others are kept as refused.
///
/// # Errors
/// When product or version are not given, or no defaults are recorded for the product.
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
    let files = settings.files.iter();
    let files = at_most(FILES_NAMED, files.map(|file| file.display().to_string()));
    evidence.source = format!("{} over {}", files.join(", "), evidence.source);
    evidence.missing_includes.clone_from(&settings.missing);
    for setting in &settings.settings {
        if let Err(why) = set_option(&mut evidence, &setting.name, &setting.value) {
            evidence.refused.push(setting.refused(why));
        }
    }
    Ok(evidence)
}

impl Setting {
    /// The setting as one that a server does not take.
    #[must_use]
    pub fn refused(&self, why: String) -> RefusedOption {
        RefusedOption {
            place: format!("{}:{}:{}", self.path.display(), self.line, self.column),
            option: self.name.clone(),
            why,
        }
    }
}

struct Reader {
    product: Option<Product>,
    version: Option<Version>,
    /// The directory of published results that the file is in.
    archive: Option<PathBuf>,
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
        let (word, written) = directive
            .split_once(char::is_whitespace)
            .unwrap_or((directive, ""));
        let written = written.trim();
        if !matches!(word, "include" | "includedir") {
            let why = format!("`!{word}` is neither !include nor !includedir");
            return Err(TextError::at(path, number, why));
        }
        if written.is_empty() {
            return Err(TextError::at(
                path,
                number,
                format!("`!{word}` names nothing"),
            ));
        }
        let Some(target) = self.at_hand(path, Path::new(written)) else {
            self.found.missing.push(MissingInclude {
                place: format!("{}:{number}", path.display()),
                target: written.to_owned(),
            });
            return Ok(());
        };
        if word == "include" {
            return self.file(&target, Some((path, number)));
        }
        let unreadable = |error: std::io::Error| {
            let why = format!("`{}` cannot be included: {error}", target.display());
            TextError::at(path, number, why)
        };
        let mut files: Vec<PathBuf> = Vec::new();
        let entries = fs::read_dir(&target).map_err(unreadable)?;
        for entry in entries.take(FILES_MAX * 10) {
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

    /// Where an included file or directory is; `None` when it is not at hand.
    fn at_hand(&self, path: &Path, target: &Path) -> Option<PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let Some(archive) = &self.archive else {
            // An absolute target takes the place of the folder.
            let target = folder.join(target);
            return target.exists().then_some(target);
        };
        let names: Vec<_> = target.components().filter(is_name).collect();
        let endings = (0..names.len()).map(|start| names[start..].iter().collect::<PathBuf>());
        let places = endings.flat_map(|ending| [folder.join(&ending), archive.join(&ending)]);
        let mut found = places
            .filter(|place| fs::canonicalize(place).is_ok_and(|place| place.starts_with(archive)));
        found.next()
    }

    fn setting(&mut self, path: &Path, number: usize, written: &str) -> Result<(), TextError> {
        let line = written.trim();
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, plain(value)),
            None => (line.split('#').next().unwrap_or_default(), String::new()),
        };
        let name = name.trim().to_owned();
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

    /// Whether this server reads a group: `[mysqld]`, `[server]`, `[mysqld-8.0]`; MariaDB `[mariadb]`, `[mariadb-10.11]`,
    /// `[mariadbd]` since 10.4.6, `[client-server]` and `[galera]` too (`--help --verbose` of both products).
    fn is_for_this_server(&self, group: &str) -> bool {
        let is_mariadb = self
            .product
            .is_none_or(|product| product == Product::MariaDb);
        let has_mariadbd = is_mariadb
            && self
                .version
                .is_none_or(|version| (version.major, version.minor, version.patch) >= (10, 4, 6));
        let is_program = |word: &str| match word {
            "mysqld" => true,
            "mariadb" => is_mariadb,
            "mariadbd" => has_mariadbd,
            _ => false,
        };
        match group.split_once('-') {
            Some((word, series)) if series.starts_with(|first: char| first.is_ascii_digit()) => {
                let own = self
                    .version
                    .map(|version| format!("{}.{}", version.major, version.minor));
                is_program(word) && own.as_deref() == Some(series)
            }
            _ => {
                is_program(group)
                    || group == "server"
                    || is_mariadb && matches!(group, "client-server" | "galera")
            }
        }
    }
}

fn is_name(component: &std::path::Component<'_>) -> bool {
    matches!(component, std::path::Component::Normal(_))
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
