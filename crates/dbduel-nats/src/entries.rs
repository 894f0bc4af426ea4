//! A key-value bucket.

use std::collections::BTreeMap;

use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store};
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use futures_util::StreamExt as _;

use crate::connection::Nats;
use crate::{NatsError, failed};

/// Timeout of reading all entries.
const READ_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

/// Entries under keys, kept by the server.
#[derive(Debug)]
pub struct Entries<'n> {
    nats: &'n Nats,
    store: Store,
}

impl Nats {
    /// The bucket of this name; created if missing.
    ///
    /// # Errors
    /// When the server refuses it, or has no JetStream.
    pub fn entries(&self, bucket: &str, description: &str) -> Result<Entries<'_>, NatsError> {
        // The client's own call first asks for facts of the account that nats-server 2.9 does not have.
        let config = Config {
            name: format!("KV_{bucket}"),
            description: Some(description.to_owned()),
            subjects: vec![format!("$KV.{bucket}.>")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            allow_direct: true,
            deny_delete: true,
            num_replicas: 1,
            ..Config::default()
        };
        let action = format!("open the bucket `{bucket}`");
        self.call(&action, self.jetstream.get_or_create_stream(config))?;
        let store = self.call(&action, self.jetstream.get_key_value(bucket))?;
        Ok(Entries { nats: self, store })
    }
}

impl Entries<'_> {
    /// The value of a key.
    ///
    /// # Errors
    /// Without an answer of the server.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, NatsError> {
        let found = self
            .nats
            .call(&format!("read the entry `{key}`"), self.store.get(key))?;
        Ok(found.map(Vec::from))
    }

    /// Creates an entry; false when the key has one already, which stays unchanged.
    ///
    /// # Errors
    /// Without an answer of the server, or when the entry is too long.
    pub fn create(&self, key: &str, value: Vec<u8>) -> Result<bool, NatsError> {
        self.nats.check_length(value.len())?;
        let created = async {
            match self.store.create(key, value.into()).await {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        };
        self.nats
            .call(&format!("create the entry `{key}`"), created)
    }

    /// Writes an entry; replaces an existing one.
    ///
    /// # Errors
    /// As [`Entries::create`].
    pub fn put(&self, key: &str, value: Vec<u8>) -> Result<(), NatsError> {
        self.nats.check_length(value.len())?;
        let put = self.store.put(key, value.into());
        self.nats
            .call(&format!("write the entry `{key}`"), put)
            .map(drop)
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// Without an answer of the server.
    pub fn remove(&self, key: &str) -> Result<(), NatsError> {
        self.nats
            .call(&format!("remove the entry `{key}`"), self.store.purge(key))
    }

    /// All entries, by their keys.
    ///
    /// # Errors
    /// When they cannot be read within two minutes.
    pub fn all(&self) -> Result<BTreeMap<String, Vec<u8>>, NatsError> {
        let action = "read all entries";
        let info = self.nats.call(action, self.store.stream.get_info())?;
        // Of an empty bucket there is no last entry to wait for.
        if info.state.messages == 0 {
            return Ok(BTreeMap::new());
        }
        let _entered = self.nats.enter();
        let watch = self.store.watch_with_history(">");
        let mut watch = self.nats.call(action, watch)?;
        let read = async {
            let mut all = BTreeMap::new();
            while let Some(entry) = watch.next().await {
                let entry = entry.map_err(|error| failed(action, &error))?;
                let is_last = entry.delta == 0;
                if entry.operation == Operation::Put {
                    all.insert(entry.key, Vec::from(entry.value));
                }
                if is_last {
                    break;
                }
            }
            Ok::<_, NatsError>(all)
        };
        match self
            .nats
            .run(async { tokio::time::timeout(READ_TIMEOUT, read).await })
        {
            Ok(all) => all,
            Err(_) => Err(NatsError::Call {
                action: action.to_owned(),
                why: format!("not done within {} s", READ_TIMEOUT.as_secs()),
            }),
        }
    }
}
