//! Owner and server of a sandbox, noted where the next start of the lab finds them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_record::files::FileSystem;
use serde::{Deserialize, Serialize};

use super::super::home::{Home, create_private_dir, write_whole};
use super::super::process::ProcessIdentity;

/// File name inside the sandbox.
pub const FILE_NAME: &str = "owner.json";

/// Content of `owner.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The process that created or took over the sandbox.
    pub dbduel: ProcessIdentity,
    /// Name in the lab's home of the server that the sandbox runs. Empty in notes of earlier versions.
    #[serde(default)]
    pub build: String,
    /// The running server, if known. Between the start of a server and the note of it this is empty, so servers of a
    /// sandbox are found by their command lines.
    pub server: Option<ProcessIdentity>,
    /// The server's process group.
    pub group: Option<i32>,
    /// A folder outside of the sandbox for the socket, when the sandbox's path is too long for one.
    pub socket_folder: Option<PathBuf>,
}

/// The folder of a contender in a run.
pub struct Claim {
    /// Its path, without symbolic links.
    pub folder: PathBuf,
    /// Its previous owner.
    pub earlier: Option<Owner>,
    /// This process, not yet written.
    pub owner: Owner,
}

impl Owner {
    /// Creates the folder of a contender in a run, or takes it over from an earlier, ended process of the same run.
    ///
    /// # Errors
    /// Invalid folder names; a folder that cannot be created, or that belongs to a living process.
    pub fn claim(home: &Home, run: &str, contender: &str, build: &str) -> Result<Claim> {
        for name in [run, contender] {
            if !is_folder_name(name) {
                bail!(
                    "`{name}` is not a valid folder name; use letters, digits, dashes, underscores and dots"
                );
            }
        }
        let Some(me) = ProcessIdentity::current() else {
            bail!("this system has no usable `/proc`")
        };
        create_private_dir(&**home.files(), home.root())?;
        // A server gets these paths and works in another folder.
        let root = home
            .canonical()
            .with_context(|| format!("could not find `{}`", home.root().display()))?;
        let folder = root.sandboxes().join(run).join(contender);
        create_private_dir(&**home.files(), &folder)?;
        let earlier = Owner::load(&folder);
        if let Some(earlier) = &earlier
            && earlier.dbduel != me
            && earlier.dbduel.is_alive()
        {
            bail!(
                "the sandbox `{}` belongs to the running process {}",
                folder.display(),
                earlier.dbduel.pid
            );
        }
        let owner = Owner {
            dbduel: me,
            build: build.to_owned(),
            server: None,
            group: None,
            socket_folder: None,
        };
        Ok(Claim {
            folder,
            earlier,
            owner,
        })
    }

    /// Reads the owner of a sandbox; `None` without a readable note.
    pub fn load(sandbox: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(sandbox.join(FILE_NAME)).ok()?).ok()
    }

    /// Writes the owner into the sandbox.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, files: &dyn FileSystem, sandbox: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        text.push(b'\n');
        write_whole(files, &sandbox.join(FILE_NAME), &text, 0o600)
    }
}

fn is_folder_name(name: &str) -> bool {
    let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.len() <= 100 && name.chars().all(usable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_record::files::LocalFiles;

    #[test]
    fn what_was_written_is_read_and_what_is_torn_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Owner::load(dir.path()), None);
        let owner = Owner {
            dbduel: ProcessIdentity {
                pid: 1,
                start_ticks: 2,
            },
            build: "mariadb-10.11".to_owned(),
            server: Some(ProcessIdentity {
                pid: 3,
                start_ticks: 4,
            }),
            group: Some(3),
            socket_folder: None,
        };
        owner.save(&LocalFiles, dir.path()).unwrap();
        assert_eq!(Owner::load(dir.path()), Some(owner));
        fs::write(dir.path().join(FILE_NAME), "{\"dbduel\":").unwrap();
        assert_eq!(Owner::load(dir.path()), None);
    }

    #[test]
    fn names_that_cannot_be_folders() {
        for good in ["doublewrite", "no-doublewrite", "a_1.2"] {
            assert!(is_folder_name(good), "{good}");
        }
        for bad in ["", "..", ".hidden", "a/b", "a b", "ü", &"x".repeat(101)] {
            assert!(!is_folder_name(bad), "{bad}");
        }
    }
}
