//! What a login is given: who, over what, with how much TLS.

use crate::capability::Capabilities;
use crate::credentials::Credentials;

/// How the bytes travel. Decides whether a password may be sent in clear when a method asks for it.
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
    /// Or else fail.
    Required,
}

/// What a login needs to know.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// Who logs in.
    pub credentials: Credentials,
    /// Default database, if any.
    pub database: Option<String>,
    /// How the bytes travel.
    pub transport: Transport,
    /// Whether to change to TLS.
    pub tls: TlsWish,
    /// Capabilities wanted beyond those that are always asked for: [`Capabilities::LOCAL_FILES`],
    /// [`Capabilities::MULTI_STATEMENTS`] and [`Capabilities::FOUND_ROWS`]. Others would change the packets in ways that are
    /// not read here, and are left out.
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
