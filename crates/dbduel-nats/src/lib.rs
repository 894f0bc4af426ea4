//! NATS for programs without an async runtime: every call blocks, with a deadline.
//!
//! [`Nats`] is a connection, with the runtime that its client needs. It offers [`Queue`] (a JetStream work queue: each
//! message goes to one worker, which keeps its lease alive and acknowledges last), [`Entries`] (a key-value bucket
//! whose entries can be created once), [`Objects`] (an object store of files), [`Link`] (lines between two programs, by the protocol of [`LinkEnd`]:
//! numbered and kept until the other end has them) and questions, to one program or to all that listen.

mod connection;
mod entries;
mod link;
mod objects;
mod questions;
mod queue;

pub use connection::{AddressError, Nats, NatsAddress};
pub use entries::Entries;
pub use link::{Link, LinkEnd};
pub use objects::{Listing, Objects, StoredObject};
pub use questions::{Exchange, Question, Questions};
pub use queue::{Delivery, Queue, QueueCounts};

/// A failed call to NATS.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// The connection could not be made.
    #[error("could not connect to NATS at {url}: {why}; {}", remedy(why))]
    Connect {
        /// The address that was tried.
        url: String,
        /// The client's error.
        why: String,
    },
    /// The file with credentials cannot be used.
    #[error("could not read the NATS credentials `{path}`: {why}")]
    Credentials {
        /// The file.
        path: String,
        /// The system's or the client's error.
        why: String,
    },
    /// A call failed or was not answered in time.
    #[error("NATS could not {action}: {why}")]
    Call {
        /// The action that was tried.
        action: String,
        /// The server's or the client's error.
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
        /// Size of the object with its overhead, bytes.
        needed: u64,
        /// Space used in the store, bytes.
        used: u64,
        /// Limit of the store, bytes.
        limit: u64,
    },
    /// A message is longer than the server accepts.
    #[error(
        "a message of {bytes} bytes is longer than the {limit} that this nats-server accepts (`max_payload`)"
    )]
    TooLong {
        /// Length of the message, bytes.
        bytes: usize,
        /// Longest message that the server accepts, bytes.
        limit: usize,
    },
}

impl NatsError {
    /// True when the connection failed for another reason than a certificate or credentials.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, NatsError::Connect { why, .. } if remedy(why) == IS_ABSENT)
    }

    /// True when no program listens on the subject of a question.
    #[must_use]
    pub fn has_no_listener(&self) -> bool {
        matches!(self, NatsError::Call { why, .. } if why.contains("no responders"))
    }
}

const IS_ABSENT: &str = "is nats-server running there, with JetStream (`nats-server -js`)?";

/// Remedy for a failed connection.
fn remedy(why: &str) -> &'static str {
    if why.contains("certificate") {
        "give its CA certificate with `--ca FILE`, or use the address that its certificate is for"
    } else if why.contains("authorization violation") {
        "give credentials of its account with `--creds FILE`"
    } else {
        IS_ABSENT
    }
}

/// The error of a call, with the texts of its causes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(why: &str, part: &str, is_absence: bool) {
        let error = NatsError::Connect {
            url: "tls://db1:4222".to_owned(),
            why: why.to_owned(),
        };
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.is_absence(), is_absence, "{error}");
    }

    #[test]
    fn what_to_do_follows_from_why_there_is_no_connection() {
        let refused = "IO error: Connection refused (os error 111)";
        check(refused, "is nats-server running", true);
        let unknown = "IO error: invalid peer certificate: UnknownIssuer";
        check(unknown, "--ca FILE", false);
        let stranger = "authorization violation: nats: authorization violation";
        check(stranger, "--creds FILE", false);
    }
}
