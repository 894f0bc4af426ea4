//! Snapshots of loaded data, so that a dataset is loaded once.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use dbduel_record::Plan;
use dbduel_record::event::LoadTime;
use dbduel_record::plan::{self, Contender, Parameters};
use serde::{Deserialize, Serialize};

use super::server::{Home, Progress, clear_unfinished, copy_tree, tree_size, unfinished};

/// Raised when the same parameters give other content, or other statistics of it.
const CONTENT_VERSION: u32 = 2;
/// File that makes a directory a snapshot. Changed last when it was used last.
const DESCRIPTION: &str = "snapshot.json";

/// What a snapshot holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The server that wrote it.
    pub build: String,
    pub workload: String,
    /// The workload's parameters.
    pub parameters: Parameters,
    /// Allocated on the device, bytes.
    pub bytes: u64,
    /// What loading it took.
    #[serde(default)]
    pub load: Option<LoadTime>,
}

/// The snapshots below a home.
#[derive(Debug)]
pub struct Snapshots {
    root: PathBuf,
}

/// What loading `contender` depends on, as a name: build, with the digest of its program, settings, workload, parameters, seed.
#[must_use]
pub fn key(build: &str, program_digest: &str, contender: &Contender, plan: &Plan) -> String {
    let parts = serde_json::json!({
        "content": CONTENT_VERSION,
        "daemon": program_digest,
        "settings": contender.settings,
        "workload": plan.workload_of(contender),
        "seed": plan.dataset_seed,
    });
    let digest = blake3::hash(parts.to_string().as_bytes()).to_hex();
    format!("{build}-{}-{}", plan.workload.name, &digest[..12])
}

impl Snapshots {
    #[must_use]
    pub fn new(home: &Home) -> Self {
        Self {
            root: home.root().join("snapshots"),
        }
    }

    /// What a snapshot holds; nothing when there is none.
    #[must_use]
    pub fn description(&self, key: &str) -> Option<Description> {
        let text = fs::read(self.root.join(key).join(DESCRIPTION)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Copies a snapshot to a data directory; returns what it holds, or nothing when there is none.
    ///
    /// # Errors
    /// When the copy fails.
    pub fn restore(
        &self,
        key: &str,
        data: &Path,
        progress: &dyn Progress,
    ) -> Result<Option<Description>> {
        let Some(description) = self.description(key) else {
            return Ok(None);
        };
        let snapshot = self.root.join(key);
        // Where that fails it counts as unused, and is removed sooner than it could be.
        let _ = OpenOptions::new()
            .append(true)
            .open(snapshot.join(DESCRIPTION))
            .and_then(|file| file.set_modified(SystemTime::now()));
        progress.stage(&format!("restoring the snapshot {key}"));
        copy_tree(&snapshot.join("data"), data, progress)?;
        Ok(Some(description))
    }

    /// Copies a data directory that nothing uses, written by this build, to a snapshot, written beside and renamed.
    ///
    /// # Errors
    /// When the copy fails.
    pub fn keep(
        &self,
        key: &str,
        data: &Path,
        build: &str,
        workload: &plan::Workload,
        load: LoadTime,
        progress: &dyn Progress,
    ) -> Result<()> {
        fs::create_dir_all(&self.root)
            .with_context(|| format!("could not create `{}`", self.root.display()))?;
        clear_unfinished(&self.root);
        let beside = unfinished(&self.root, key);
        fs::create_dir(&beside)
            .with_context(|| format!("could not create `{}`", beside.display()))?;
        progress.stage(&format!("keeping the snapshot {key}"));
        let result = copy_tree(data, &beside.join("data"), progress)
            .map_err(anyhow::Error::from)
            .and_then(|_| {
                let description = Description {
                    build: build.to_owned(),
                    workload: workload.name.clone(),
                    parameters: workload.parameters.clone(),
                    bytes: tree_size(&beside)?.allocated_bytes,
                    load: Some(load),
                };
                fs::write(
                    beside.join(DESCRIPTION),
                    serde_json::to_vec_pretty(&description)?,
                )?;
                let target = self.root.join(key);
                if target.exists() {
                    fs::remove_dir_all(&target)?;
                }
                Ok(fs::rename(&beside, &target)?)
            });
        if result.is_err() {
            // The cause is in the result; what is left over would only take room.
            let _ = fs::remove_dir_all(&beside);
        }
        result.with_context(|| format!("could not keep the snapshot {key}"))
    }

    /// Every snapshot by its key.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self) -> Result<Vec<(String, Description)>> {
        let mut found = Vec::new();
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("could not read `{}`", self.root.display()));
            }
        };
        for entry in entries {
            let entry = entry?;
            let key = entry.file_name().to_string_lossy().into_owned();
            // What has no description was left by a run that was killed while it copied.
            if let Some(description) = self.description(&key) {
                found.push((key, description));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Removes one snapshot; returns the bytes that it had.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn remove(&self, key: &str) -> Result<u64> {
        let Some((key, description)) = self.list()?.into_iter().find(|(known, _)| known == key)
        else {
            bail!("there is no snapshot `{key}`; `dbduel datasets list` shows what there is");
        };
        let path = self.root.join(key);
        fs::remove_dir_all(&path)
            .with_context(|| format!("could not remove `{}`", path.display()))?;
        Ok(description.bytes)
    }

    /// Removes those that were used longest ago, until the others have at most `keep` bytes; returns them with their bytes.
    ///
    /// # Errors
    /// When the directory cannot be read or a snapshot cannot be removed.
    pub fn prune(&self, keep: u64) -> Result<Vec<(String, u64)>> {
        let used = |key: &str| {
            let description = fs::metadata(self.root.join(key).join(DESCRIPTION));
            description.and_then(|file| file.modified()).ok()
        };
        let list = self.list()?;
        let mut kept: u64 = list.iter().map(|(_, description)| description.bytes).sum();
        let mut oldest: Vec<_> = list.into_iter().map(|(key, _)| (used(&key), key)).collect();
        oldest.sort();
        let mut removed = Vec::new();
        for (_, key) in oldest {
            if kept <= keep {
                break;
            }
            let bytes = self.remove(&key)?;
            kept -= bytes;
            removed.push((key, bytes));
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::Silent;
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_used_longest_ago_is_pruned_first() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(&Home::new(dir.path()));
        assert_eq!(snapshots.prune(0).unwrap(), []);
        let now = SystemTime::now();
        for (hours, key) in [(1, "new"), (3, "old"), (2, "middle")] {
            let folder = snapshots.root.join(key);
            fs::create_dir_all(folder.join("data")).unwrap();
            let description = Description {
                build: "mariadb-10.11".to_owned(),
                workload: "oltp-read-only".to_owned(),
                parameters: Parameters::default(),
                bytes: 10,
                load: None,
            };
            let path = folder.join(DESCRIPTION);
            fs::write(&path, serde_json::to_vec(&description).unwrap()).unwrap();
            let file = OpenOptions::new().append(true).open(&path).unwrap();
            file.set_modified(now - Duration::from_secs(3600 * hours))
                .unwrap();
        }
        assert_eq!(snapshots.prune(30).unwrap(), []);
        // Using the oldest makes it the newest.
        let restored = snapshots.restore("old", &dir.path().join("data"), &Silent);
        assert!(restored.unwrap().is_some());
        assert_eq!(snapshots.prune(20).unwrap(), [("middle".to_owned(), 10)]);
        assert_eq!(snapshots.prune(10).unwrap(), [("new".to_owned(), 10)]);
        assert_eq!(snapshots.prune(0).unwrap(), [("old".to_owned(), 10)]);
    }
}
