//! Option files: sections, includes, and how a server of a given version reads them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_audit::finding::at_most;
use dbduel_audit::postgresql::{contradiction, is_fixed};
use dbduel_audit::{
    FileSetting, FileSettingFate, Machine, MissingInclude, OptionFate, Product, RefusedOption,
    ServerEvidence, Taken, Version, expected, has_option, option_fate, set_option, split_key_cache,
    variable_of,
};

use super::includes::Includes;
use super::text::{self, TextError};
use super::{postgresql, sqlite};

/// Limit of nested includes; deeper ones are left out, as servers do.
const DEPTH_MAX: usize = 10;
/// Limit of files of one configuration.
const FILES_MAX: usize = 200;
/// Number of files named as the source of a configuration.
const FILES_NAMED: usize = 3;
/// Limit of settings of one configuration.
const SETTINGS_MAX: usize = 10_000;

/// A setting and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name as written, with dashes or underscores.
    pub name: String,
    /// Value without its quotes, escapes and comment; `None` for an option without a value.
    pub value: Option<String>,
    /// Its file.
    pub path: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// Column of the value, or of the name of an option without one; in characters, from 1.
    pub column: usize,
}

/// The settings of a configuration in the order in which they take effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The settings.
    pub settings: Vec<Setting>,
    /// The files, the given one first.
    pub files: Vec<PathBuf>,
    /// Includes that are not available.
    pub missing: Vec<MissingInclude>,
    /// Lines that prevent the server from starting, whatever its settings.
    pub refused: Vec<RefusedOption>,
}

impl Settings {
    /// The settings that a server of this product evaluates: for PostgreSQL the last of each name, for the others all.
    fn in_effect(&self, product: Product) -> impl Iterator<Item = &Setting> {
        let later = |at: usize| &self.settings[at + 1..];
        let settings = self.settings.iter().enumerate();
        let counts = move |(at, setting): &(usize, &Setting)| {
            product != Product::PostgreSql || later(*at).iter().all(|one| one.name != setting.name)
        };
        settings.filter(counts).map(|(_, setting)| setting)
    }

    /// Keeps a line that prevents the server from starting. `shown` is its faulty part.
    pub fn refuse(&mut self, path: &Path, line: usize, column: usize, shown: &str, why: &str) {
        let shown: String = shown.trim().chars().take(40).collect();
        self.refused.push(RefusedOption {
            place: format!("{}:{line}:{column}", path.display()),
            why: format!("`{shown}` {why}"),
            option: shown,
            is_inferred: false,
        });
    }

    /// Adds these settings as requested to evidence of a server that shows its variables.
    pub fn asked_of(&self, evidence: &mut ServerEvidence) {
        evidence.is_asked_by_file = true;
        evidence.refused.extend(self.refused.iter().cloned());
        for setting in &self.settings {
            match option_fate(evidence.product, evidence.version, &setting.name) {
                OptionFate::Refused(why) => {
                    let why = format!("`{}` {why}", setting.name);
                    evidence.refused.push(setting.refused(why));
                }
                _ => evidence.ask(&setting.name, setting.value.as_deref().unwrap_or_default()),
            }
        }
    }
}

/// Reads an option file with all its includes from `includes`. Groups for other products or versions are left out;
/// without a product every server group counts.
///
/// # Errors
/// When a file cannot be read.
pub fn read(
    path: &Path,
    product: Option<Product>,
    version: Option<Version>,
    includes: &Includes,
) -> Result<Settings, TextError> {
    match product {
        Some(Product::PostgreSql) => return postgresql::option_file(path, includes),
        Some(Product::Sqlite) => return sqlite::script(path),
        Some(Product::MySql | Product::MariaDb | Product::Percona) | None => {}
    }
    let mut reader = Reader {
        product,
        version,
        includes,
        found: Settings::default(),
        open: Vec::new(),
        seen: BTreeSet::new(),
    };
    reader.file(path, None)?;
    Ok(reader.found)
}

