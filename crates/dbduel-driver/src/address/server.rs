//! A server as written on the command line: dialect, location and user.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Address, AddressError, DEFAULT_PORT, authority, parse_tcp};
use crate::{Dialect, Settings, check_setting};

/// The port of a PostgreSQL that names none.
const POSTGRESQL_PORT: u16 = 5432;
/// Prefix of the names of PostgreSQL's sockets, before the port.
const POSTGRESQL_SOCKET: &str = ".s.PGSQL.";

/// A server's address with what it speaks.
///
/// | written | means |
/// | --- | --- |
/// | `tcp://[user@]host[:port]`, `mysql://[user@]host[:port]` | MySQL or MariaDB on a port, 3306 if none is named |
/// | `unix:/path`, `unix://[user@]/path`, and the same with `mysql` | MySQL or MariaDB on a socket |
/// | `postgresql://[user@]host[:port]` | PostgreSQL on a port, 5432 if none is named |
/// | `sqlite:/path[?setting=value&…]` | a file of SQLite, with settings by the names of PRAGMAs for its connections |
/// | `postgresql:/folder[:port]`, `postgresql://[user@]/folder[:port]` | PostgreSQL on the socket in a folder |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// The dialect.
    pub dialect: Dialect,
    /// The location.
    pub place: Address,
    /// The user; `None` leaves the choice to the caller.
    pub user: Option<String>,
}

impl ServerAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// [`AddressError`], which says what to write instead.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (dialect, rest) = match text.split_once(':') {
            Some(("mysql", rest)) => (Dialect::MySql, rest),
            Some(("postgresql" | "postgres", rest)) => (Dialect::PostgreSql, rest),
            Some(("sqlite", rest)) => {
                return Ok(ServerAddress {
                    dialect: Dialect::Sqlite,
                    place: file(rest)?,
                    user: None,
                });
            }
            _ => {
                let (place, user) = Address::parse_with_user(text)?;
                return Ok(ServerAddress {
                    dialect: Dialect::MySql,
                    place,
                    user,
                });
            }
        };
        let (user, place) = match rest.strip_prefix("//") {
            None => (None, rest),
            Some(path) if path.starts_with('/') => (None, path),
            Some(rest) => authority(rest)?,
        };
        let is_path = place.starts_with('/') || !rest.starts_with("//");
        let place = match (is_path, dialect) {
            (true, _) if !place.starts_with('/') => {
                return Err(AddressError::Path(place.to_owned()));
            }
            (true, Dialect::PostgreSql) => postgresql_socket(place)?,
            (true, _) => Address::Unix {
                path: PathBuf::from(place),
            },
            (false, Dialect::PostgreSql) => parse_tcp(place, POSTGRESQL_PORT)?,
            (false, _) => parse_tcp(place, DEFAULT_PORT)?,
        };
        Ok(ServerAddress {
            dialect,
            place,
            user,
        })
    }

    /// True for a text that begins with the scheme of an address.
    #[must_use]
    pub fn is_meant_by(text: &str) -> bool {
        let prefixes = [
            "tcp://",
            "unix:",
            "mysql:/",
            "postgresql:/",
            "postgres:/",
            "sqlite:/",
        ];
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    }

    /// The text of an address without a password in it.
    #[must_use]
    pub fn without_password(text: &str) -> String {
        Address::without_password(text)
    }
}

/// A SQLite file, with the settings of its connections after a question mark.
fn file(text: &str) -> Result<Address, AddressError> {
    let (path, written) = match text.split_once('?') {
        Some((path, written)) => (path, written),
        None => (text, ""),
    };
    if !path.starts_with('/') || path.ends_with('/') {
        return Err(AddressError::File(path.to_owned()));
    }
    let mut settings = Settings::new();
    for setting in written.split('&').filter(|setting| !setting.is_empty()) {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(AddressError::NoSetting(setting.to_owned()));
        };
        settings.insert(name.to_owned(), check_setting(name, value)?);
    }
    Ok(Address::File {
        path: Path::new(path).into(),
        settings: Box::new(settings),
    })
}

