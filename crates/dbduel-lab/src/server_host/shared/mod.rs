//! Files shared by the machines of a contest, packed by `tar`.

pub mod servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use dbduel_server::{Home, Tool, clear_unfinished, create_private_dir, unfinished};

/// Size limit of a packed server, bytes.
pub const BYTES_MAX: u64 = 16 << 30;
/// Timeout of packing or unpacking.
const TAR_TIMEOUT: Duration = Duration::from_secs(3600);
/// Fast, as networks of contests are; without a time stamp, so that equal files give equal archives.
const COMPRESSION: &str = "gzip -1n";

/// Packs or unpacks a folder.
///
/// # Errors
/// When `tar` fails or is missing.
pub fn tar(packed: &Path, folder: &Path, options: &[&str], names: &[&str]) -> Result<()> {
    let tool = Tool::new("tar", "install `tar`").with(|command| {
        command
            .args(options)
            .args(["--use-compress-program", COMPRESSION, "--file"])
            .arg(packed);
        command.arg("--directory").arg(folder).args(names);
    });
    tool.run_ok(TAR_TIMEOUT).map(drop)
}

/// A folder that only this user may enter; removed on drop.
#[derive(Debug)]
pub struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Creates such a folder in a home.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(home: &Home, name: &str) -> Result<Self> {
        clear_unfinished(home.root());
        let folder = unfinished(home.root(), name);
        create_private_dir(home.files().as_ref(), &folder)?;
        Ok(Self(folder))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Path of the packed files.
    #[must_use]
    pub fn packed(&self) -> PathBuf {
        self.0.join("packed")
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What stays is removed the next time.
        let _ = fs::remove_dir_all(&self.0);
    }
}
