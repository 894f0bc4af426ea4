//! Connecting and logging in.

use dbduel_wire::{
    Capabilities, Login, LoginError, LoginOptions, LoginStep, ReplyParser, TlsWish, Transport,
};

use super::Session;
use crate::address::Address;
use crate::conn::Extra;
use crate::socket::{Socket, Waiter};
use crate::{Credentials, LostError, Tls, TlsMode};

/// Logs in over a new socket.
pub(crate) async fn log_in(
    socket: &mut Socket,
    waiter: &impl Waiter,
    address: &Address,
    credentials: Credentials,
    database: Option<String>,
    extra: Extra,
    tls: &Tls,
) -> Result<Session, LostError> {
    let wanted = match extra {
        Extra::None => Capabilities::default(),
        Extra::Files => Capabilities::LOCAL_FILES,
        Extra::Groups => Capabilities::MULTI_STATEMENTS,
    };
    let transport = match address {
        Address::Tcp { .. } => Transport::Tcp,
        Address::Unix { .. } | Address::File { .. } => Transport::UnixSocket,
    };
    let mut login = Login::new(LoginOptions {
        database,
        tls: wish(tls.mode()),
        wanted,
        ..LoginOptions::new(credentials, transport)
    });
    let mut fresh = Vec::new();
    loop {
        let (used, step) = login.feed(&fresh)?;
        fresh.drain(..used);
        match step {
            LoginStep::NeedMore => {
                fresh.clear();
                socket.receive_into(waiter, &mut fresh).await?;
            }
            LoginStep::Send(bytes) => socket.send(waiter, &bytes).await?,
            // Clear bytes behind the greeting must not be taken for the server's words under TLS, nor bytes behind the
            // login for the answer to a statement.
            LoginStep::StartTls(_) | LoginStep::Done(_) if !fresh.is_empty() => {
                return Err(LoginError::Unexpected.into());
            }
            LoginStep::StartTls(bytes) => {
                socket.send(waiter, &bytes).await?;
                socket.start_tls(waiter, tls.client(address)?).await?;
                let bytes = login.tls_started()?;
                socket.send(waiter, &bytes).await?;
            }
            LoginStep::Done(logged_in) => {
                return Ok(Session {
                    parser: ReplyParser::new(logged_in.capabilities),
                    logged_in,
                });
            }
        }
    }
}

/// TLS request of the login.
pub(crate) fn wish(mode: &TlsMode) -> TlsWish {
    match mode {
        TlsMode::Off => TlsWish::Off,
        TlsMode::Preferred => TlsWish::Preferred,
        TlsMode::Required | TlsMode::VerifyCa { .. } | TlsMode::VerifyIdentity { .. } => {
            TlsWish::Required
        }
    }
}
