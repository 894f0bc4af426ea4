//! Connection of a link to the agents of its hosts. A simulation implements it too.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use dbduel_load::monotonic;
use dbduel_nats::{Exchange, Link, Nats, NatsError};

/// One end of a link to a host, as in [`Link`].
pub(super) trait HostLink {
    fn send(&self, line: Vec<u8>);
    fn silent_for(&self) -> Duration;
    fn bytes(&self) -> u64;
    fn is_broken(&self) -> bool;
    fn finish(&self, limit: Duration);
}

/// Requests to agents and links to their work, as in [`Nats`].
pub(super) trait Network {
    type Link: HostLink;

    fn link(
        &self,
        sends_on: &str,
        hears_on: &str,
        on_line: impl FnMut(Vec<u8>) + Send + Sync + 'static,
    ) -> Result<Self::Link, NatsError>;

    fn ask(&self, subject: &str, question: Vec<u8>) -> Result<Exchange, NatsError>;

    fn ask_each(&self, subjects: &[String], times: usize, wait: Duration) -> Vec<Vec<Exchange>>;

    fn is_connected(&self) -> bool;

    fn url(&self) -> &str;

    /// The next event of an inbox, if one arrives within `limit`.
    fn next<E>(&self, inbox: &Receiver<E>, limit: Duration) -> Result<E, RecvTimeoutError>;

    /// An instant as nanoseconds of this machine's monotonic clock.
    fn ns_of(&self, instant: Instant) -> u64;
}

impl HostLink for Link {
    fn send(&self, line: Vec<u8>) {
        Link::send(self, line);
    }

    fn silent_for(&self) -> Duration {
        Link::silent_for(self)
    }

    fn bytes(&self) -> u64 {
        Link::bytes(self)
    }

    fn is_broken(&self) -> bool {
        Link::is_broken(self)
    }

    fn finish(&self, limit: Duration) {
        Link::finish(self, limit);
    }
}

impl Network for Nats {
    type Link = Link;

    fn link(
        &self,
        sends_on: &str,
        hears_on: &str,
        on_line: impl FnMut(Vec<u8>) + Send + Sync + 'static,
    ) -> Result<Link, NatsError> {
        Nats::link(self, sends_on, hears_on, on_line)
    }

    fn ask(&self, subject: &str, question: Vec<u8>) -> Result<Exchange, NatsError> {
        Nats::ask(self, subject, question)
    }

    fn ask_each(&self, subjects: &[String], times: usize, wait: Duration) -> Vec<Vec<Exchange>> {
        Nats::ask_each(self, subjects, times, wait)
    }

    fn is_connected(&self) -> bool {
        Nats::is_connected(self)
    }

    fn url(&self) -> &str {
        Nats::url(self)
    }

    fn next<E>(&self, inbox: &Receiver<E>, limit: Duration) -> Result<E, RecvTimeoutError> {
        inbox.recv_timeout(limit)
    }

    fn ns_of(&self, instant: Instant) -> u64 {
        monotonic::ns_of(instant)
    }
}
