//! The format of a log, and the product that wrote it, from the beginning of its text.

use memchr::memmem;

use super::postgresql_csv::message::names_zone;
use super::{LogFormat, LogProduct};

/// Bytes of a log that are looked at.
pub const HEAD_BYTES: usize = 64 << 10;
/// Commas before the message of a row of PostgreSQL's csvlog, which is the first field that may have line breaks.
const CSV_COMMAS: usize = 13;
/// Levels of PostgreSQL's messages, which must be in English.
const LEVELS: [&[u8]; 9] = [
    b"LOG:  ",
    b"ERROR:  ",
    b"FATAL:  ",
    b"PANIC:  ",
    b"WARNING:  ",
    b"NOTICE:  ",
    b"DETAIL:  ",
    b"STATEMENT:  ",
    b"HINT:  ",
];

/// What the beginning of a log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    /// Its format.
    pub format: LogFormat,
    /// The product that wrote it.
    pub product: LogProduct,
    /// True where the log does not say the product and the user neither: the likelier one was taken.
    pub is_product_assumed: bool,
    /// The product's version, as the log has it.
    pub version: Option<String>,
    /// False where times are local and name no zone, or one whose offset is unknown, such as CST.
    pub names_zone: bool,
}

/// Why a log is not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unrecognised {
    /// There is nothing.
    #[error("the log is empty")]
    Empty,
    /// No known format.
    #[error(
        "the format of the log is not recognised in its first 64 KiB: expected a general log, slow log or log table of MySQL or \
         MariaDB, or a csvlog, jsonlog or stderr log of PostgreSQL; messages must be in English \
         (lc_messages = 'C')"
    )]
    Format,
    /// The user named another product.
    #[error("this is a {} of {}, and --product says {}", .format.name(), .log.name(), .user.name())]
    Product {
        /// Format of the log.
        format: LogFormat,
        /// Product of the log.
        log: LogProduct,
        /// Product that the user named.
        user: LogProduct,
    },
}

/// Recognises a log by its first [`HEAD_BYTES`]. `product` and `has_prefix` are what the user says.
///
/// # Errors
/// When it is of no known format, or of another product than the user says.
pub fn recognise(
    head: &[u8],
    product: Option<LogProduct>,
    has_prefix: bool,
) -> Result<Recognised, Unrecognised> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if head.iter().all(u8::is_ascii_whitespace) {
        return Err(Unrecognised::Empty);
    }
    let header = mysql_header(head);
    let format = lines(head).find_map(line_format);
    let format = match format {
        _ if has_prefix => Some(LogFormat::PostgresqlStderr),
        // A header alone: nothing was logged yet.
        None if header.is_some() => Some(LogFormat::MysqlGeneral),
        format => format,
    };
    let format = format.ok_or(Unrecognised::Format)?;
    let (found, version) = match format {
        LogFormat::MysqlGeneral | LogFormat::MysqlSlow | LogFormat::MysqlTable => match header {
            Some((product, version)) => (Some(product), Some(version)),
            None => (mysql_product(head, format), None),
        },
        _ => (Some(LogProduct::Postgresql), postgresql_version(head)),
    };
    let is_of_mysql = |product| product != LogProduct::Postgresql;
    if let Some(user) = product {
        let log = found.unwrap_or(LogProduct::Mariadb);
        if is_of_mysql(user) != is_of_mysql(log) {
            return Err(Unrecognised::Product { format, log, user });
        }
    }
    Ok(Recognised {
        format,
        product: product.or(found).unwrap_or(LogProduct::Mariadb),
        is_product_assumed: product.or(found).is_none(),
        version,
        names_zone: match format {
            LogFormat::MysqlGeneral => lines(head).any(has_iso_time),
            LogFormat::MysqlTable => lines(head).any(has_utc_time),
            // `SET timestamp` counts from 1970 in UTC.
            LogFormat::MysqlSlow => true,
            LogFormat::PostgresqlCsv | LogFormat::PostgresqlJson | LogFormat::PostgresqlStderr => {
                lines(head).all(|line| has_known_zone(line, format))
            }
        },
    })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The format that a line belongs to, if it can be the first of an entry.
