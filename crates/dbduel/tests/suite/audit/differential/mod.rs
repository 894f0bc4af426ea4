//! The audit of option files against the servers themselves: lines drawn from a seed, each asked of the audit and of the
//! server (`--verbose --help`, `--validate-config`, `postgres -C`), must have one answer.
//!
//! The lines are known options with values in every form that people write: units, quotes, beginnings of words, numbers of
//! words, comments, prefixes, shortened names, slips of the pen, dashes, nothing at all. The tables of `dbduel-audit` have the options.

mod exceptions;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use dbduel_client::random::Random;
use serde_json::Value;

use exceptions::{NOT_ASKED, READ_FURTHER, SHOWN_OTHERWISE};

use super::super::bare_server::Tree;
use super::super::harness::seed;
use super::{audit, text};

/// Lines that are asked of each server.
const LINES: usize = 400;
/// Lines of them that may be answered otherwise: each option has rare forms of its own, and what is drawn is printed.
const DISAGREEMENTS_MAX: usize = LINES / 100;
/// Lines of one file that the audit reads at once, each of another option.
const LINES_OF_A_FILE: usize = 25;

/// A line and what is known of it.
#[derive(Debug, Clone)]
struct Line {
    text: String,
    option: String,
}

impl Line {
    /// True when it has the beginning of the option's name only.
    fn is_shortened(&self) -> bool {
        let name = self
            .text
            .split(['=', ' ', '\t'])
            .find(|part| !part.is_empty());
        let name = name
            .unwrap_or_default()
            .to_ascii_lowercase()
            .replace('-', "_");
        let prefixes = ["loose_", "skip_", "disable_", "enable_"].into_iter();
        let bare = prefixes.fold(name.as_str(), |name, prefix| {
            name.strip_prefix(prefix).unwrap_or(name)
        });
        self.option.starts_with(bare) && self.option != bare
    }
}

/// What becomes of a line.
#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Refused,
    /// Taken, with what is shown afterwards where that is known.
    Taken(Option<String>),
    /// Of the audit alone: nothing is known of the option.
    Unknown,
}

