//! A work queue: each message goes to one worker at a time, and stays until one has acknowledged it.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, Stream};
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use tokio::task::JoinHandle;

use crate::NatsError;
use crate::connection::Nats;

/// The consumer that all workers share.
const WORKERS: &str = "workers";
/// Workers that may wait for a message at one time.
const WAITING_MAX: i64 = 4096;
/// Messages that workers may hold at one time.
const LEASES_MAX: i64 = 10_000;
/// Renewals within a lease.
const RENEWALS: u32 = 4;

/// A JetStream work queue with one message per key.
#[derive(Debug)]
pub struct Queue<'n> {
    nats: &'n Nats,
    stream: Stream,
    consumer: PullConsumer,
    subject: String,
    lease: Duration,
}

/// Counts of a queue's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCounts {
    /// Messages that no worker has acknowledged.
    pub messages: u64,
    /// Of those, held by workers.
    pub leased: u64,
}

impl Nats {
    /// The queue of this name; created if missing. A message comes back when its worker does not renew its lease in
    /// time.
    ///
    /// # Errors
    /// When the server refuses it, or has no JetStream.
    pub fn queue(
        &self,
        name: &str,
        subject: &str,
        lease: Duration,
    ) -> Result<Queue<'_>, NatsError> {
        let action = format!("open the work queue `{name}`");
        let config = stream::Config {
            name: name.to_owned(),
            subjects: vec![format!("{subject}.>")],
            retention: RetentionPolicy::WorkQueue,
            // A second message of a key is refused while the first is there.
            discard: DiscardPolicy::New,
            max_messages_per_subject: 1,
            discard_new_per_subject: true,
            ..stream::Config::default()
        };
        let stream = self.call(&action, self.jetstream.get_or_create_stream(config))?;
        let workers = pull::Config {
            durable_name: Some(WORKERS.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: lease,
            max_deliver: -1,
            max_waiting: WAITING_MAX,
            max_ack_pending: LEASES_MAX,
            ..pull::Config::default()
        };
        let consumer = self.call(&action, stream.get_or_create_consumer(WORKERS, workers))?;
        // The first program that opened it decides.
        let lease = consumer.cached_info().config.ack_wait;
        Ok(Queue {
            nats: self,
            stream,
            consumer,
            subject: subject.to_owned(),
            lease,
        })
    }
}

impl Queue<'_> {
    /// Adds a message; false when one with this key is in the queue or held by a worker.
    ///
    /// # Errors
    /// When the server refuses it or does not answer.
    pub fn put(&self, key: &str, payload: Vec<u8>) -> Result<bool, NatsError> {
        self.nats.check_length(payload.len())?;
        let subject = format!("{}.{key}", self.subject);
        let published = async {
            let publish = self.nats.jetstream.publish(subject, payload.into()).await?;
            publish.await.map(drop)
        };
        match self.nats.call(&format!("queue `{key}`"), published) {
            Err(NatsError::Call { why, .. }) if why.contains("maximum messages per subject") => {
                Ok(false)
            }
            other => other.map(|()| true),
        }
    }

    /// The next message, if one arrives within `wait`.
    ///
    /// # Errors
    /// Without an answer of the server.
    pub fn take(&self, wait: Duration) -> Result<Option<Delivery<'_>>, NatsError> {
        let action = "take from the work queue";
        let batch = self.consumer.fetch().max_messages(1).expires(wait);
        let taken = async {
            let mut batch = batch.messages().await?;
            batch.next().await.transpose()
        };
        // The server ends the wait; the margin is for a connection that is lost meanwhile.
        let margin = Duration::from_secs(5);
        let message = self.nats.wait(action, wait + margin, async {
            taken
                .await
                .map_err(|error| std::io::Error::other(error.to_string()))
        })?;
        Ok(message.map(|message| Delivery {
            renewal: self
                .nats
                .spawn(renew(message.clone(), self.lease / RENEWALS)),
            nats: self.nats,
            message,
        }))
    }

    /// Counts of the queue's messages.
    ///
    /// # Errors
    /// Without an answer of the server.
    pub fn counts(&self) -> Result<QueueCounts, NatsError> {
        let action = "count the work queue";
        let stream = self.nats.call(action, self.stream.get_info())?;
        let workers = self.nats.call(action, self.stream.consumer_info(WORKERS))?;
        Ok(QueueCounts {
            messages: stream.state.messages,
            leased: workers.num_ack_pending as u64,
        })
    }
}

/// A message held by this worker; its lease is renewed in the background until this is dropped.
#[derive(Debug)]
pub struct Delivery<'n> {
    nats: &'n Nats,
    message: Message,
    renewal: JoinHandle<()>,
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Renews the lease of a message every `pause`, without end.
async fn renew(message: Message, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        // Not confirmed: a lease that ends all the same costs double work and nothing else.
        let _ = message.ack_with(AckKind::Progress).await;
    }
}

impl Delivery<'_> {
    /// The content of the message.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.message.payload
    }

    /// Number of times it was given to a worker, this one included.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        let info = self.message.info();
        info.map_or(1, |info| u64::try_from(info.delivered).unwrap_or(1))
    }

    /// Gives the message back, to be taken again after `pause`.
    ///
    /// # Errors
    /// Without a connection.
    pub fn release(self, pause: Duration) -> Result<(), NatsError> {
        let sent = async {
            let sent = self.message.ack_with(AckKind::Nak(Some(pause))).await;
            sent.map_err(|error| std::io::Error::other(error.to_string()))
        };
        self.nats.call("give a message back", sent)?;
        self.nats
            .call("give a message back", self.nats.client.flush())
    }

    /// Removes the message from the queue, confirmed by the server.
    ///
    /// # Errors
    /// Without the confirmation.
    pub fn done(self) -> Result<(), NatsError> {
        let confirmed = async {
            let acknowledged = self.message.double_ack().await;
            acknowledged.map_err(|error| std::io::Error::other(error.to_string()))
        };
        self.nats.call("acknowledge a message", confirmed)
    }
}
