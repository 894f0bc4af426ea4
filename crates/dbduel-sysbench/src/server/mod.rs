//! The servers of a test: addresses and connection options, from the options of the driver.

mod mysql;
mod postgresql;

use std::time::Duration;

use dbduel_client::run::{IgnoredErrors, advice};
use dbduel_driver::address::Address;
use dbduel_driver::statement_watch::StatementWatch;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, TlsMode};

use super::Stop;
use super::general::SECONDS_MAX;
use super::logger::Logger;
use super::parsed_options::ParsedOptions;

/// Login from the options of a driver.
struct Login {
    dialect: Dialect,
    addresses: Vec<Address>,
    credentials: Credentials,
    database: String,
    tls: TlsMode,
    ignored: IgnoredErrors,
    is_dry: bool,
}

/// Addresses of the servers and connection options. No debug output, because it holds a password.
pub struct Servers {
    /// Their dialect.
    pub dialect: Dialect,
    /// Addresses; each new connection uses the next one.
    pub addresses: Vec<Address>,
    /// Account.
    pub credentials: Credentials,
    pub database: String,
    /// TLS mode.
    pub tls: TlsMode,
    /// Errors after which an event is restarted.
    pub ignored: IgnoredErrors,
    /// Ends statements that a server will never answer; none when switched off.
    pub statement_watch: Option<StatementWatch>,
    /// Whether statements are prepared.
    pub is_prepared: bool,
    /// True for a dry run: nothing reaches a server.
    pub is_dry: bool,
}

impl Servers {
    /// Reads the options of the driver, and warns of those without effect. An unknown driver is treated as MySQL's; a
    /// script that uses it is refused there.
    ///
    /// # Errors
    /// An invalid value.
    pub fn read(given: &ParsedOptions, voice: Logger) -> Result<Self, Stop> {
        let is_prepared = given.choice("db-ps-mode", &[("auto", true), ("disable", false)])?;
        let Login {
            dialect,
            addresses,
            credentials,
            database,
            tls,
            ignored,
            is_dry,
        } = match given.text("db-driver") {
            "pgsql" => postgresql::login(given, voice)?,
            _ => mysql::login(given, voice)?,
        };
        let options = ConnectOptions {
            dialect,
            database: Some(database.clone()),
            tls: tls.clone(),
            ..ConnectOptions::default()
        };
        Ok(Servers {
            statement_watch: statement_watch(given, &credentials, options)?,
            dialect,
            addresses,
            credentials,
            database,
            tls,
            ignored,
            is_prepared,
            is_dry,
        })
    }

    /// As [`Servers::read`], for tests that need the driver of the options.
    ///
    /// # Errors
    /// An unknown driver or an invalid value.
    pub fn with_driver(given: &ParsedOptions, voice: Logger) -> Result<Self, Stop> {
        let driver = given.text("db-driver");
        if !["mysql", "pgsql"].contains(&driver) {
            return Err(Stop::Fatal(format!(
                "invalid database driver name: '{driver}'; use mysql or pgsql"
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
            dialect: self.dialect,
            database: Some(self.database.clone()),
            tls: self.tls.clone(),
            ..options.clone()
        };
        let address = &self.addresses[number % self.addresses.len()];
        let connection = Connection::connect(address, &self.credentials, &options);
        let mut connection = connection.map_err(|error| {
            let advice = error
                .refused()
                .map(|refusal| advice::on_login(self.dialect, &self.tls, refusal))
                .unwrap_or_default();
            let error = anyhow::Error::from(error);
            let product = self.dialect.product();
            Stop::Fatal(format!(
                "unable to connect to {product} server, aborting: {error:#}{advice}"
            ))
        })?;
        if let Some(watch) = &self.statement_watch {
            connection.watch(watch, address);
        }
        Ok(connection)
    }
}

fn statement_watch(
    given: &ParsedOptions,
    credentials: &Credentials,
    options: ConnectOptions,
) -> Result<Option<StatementWatch>, Stop> {
    let seconds = given.count("db-statement-check")?.min(SECONDS_MAX);
    if seconds == 0 {
        return Ok(None);
    }
    let interval = Duration::from_secs(seconds);
    StatementWatch::start(credentials.clone(), options, interval)
        .map(Some)
        .map_err(|error| Stop::Fatal(format!("cannot start a thread: {error}")))
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
            "--db-driver=oracle",
            "--db-ps-mode=foo",
            "--db-driver=pgsql --pgsql-port=0",
            "--db-driver=pgsql --pgsql-port=1.5",
            "--db-driver=pgsql --pgsql-sslmode=maybe",
            "--db-driver=pgsql --pgsql-host=/run --pgsql-sslmode=maybe",
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

    #[test]
    fn the_driver_chooses_the_options() {
        let folder = "--db-driver=pgsql --pgsql-host=/run/postgresql --mysql-host=a";
        assert_eq!(places(folder), ["unix:/run/postgresql/.s.PGSQL.5432"]);
        let host = "--db-driver=pgsql --pgsql-host=db --pgsql-port=5433 --mysql-port=abc";
        assert_eq!(places(host), ["tcp://db:5433"]);
        assert_eq!(places("--db-driver=pgsql"), ["tcp://localhost:5432"]);
        assert_eq!(places("--pgsql-port=0 --mysql-host=a"), ["tcp://a:3306"]);
    }

    #[test]
    fn the_option_of_tls_takes_precedence_over_the_words_of_the_database() {
        let tls =
            |text: &str| read(&format!("--db-driver=pgsql {text}")).map(|servers| servers.tls);
        assert_eq!(tls("--pgsql-sslmode=disable").unwrap(), TlsMode::Off);
        let both = "--pgsql-db=sslmode=disable --pgsql-sslmode=prefer";
        assert_eq!(tls(both).unwrap(), TlsMode::Preferred);
        assert_eq!(tls("--pgsql-db=sslmode=disable").unwrap(), TlsMode::Off);
        let socket = "--pgsql-host=/run --pgsql-sslmode=prefer";
        assert_eq!(tls(socket).unwrap(), TlsMode::Off);
    }
}