/// Draws lines.
struct Draw(Random);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        self.0.below(count as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A value in some form; `words` are those that the option has.
    fn value(&mut self, words: &[String]) -> String {
        const NUMBERS: &[&str] = &[
            "0",
            "1",
            "2",
            "3",
            "7",
            "10",
            "64",
            "100",
            "1000",
            "4096",
            "65536",
            "123457",
            "99999999999",
            "-1",
            "-5",
            "+5",
            "010",
            "0x10",
            "0x10000",
            "1.5",
            "0.25",
            ".5",
            "1e3",
            "100.4",
            "0,9",
            "1_000",
            "25%",
            "2 ",
            "nan",
        ];
        const UNITS: &[&str] = &[
            "", "", "", "K", "k", "M", "G", "T", "kB", "KB", "kb", "MB", "mb", "GB", "B", "ms",
            "s", "min", "h", "d", "us", " MB", " kB", " s", "MiB", "x", "8kB",
        ];
        const SWITCHES: &[&str] = &[
            "on", "off", "ON", "Off", "true", "false", "tru", "t", "f", "of", "o", "yes", "no",
            "y", "No", "1", "0", "2", "maybe", "enabled", "",
        ];
        match self.below(10) {
            0..=3 => format!("{}{}", self.of(NUMBERS), self.of(UNITS)),
            4..=5 => self.of(SWITCHES).to_owned(),
            6..=8 if !words.is_empty() => self.word(words),
            6 => "no_such_word".to_owned(),
            _ => self.of(NUMBERS).to_owned(),
        }
    }

    fn word(&mut self, words: &[String]) -> String {
        let word = words[self.below(words.len())].clone();
        match self.below(8) {
            0 => word.to_uppercase(),
            1 => word.to_lowercase(),
            2 => word[..=self.below(word.len())].to_owned(),
            3 => format!("{word}x"),
            4 => self.below(words.len() + 2).to_string(),
            5 => format!("{word},{}", words[self.below(words.len())]),
            _ => word,
        }
    }

    /// A value as a file has it: quotes, blanks and comments around it.
    fn dressed(&mut self, value: &str) -> String {
        match self.below(14) {
            0 | 1 => format!("'{value}'"),
            2 => format!("\"{value}\""),
            3 => format!("'{value}"),
            4 => format!("{value} # note"),
            5 => format!("{value}# note"),
            6 => format!("{value};note"),
            7 => format!("'{value}' # it's"),
            8 => format!("{value} {value}"),
            9 => format!("{value}\t"),
            _ => value.to_owned(),
        }
    }

    /// A name with a slip, shortened, or in other letters.
    fn name(&mut self, option: &str, is_of_mysql: bool) -> String {
        let mut name = option.to_owned();
        if self.is(30) && is_of_mysql {
            name = name.replace('_', "-");
        }
        match self.below(20) {
            0 => {
                name.remove(self.below(option.len()));
            }
            1 => name.insert(self.below(option.len()), 'x'),
            2 => name.truncate(option.len() - 1 - self.below(option.len() / 2)),
            3 => name = name.to_uppercase(),
            _ => {}
        }
        let prefix = match self.below(if option.starts_with("skip") { 1 } else { 24 }) {
            0 if option.starts_with("skip") => "",
            0 => "loose-",
            1 => "skip-",
            2 => "disable-",
            3 => "enable_",
            4 => "maximum-",
            5 => "--",
            _ => "",
        };
        match is_of_mysql {
            true => format!("{prefix}{name}"),
            false => name,
        }
    }

    fn line(&mut self, option: &str, words: &[String], is_of_mysql: bool) -> Line {
        let name = self.name(option, is_of_mysql);
        let value = self.value(words);
        let value = self.dressed(&value);
        let text = match self.below(12) {
            0 => name,
            1 => format!("{name} {value}"),
            2 => format!("{name}=\t{value}"),
            3 => format!("  {name}  =  {value}"),
            4 | 5 => format!("{name}={value}"),
            _ => format!("{name} = {value}"),
        };
        Line {
            text,
            option: option.to_owned(),
        }
    }
}

/// A server that is asked.
struct Oracle {
    tree: Tree,
    product: &'static str,
    folder: tempfile::TempDir,
}

impl Oracle {
    fn of(server: &str) -> Self {
        let mut products = ["mariadb", "mysql", "postgresql"].into_iter();
        let product = products.find(|product| server.starts_with(product));
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(folder.path().join("postgresql.auto.conf"), "").unwrap();
        Oracle {
            tree: Tree::open(server),
            product: product.unwrap(),
            folder,
        }
    }

    fn is_postgresql(&self) -> bool {
        self.product == "postgresql"
    }

