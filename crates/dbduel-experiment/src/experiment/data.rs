//! `[data]`: tables that are loaded from a dump, which is a file or taken from a running server.

use std::ops::Range;

use dbduel_driver::Dialect;
use dbduel_driver::address::{Address, ServerAddress};

use super::document::{Located, Report, Section, string};

/// `[data]`.
#[derive(Debug, Clone)]
pub struct Data {
    /// Its place.
    pub span: Range<usize>,
    /// Where the dump comes from.
    pub source: DataSource,
}

/// Where the dump of `[data]` comes from.
#[derive(Debug, Clone)]
pub enum DataSource {
    /// A file, relative to the experiment.
    Dump(Located<String>),
    /// A database of a running server, which is dumped before the contest is planned.
    Server(Box<DataServer>),
}

/// A database of a running server.
#[derive(Debug, Clone)]
pub struct DataServer {
    /// The address as written, without the database.
    pub written: Located<String>,
    /// The address.
    pub address: ServerAddress,
    /// The database.
    pub database: String,
    /// File with the password, relative to the experiment.
    pub password_file: Option<Located<String>>,
}

pub(super) fn read_data(report: &Report<'_>, section: &Section<'_, '_>) -> Option<Data> {
    let dump = section.get("dump", string);
    let server = section.get("server", string);
    let database = section.get("database", string);
    let password_file = section.get("password_file", string);
    let is_named = section.value("dump").is_some() || section.value("server").is_some();
    let is_known = section.refuse_unknown_keys();
    let span = section.span();
    let source = match (dump, server) {
        (Some(_), Some(server)) => {
            let message = "[data] has a `dump` and a `server`; remove the one that is not meant";
            report.add(&server.span, message);
            return None;
        }
        (Some(dump), None) => {
            for (key, value) in [("database", &database), ("password_file", &password_file)] {
                if let Some(value) = value {
                    let message =
                        format!("`{key}` goes with `server`; a `dump` is a file: remove it");
                    report.add(&value.span, message);
                }
            }
            DataSource::Dump(dump)
        }
        (None, Some(server)) => match read_server(&server, database, password_file) {
            Ok(server) => DataSource::Server(Box::new(server)),
            Err(message) => {
                report.add(&server.span, message);
                return None;
            }
        },
        (None, None) => {
            if is_known && !is_named {
                let message = "[data] needs `dump`, a file that mysqldump, mariadb-dump or pg_dump made, or `server`, the address of a \
                               server with the database, which is dumped";
                report.add(&span, message);
            }
            return None;
        }
    };
    Some(Data { span, source })
}

/// The server that `tcp://user@host:port/database` names, or an address with `database` beside it.
fn read_server(
    written: &Located<String>,
    database: Option<Located<String>>,
    password_file: Option<Located<String>>,
) -> Result<DataServer, String> {
    let (text, in_address) = split_database(&written.value);
    let address = ServerAddress::parse(text).map_err(|error| error.to_string())?;
    if address.dialect == Dialect::Sqlite {
        return Err(
            "a file of SQLite is no server with captured statements; name one of MySQL, MariaDB or PostgreSQL"
                .to_owned(),
        );
    }
    let beside = database.map(|database| database.value);
    let database = match (in_address, beside) {
        (Some(_), Some(_)) => {
            return Err(
                "the address names a database, and so does `database`; remove one".to_owned(),
            );
        }
        (Some(one), None) => one.to_owned(),
        (None, Some(one)) => one,
        (None, None) => String::new(),
    };
    if database.is_empty() {
        let how = match address.place {
            Address::Tcp { .. } => "write it behind the address, as in `tcp://user@host:3306/shop`",
            Address::Unix { .. } | Address::File { .. } => "name it as `database`",
        };
        return Err(format!("no database is named; {how}"));
    }
    let written = Located {
        value: ServerAddress::without_password(text),
        span: written.span.clone(),
    };
    Ok(DataServer {
        written,
        address,
        database,
        password_file,
    })
}

/// An address and the database behind it. Only addresses of hosts have one: those of sockets are paths.
fn split_database(text: &str) -> (&str, Option<&str>) {
    let Some(host) = text.find("://").map(|at| at + 3) else {
        return (text, None);
    };
    let rest = &text[host..];
    // A user cannot hold a slash; what a wrong password holds is for the parser to refuse.
    let begin = rest.rfind('@').map_or(0, |at| at + 1);
    match rest[begin..].find('/') {
        None | Some(0) => (text, None),
        Some(slash) => {
            let at = host + begin + slash;
            (&text[..at], Some(&text[at + 1..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str, database: Option<&str>) -> Result<(String, String), String> {
        let located = |text: &str| Located {
            value: text.to_owned(),
            span: 0..0,
        };
        let server = read_server(&located(address), database.map(located), None)?;
        Ok((server.written.value, server.database))
    }

    #[test]
    fn a_database_is_named_behind_a_host_or_beside_a_socket() {
        for (address, database, expected) in [
            (
                "tcp://app@db:3307/shop",
                None,
                ("tcp://app@db:3307", "shop"),
            ),
            ("postgresql://db/shop", None, ("postgresql://db", "shop")),
            (
                "mysql://app@[::1]:3307/shop",
                None,
                ("mysql://app@[::1]:3307", "shop"),
            ),
            ("tcp://db", Some("shop"), ("tcp://db", "shop")),
            (
                "unix://app@/run/my.sock",
                Some("shop"),
                ("unix://app@/run/my.sock", "shop"),
            ),
            (
                "postgresql:/run/postgresql",
                Some("shop"),
                ("postgresql:/run/postgresql", "shop"),
            ),
        ] {
            let expected = (expected.0.to_owned(), expected.1.to_owned());
            assert_eq!(read(address, database), Ok(expected), "{address}");
        }
        for (address, database, part) in [
            ("tcp://db", None, "tcp://user@host:3306/shop"),
            ("tcp://db/", None, "no database"),
            ("unix:/run/my.sock", None, "as `database`"),
            ("tcp://db/shop", Some("shop"), "remove one"),
            (
                "tcp://app:secret@db/shop",
                None,
                "must not contain a password",
            ),
            ("sqlite:/a.db", Some("shop"), "SQLite"),
            ("db/shop", None, "not a server address"),
        ] {
            let why = read(address, database).unwrap_err();
            assert!(
                why.contains(part) && !why.contains("secret"),
                "{address}: {why}"
            );
        }
    }
}
