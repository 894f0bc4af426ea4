//! Servers that agents do not fetch by themselves, as the orchestrator stored them: packed, under their SHA-256.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use dbduel_lab::server_host::shared::{BYTES_MAX, PrivateFolder};
use dbduel_nats::{Nats, NatsError, Objects};
use dbduel_server::{Home, ServerName, install, received_archive};

use super::KEEP;
use crate::NatsAccess;

const BUCKET: &str = "dbduel-servers";
const ABOUT: &str = "dbduel: servers of contests, sent to their hosts";
/// Name of the connection in nats-server's monitoring.
pub const NAME: &str = "dbduel, servers for hosts";

/// The store of packed servers.
///
/// # Errors
/// When nats-server has no JetStream or no room.
pub fn store(nats: &Nats) -> Result<Objects<'_>, NatsError> {
    nats.objects(BUCKET, ABOUT, Some(KEEP))
}

/// Fetches the server of this digest into this home; `None` when it was not stored.
///
/// # Errors
/// When this host accepts no servers from others, or it cannot be fetched.
pub fn fetch(nats: Option<&NatsAccess>, home: &Home, digest: &str) -> Result<Option<ServerName>> {
    let nats = nats.context("this agent accepts no servers from others")?;
    let name = ServerName::parse(&format!("received:{digest}"))?;
    if install::is_installed(&name, home) {
        return Ok(Some(name));
    }
    let nats = nats.connect(NAME)?;
    let store = store(&nats)?;
    let Some(found) = store.find(digest)? else {
        return Ok(None);
    };
    ensure!(
        found.bytes <= BYTES_MAX,
        "`{}` is larger than {} GiB",
        found.about,
        BYTES_MAX >> 30
    );
    let folder = PrivateFolder::create(home, &name.id())?;
    store.get(digest, &folder.packed())?;
    let kept = received_archive(home, digest);
    if let Some(parent) = kept.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("could not create `{}`", parent.display()))?;
    }
    fs::rename(folder.packed(), &kept)
        .with_context(|| format!("could not create `{}`", kept.display()))?;
    Ok(Some(name))
}
