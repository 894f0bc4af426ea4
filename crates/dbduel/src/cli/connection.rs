//! Options about a server that runs already: its address, how to log in, TLS.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// A server that runs already.
#[derive(Debug, Args)]
pub struct Server {
    /// The server: tcp://user@host:3306, unix:/path/to/socket or unix://user@/path/to/socket; the user
    /// is root unless named. The password comes from --password-file, DBDUEL_PASSWORD or MYSQL_PWD.
    #[arg(long = "server", value_name = "ADDRESS")]
    pub address: String,
    /// File whose first line is the password.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

/// TLS on the way to a server that runs already.
#[derive(Debug, Args)]
pub struct Tls {
    /// How connections use TLS. Only verify-ca and verify-identity prove who answers; otherwise whoever stands in the server's
    /// place can ask for the password (accounts of caching_sha2_password and sha256_password). A unix socket needs no proof.
    #[arg(long = "tls", value_enum, default_value_t = TlsUse::Off)]
    pub mode: TlsUse,
    /// Certificates of the authority (PEM), for the modes that check the server's; or the server's very certificate, if that
    /// is its own authority.
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
    /// If the server offers it; its certificate is not looked at. An offer that comes to nothing is an error.
    Preferred,
    /// Always; its certificate is not looked at.
    Required,
    /// Always; the certificate must come from the authority, or be the very one that --tls-ca names.
    VerifyCa,
    /// As verify-ca; the certificate must also bear the host's name.
    VerifyIdentity,
}
