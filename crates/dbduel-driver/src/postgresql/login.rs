//! Connecting and logging in.

use dbduel_wire::postgresql::{Login, LoginError, LoginOptions, LoginStep};

use super::Session;
use crate::address::Address;
use crate::mysql::wish;
use crate::socket::{Socket, Waiter};
use crate::{Credentials, LostError, Tls};

/// Logs in over a new socket.
pub(crate) async fn log_in(
    socket: &mut Socket,
    waiter: &impl Waiter,
    address: &Address,
    credentials: Credentials,
    database: Option<String>,
    tls: &Tls,
) -> Result<Session, LostError> {
    let mut login = Login::new(LoginOptions {
        credentials,
        database,
        tls: wish(tls.mode()),
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
            // Clear bytes behind the answer to the request for TLS must not be taken for the server's words under TLS.
            LoginStep::Send(_) | LoginStep::StartTls | LoginStep::Done(_) if !fresh.is_empty() => {
                return Err(LoginError::Unexpected.into());
            }
            LoginStep::Send(bytes) => socket.send(waiter, &bytes).await?,
            LoginStep::StartTls => {
                socket.start_tls(waiter, tls.client(address)?).await?;
                let bytes = login.tls_started();
                socket.send(waiter, &bytes).await?;
            }
            LoginStep::Done(logged_in) => return Ok(Session::new(logged_in)),
        }
    }
}
