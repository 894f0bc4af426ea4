//! NATS for programs without an async runtime: every call blocks, with a deadline.
//!
//! [`Nats`] is a connection, with the runtime that its client needs. On it stand [`Queue`] (a JetStream work queue: each message
//! goes to one worker, which keeps its lease alive and acknowledges last), [`Entries`] (a key-value bucket whose entries can be
//! created once), [`Objects`] (an object store of files) and questions, to one program or to all that listen.

mod connection;
mod entries;
mod objects;
mod questions;
mod queue;

pub use connection::{AddressError, Nats, NatsAddress};
pub use entries::Entries;
pub use objects::{Objects, StoredObject};
pub use questions::Exchange;
pub use queue::{Delivery, Queue, QueueCounts};

/// A call that NATS did not answer as asked.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// There is no connection.
    #[error(
        "could not connect to NATS at {url}: {why}; is nats-server running there, with JetStream (`nats-server -js`)?"
    )]
    Connect {
        /// Where it was tried.
        url: String,
        /// What the client said.
        why: String,
    },
    /// The file with credentials cannot be used.
    #[error("could not read the NATS credentials `{path}`: {why}")]
    Credentials {
        /// The file.
        path: String,
        /// What the system or the client said.
        why: String,
    },
    /// A call failed or was not answered in time.
    #[error("NATS could not {action}: {why}")]
    Call {
        /// What was tried.
        action: String,
        /// What the server or the client said.
        why: String,
    },
    /// An object does not fit into its store.
    #[error(
        "the object store `{bucket}` is full: {needed} bytes are needed, and {used} of its {limit} bytes are used; remove \
         objects, or raise the limit with `nats stream edit OBJ_{bucket} --max-bytes=…`"
    )]
    Full {
        /// Name of the store.
        bucket: String,
        /// Size of the object with what surrounds it, bytes.
        needed: u64,
        /// What the store holds, bytes.
        used: u64,
        /// What it may hold, bytes.
        limit: u64,
    },
    /// A message is longer than the server accepts.
    #[error(
        "a message of {bytes} bytes is longer than the {limit} that this nats-server accepts (`max_payload`)"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is accepted.
        limit: usize,
    },
}

/// The error of a call, with everything that its causes say.
fn failed(action: &str, error: &(dyn std::error::Error + 'static)) -> NatsError {
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // The client repeats most causes in the text of the error.
        if !why.contains(&text) {
            why.push_str(": ");
            why.push_str(&text);
        }
        source = cause.source();
    }
    NatsError::Call {
        action: action.to_owned(),
        why,
    }
}