    /// The options of the server, and the words that each may have.
    fn options(&self) -> Vec<(String, Vec<String>)> {
        let table = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../dbduel-audit/data")
                .join(name);
            let text = fs::read_to_string(path).unwrap();
            let rows = text
                .lines()
                .map(|line| line.split('\t').map(str::to_owned).collect());
            rows.collect::<Vec<Vec<String>>>()
        };
        let (options, values) = match self.is_postgresql() {
            true => (
                table("defaults-postgresql.tsv"),
                table("values-postgresql.tsv"),
            ),
            false => (table("options.tsv"), table("values.tsv")),
        };
        let version = self.tree.version();
        let series = |version: &str| {
            let parts = version
                .split('.')
                .take(if self.is_postgresql() { 1 } else { 2 });
            parts.collect::<Vec<_>>().join(".")
        };
        let wanted = format!("{}-{}", self.product, series(&version));
        let is_of_series = |name: &String| {
            let (product, version) = name.split_once('-').unwrap_or_default();
            format!("{product}-{}", series(version)) == wanted
        };
        let column = options[0]
            .iter()
            .position(is_of_series)
            .expect("a recorded series");
        let mut words: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in values.iter().filter(|row| row[1].starts_with(self.product)) {
            if ["one", "several", "exact"].contains(&row[2].trim_end_matches('?')) {
                let listed = row[3]
                    .split(',')
                    .map(|word| word.split('=').next().unwrap().to_owned());
                words.entry(&row[0]).or_default().extend(listed);
            }
        }
        let rows = options.iter().skip(1).filter(|row| row[column] != "-");
        let rows = rows.filter(|row| !NOT_ASKED.contains(&row[0].as_str()));
        rows.map(|row| {
            (
                row[0].clone(),
                words.get(row[0].as_str()).cloned().unwrap_or_default(),
            )
        })
        .collect()
    }

    /// What the server makes of a line.
    fn ask(&self, line: &Line, shown_as: &str) -> Answer {
        match self.is_postgresql() {
            true => self.ask_postgresql(line),
            false => self.ask_mysql(line, shown_as),
        }
    }

    fn ask_postgresql(&self, line: &Line) -> Answer {
        let folder = self.folder.path();
        fs::write(folder.join("postgresql.conf"), format!("{}\n", line.text)).unwrap();
        let output = self
            .tree
            .daemon()
            .args(["-C", &line.option, "-D", text(folder)])
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        match output.status.success() {
            true => Answer::Taken(Some(
                String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            )),
            false => Answer::Refused,
        }
    }

    fn ask_mysql(&self, line: &Line, shown_as: &str) -> Answer {
        let file = self.folder.path().join("my.cnf");
        fs::write(&file, format!("[mysqld]\n{}\n", line.text)).unwrap();
        let run = |arguments: &[&str]| {
            let first = format!("--defaults-file={}", text(&file));
            let mut command = self.tree.command_with(&first, self.folder.path());
            if self.tree.is_new_mysql() {
                command.arg("--secure-file-priv=");
            }
            command.args(arguments).output().unwrap()
        };
        let listed = run(&["--verbose", "--help"]);
        let is_refused = match self.tree.is_new_mysql() {
            // With a loose option it succeeds though a plugin has not read its options.
            true => {
                let checked = run(&["--validate-config"]);
                let said = String::from_utf8_lossy(&checked.stderr).into_owned();
                !checked.status.success() || said.contains("[ERROR]")
            }
            false => {
                let said = String::from_utf8_lossy(&listed.stderr).into_owned();
                // What is wrong with an option of a plugin is printed, and the plugin then stops the server.
                let errors = [
                    "Error while setting value",
                    "unknown variable",
                    "unknown option",
                    "ambiguous option",
                    "requires an argument",
                    "cannot take an argument",
                ];
                let mut lines = said.lines().filter(|line| !line.contains("[Warning]"));
                !listed.status.success()
                    || lines.any(|line| errors.iter().any(|error| line.contains(error)))
            }
        };
        if is_refused {
            return Answer::Refused;
        }
        Answer::Taken(list(&String::from_utf8_lossy(&listed.stdout)).remove(shown_as))
    }

    /// Whether a server that makes its data with this line comes to its end: the engines look at some values only then.
    fn starts(&self, line: &Line) -> bool {
        if self.is_postgresql() || self.tree.is_new_mysql() {
            return self.ask(line, &line.option) != Answer::Refused;
        }
        let file = self.folder.path().join("my.cnf");
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("mysql")).unwrap();
        fs::write(&file, format!("[mysqld]\n{}\n", line.text)).unwrap();
        let mut command = self
            .tree
            .command_with(&format!("--defaults-file={}", text(&file)), data.path());
        let output = command
            .arg("--bootstrap")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        output.status.success()
    }

    /// What the audit makes of lines of different options, and the variable of each.
    fn audit(&self, lines: &[Line]) -> Vec<(Answer, Option<String>)> {
        let before = if self.is_postgresql() {
            ""
        } else {
            "[mysqld]\n"
        };
        let (plain, with) = (
            self.folder.path().join("plain"),
            self.folder.path().join("with"),
        );
        let mut content = before.to_owned();
        for line in lines {
            let _ = writeln!(content, "{}", line.text);
        }
        fs::write(&plain, before).unwrap();
        fs::write(&with, content).unwrap();
        let version = self.tree.version();
        let sides = [
            "--product-a",
            self.product,
            "--version-a",
            &version,
            "--product-b",
            self.product,
            "--version-b",
            &version,
        ];
        let output = audit(&[&[text(&plain), text(&with), "--json"][..], &sides].concat());
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let settings = report["audit"]["contenders"][1]["file_settings"]
            .as_array()
            .cloned();
        let settings = settings.unwrap_or_default();
        let first = before.lines().count() + 1;
        let answer = |at: usize| {
            let place = format!("{}:{}:", text(&with), first + at);
            let of_line = settings
                .iter()
                .find(|one| one["place"].as_str().unwrap().starts_with(&place));
            // A line that is empty or a comment sets nothing.
            let Some(found) = of_line else {
                return (Answer::Taken(None), None);
            };
            let part = |name: &str| found[name].as_str().map(str::to_owned);
            let answer = match found["fate"].as_str().unwrap() {
                "refused" => Answer::Refused,
                "unknown" => Answer::Unknown,
                _ => Answer::Taken(part("shown")),
            };
            (answer, part("variable"))
        };
        (0..lines.len()).map(answer).collect()
    }
}