fn line_format(line: &[u8]) -> Option<LogFormat> {
    if line.starts_with(b"# User@Host: ") || line.starts_with(b"# Time: ") {
        return Some(LogFormat::MysqlSlow);
    }
    if is_general_entry(line) {
        return Some(LogFormat::MysqlGeneral);
    }
    if line.starts_with(b"{\"") && memmem::find(line, b"\"timestamp\":").is_some() {
        return Some(LogFormat::PostgresqlJson);
    }
    if let Some(quoted) = line.strip_prefix(b"\"") {
        return starts_with_date(quoted).then_some(LogFormat::MysqlTable);
    }
    let commas = || line.iter().filter(|byte| **byte == b',').count();
    let is_csv_time = |line: &[u8]| {
        let comma = memchr::memchr(b',', line);
        comma.is_some_and(|comma| (24..48).contains(&comma) && line[19] == b'.')
    };
    if starts_with_date(line) && is_csv_time(line) && commas() >= CSV_COMMAS {
        return Some(LogFormat::PostgresqlCsv);
    }
    let has_level = || {
        LEVELS
            .iter()
            .any(|level| memmem::find(line, level).is_some())
    };
    has_level().then_some(LogFormat::PostgresqlStderr)
}

/// False for a line of PostgreSQL's logs whose time has a zone of unknown offset. Lines without a time say nothing.
fn has_known_zone(line: &[u8], format: LogFormat) -> bool {
    let key = b"\"timestamp\":\"";
    let time = match format {
        _ if line_format(line) != Some(format) => None,
        LogFormat::PostgresqlJson => memmem::find(line, key).and_then(|at| {
            let value = &line[at + key.len()..];
            memchr::memchr(b'"', value).map(|end| &value[..end])
        }),
        LogFormat::PostgresqlStderr => {
            let labels = LEVELS.iter().filter_map(|level| memmem::find(line, level));
            let prefix = &line[..labels.min().unwrap_or(0)];
            let mut starts = 0..prefix.len();
            let start = starts.find(|start| starts_with_date(&prefix[*start..]));
            start.map(|start| &prefix[start..])
        }
        _ => Some(line),
    };
    time.and_then(names_zone).unwrap_or(true)
}

/// `YYYY-MM-DD HH:MM:SS`, then something else.
fn starts_with_date(line: &[u8]) -> bool {
    let pattern = b"0000-00-00 00:00:00";
    line.len() > pattern.len()
        && line
            .iter()
            .zip(pattern)
            .all(|(byte, expected)| match expected {
                b'0' => byte.is_ascii_digit(),
                _ => byte == expected,
            })
}

fn has_iso_time(line: &[u8]) -> bool {
    let is_date = line.len() > 20 && line[4] == b'-' && line[10] == b'T';
    is_date && line[..4].iter().all(u8::is_ascii_digit)
}

/// A row of a log table whose time ends in `Z`, as dbduel writes the rows that it reads from a server.
fn has_utc_time(line: &[u8]) -> bool {
    let value = line.strip_prefix(b"\"").unwrap_or_default();
    let end = memchr::memchr(b'"', value);
    starts_with_date(value) && end.is_some_and(|end| value[..end].ends_with(b"Z"))
}

