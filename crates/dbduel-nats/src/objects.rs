//! An object store of files.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::object_store::{Config, InfoErrorKind, ObjectMetadata, ObjectStore};
use futures_util::StreamExt as _;

use crate::connection::Nats;
use crate::{NatsError, failed};

/// Timeout of moving one object: a gigabyte at 1 MB/s.
const MOVE_TIMEOUT: Duration = Duration::from_secs(1200);
/// Timeout of listing.
const LIST_TIMEOUT: Duration = Duration::from_secs(120);
/// Space that a store needs for an object beyond its bytes: headers of chunks and the object's own entry.
const OVERHEAD_BYTES: u64 = 64 << 10;
/// Most objects that a list leaves out; a connection that only fails must end it.
const UNREADABLE_MAX: usize = 1000;
/// Key of an object's description among its metadata.
const ABOUT: &str = "about";

/// Files under names, kept by the server in pieces.
pub struct Objects<'n> {
    nats: &'n Nats,
    store: ObjectStore,
    bucket: String,
}

impl fmt::Debug for Objects<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Objects")
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}

/// An object in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Description given when it was stored.
    pub about: String,
}

/// The objects of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Objects, in the order in which they were stored.
    pub objects: Vec<StoredObject>,
    /// Why each of the others cannot be described.
    pub unreadable: Vec<String>,
}

impl Nats {
    /// The store of this name; created if missing. Objects stay for `keep`, or until they are removed.
    ///
    /// # Errors
    /// When the server refuses it, or has no JetStream.
    pub fn objects(
        &self,
        bucket: &str,
        description: &str,
        keep: Option<Duration>,
    ) -> Result<Objects<'_>, NatsError> {
        let config = Config {
            bucket: bucket.to_owned(),
            description: Some(description.to_owned()),
            // Zero is without end.
            max_age: keep.unwrap_or_default(),
            ..Config::default()
        };
        let action = format!("open the object store `{bucket}`");
        let store = match self.call(&action, self.jetstream.get_object_store(bucket)) {
            Ok(store) => store,
            Err(_) => self.call(&action, self.jetstream.create_object_store(config))?,
        };
        Ok(Objects {
            nats: self,
            store,
            bucket: bucket.to_owned(),
        })
    }
}

impl Objects<'_> {
    /// Stores a file under a name, with a description. False when the name has an object already, which stays
    /// unchanged.
    ///
    /// # Errors
    /// [`NatsError::Full`] when it does not fit, before anything is sent; or when the file cannot be read or sent.
    pub fn put(&self, name: &str, file: &Path, about: &str) -> Result<bool, NatsError> {
        let action = format!("store the object `{name}`");
        if self.find(name)?.is_some() {
            return Ok(false);
        }
        let length = std::fs::metadata(file).map_err(|error| failed(&action, &error))?;
        self.check_room(length.len() + about.len() as u64 + OVERHEAD_BYTES)?;
        let metadata = ObjectMetadata {
            name: name.to_owned(),
            metadata: HashMap::from([(ABOUT.to_owned(), about.to_owned())]),
            ..ObjectMetadata::default()
        };
        let sent = async {
            let mut file = tokio::fs::File::open(file)
                .await
                .map_err(|error| failed(&action, &error))?;
            self.store
                .put(metadata, &mut file)
                .await
                .map_err(|error| failed(&action, &error))
        };
        self.nats.wait(&action, MOVE_TIMEOUT, sent).map(|_| true)
    }

    /// Refuses an object that does not fit: the client would leave the pieces of a refused object behind.
    fn check_room(&self, needed: u64) -> Result<(), NatsError> {
        let action = format!("ask how full the object store `{}` is", self.bucket);
        let stream = format!("OBJ_{}", self.bucket);
        let stream = self
            .nats
            .call(&action, self.nats.jetstream.get_stream(stream))?;
        let info = stream.cached_info();
        // Below zero, and zero as old servers say it, there is no limit.
        let limit = u64::try_from(info.config.max_bytes).unwrap_or_default();
        match limit > 0 && info.state.bytes.saturating_add(needed) > limit {
            true => Err(NatsError::Full {
                bucket: self.bucket.clone(),
                needed,
                used: info.state.bytes,
                limit,
            }),
            false => Ok(()),
        }
    }

    /// The object of this name.
    ///
    /// # Errors
    /// Without an answer of the server.
    pub fn find(&self, name: &str) -> Result<Option<StoredObject>, NatsError> {
        let found = async {
            match self.store.info(name).await {
                Ok(info) => Ok((!info.deleted).then_some(info)),
                Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        let found = self
            .nats
            .call(&format!("look for the object `{name}`"), found)?;
        Ok(found.map(described))
    }

    /// Writes an object's bytes into a new file. The client compares their SHA-256 with that of the store.
    ///
    /// # Errors
    /// When it is not there, cannot be read, or the file cannot be written.
    pub fn get(&self, name: &str, into: &Path) -> Result<(), NatsError> {
        let action = format!("fetch the object `{name}`");
        let fetched = async {
            let mut object = self
                .store
                .get(name)
                .await
                .map_err(|error| failed(&action, &error))?;
            let mut file = tokio::fs::File::create_new(into)
                .await
                .map_err(|error| failed(&action, &error))?;
            tokio::io::copy(&mut object, &mut file)
                .await
                .map_err(|error| failed(&action, &error))?;
            file.sync_all()
                .await
                .map_err(|error| failed(&action, &error))
        };
        self.nats.wait(&action, MOVE_TIMEOUT, fetched)
    }

    /// All objects, in the order in which they were stored.
    ///
    /// # Errors
    /// When they cannot be listed within two minutes.
    pub fn list(&self) -> Result<Listing, NatsError> {
        let action = format!("list the object store `{}`", self.bucket);
        let listed = async {
            let mut list = self
                .store
                .list()
                .await
                .map_err(|error| failed(&action, &error))?;
            let mut listing = Listing::default();
            while let Some(info) = list.next().await {
                match info {
                    Ok(info) => listing.objects.push(described(info)),
                    // The client does not say which: a message whose text is no description of an object.
                    Err(error) if listing.unreadable.len() < UNREADABLE_MAX => {
                        listing.unreadable.push(error.to_string());
                    }
                    Err(error) => return Err(failed(&action, &error)),
                }
            }
            Ok::<_, NatsError>(listing)
        };
        self.nats.wait(&action, LIST_TIMEOUT, listed)
    }
}

fn described(info: async_nats::jetstream::object_store::ObjectInfo) -> StoredObject {
    let mut metadata = info.metadata;
    StoredObject {
        bytes: info.size as u64,
        about: metadata.remove(ABOUT).unwrap_or_default(),
        name: info.name,
    }
}