/// The variables in the list of options.
fn list(help: &str) -> BTreeMap<String, String> {
    let rule = |line: &&str| line.starts_with("-----") && line.contains(" ---");
    let rows = help.lines().skip_while(|line| !rule(line)).skip(1);
    let rows = rows.take_while(|line| !line.trim().is_empty());
    rows.map(|row| {
        let (name, value) = row.split_once(' ').unwrap_or((row, ""));
        (name.replace('-', "_"), value.trim().to_owned())
    })
    .collect()
}

/// Settings of PostgreSQL with their units, as factors of the form that the audit has.
fn factors() -> BTreeMap<String, f64> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../dbduel-audit/data/defaults-postgresql.tsv");
    let units = [
        ("B", 1.0),
        ("kB", 1024.0),
        ("8kB", 8192.0),
        ("MB", 1_048_576.0),
        ("16MB", 16_777_216.0),
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
    ];
    let text = fs::read_to_string(path).unwrap();
    let factor = |line: &str| {
        let mut cells = line.split('\t');
        let (name, unit) = (cells.next()?, cells.next()?);
        let (_, factor) = units.iter().find(|(word, _)| *word == unit)?;
        Some((name.to_owned(), *factor))
    };
    text.lines().skip(1).filter_map(factor).collect()
}

/// True when both texts show one value.
fn is_same(audit: &str, server: &str, factor: Option<f64>) -> bool {
    let number = |text: &str| match text {
        "ON" | "TRUE" => Some(1.0),
        "OFF" | "FALSE" => Some(0.0),
        text => text.parse::<f64>().ok().filter(|number| number.is_finite()),
    };
    let words = |text: &str| text.to_ascii_lowercase().replace("(no default value)", "");
    match (number(audit), number(server)) {
        (Some(one), Some(other)) => {
            let other = if other > 0.0 {
                other * factor.unwrap_or(1.0)
            } else {
                other
            };
            (one - other).abs() <= 1e-5 * one.abs().max(1e-3)
        }
        _ => words(audit).trim() == words(server).trim(),
    }
}

