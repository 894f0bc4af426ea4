//! Servers that agents do not fetch by themselves, such as builds of one's own: the orchestrator packs their files and stores them
//! under their SHA-256 when a host does not have them yet.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use dbduel_server::{
    Artifact, Build, Home, Meaning, Progress, ServerName, digests_of_file, install,
    received_archive, unneeded_files,
};

use super::{BYTES_MAX, KEEP, PrivateFolder, tar};
use crate::drive::NatsAccess;

const BUCKET: &str = "dbduel-servers";
const ABOUT: &str = "dbduel: servers of contests, sent to their hosts";
/// What monitoring of nats-server shows.
const NAME: &str = "dbduel, servers for hosts";
/// Options of `tar` that pack equal files to equal bytes: without times, owners and the order of the folder.
const REPRODUCIBLE: [&str; 8] = [
    "--create",
    "--format=gnu",
    "--sort=name",
    "--mtime=@0",
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    // Not part of the server.
    "--exclude=./build.json",
];

/// Whether hosts need the files of a server from the orchestrator.
pub fn is_sent(name: &ServerName) -> bool {
    matches!(name.meaning, Meaning::Provided { .. }) && name.objection_of_agents().is_some()
}

/// The files of a server, packed for hosts. Dropped means removed here.
#[derive(Debug)]
pub struct PackedServer {
    name: ServerName,
    folder: PrivateFolder,
    /// What was fetched for it.
    artifacts: Vec<Artifact>,
    /// SHA-256 of the packed files.
    pub digest: String,
}

impl PackedServer {
    /// Packs a server, which is fetched if need be, without what no server needs at run time.
    ///
    /// # Errors
    /// When it is not here, has parts elsewhere, or is too large.
    pub fn pack(home: &Home, name: &ServerName, progress: &dyn Progress) -> Result<Self> {
        let (tree, artifacts) = install::whole_tree(name, home, progress)?;
        progress.stage(&format!("packing {name} for its hosts"));
        let folder = PrivateFolder::create(home, &name.id())?;
        let packed = folder.packed();
        let without = unneeded_files();
        let options = REPRODUCIBLE.into_iter();
        let options: Vec<&str> = options.chain(without.iter().map(String::as_str)).collect();
        tar(&packed, &tree, &options, &["."])?;
        let digests = digests_of_file(&packed)?;
        ensure!(
            digests.bytes <= BYTES_MAX,
            "`{name}` has more than {} GiB when it is packed; name a folder with the server alone",
            BYTES_MAX >> 30
        );
        Ok(Self {
            name: name.clone(),
            folder,
            artifacts,
            digest: digests.sha256,
        })
    }

    /// Stores it for hosts, unless it is stored.
    ///
    /// # Errors
    /// When nats-server has no JetStream or no room.
    pub fn store(&self, nats: &NatsAccess) -> Result<()> {
        let nats = nats.connect(NAME)?;
        let store = nats.objects(BUCKET, ABOUT, Some(KEEP))?;
        let about = &self.name.written;
        store.put(&self.digest, &self.folder.packed(), about)?;
        Ok(())
    }

    /// Says in the build of a host that received it where it came from, with what it was made of.
    pub fn name_origin(&self, received: &mut Build) {
        let Meaning::Provided {
            source, locator, ..
        } = &self.name.meaning
        else {
            return;
        };
        source.scheme.clone_into(&mut received.source);
        received.locator.clone_from(locator);
        for artifact in &mut received.artifacts {
            if artifact.name == self.digest {
                artifact.name = format!("{}, packed", self.name);
            }
        }
        let packed = std::mem::take(&mut received.artifacts);
        received.artifacts = self.artifacts.iter().cloned().chain(packed).collect();
    }
}

/// The server of this digest, in this home from then on; `None` where it was not stored.
///
/// # Errors
/// When this host takes no servers from others, or it cannot be fetched.
pub fn fetch(nats: Option<&NatsAccess>, home: &Home, digest: &str) -> Result<Option<ServerName>> {
    let nats = nats.context("this agent takes no servers from others")?;
    let name = ServerName::parse(&format!("received:{digest}"))?;
    if install::is_installed(&name, home) {
        return Ok(Some(name));
    }
    let nats = nats.connect(NAME)?;
    let store = nats.objects(BUCKET, ABOUT, Some(KEEP))?;
    let Some(found) = store.find(digest)? else {
        return Ok(None);
    };
    ensure!(
        found.bytes <= BYTES_MAX,
        "`{}` has more than {} GiB",
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
