//! Parameters of a login: user, transport, TLS.

use crate::capability::Capabilities;
use crate::credentials::Credentials;

/// The transport. Determines whether a password may be sent in clear text when a method asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A network connection.
    Tcp,
    /// A socket inside this machine.
    UnixSocket,
}

/// Whether to change to TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsWish {
    /// Never.
    #[default]
    Off,
    /// If the server offers it.
    Preferred,
    /// Always; the login fails otherwise.
    Required,
}

/// Parameters of a login.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// User and password.
    pub credentials: Credentials,
    /// Default database, if any.
    pub database: Option<String>,
    /// The transport.
    pub transport: Transport,
    /// Whether to change to TLS.
    pub tls: TlsWish,
    /// Capabilities wanted beyond the default ones: [`Capabilities::LOCAL_FILES`], [`Capabilities::MULTI_STATEMENTS`]
    /// and [`Capabilities::FOUND_ROWS`]. Others are ignored, since they would change packets in ways that are not
    /// supported here.
    pub wanted: Capabilities,
}

impl LoginOptions {
    /// Options without database and TLS.
    #[must_use]
    pub fn new(credentials: Credentials, transport: Transport) -> Self {
        LoginOptions {
            credentials,
            database: None,
            transport,
            tls: TlsWish::Off,
            wanted: Capabilities::default(),
        }
    }
}