/// `TIME⇥ID COMMAND⇥ARGUMENT`; the time may be missing, with a second tab in its place.
fn is_general_entry(line: &[u8]) -> bool {
    let Some(tab) = memchr::memchr(b'\t', &line[..line.len().min(40)]) else {
        return false;
    };
    let (time, rest) = line.split_at(tab);
    let is_timed = match time {
        [] => rest.starts_with(b"\t\t"),
        [first, ..] => first.is_ascii_digit() && (time.len() == 15 || has_iso_time(line)),
    };
    let start = rest.iter().position(|byte| !matches!(byte, b'\t' | b' '));
    let rest = &rest[start.unwrap_or(rest.len())..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let command = rest.get(digits..).and_then(|rest| rest.strip_prefix(b" "));
    is_timed
        && digits > 0
        && command.is_some_and(|command| {
            let end = memchr::memchr(b'\t', &command[..command.len().min(24)]);
            command.first().is_some_and(u8::is_ascii_uppercase) && end.is_some()
        })
}

/// Product and version of the header that MySQL and MariaDB write whenever they open a log.
fn mysql_header(head: &[u8]) -> Option<(LogProduct, String)> {
    let line = lines(head).find(|line| line.ends_with(b" started with:"))?;
    let start = memmem::find(line, b", Version: ")? + b", Version: ".len();
    let version: Vec<u8> = line[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_graphic())
        .take(64)
        .copied()
        .collect();
    let product = match memmem::find(line, b"MariaDB") {
        Some(_) => LogProduct::Mariadb,
        None => LogProduct::Mysql,
    };
    Some((product, String::from_utf8(version).ok()?))
}

/// The product of a log without a header, where its entries show it.
fn mysql_product(head: &[u8], format: LogFormat) -> Option<LogProduct> {
    let has = |text: &[u8]| memmem::find(head, text).is_some();
    match format {
        LogFormat::MysqlSlow if has(b"  QC_hit: ") => Some(LogProduct::Mariadb),
        LogFormat::MysqlSlow => Some(LogProduct::Mysql),
        LogFormat::MysqlGeneral if lines(head).any(has_iso_time) => Some(LogProduct::Mysql),
        // MySQL before 5.7 has the same times, and not the kind of the connection.
        LogFormat::MysqlGeneral if has(b" using Socket\n") || has(b" using TCP/IP\n") => {
            Some(LogProduct::Mariadb)
        }
        // MariaDB and MySQL since 5.7 have microseconds in it.
        LogFormat::MysqlTable if head.get(20) == Some(&b'"') => Some(LogProduct::Mysql),
        _ => None,
    }
}

/// From the message of the server's start.
fn postgresql_version(head: &[u8]) -> Option<String> {
    let word = b"starting PostgreSQL ";
    let start = memmem::find(head, word)? + word.len();
    let version: Vec<u8> = head[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'.')
        .take(32)
        .copied()
        .collect();
    String::from_utf8(version).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sample(name: &str) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        std::fs::read(path.join(name)).unwrap()
    }

    #[test]
    fn the_samples_are_recognised_with_their_products_and_versions() {
        use LogFormat::*;
        use LogProduct::*;
        for (name, format, product, version) in [
            ("general-mysql-5.6.log", MysqlGeneral, Mysql, "5.6.24"),
            ("general-mysql-8.0.log", MysqlGeneral, Mysql, "8.0.33"),
            ("general-mysql-9.7.log", MysqlGeneral, Mysql, "9.7.4-2"),
            (
                "general-mariadb-10.11.log",
                MysqlGeneral,
                Mariadb,
                "10.11.19-MariaDB-0+deb12u1",
            ),
            ("slow-mysql-5.6.log", MysqlSlow, Mysql, "5.6.24"),
            ("slow-mysql-8.0.log", MysqlSlow, Mysql, "8.0.33"),
            (
                "slow-mariadb-10.11.log",
                MysqlSlow,
                Mariadb,
                "10.11.19-MariaDB-0+deb12u1",
            ),
            ("general-table-mariadb-10.11.csv", MysqlTable, Mariadb, ""),
            ("general-table-mysql-5.6.csv", MysqlTable, Mysql, ""),
            ("pg9.6.csv", PostgresqlCsv, Postgresql, ""),
            ("pg15.csv", PostgresqlCsv, Postgresql, "15.18"),
            ("pg18.csv", PostgresqlCsv, Postgresql, ""),
            ("pg15.json", PostgresqlJson, Postgresql, "15.18"),
            ("pg15-stderr.log", PostgresqlStderr, Postgresql, "15.18"),
            ("pg15-mode-A.log", PostgresqlStderr, Postgresql, ""),
        ] {
            let found = recognise(&sample(name), None, false).unwrap();
            assert_eq!((found.format, found.product), (format, product), "{name}");
            let expected = (!version.is_empty()).then(|| version.to_owned());
            if expected.is_some() {
                assert_eq!(found.version, expected, "{name}");
            }
        }
    }

    #[test]
    fn a_log_without_a_header_shows_its_product_by_its_entries() {
        let without = |name: &str| {
            let text = sample(name);
            let start = memmem::find(&text, b"Argument\n").unwrap() + 9;
            text[start..].to_vec()
        };
        for (name, product) in [
            ("general-mysql-8.0.log", LogProduct::Mysql),
            ("general-mariadb-10.11.log", LogProduct::Mariadb),
            ("slow-mysql-8.0.log", LogProduct::Mysql),
            ("slow-mariadb-10.11.log", LogProduct::Mariadb),
        ] {
            let found = recognise(&without(name), None, false).unwrap();
            assert_eq!(found.product, product, "{name}");
            assert!(!found.is_product_assumed, "{name}");
        }
        let assumed = recognise(&without("general-mysql-5.6.log"), None, false).unwrap();
        assert!(assumed.is_product_assumed && !assumed.names_zone);
        let said = recognise(
            &without("general-mysql-5.6.log"),
            Some(LogProduct::Mysql),
            false,
        );
        assert_eq!(said.unwrap().product, LogProduct::Mysql);
    }

    #[test]
    fn zones_of_unknown_offset_are_not_named() {
        for zone in ["CST", "CDT", "PST", "IST", "BST"] {
            for sample_name in ["pg15.csv", "pg15.json", "pg15-stderr.log"] {
                let text = String::from_utf8_lossy(&sample(sample_name)).into_owned();
                let known = recognise(text.as_bytes(), None, false).unwrap();
                assert!(known.names_zone, "{sample_name}");
                let text = text.replace(" UTC", &format!(" {zone}"));
                let unknown = recognise(text.as_bytes(), None, false).unwrap();
                assert!(!unknown.names_zone, "{sample_name}: {zone}");
            }
        }
        for (line, expected) in [
            ("2026-11-28 07:45:44 CST:[local]:u@d:[7]:LOG:  x\n", false),
            ("2026-11-28 07:45:44:[local]:u@d:[7]:LOG:  x\n", false),
            ("2026-11-28 07:45:44 +08:[local]:u@d:[7]:LOG:  x\n", true),
            (
                "[7] LOG:  statement: SELECT '2026-11-28 07:45:44 CST'\n",
                true,
            ),
        ] {
            let found = recognise(line.as_bytes(), None, true).unwrap();
            assert_eq!(found.names_zone, expected, "{line}");
        }
        // The text that is recognised may end within a zone.
        let json = sample("pg15.json");
        let cut = json.iter().take_while(|byte| **byte != b'U').count() + 1;
        let found = recognise(&[&json[..], &json[..cut]].concat(), None, false);
        assert!(found.unwrap().names_zone);
        // It has no times.
        let found = recognise(&sample("pg15-mode-A.log"), None, true);
        assert!(found.unwrap().names_zone);
    }

    #[test]
    fn other_texts_are_refused() {
        assert_eq!(recognise(b" \n", None, false), Err(Unrecognised::Empty));
        for text in [&b"hello\nworld\n"[..], b"\x00\xff\xfe", b"a,b,c\n1,2,3\n"] {
            assert_eq!(recognise(text, None, false), Err(Unrecognised::Format));
        }
        let german = b"2026-11-28 [1] FEHLER:  kaputt\n";
        assert!(recognise(german, None, false).is_err());
        let said = recognise(german, None, false).unwrap_err().to_string();
        assert!(said.contains("English (lc_messages = 'C')"), "{said}");
        let found = recognise(german, None, true).unwrap();
        assert_eq!(found.format, LogFormat::PostgresqlStderr);
        let wrong = recognise(&sample("pg15.csv"), Some(LogProduct::Mysql), false);
        let said = wrong.unwrap_err().to_string();
        assert!(said.contains("csvlog of PostgreSQL"), "{said}");
    }
}
