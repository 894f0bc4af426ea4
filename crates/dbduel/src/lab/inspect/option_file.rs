//! Option files: sections, includes, and what a server of some version would make of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::text::{self, TextError};
use crate::judge::audit::{Defaults, Product, ServerEvidence, Version, predict, variable_name};

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
    /// File and line.
    pub place: String,
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

/// Evidence of a server with these settings: defaults of the nearest recorded version, then each setting.
///
/// # Errors
/// When product or version are not given, or no defaults are recorded for the product.
pub fn evidence(
    name: &str,
    settings: &Settings,
    product: Option<Product>,
    version: Option<Version>,
) -> Result<ServerEvidence> {
    let (Some(product), Some(version)) = (product, version) else {
        bail!(
            "an option file does not say for which server it is; add its product and version, for example --product-a mysql --version-a 5.6.24"
        );
    };
    let defaults =
        Defaults::nearest(product, version).context("no defaults are recorded for this product")?;
    let mut evidence = defaults
        .evidence(name)
        .context("the recorded defaults have no version")?;
    evidence.product = product;
    evidence.version = version;
    evidence.version_text = version.to_string();
    let files: Vec<String> = settings
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    evidence.source = format!(
        "{} over the defaults of {}",
        files.join(", "),
        defaults.server
    );
    for setting in &settings.settings {
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
        let lines = text::lines(path)?;
        self.found.files.push(path.to_owned());
        self.open.push(whole);
        let mut applies = false;
        let mut has_section = false;
        for (index, line) in lines.iter().enumerate() {
            let number = index + 1;
            let line = line.trim();
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
                self.setting(path, number, line)?;
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

    fn setting(&mut self, path: &Path, number: usize, line: &str) -> Result<(), TextError> {
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
            place: format!("{}:{number}", path.display()),
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
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        directory
    }

    fn version(text: &str) -> Option<Version> {
        Version::parse(text)
    }

    #[track_caller]
    fn check(product: Product, wanted: &str, content: &str, expected: &[(&str, &str)]) {
        let directory = files(&[("my.cnf", content)]);
        let read = read(
            &directory.path().join("my.cnf"),
            Some(product),
            version(wanted),
        )
        .unwrap();
        let settings: Vec<(&str, &str)> = read
            .settings
            .iter()
            .map(|setting| (setting.name.as_str(), setting.value.as_str()))
            .collect();
        assert_eq!(settings, expected);
    }

    #[test]
    fn sections_of_the_server_and_its_version_count() {
        let content = "[client]\nport=1\n[mysqld]\na=1\n[mysqld-5.6]\nb=2\n[mysqld-5.7]\nc=3\n[mariadb]\nd=4\n[server]\ne=5\n[mysqldump]\nf=6\n[mariadb-10.1]\ng=7\n";
        check(
            Product::MySql,
            "5.6.24",
            content,
            &[("a", "1"), ("b", "2"), ("e", "5")],
        );
        check(
            Product::MariaDb,
            "10.1.8",
            content,
            &[("a", "1"), ("d", "4"), ("e", "5"), ("g", "7")],
        );
    }

    #[test]
    fn values_lose_quotes_and_comments() {
        let content = "[mysqld]\n# note\n; note\ninnodb-log-file-size = 8G # large\nskip-log-bin\nsql_mode=\"A,B\" # c\nloose-x='a b'\ninit_connect=SET\\sx\nempty=\n";
        let expected = [
            ("innodb_log_file_size", "8G"),
            ("skip_log_bin", ""),
            ("sql_mode", "A,B"),
            ("x", "a b"),
            ("init_connect", "SET x"),
            ("empty", ""),
        ];
        check(Product::MySql, "5.6", content, &expected);
    }

    #[test]
    fn included_files_take_effect_where_they_stand() {
        let directory = files(&[
            (
                "my.cnf",
                "[mysqld]\na=1\n!include more.cnf\n!includedir conf.d\n[mysqld]\na=9\n",
            ),
            ("more.cnf", "[mysqld]\na=2\n"),
            ("conf.d/20.cnf", "[mysqld]\na=4\n"),
            ("conf.d/10.cnf", "[mysqld]\na=3\n"),
            ("conf.d/notes.txt", "nonsense"),
        ]);
        let read = read(&directory.path().join("my.cnf"), None, None).unwrap();
        let values: Vec<&str> = read
            .settings
            .iter()
            .map(|setting| setting.value.as_str())
            .collect();
        assert_eq!(values, ["1", "2", "3", "4", "9"]);
        assert_eq!(read.files.len(), 4);
    }

    #[track_caller]
    fn check_error(contents: &[(&str, &str)], expected: &str) {
        let directory = files(contents);
        let error = read(&directory.path().join("my.cnf"), None, None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn broken_configurations_are_errors_with_a_line() {
        check_error(
            &[
                ("my.cnf", "[mysqld]\n!include b.cnf\n"),
                ("b.cnf", "[mysqld]\n\n!include my.cnf\n"),
            ],
            "line 3: ",
        );
        check_error(&[("my.cnf", "[mysqld]\n!include my.cnf\n")], "in a circle");
        check_error(&[("my.cnf", "[mysqld]\n!includedir .\n")], "in a circle");
        check_error(&[("my.cnf", "[mysqld]\n!include gone.cnf\n")], "line 2: `");
        check_error(&[("my.cnf", "a=1\n")], "line 1: a setting before");
        check_error(&[("my.cnf", "[mysqld\n")], "line 1: the name of a section");
        check_error(&[("my.cnf", "[mysqld]\n!source x\n")], "line 2: `!source`");
        check_error(&[("my.cnf", "[mysqld]\na b c\n")], "line 2: `a b c` is not");
        check_error(&[("my.cnf", "[mysqld]\na=\0\n")], "line 2: this is no text");
        let deep: Vec<(String, String)> = (0..12)
            .map(|at| {
                (
                    format!("{at}.cnf"),
                    format!("[mysqld]\n!include {}.cnf\n", at + 1),
                )
            })
            .collect();
        let mut contents: Vec<(&str, &str)> = deep
            .iter()
            .map(|(name, content)| (name.as_str(), content.as_str()))
            .collect();
        contents.push(("my.cnf", "[mysqld]\n!include 0.cnf\n"));
        check_error(&contents, "nested deeper");
    }

    #[test]
    fn a_configuration_becomes_a_prediction_of_its_server() {
        let directory = files(&[(
            "my.cnf",
            "[mysqld]\ninnodb_buffer_pool_size=50G\nskip-log-bin\n",
        )]);
        let settings = read(
            &directory.path().join("my.cnf"),
            Some(Product::MySql),
            version("8.0.33"),
        )
        .unwrap();
        let server = evidence("a", &settings, Some(Product::MySql), version("8.0.33")).unwrap();
        assert!(server.is_predicted);
        assert_eq!(server.variables["log_bin"], "OFF");
        assert_eq!(server.variables["innodb_buffer_pool_size"], "53687091200");
        assert!(
            evidence("a", &settings, None, None)
                .unwrap_err()
                .to_string()
                .contains("--product-a")
        );
    }
}
