//! Server options of `load`, `check` and `audit`, and connections to these servers.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use dbduel_driver::address::{Address, ServerAddress};
use dbduel_driver::{ConnectOptions, Connection, Credentials, TlsMode};

use dbduel_inspect::login::{self, PasswordSource};

/// Options for a running server.
#[derive(Debug, Args)]
pub struct Server {
    /// Server address: tcp://user@host:3306, unix:/path/to/socket or unix://user@/path/to/socket for MySQL and MariaDB, with
    /// root as the default user; postgresql://user@host:5432, postgresql:/folder/of/socket or
    /// postgresql://user@/folder/of/socket:5432 for PostgreSQL, with postgres; sqlite:/path/to/file for a file of SQLite, with
    /// settings for its connections as in sqlite:/path/to/file?journal_mode=wal&synchronous=full. The password comes from
    /// --password-file, DBDUEL_PASSWORD, MYSQL_PWD or PGPASSWORD, or for PostgreSQL from PGPASSFILE or ~/.pgpass.
    #[arg(long = "server", value_name = "ADDRESS")]
    pub address: String,
    /// File whose first line is the password.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

/// TLS options for a running server.
#[derive(Debug, Args)]
pub struct Tls {
    /// TLS mode. Only verify-ca and verify-identity authenticate the server; without them an impostor can obtain the password
    /// of caching_sha2_password and sha256_password accounts. Not needed on a unix socket.
    #[arg(long = "tls", value_enum, default_value_t = TlsUse::Off)]
    pub mode: TlsUse,
    /// CA certificates (PEM) for verify-ca and verify-identity, or the server's own self-signed certificate.
    #[arg(
        long = "tls-ca",
        value_name = "FILE",
        required_if_eq_any = [("mode", "verify-ca"), ("mode", "verify-identity")]
    )]
    pub ca: Option<PathBuf>,
}

/// How connections use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TlsUse {
    /// Never.
    Off,
    /// If the server offers it; its certificate is not verified. A failed handshake is an error.
    Preferred,
    /// Always; the certificate is not verified.
    Required,
    /// Always; the certificate must be signed by the CA, or be the one in --tls-ca.
    VerifyCa,
    /// As verify-ca; the certificate must also match the host name.
    VerifyIdentity,
}

/// Address and credentials of the server.
///
/// # Errors
/// When the address is invalid, or the password file cannot be read.
pub fn endpoint(server: &Server) -> Result<(ServerAddress, Credentials)> {
    let address = ServerAddress::parse(&server.address)?;
    let credentials = login::credentials(&address, server.password_file.as_deref(), None)?;
    Ok((address, credentials))
}

/// The TLS mode. The command line requires a CA for the modes that need one.
pub fn tls(asked: &Tls) -> TlsMode {
    let ca = asked.ca.clone().unwrap_or_default();
    match asked.mode {
        TlsUse::Off => TlsMode::Off,
        TlsUse::Preferred => TlsMode::Preferred,
        TlsUse::Required => TlsMode::Required,
        TlsUse::VerifyCa => TlsMode::VerifyCa { ca },
        TlsUse::VerifyIdentity => TlsMode::VerifyIdentity { ca },
    }
}

/// Connects to the server of `load` or `check`. The error of a refused login says where to look.
///
/// # Errors
/// When the connection fails.
pub fn connect(
    address: &Address,
    credentials: &Credentials,
    options: &ConnectOptions,
) -> Result<Connection> {
    login::connect(
        address,
        credentials,
        options,
        PasswordSource::Options("--password-file"),
    )
}
