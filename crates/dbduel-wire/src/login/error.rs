//! Why a login can fail.

use super::PACKETS_LIMIT;
use crate::error::{ServerError, WireError};

/// Why a login failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The server's bytes violate the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The server refused the login.
    #[error("login refused: {0}")]
    Refused(ServerError),
    /// TLS is required but not offered.
    #[error(
        "TLS is required but the server does not offer it; configure a certificate on the server or turn TLS off"
    )]
    NoTls,
    /// The server lacks a capability that every supported version has.
    #[error("server `{version}` is too old: it lacks {lacking}")]
    TooOld {
        /// Its version text.
        version: String,
        /// The missing capability.
        lacking: &'static str,
    },
    /// The user's authentication method is not supported.
    #[error(
        "the server asks for authentication method `{0}`, which this client does not support; give the account another, \
         such as `mysql_native_password` or `caching_sha2_password`"
    )]
    UnknownMethod(String),
    /// The server's public key cannot be used.
    #[error("cannot encrypt the password: {0}; use TLS, under which the server needs no key")]
    PublicKey(&'static str),
    /// Too many packets without a decision.
    #[error("no decision about the login after {PACKETS_LIMIT} packets")]
    Endless,
    /// Bytes were fed after the end, or where TLS should have begun.
    #[error("bytes arrived when none were due")]
    Unexpected,
}