/// Predicted evidence of a server with these settings on this machine: the defaults of its version, then each setting
/// that the server accepts; the others are kept as refused.
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
            "an option file does not name its server; add product and version, for example --product-a mysql --version-a 5.6.24"
        );
    };
    let mut evidence = expected(name, product, version, machine)
        .context("no defaults are recorded for this product")?;
    let files = settings.files.iter();
    let files = at_most(FILES_NAMED, files.map(|file| file.display().to_string()));
    evidence.source = format!("{} over {}", files.join(", "), evidence.source);
    evidence.missing_includes.clone_from(&settings.missing);
    evidence.refused.clone_from(&settings.refused);
    let unreadable = settings.refused.iter().map(|refused| FileSetting {
        place: refused.place.clone(),
        name: refused.option.clone(),
        fate: FileSettingFate::Refused,
        variable: None,
        shown: None,
    });
    evidence.file_settings.extend(unreadable);
    for setting in settings.in_effect(product) {
        let taken = match product == Product::PostgreSql && is_fixed(&setting.name, version) {
            true => Err(format!("no file sets `{}`", setting.name)),
            false => set_option(&mut evidence, &setting.name, setting.value.as_deref()),
        };
        let variable = variable_of(&evidence, &setting.name);
        let fate = match &taken {
            Ok(Taken::Yes) => FileSettingFate::Taken,
            Ok(Taken::Ignored) => FileSettingFate::Ignored,
            Ok(Taken::NoVariable) => match has_option(&evidence, &setting.name) {
                true => FileSettingFate::Taken,
                false => FileSettingFate::Unknown,
            },
            Ok(Taken::Refused) | Err(_) => FileSettingFate::Refused,
        };
        evidence.file_settings.push(FileSetting {
            place: setting.place(),
            name: setting.name.clone(),
            fate,
            shown: variable
                .as_ref()
                .and_then(|variable| evidence.variables.get(variable).cloned()),
            variable,
        });
        if let Err(why) = taken {
            evidence.refused.push(setting.refused(why));
        } else if fate == FileSettingFate::Unknown
            && let OptionFate::ProbablyRefused(why) = option_fate(product, version, &setting.name)
        {
            let why = format!("`{}` {why}", setting.name);
            evidence.refused.push(RefusedOption {
                is_inferred: true,
                ..setting.refused(why)
            });
        }
    }
    if product == Product::PostgreSql
        && let Some((name, why)) = contradiction(&evidence.variables)
    {
        let place = settings.settings.iter().rfind(|one| one.name == name);
        evidence.refused.push(match place {
            Some(setting) => setting.refused(why),
            None => RefusedOption {
                place: evidence.source.clone(),
                option: name.to_owned(),
                why,
                is_inferred: false,
            },
        });
    }
    Ok(evidence)
}

impl Setting {
    fn place(&self) -> String {
        format!("{}:{}:{}", self.path.display(), self.line, self.column)
    }

    /// The setting as a refused option.
    #[must_use]
    pub fn refused(&self, why: String) -> RefusedOption {
        RefusedOption {
            place: self.place(),
            option: self.name.clone(),
            why,
            is_inferred: false,
        }
    }
}

struct Reader<'a> {
    product: Option<Product>,
    version: Option<Version>,
    includes: &'a Includes,
    found: Settings,
    /// Files being read, each included by the previous one.
    open: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
}