/// Asks both about drawn lines.
fn compare(server: &str) {
    let oracle = Oracle::of(server);
    let options = oracle.options();
    let mut draw = Draw(Random::new(seed()));
    let factors = factors();
    let (mut tried, mut unknown, mut otherwise, mut further) = (0, 0, 0, 0);
    let mut wrong: Vec<String> = Vec::new();
    while tried < LINES {
        let mut names = BTreeSet::new();
        let mut lines = Vec::new();
        while lines.len() < LINES_OF_A_FILE {
            let (option, words) = &options[draw.below(options.len())];
            if names.insert(option) {
                lines.push(draw.line(option, words, !oracle.is_postgresql()));
            }
        }
        for (line, (said, variable)) in lines.iter().zip(oracle.audit(&lines)) {
            tried += 1;
            let variable = variable.unwrap_or_else(|| line.option.clone());
            let mut truth = oracle.ask(line, &variable);
            // The list of options is not all that a server looks at before it starts.
            let is_disputed =
                said != Answer::Unknown && (said == Answer::Refused) != (truth == Answer::Refused);
            if is_disputed {
                truth = if oracle.starts(line) {
                    Answer::Taken(None)
                } else {
                    Answer::Refused
                };
            }
            let reason = SHOWN_OTHERWISE.iter().find(|(name, _)| {
                variable.starts_with(name) || line.text.trim_start().starts_with(name)
            });
            // Which options have a bound for sessions is not recorded; where there is none the line is refused.
            let is_bound = line.text.trim_start().starts_with("maximum");
            // Each plugin looks for a shortened name among its own options only, so that fewer names are ambiguous.
            let is_shortened = oracle.product == "mariadb" && line.is_shortened();
            let is_agreed = match (&said, &truth) {
                (Answer::Unknown, _) => {
                    unknown += 1;
                    true
                }
                (Answer::Refused, Answer::Refused) => true,
                (Answer::Taken(Some(one)), Answer::Taken(Some(other))) => {
                    let factor = factors
                        .get(&variable)
                        .copied()
                        .filter(|_| oracle.is_postgresql());
                    let is_same = is_same(one, other, factor);
                    otherwise += usize::from(!is_same && reason.is_some());
                    is_same || reason.is_some()
                }
                (Answer::Taken(_), Answer::Taken(_)) => true,
                (Answer::Taken(_), Answer::Refused) => {
                    let is_read_further = READ_FURTHER
                        .iter()
                        .any(|(name, _)| line.option.starts_with(name));
                    further += usize::from(is_read_further || is_bound);
                    is_read_further || is_bound
                }
                (Answer::Refused, Answer::Taken(_)) if is_bound || is_shortened => {
                    further += 1;
                    true
                }
                _ => false,
            };
            if !is_agreed {
                wrong.push(format!(
                    "{:?}: the audit says {said:?}, the server {truth:?}",
                    line.text
                ));
            }
        }
    }
    println!(
        "{server}: {tried} lines, {} disagreements, {otherwise} shown otherwise for a reason, {further} read further \
         than the audit does, {unknown} of unknown options",
        wrong.len()
    );
    let wrong_lines = wrong.join("\n");
    println!("{wrong_lines}");
    assert!(
        wrong.len() <= DISAGREEMENTS_MAX,
        "seed {}:\n{wrong_lines}",
        seed()
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn mariadb_10_11_makes_of_lines_what_the_audit_says() {
    compare("mariadb-10.11");
}

#[test(lab, needs = &["mariadb-11.8"])]
fn mariadb_11_8_makes_of_lines_what_the_audit_says() {
    compare("mariadb-11.8");
}

#[test(lab, needs = &["mysql-5.6.24"])]
fn mysql_5_6_makes_of_lines_what_the_audit_says() {
    compare("mysql-5.6.24");
}

#[test(lab, needs = &["mysql-8.0.33"])]
fn mysql_8_0_makes_of_lines_what_the_audit_says() {
    compare("mysql-8.0.33");
}

#[test(lab, needs = &["mysql-9.7"])]
fn mysql_9_7_makes_of_lines_what_the_audit_says() {
    compare("mysql-9.7");
}

#[test(lab, needs = &["postgresql-11.22"])]
fn postgresql_11_makes_of_lines_what_the_audit_says() {
    compare("postgresql-11.22");
}

#[test(lab, needs = &["postgresql-17.11"])]
fn postgresql_17_makes_of_lines_what_the_audit_says() {
    compare("postgresql-17.11");
}