/// The PostgreSQL socket in a folder, whose port may be given; the path of the socket itself is accepted too.
fn postgresql_socket(path: &str) -> Result<Address, AddressError> {
    let name = Path::new(path).file_name();
    if name.is_some_and(|name| name.to_string_lossy().starts_with(POSTGRESQL_SOCKET)) {
        let path = PathBuf::from(path);
        return Ok(Address::Unix { path });
    }
    let (folder, port) = match path.rsplit_once(':') {
        Some((folder, text)) => match text.parse::<u16>() {
            Ok(port) if port != 0 => (folder, port),
            _ => return Err(AddressError::Port(text.to_owned())),
        },
        None => (path, POSTGRESQL_PORT),
    };
    Ok(Address::Unix {
        path: Path::new(folder).join(format!("{POSTGRESQL_SOCKET}{port}")),
    })
}

impl fmt::Display for ServerAddress {
    /// Without the user; MySQL addresses have no dialect prefix.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.to_string();
        match self.dialect {
            Dialect::MySql | Dialect::Sqlite => out.write_str(&place),
            Dialect::PostgreSql => {
                let behind = place.trim_start_matches("tcp").trim_start_matches("unix");
                write!(out, "postgresql{behind}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, dialect: Dialect, place: &str, user: Option<&str>) {
        let address = ServerAddress::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(address.dialect, dialect, "{text}");
        assert_eq!(address.place.to_string(), place, "{text}");
        assert_eq!(address.user.as_deref(), user, "{text}");
        assert!(ServerAddress::is_meant_by(text), "{text}");
        let again = ServerAddress::parse(&address.to_string()).unwrap();
        assert_eq!(
            (again.dialect, again.place),
            (dialect, address.place),
            "{text}"
        );
    }

    #[test]
    fn a_scheme_says_what_a_server_speaks() {
        use Dialect::{MySql, PostgreSql};
        check("tcp://anna@db", MySql, "tcp://db:3306", Some("anna"));
        check("unix:/run/s.sock", MySql, "unix:/run/s.sock", None);
        check("mysql://anna@db:3307", MySql, "tcp://db:3307", Some("anna"));
        check("mysql:/run/s:1.sock", MySql, "unix:/run/s:1.sock", None);
        check(
            "mysql://anna@/run/s.sock",
            MySql,
            "unix:/run/s.sock",
            Some("anna"),
        );
        check("postgresql://db", PostgreSql, "tcp://db:5432", None);
        check(
            "postgres://anna@[::1]:5433",
            PostgreSql,
            "tcp://[::1]:5433",
            Some("anna"),
        );
        let socket = "unix:/run/postgresql/.s.PGSQL.5432";
        check("postgresql:/run/postgresql", PostgreSql, socket, None);
        check("postgresql:///run/postgresql/", PostgreSql, socket, None);
        check(
            "postgresql://anna@/run/postgresql:5432",
            PostgreSql,
            socket,
            Some("anna"),
        );
        check(
            "postgresql:/run/postgresql/.s.PGSQL.5432",
            PostgreSql,
            socket,
            None,
        );
    }

    #[test]
    fn a_file_of_sqlite_has_its_settings_with_it() {
        use Dialect::Sqlite;
        check("sqlite:/a b.db", Sqlite, "sqlite:/a b.db", None);
        check(
            "sqlite:/f.db?synchronous=2&journal_mode=WAL",
            Sqlite,
            "sqlite:/f.db?journal_mode=wal&synchronous=full",
            None,
        );
        for text in [
            "sqlite:f.db",
            "sqlite:/",
            "sqlite:/f.db?journal_mode",
            "sqlite:/f.db?journal_mode=wall",
            "sqlite:/f.db?journal=wal",
        ] {
            assert!(ServerAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_a_password_not_repeated() {
        for text in [
            "",
            "db",
            "postgresql:",
            "postgresql:folder",
            "postgresql://",
            "postgresql://db:0",
            "postgresql:/run:x",
            "mysql://:3306",
            "postgresql://db/sbtest",
            "tcp://db/sbtest",
        ] {
            assert!(ServerAddress::parse(text).is_err(), "{text}");
        }
        for text in [
            "postgresql://anna:s3cret@db",
            "postgresql://anna:a/s3cret@db:1",
            "mysql://anna:s3cret@/run/s.sock",
        ] {
            let error = ServerAddress::parse(text).unwrap_err();
            assert_eq!(error, AddressError::Password, "{text}");
        }
        assert!(!ServerAddress::is_meant_by("postgresql-16"));
        assert!(!ServerAddress::is_meant_by("mysql-9.7"));
    }
}
