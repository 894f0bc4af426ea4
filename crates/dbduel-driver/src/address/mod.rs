//! Addresses of databases: `tcp://host:port`, `unix:/path`, or the path of a file; with the dialect, a
//! [`ServerAddress`].
//!
//! Parsing only; nothing is opened. An address never holds a password: one that is written into it is refused, and the
//! error does not repeat it.

mod server;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{SettingError, Settings};
pub use server::ServerAddress;

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 3306;

/// The name of the loopback address.
const LOCALHOST: &str = "localhost";

/// Location of a server or a database file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Address {
    /// A network address.
    Tcp {
        /// Name or number of the host; IPv6 without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// A socket in the file system.
    Unix {
        /// The socket's path.
        path: PathBuf,
    },
    /// No server: a file that is opened in this process.
    File {
        /// The file's path.
        path: Box<Path>,
        /// Settings of every connection to it, by names of PRAGMAs.
        settings: Box<Settings>,
    },
}

/// Why a text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It begins with neither scheme.
    #[error(
        "`{0}` is not a server address; write `tcp://host:3306`, `unix:/path/to/socket`, `postgresql://host:5432`, `postgresql:/folder/of/socket` or `sqlite:/path/to/file`"
    )]
    Scheme(String),
    /// The part after the last colon is not a port.
    #[error("`{0}` is not a port; write a number from 1 to 65535")]
    Port(String),
    /// Text after host and port.
    #[error("an address must not name a database; remove the part after host and port")]
    Database,
    /// No host between `tcp://` and the port.
    #[error("the address has no host; write `tcp://host:3306`")]
    NoHost,
    /// A relative or empty path.
    #[error("`{0}` is not the absolute path of a socket; write `unix:/path/to/socket`")]
    Path(String),
    /// A relative or empty path of a file.
    #[error("`{0}` is not the absolute path of a file; write `sqlite:/path/to/file`")]
    File(String),
    /// A setting of SQLite without a value.
    #[error(
        "`{0}` is not a setting; write `sqlite:/path/to/file?journal_mode=wal&synchronous=full`"
    )]
    NoSetting(String),
    /// A setting that SQLite does not have.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A colon in the user part.
    #[error("an address must not contain a password; pass it in a file or an environment variable")]
    Password,
    /// A user where only the location is expected.
    #[error(
        "the address contains user `{0}`, but only the location of the server is expected here"
    )]
    User(String),
}

impl Address {
    /// Parses `tcp://[user@]host[:port]`, `unix:/path` or `unix://[user@]/path`; returns the user separately.
    ///
    /// # Errors
    /// [`AddressError`], which says what to write instead.
    fn parse_with_user(text: &str) -> Result<(Self, Option<String>), AddressError> {
        if let Some(rest) = text.strip_prefix("tcp://") {
            let (user, place) = authority(rest)?;
            return Ok((parse_tcp(place, DEFAULT_PORT)?, user));
        }
        let Some(rest) = text.strip_prefix("unix:") else {
            let harmless = if text.contains('@') { "…" } else { text };
            return Err(AddressError::Scheme(harmless.to_owned()));
        };
        let (user, path) = match rest.strip_prefix("//") {
            Some(rest) => split_user(rest)?,
            None => (None, rest),
        };
        if !path.starts_with('/') {
            return Err(AddressError::Path(path.to_owned()));
        }
        Ok((
            Address::Unix {
                path: PathBuf::from(path),
            },
            user,
        ))
    }

    /// True when both name one server: the same socket, the same file, or the same port of one host; all names of the
    /// loopback address are equal. Two sockets, or a socket and a port, may also belong to one server, which an
    /// address does not show.
    #[must_use]
    pub fn is_same_place(&self, other: &Address) -> bool {
        match (self, other) {
            (
                Address::Tcp { host, port },
                Address::Tcp {
                    host: other_host,
                    port: other_port,
                },
            ) => port == other_port && one_name(host) == one_name(other_host),
            (Address::File { path, .. }, Address::File { path: other, .. }) => path == other,
            (Address::Tcp { .. } | Address::Unix { .. } | Address::File { .. }, _) => self == other,
        }
    }

