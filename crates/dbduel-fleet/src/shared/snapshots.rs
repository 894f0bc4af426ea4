//! Snapshots that the hosts of one contest share through the object store of NATS, so that data are loaded once.
//!
//! Where that fails, each host has its data loaded from the orchestrator, which takes longer.

use anyhow::{Result, ensure};
use dbduel_lab::server_host::shared::{BYTES_MAX, PrivateFolder, tar};
use dbduel_lab::snapshots::{DATA, DESCRIPTION, Description, Snapshots};
use dbduel_record::foreign;
use dbduel_server::{Home, Silent};

use super::KEEP;
use crate::NatsAccess;

const BUCKET: &str = "dbduel-snapshots";
const ABOUT: &str = "dbduel: loaded data, shared by the server hosts of a contest";
/// Name of the connection in nats-server's monitoring.
const NAME: &str = "dbduel serve, snapshots";
const DESCRIPTION_BYTES_MAX: u64 = 1 << 20;

/// Stores a snapshot of this home under its key, unless there is one.
///
/// # Errors
/// When it is too large, or nats-server has no JetStream or no room.
pub fn offer(nats: &NatsAccess, home: &Home, key: &str) -> Result<()> {
    let snapshots = Snapshots::new(home);
    let bytes = snapshots.description(key).map_or(0, |one| one.bytes);
    ensure!(bytes <= BYTES_MAX, "they are too large to be shared");
    let nats = nats.connect(NAME)?;
    let store = nats.objects(BUCKET, ABOUT, Some(KEEP))?;
    if store.find(key)?.is_some() {
        return Ok(());
    }
    let folder = PrivateFolder::create(home, key)?;
    let packed = folder.packed();
    // Holes of files are part of what is compared.
    let options = ["--create", "--sparse"];
    tar(
        &packed,
        &snapshots.folder(key),
        &options,
        &[DATA, DESCRIPTION],
    )?;
    store.put(key, &packed, key)?;
    Ok(())
}

/// Fetches a snapshot that another host has stored. Returns its packed size in bytes, or `None` when there is none.
///
/// # Errors
/// When it cannot be fetched or unpacked, or nats-server has no JetStream.
pub fn fetch(nats: &NatsAccess, home: &Home, key: &str) -> Result<Option<u64>> {
    let nats = nats.connect(NAME)?;
    let store = nats.objects(BUCKET, ABOUT, Some(KEEP))?;
    let Some(found) = store.find(key)? else {
        return Ok(None);
    };
    ensure!(found.bytes <= BYTES_MAX, "they are too large to be shared");
    let folder = PrivateFolder::create(home, key)?;
    let packed = folder.packed();
    store.get(key, &packed)?;
    let options = ["--extract", "--no-same-owner"];
    tar(&packed, folder.path(), &options, &[DATA, DESCRIPTION])?;
    let description = foreign::read_below(folder.path(), DESCRIPTION, DESCRIPTION_BYTES_MAX);
    let description: Description = serde_json::from_slice(&description?)?;
    // Loading them took this host nothing.
    let fetched = Description {
        load: None,
        ..description
    };
    Snapshots::new(home).keep(key, &folder.path().join(DATA), fetched, &Silent)?;
    Ok(Some(found.bytes))
}
