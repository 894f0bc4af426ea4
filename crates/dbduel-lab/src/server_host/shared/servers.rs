//! Servers that agents do not fetch by themselves, such as local builds: the orchestrator packs their files and stores
//! them under their SHA-256 when a host does not have them yet.

use anyhow::{Result, ensure};
use dbduel_server::{
    Artifact, Build, Home, Meaning, Progress, ServerName, digests_of_file, install, unneeded_files,
};

use super::{BYTES_MAX, PrivateFolder, tar};
use crate::drive::HostAccess;

/// Options of `tar` for reproducible archives: no times or owners, sorted names.
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

/// True when hosts need a server's files from the orchestrator.
pub fn is_sent(name: &ServerName) -> bool {
    matches!(name.meaning, Meaning::Provided { .. }) && name.objection_of_agents().is_some()
}

/// The files of a server, packed for hosts; the local archive is removed on drop.
#[derive(Debug)]
pub struct PackedServer {
    name: ServerName,
    folder: PrivateFolder,
    /// Artifacts fetched for it.
    artifacts: Vec<Artifact>,
    /// SHA-256 of the packed files.
    pub digest: String,
}

impl PackedServer {
    /// Packs a server, fetched if need be, without files that no server needs at run time.
    ///
    /// # Errors
    /// When it is missing, has parts elsewhere, or is too large.
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
            "`{name}` exceeds {} GiB when packed; name a folder that contains only the server",
            BYTES_MAX >> 30
        );
        Ok(Self {
            name: name.clone(),
            folder,
            artifacts,
            digest: digests.sha256,
        })
    }

    /// Stores it for hosts, unless it is stored already.
    ///
    /// # Errors
    /// When there is no room.
    pub fn store(&self, access: &dyn HostAccess) -> Result<()> {
        access.store_server(&self.digest, &self.folder.packed(), &self.name.written)
    }

    /// Sets the origin and the artifacts in the build of a host that received it.
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
