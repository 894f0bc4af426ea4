//! A mounted volume.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption};

use super::filesystem::Server;
use super::{FILE_SYSTEM, detach};
use crate::volume::Volume;

/// A mounted volume; dropping it unmounts.
#[derive(Debug)]
pub struct Mount {
    folder: PathBuf,
    session: Option<BackgroundSession>,
}

impl Mount {
    /// Mounts a volume at a folder that exists.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new(volume: Arc<Volume>, folder: &Path) -> io::Result<Self> {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(FILE_SYSTEM.to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoAtime,
        ];
        let session = fuser::spawn_mount(Server::new(volume), folder, &config)?;
        Ok(Mount {
            folder: folder.to_owned(),
            session: Some(session),
        })
    }

    /// Unmounts. Processes that still have files open there get errors from now on.
    ///
    /// # Errors
    /// When the folder is still mounted afterwards.
    pub fn unmount(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        let detached = detach(&self.folder);
        // Ends the thread that serves the volume, which waits for the kernel's connection to end.
        drop(session);
        detached.map(drop)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The next start detaches what could not be detached.
        let _ = self.end();
    }
}