    /// The text of an address, with any password in it removed.
    #[must_use]
    pub fn without_password(text: &str) -> String {
        let start = text.find("//").map_or(0, |slashes| slashes + 2);
        let Some(end) = text.rfind('@').filter(|&at| at >= start) else {
            return text.to_owned();
        };
        match text[start..end].find(':') {
            Some(colon) => format!("{}:…{}", &text[..start + colon], &text[end..]),
            None => text.to_owned(),
        }
    }

    /// True when the server presumably runs on this machine: no name but `localhost` is resolved, and a local port may
    /// be forwarded elsewhere.
    #[must_use]
    pub fn is_on_this_machine(&self) -> bool {
        match self {
            Address::Unix { .. } | Address::File { .. } => true,
            Address::Tcp { host, .. } => {
                host == LOCALHOST || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
            }
        }
    }
}

/// True for a name of this machine alone, with or without a port: `localhost` or a loopback address, of IPv6 in
/// brackets.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == LOCALHOST || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Canonical name of a host: one for all names of the loopback address.
fn one_name(host: &str) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(ip) if ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST => LOCALHOST.to_owned(),
        Ok(ip) => ip.to_string(),
        Err(_) => host,
    }
}

/// User and remainder of the text after `//`, without a password.
fn authority(rest: &str) -> Result<(Option<String>, &str), AddressError> {
    match rest.rfind('@') {
        // A password may hold a slash.
        Some(at) if rest[..at].contains(':') => Err(AddressError::Password),
        _ => split_user(rest),
    }
}

fn split_user(rest: &str) -> Result<(Option<String>, &str), AddressError> {
    // A path may hold an @ of its own; a user cannot hold a slash.
    let authority = rest.find('/').map_or(rest, |slash| &rest[..slash]);
    match authority.rfind('@') {
        Some(at) if rest[..at].contains(':') => Err(AddressError::Password),
        Some(at) => Ok((Some(rest[..at].to_owned()), &rest[at + 1..])),
        None => Ok((None, rest)),
    }
}

