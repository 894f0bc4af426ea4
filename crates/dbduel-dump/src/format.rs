//! What wrote a dump, by its first bytes.

/// Bytes of a dump that are looked at.
pub const HEAD_BYTES: usize = 64 << 10;

/// Kind of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Statements of MySQL or MariaDB: mysqldump, mariadb-dump, phpMyAdmin.
    MySql,
    /// Statements of PostgreSQL: pg_dump in its plain format.
    PostgreSql,
    /// An archive that `pg_restore` turns into statements: pg_dump in its custom or tar format.
    PostgreSqlArchive,
}

/// Beginnings and words of dumps that are refused, and why.
const REFUSED: [(&str, &str); 4] = [
    (
        "SQLite format 3",
        "it is a SQLite database; captured workloads run on MySQL, MariaDB and PostgreSQL",
    ),
    (
        "PRAGMA foreign_keys=OFF;",
        "it is a dump of SQLite; captured workloads run on MySQL, MariaDB and PostgreSQL",
    ),
    (
        "-- PostgreSQL database cluster dump",
        "pg_dumpall wrote it, for several databases and their roles; write one database with `pg_dump`",
    ),
    (
        "\u{fffd}\u{fffd}-\0-\0",
        "it is in UTF-16, as a redirection of PowerShell writes it; use the option `--result-file` of mysqldump or `-f` of pg_dump",
    ),
];
/// Words of dumps of MySQL and MariaDB.
const MYSQL: [&str; 8] = [
    "-- MySQL dump",
    "-- MariaDB dump",
    "-- phpMyAdmin",
    "/*!40",
    "/*!50",
    "/*M!",
    "/*!999999\\-",
    "ENGINE=",
];
/// Words of dumps of PostgreSQL.
const POSTGRESQL: [&str; 6] = [
    "-- PostgreSQL database dump",
    "\n\\restrict ",
    "SET standard_conforming_strings",
    "pg_catalog.",
    "FROM stdin;",
    "SET client_encoding",
];
/// Where a tar file has its name, and the name.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// The kind of the dump that begins with `head`.
///
/// # Errors
/// Why it is none that can be loaded.
pub fn recognise(head: &[u8]) -> Result<Format, &'static str> {
    let is_tar = head.get(TAR.0..).is_some_and(|at| at.starts_with(TAR.1));
    if head.starts_with(b"PGDMP") || (is_tar && head.starts_with(b"toc.dat\0")) {
        return Ok(Format::PostgreSqlArchive);
    }
    let text = String::from_utf8_lossy(head);
    if let Some((_, why)) = REFUSED.iter().find(|(begin, _)| {
        text.trim_start_matches(['\n', '-', ' '])
            .starts_with(begin.trim_start_matches(['-', ' ']))
    }) {
        return Err(why);
    }
    let first = |words: &[&str]| words.iter().filter_map(|word| text.find(word)).min();
    match (first(&MYSQL), first(&POSTGRESQL)) {
        (Some(mysql), Some(postgresql)) if postgresql < mysql => Ok(Format::PostgreSql),
        (Some(_), _) => Ok(Format::MySql),
        (None, Some(_)) => Ok(Format::PostgreSql),
        (None, None) if text.contains('`') && text.contains("INSERT INTO") => Ok(Format::MySql),
        (None, None) => Err(
            "its content is not recognised; dumps of mysqldump, mariadb-dump and pg_dump (plain, custom and tar) can be loaded",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_are_recognised_by_their_content() {
        for (head, expected) in [
            (
                "/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19",
                Ok(Format::MySql),
            ),
            ("-- MySQL dump 10.13  Distrib 8.0.33\n", Ok(Format::MySql)),
            (
                "--\n-- PostgreSQL database dump\n--\n\n\\restrict abc\n",
                Ok(Format::PostgreSql),
            ),
            ("PGDMP\u{1}", Ok(Format::PostgreSqlArchive)),
            ("INSERT INTO `t` VALUES (1);", Ok(Format::MySql)),
        ] {
            assert_eq!(recognise(head.as_bytes()), expected, "{head}");
        }
        for (head, part) in [
            ("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;", "SQLite"),
            ("SQLite format 3\0", "SQLite"),
            ("--\n-- PostgreSQL database cluster dump\n", "pg_dumpall"),
            ("\u{1}\u{2}\u{3} junk", "not recognised"),
            ("", "not recognised"),
        ] {
            let why = recognise(head.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{head}: {why}");
        }
        let mut utf16 = vec![0xff, 0xfe];
        utf16.extend("-- MySQL dump".encode_utf16().flat_map(u16::to_le_bytes));
        assert!(recognise(&utf16).unwrap_err().contains("UTF-16"));
    }
}
