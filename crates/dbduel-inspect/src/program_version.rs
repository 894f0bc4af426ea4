//! Output of `mysqld --version`, `mariadb --version` and `SELECT VERSION()`, as published with results.

use dbduel_audit::{Product, Version};

/// Limit of lines of a version file.
const LINES_MAX: usize = 20;

/// The version that a program reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramVersion {
    /// The product, when the text or the file's name contains it.
    pub product: Option<Product>,
    pub version: Version,
}

impl ProgramVersion {
    /// The version in a file of this name. A bare number counts where the name refers to a server's version.
    #[must_use]
    pub fn read(name: &str, lines: &[String]) -> Option<Self> {
        if lines.len() > LINES_MAX {
            return None;
        }
        let is_named = name.to_ascii_lowercase().contains("version");
        let mut texts = lines.iter().map(|line| line.trim());
        let (line, version) = texts.find_map(|line| {
            let version = of_program(line).or_else(|| bare(line).filter(|_| is_named))?;
            Some((line, version))
        })?;
        let product = product_in(line).or_else(|| product_in(name));
        (product.is_some() || is_of_a_server(name)).then_some(ProgramVersion { product, version })
    }
}

/// `mysqld  Ver 8.4.8 for Linux`, `mysql  Ver 14.14 Distrib 5.7.44, for Linux`, `mariadb from 11.8.2-MariaDB, client 15.2`.
fn of_program(line: &str) -> Option<Version> {
    let lower = line.to_ascii_lowercase();
    let is_program = ["mysql", "mariadb"].iter().any(|word| lower.contains(word));
    let after = |mark: &str| lower.split_once(mark).map(|(_, rest)| rest.trim_start());
    let text = after(" distrib ")
        .or_else(|| after(" from "))
        .or_else(|| after(" ver "))?;
    Version::parse(text).filter(|_| is_program)
}

/// `8.4.8` or `11.8.2-MariaDB-log`, alone on its line or in a table of the client.
fn bare(line: &str) -> Option<Version> {
    let text = line.trim_matches(|c: char| c == '|' || c.is_whitespace());
    let text = text.strip_prefix("version").unwrap_or(text);
    let text = text.trim_start_matches(|c: char| c == '|' || c.is_whitespace());
    let is_one_word = !text.contains(char::is_whitespace);
    Version::parse(text).filter(|_| is_one_word)
}

/// True for `version.txt` and `server-version`, false for `kernel_version.txt`.
fn is_of_a_server(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let stem = lower.split('.').next().unwrap_or_default();
    let mut words = stem.split(['_', '-', ' ']);
    words.all(|word| matches!(word, "version" | "server" | "db" | "database"))
}

fn product_in(text: &str) -> Option<Product> {
    let lower = text.to_ascii_lowercase();
    ["mariadb", "percona", "mysql"]
        .into_iter()
        .find(|word| lower.contains(word))
        .and_then(Product::named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: Option<(Option<Product>, &str)>) {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let found = ProgramVersion::read(name, &lines);
        let expected = expected.map(|(product, version)| ProgramVersion {
            product,
            version: Version::parse(version).unwrap(),
        });
        assert_eq!(found, expected, "{name}: {text}");
    }

    #[test]
    fn what_programs_print_of_their_version_is_understood() {
        let mysql = Some((Some(Product::MySql), "8.4.8"));
        let mariadb = Some((Some(Product::MariaDb), "11.8.2"));
        check(
            "v",
            "mysqld  Ver 8.4.8 for Linux on x86_64 (MySQL Community Server - GPL)",
            mysql,
        );
        check(
            "v",
            "mysql  Ver 14.14 Distrib 5.7.44, for Linux (x86_64)",
            Some((Some(Product::MySql), "5.7.44")),
        );
        check(
            "v",
            "/usr/sbin/mariadbd  Ver 11.8.2-MariaDB for Linux on x86_64 (MariaDB Server)",
            mariadb,
        );
        check(
            "v",
            "mariadb from 11.8.2-MariaDB, client 15.2 for linux-gnu (x86_64)",
            mariadb,
        );
        check(
            "v",
            "mysqld  Ver 8.0.33-25 for Linux on x86_64 (Percona Server (GPL), Release 25)",
            Some((Some(Product::Percona), "8.0.33")),
        );
        check("mysql_version.txt", "8.4.8\n", mysql);
        check(
            "mariadb_version.txt",
            "VERSION()\n11.8.2-MariaDB-ubu2404\n",
            mariadb,
        );
        check(
            "mysql-version",
            "+-----------+\n| VERSION() |\n+-----------+\n| 8.4.8     |\n+-----------+\n",
            mysql,
        );
        check("version.txt", "version\t11.8.2-MariaDB\n", mariadb);
        check("server-version.txt", "8.4.8\n", Some((None, "8.4.8")));
    }

    #[test]
    fn versions_of_other_things_are_none() {
        check("sysbench_version.txt", "sysbench 1.0.20", None);
        check("kernel_version.txt", "6.1.0-13-amd64\n", None);
        check("notes.txt", "8.4.8\n", None);
        check("kernel.txt", "Linux version 6.1.0 (gcc 12.2.0)", None);
        check("mysql_version.txt", "", None);
    }
}