fn parse_tcp(place: &str, default_port: u16) -> Result<Address, AddressError> {
    if place.contains('/') {
        return Err(AddressError::Database);
    }
    let (host, port) = match place
        .strip_prefix('[')
        .and_then(|inner| inner.split_once(']'))
    {
        Some((host, "")) => (host, None),
        Some((host, tail)) => (host, Some(tail.strip_prefix(':').unwrap_or(tail))),
        None => match place.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    if host.is_empty() {
        return Err(AddressError::NoHost);
    }
    let port = match port {
        None => default_port,
        Some(text) => match text.parse() {
            Ok(port) if port != 0 => port,
            _ => return Err(AddressError::Port(text.to_owned())),
        },
    };
    Ok(Address::Tcp {
        host: host.to_owned(),
        port,
    })
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Address::parse_with_user(text)? {
            (address, None) => Ok(address),
            (_, Some(user)) => Err(AddressError::User(user)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => {
                write!(formatter, "tcp://[{host}]:{port}")
            }
            Address::Tcp { host, port } => write!(formatter, "tcp://{host}:{port}"),
            Address::Unix { path } => write!(formatter, "unix:{}", path.display()),
            Address::File { path, settings } => {
                write!(formatter, "sqlite:{}", path.display())?;
                for (place, (name, value)) in settings.iter().enumerate() {
                    let joint = if place == 0 { '?' } else { '&' };
                    write!(formatter, "{joint}{name}={value}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp {
            host: host.to_owned(),
            port,
        }
    }

    fn unix(path: &str) -> Address {
        Address::Unix {
            path: PathBuf::from(path),
        }
    }

    #[track_caller]
    fn check(text: &str, address: &Address, user: Option<&str>) {
        assert_eq!(
            Address::parse_with_user(text),
            Ok((address.clone(), user.map(str::to_owned))),
            "{text}"
        );
        assert_eq!(
            &address.to_string().parse::<Address>().unwrap(),
            address,
            "{text} does not come back"
        );
    }

    #[test]
    fn both_schemes_are_read_and_printed() {
        check("tcp://db.example:3307", &tcp("db.example", 3307), None);
        check(
            "tcp://anna@db.example",
            &tcp("db.example", DEFAULT_PORT),
            Some("anna"),
        );
        check("tcp://[::1]:3306", &tcp("::1", 3306), None);
        check("tcp://anna@[::1]", &tcp("::1", DEFAULT_PORT), Some("anna"));
        check("unix:/run/db.sock", &unix("/run/db.sock"), None);
        check("unix:///run/a@b.sock", &unix("/run/a@b.sock"), None);
        check(
            "unix://anna@/run/db.sock",
            &unix("/run/db.sock"),
            Some("anna"),
        );
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        for text in [
            "tcp://anna:s3cret@host",
            "unix://anna:s3cret@/run/db.sock",
            "mysql://anna:s3cret@host",
            "tcp://anna:a/s3cret@host",
            "tcp://anna:a@s3cret@host:1",
        ] {
            let error = Address::parse_with_user(text).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
            let shown = Address::without_password(text);
            assert!(
                !shown.contains("s3cret") && shown.contains("anna:…@"),
                "{shown}"
            );
        }
        for text in ["tcp://anna@host:1", "unix:/a:b.sock", "a.cnf", "tcp://h:1"] {
            assert_eq!(Address::without_password(text), text);
        }
    }

    #[test]
    fn one_server_has_several_names() {
        let is_same = |one: &str, other: &str| {
            let one: Address = one.parse().unwrap();
            one.is_same_place(&other.parse().unwrap())
        };
        for other in [
            "tcp://127.0.0.1",
            "tcp://LocalHost:3306",
            "tcp://[::1]",
            "tcp://[::ffff:127.0.0.1]",
            "tcp://localhost.",
        ] {
            assert!(is_same("tcp://localhost", other), "{other}");
        }
        assert!(is_same("tcp://DB.example", "tcp://db.example"));
        for other in [
            "tcp://127.0.0.2",
            "tcp://localhost:3307",
            "tcp://db",
            "unix:/s",
        ] {
            assert!(!is_same("tcp://localhost", other), "{other}");
        }
    }

    #[test]
    fn names_of_this_machine_are_told_from_others_with_and_without_a_port() {
        for own in [
            "localhost",
            "localhost:1",
            "127.0.0.1:80",
            "[::1]:80",
            "[::1]",
        ] {
            assert!(is_loopback(own), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "0.0.0.0:80",
            "localhost.:80",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn a_server_is_known_to_be_here_by_its_socket_or_a_loopback_address() {
        let is_here = |text: &str| {
            let (address, _) = Address::parse_with_user(text).unwrap_or_else(|e| panic!("{e}"));
            address.is_on_this_machine()
        };
        for text in [
            "unix:/s.sock",
            "tcp://localhost",
            "tcp://127.0.0.2",
            "tcp://[::1]:1",
        ] {
            assert!(is_here(text), "{text}");
        }
        for text in ["tcp://db", "tcp://10.0.0.1", "tcp://localhost.example"] {
            assert!(!is_here(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "host:3306",
            "tcp://",
            "tcp://:3306",
            "tcp://host:0",
            "tcp://host:x",
            "unix:",
            "unix:relative",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
        assert_eq!(
            "tcp://anna@host".parse::<Address>(),
            Err(AddressError::User("anna".to_owned()))
        );
    }

    #[test]
    fn the_written_form_names_its_transport() {
        let text = serde_json::to_string(&tcp("host", 1)).unwrap();
        assert_eq!(text, r#"{"transport":"tcp","host":"host","port":1}"#);
        assert_eq!(
            serde_json::from_str::<Address>(&text).unwrap(),
            tcp("host", 1)
        );
        assert!(
            serde_json::from_str::<Address>(r#"{"transport":"unix","path":"/s","port":1}"#)
                .is_err()
        );
    }
}
