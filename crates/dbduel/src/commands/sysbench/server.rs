//! The options of MySQL and MariaDB: where servers are and how they are spoken to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dbduel_load::address::Address;
use dbduel_load::driver::{ConnectOptions, Connection, Credentials, TlsMode};
use dbduel_load::run::IgnoredErrors;
use dbduel_load::statement_watch::StatementWatch;

use super::Stop;
use super::general::SECONDS_MAX;
use super::logger::Logger;
use super::parsed_options::ParsedOptions;

/// Where servers put their socket by default; a client that is given `localhost` looks there.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// Where servers are and how they are spoken to. No debug output, because it holds a password.
pub struct Servers {
    /// Each new connection goes to the next one.
    pub addresses: Vec<Address>,
    /// Account.
    pub credentials: Credentials,
    pub database: String,
    /// How much TLS.
    pub tls: TlsMode,
    /// Errors after which an event is begun again.
    pub ignored: IgnoredErrors,
    /// Ends statements that a server will never answer; none when that is not wanted.
    pub statement_watch: Option<StatementWatch>,
    /// Whether statements are prepared.
    pub is_prepared: bool,
    /// Nothing is to reach a server.
    pub is_dry: bool,
}

impl Servers {
    /// Reads the options, and warns of those that have no effect. The driver is not looked at: a script chooses its own.
    ///
    /// # Errors
    /// A value that there is not.
    pub fn read(given: &ParsedOptions, voice: Logger) -> Result<Self, Stop> {
        let is_prepared = given.choice("db-ps-mode", &[("auto", true), ("disable", false)])?;
        for name in [
            "mysql-ssl-key",
            "mysql-ssl-cert",
            "mysql-ssl-cipher",
            "mysql-compression",
            "mysql-compression-algorithms",
            "mysql-debug",
        ] {
            if given.is_written(name) && (given.switch(name) || !given.text(name).is_empty()) {
                voice.warning(&format!("--{name} is not supported and has no effect"));
            }
        }
        let password = if given.is_written("mysql-password") {
            given.text("mysql-password").to_owned()
        } else {
            std::env::var("MYSQL_PWD").unwrap_or_default()
        };
        let credentials = Credentials::new(given.text("mysql-user").to_owned(), password);
        let tls = tls(given)?;
        Ok(Servers {
            addresses: addresses(given)?,
            statement_watch: statement_watch(given, &credentials, &tls)?,
            credentials,
            database: given.text("mysql-db").to_owned(),
            tls,
            ignored: ignored(given)?,
            is_prepared,
            is_dry: given.switch("mysql-dry-run"),
        })
    }

    /// As [`Servers::read`], for tests that have the driver of the options.
    ///
    /// # Errors
    /// A driver or value that there is not.
    pub fn with_driver(given: &ParsedOptions, voice: Logger) -> Result<Self, Stop> {
        let driver = given.text("db-driver");
        if driver != "mysql" {
            return Err(Stop::Fatal(format!(
                "invalid database driver name: '{driver}'; dbduel speaks to MySQL and MariaDB only"
            )));
        }
        Self::read(given, voice)
    }

    /// A connection for commands that measure nothing, to the next server by `number`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn connect(&self, number: usize, options: &ConnectOptions) -> Result<Connection, Stop> {
        let options = ConnectOptions {
            database: Some(self.database.clone()),
            tls: self.tls.clone(),
            ..options.clone()
        };
        let address = &self.addresses[number % self.addresses.len()];
        let connection = Connection::connect(address, &self.credentials, &options);
        let mut connection = connection.map_err(|error| {
            let error = anyhow::Error::from(error);
            Stop::Fatal(format!(
                "unable to connect to MySQL server, aborting: {error:#}"
            ))
        })?;
        if let Some(watch) = &self.statement_watch {
            connection.watch(watch, address);
        }
        Ok(connection)
    }
}