impl Reader<'_> {
    /// Reads one file; `from` is the file and line of its include.
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
        // Servers leave deeper ones out, and read a file that includes itself again, which changes nothing.
        if self.open.contains(&whole) || self.open.len() >= DEPTH_MAX {
            return Ok(());
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
        if text::has_mark(path) {
            let first = lines.first().map_or("", String::as_str);
            self.refuse(path, 1, first, text::MARK);
        }
        let mut applies = false;
        let mut has_section = false;
        // A fault in the groups of an included file ends that file, and of the first one the server.
        let is_included = from.is_some();
        for (index, written) in lines.iter().enumerate() {
            let number = index + 1;
            let line = written.trim_ascii();
            if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
                continue;
            }
            if let Some(directive) = line.strip_prefix('!') {
                self.include(path, number, directive.trim_ascii_start())?;
            } else if let Some(rest) = line.strip_prefix('[') {
                has_section = true;
                match rest.split_once(']') {
                    Some((name, _)) => applies = self.is_for_this_server(name.trim_ascii_end()),
                    None if is_included => break,
                    None => self.refuse(path, number, written, "has no `]`"),
                }
            } else if !has_section && is_included {
                break;
            } else if !has_section {
                let why = "precedes the first group, such as [mysqld]";
                self.refuse(path, number, written, why);
            } else if applies {
                self.setting(path, number, written)?;
            }
        }
        self.open.pop();
        Ok(())
    }

    fn include(&mut self, path: &Path, number: usize, directive: &str) -> Result<(), TextError> {
        let (word, written) = directive
            .split_once(|c: char| c.is_ascii_whitespace())
            .unwrap_or((directive, ""));
        let written = written.trim_ascii();
        if !matches!(word, "include" | "includedir") {
            // Servers skip what they do not know.
            return Ok(());
        }
        if written.is_empty() {
            self.refuse(path, number, &format!("!{word}"), "names nothing");
            return Ok(());
        }
        let Some(target) = self.includes.find(path, Path::new(written)) else {
            self.missing(path, number, written);
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
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if !self.is_option_file(&name) {
                continue;
            }
            if file.is_dir() {
                continue;
            }
            if self.includes.hold(&file) {
                files.push(file);
            } else {
                self.missing(path, number, &format!("{written}/{name}"));
            }
        }
        files.sort();
        files
            .iter()
            .try_for_each(|file| self.file(file, Some((path, number))))
    }

    fn missing(&mut self, path: &Path, number: usize, target: &str) {
        self.found.missing.push(MissingInclude {
            place: format!("{}:{number}", path.display()),
            target: target.to_owned(),
        });
    }

    fn refuse(&mut self, path: &Path, number: usize, written: &str, why: &str) {
        let column = column_of_first(written);
        self.found.refuse(path, number, column, written, why);
    }

    /// True when a server reads a file of this name in an included directory. For MySQL before 8.0 the extension is
    /// everything after the first dot.
    fn is_option_file(&self, name: &str) -> bool {
        let is_old = self.product != Some(Product::MariaDb)
            && self.version.is_some_and(|version| version.major < 8);
        match is_old {
            true => name
                .split_once('.')
                .is_some_and(|(_, ending)| ending == "cnf"),
            false => name.ends_with(".cnf"),
        }
    }

    fn setting(&mut self, path: &Path, number: usize, written: &str) -> Result<(), TextError> {
        let line = without_comment(written).trim_ascii();
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim_ascii_end(), Some(plain(value))),
            None => (line, None),
        };
        let option = match (self.product, self.version) {
            (Some(product), Some(version)) => split_key_cache(product, version, name).1,
            _ => name,
        };
        let is_loose = option.to_ascii_lowercase().starts_with("loose");
        let has_blank = name.contains(|c: char| c.is_ascii_whitespace()) && !is_loose;
        if name.is_empty() || name.starts_with('-') || has_blank {
            let why = match name.starts_with('-') {
                true => "begins with dashes, which belong to the command line",
                false => "is not the name of a setting; write `name = value`",
            };
            let column = column_of_first(written);
            self.found.refuse(path, number, column, name, why);
            return Ok(());
        }
        if self.found.settings.len() >= SETTINGS_MAX {
            return Err(TextError::at(
                path,
                number,
                format!("the configuration has more than {SETTINGS_MAX} settings"),
            ));
        }
        self.found.settings.push(Setting {
            name: name.to_owned(),
            value,
            path: path.to_owned(),
            line: number,
            column: column_of_value(written),
        });
        Ok(())
    }

    /// True when this server reads a group, in any case: `[mysqld]`, `[server]`, `[mysqld-8.0]`; MySQL since 8.0
    /// `[mysql_cluster]`; MariaDB `[mariadb]`, `[mariadb-10.11]`, `[mariadb-11]` since 11, `[mariadbd]` since 10.4.6,
    /// `[client-server]` and `[galera]` too (`--help --verbose` of both products).
    fn is_for_this_server(&self, group: &str) -> bool {
        let group = group.to_ascii_lowercase();
        let is_mariadb = self
            .product
            .is_none_or(|product| product == Product::MariaDb);
        let has_mariadbd = is_mariadb
            && self
                .version
                .is_none_or(|version| (version.major, version.minor, version.patch) >= (10, 4, 6));
        let has_cluster = self.product != Some(Product::MariaDb)
            && self.version.is_none_or(|version| version.major >= 8);
        let is_program = |word: &str| match word {
            "mysqld" => true,
            "mariadb" => is_mariadb,
            "mariadbd" => has_mariadbd,
            _ => false,
        };
        match group.split_once('-') {
            Some((word, series)) if series.starts_with(|first: char| first.is_ascii_digit()) => {
                let is_own = self.version.is_some_and(|version| {
                    let is_major = word != "mysqld" && version.major >= 11;
                    series == format!("{}.{}", version.major, version.minor)
                        || is_major && series == version.major.to_string()
                });
                is_program(word) && is_own
            }
            _ => {
                is_program(&group)
                    || group == "server"
                    || is_mariadb && matches!(&*group, "client-server" | "galera")
                    || has_cluster && group == "mysql_cluster"
            }
        }
    }
}

/// Column of a line's value, in characters from 1; of the name where there is no value.
fn column_of_value(written: &str) -> usize {
    let before = written.find('=').map_or(0, |at| at + 1);
    let blanks = written[before..].len() - written[before..].trim_ascii_start().len();
    written[..before + blanks].chars().count() + 1
}

/// Column of a line's first non-blank character, in characters from 1.
pub fn column_of_first(written: &str) -> usize {
    written.chars().take_while(|c| c.is_whitespace()).count() + 1
}

/// A line without its trailing comment, which may begin anywhere but in quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, character) in line.char_indices() {
        match character {
            '\'' | '"' if !is_escaped => match quote {
                None => quote = Some(character),
                Some(open) if open == character => quote = None,
                Some(_) => {}
            },
            '#' if quote.is_none() => return &line[..at],
            _ => {}
        }
        is_escaped = quote.is_some() && character == '\\' && !is_escaped;
    }
    line
}

/// A value without its quotes and escapes.
fn plain(value: &str) -> String {
    let value = value.trim_ascii();
    let quotes = ['"', '\''].into_iter();
    let mut unquoted = quotes.filter_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let value = unquoted.next().unwrap_or(value);
    let mut plain = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('r') => plain.push('\r'),
                Some('b') => plain.push('\u{8}'),
                Some('s') => plain.push(' '),
                Some(same @ ('"' | '\'' | '\\')) => plain.push(same),
                Some(other) => plain.extend(['\\', other]),
                None => plain.push('\\'),
            },
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
