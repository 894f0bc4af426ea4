//! What the machines of a contest share: files, packed by `tar`.

pub mod servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use dbduel_server::{Home, Tool, clear_unfinished, create_private_dir, unfinished};

/// The largest that is shared, bytes.
pub const BYTES_MAX: u64 = 16 << 30;
/// Packing or unpacking takes no longer.
const TAR_TIMEOUT: Duration = Duration::from_secs(3600);
/// Quick, since networks of contests are; without the time, so that equal files are equal when they are packed.
const COMPRESSION: &str = "gzip -1n";

/// Packs or unpacks a folder.
///
/// # Errors
/// When `tar` fails or is not there.
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

/// A folder that only this user may enter. Dropped means removed.
#[derive(Debug)]
pub struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes one in a home.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(home: &Home, name: &str) -> Result<Self> {
        clear_unfinished(home.root());
        let folder = unfinished(home.root(), name);
        create_private_dir(home.files().as_ref(), &folder)?;
        Ok(Self(folder))
    }

    /// Itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where packed files are.
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