fn addresses(given: &ParsedOptions) -> Result<Vec<Address>, Stop> {
    let sockets = given.list("mysql-socket");
    if !sockets.is_empty() {
        let unix = |path: &String| Address::Unix {
            path: PathBuf::from(path),
        };
        return Ok(sockets.iter().map(unix).collect());
    }
    let mut ports = Vec::new();
    for text in given.list("mysql-port") {
        let port: u16 = text.parse().map_err(|_| {
            Stop::Fatal(format!(
                "Invalid value for --mysql-port: '{text}'; it takes a port"
            ))
        })?;
        ports.push(port);
    }
    let mut addresses = Vec::new();
    for host in given.list("mysql-host") {
        for &port in &ports {
            let local = (host == "localhost").then(local_socket).flatten();
            addresses.push(match local {
                Some(path) => Address::Unix { path },
                None => Address::Tcp {
                    host: host.clone(),
                    port,
                },
            });
        }
    }
    if addresses.is_empty() {
        return Err(Stop::Fatal(
            "--mysql-host and --mysql-port name no server".to_owned(),
        ));
    }
    Ok(addresses)
}

/// The socket of a server on this machine, if there is one.
fn local_socket() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("MYSQL_UNIX_PORT") {
        return Some(PathBuf::from(path));
    }
    let found = SOCKETS.iter().find(|path| Path::new(path).exists());
    found.map(PathBuf::from)
}

fn tls(given: &ParsedOptions) -> Result<TlsMode, Stop> {
    let named = given.text("mysql-ssl-ca");
    // The file that sysbench 1.0 looks for in the working directory.
    let ca = PathBuf::from(if named.is_empty() {
        "cacert.pem"
    } else {
        named
    });
    match given.text("mysql-ssl").to_ascii_lowercase().as_str() {
        "off" | "disabled" | "false" | "0" => Ok(TlsMode::Off),
        "on" | "true" | "1" | "" if ca.exists() => Ok(TlsMode::VerifyCa { ca }),
        "on" | "true" | "1" | "" | "required" => Ok(TlsMode::Required),
        "preferred" => Ok(TlsMode::Preferred),
        "verify_ca" => Ok(TlsMode::VerifyCa { ca }),
        "verify_identity" => Ok(TlsMode::VerifyIdentity { ca }),
        other => Err(Stop::Fatal(format!(
            "Invalid value for --mysql-ssl: '{other}'; it takes off, on, preferred, required, verify_ca or verify_identity"
        ))),
    }
}

fn statement_watch(
    given: &ParsedOptions,
    credentials: &Credentials,
    tls: &TlsMode,
) -> Result<Option<StatementWatch>, Stop> {
    let seconds = given.count("db-statement-check")?.min(SECONDS_MAX);
    if seconds == 0 {
        return Ok(None);
    }
    let interval = Duration::from_secs(seconds);
    StatementWatch::start(credentials.clone(), tls.clone(), interval)
        .map(Some)
        .map_err(|error| Stop::Fatal(format!("cannot start a thread: {error}")))
}

fn ignored(given: &ParsedOptions) -> Result<IgnoredErrors, Stop> {
    let words = given.list("mysql-ignore-errors").iter().map(String::as_str);
    IgnoredErrors::read(words).map_err(|word| {
        Stop::Fatal(format!(
            "Invalid value for --mysql-ignore-errors: '{word}'; it takes error numbers, or all"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{parsed_options::Words, table};
    use super::*;

    fn read(text: &str) -> Result<Servers, Stop> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let (given, _) = ParsedOptions::read(table::GENERAL, Words::sort(&words)?.options)?;
        Servers::with_driver(&given, Logger { verbosity: 0 })
    }

    fn places(text: &str) -> Vec<String> {
        let servers = read(text).unwrap();
        servers.addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn connections_take_the_next_port_and_then_the_next_host() {
        assert_eq!(
            places("--mysql-host=a,b --mysql-port=1,2"),
            ["tcp://a:1", "tcp://a:2", "tcp://b:1", "tcp://b:2"]
        );
        assert_eq!(
            places("--mysql-host=a --mysql-socket=/x,/y"),
            ["unix:/x", "unix:/y"]
        );
    }

    #[test]
    fn values_without_sense_are_refused() {
        for bad in [
            "--db-driver=pgsql",
            "--db-ps-mode=foo",
            "--mysql-port=abc",
            "--mysql-ssl=maybe",
            "--mysql-ignore-errors=x",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let Ok(servers) = read("--mysql-ignore-errors=all") else {
            panic!("refused")
        };
        assert_eq!(servers.ignored, IgnoredErrors::All);
    }
}
