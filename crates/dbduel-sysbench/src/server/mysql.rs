//! Addresses and connection options of MySQL and MariaDB servers.

use std::path::{Path, PathBuf};

use dbduel_client::run::IgnoredErrors;
use dbduel_driver::address::Address;
use dbduel_driver::{Credentials, Dialect, TlsMode};

use super::super::Stop;
use super::super::logger::Logger;
use super::super::parsed_options::ParsedOptions;
use super::Login;

/// Default sockets of servers; a client looks there for `localhost`.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// Reads the options, and warns of those without effect.
///
/// # Errors
/// An invalid value.
pub(super) fn login(given: &ParsedOptions, voice: Logger) -> Result<Login, Stop> {
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
    Ok(Login {
        dialect: Dialect::MySql,
        addresses: addresses(given)?,
        credentials: Credentials::new(given.text("mysql-user").to_owned(), password),
        database: given.text("mysql-db").to_owned(),
        tls: tls(given)?,
        ignored: ignored(given)?,
        is_dry: given.switch("mysql-dry-run"),
    })
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

fn ignored(given: &ParsedOptions) -> Result<IgnoredErrors, Stop> {
    let words = given.list("mysql-ignore-errors").iter().map(String::as_str);
    IgnoredErrors::read(words).map_err(|word| {
        Stop::Fatal(format!(
            "Invalid value for --mysql-ignore-errors: '{word}'; it takes error numbers, or all"
        ))
    })
}
