//! Snapshots of loaded data, so that a dataset is loaded once.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_machine::clock;
use dbduel_record::Plan;
use dbduel_record::event::LoadTime;
use dbduel_record::plan::{Contender, Parameters, Setting, Workload as PlannedWorkload};
use dbduel_server::{Home, Progress, clear_unfinished, copy_tree, tree_size, unfinished};
use dbduel_workloads::Workload;
use serde::{Deserialize, Serialize};

use dbduel_experiment::normalised_name;

/// Raised when the same parameters give different content, or different statistics of it.
const CONTENT_VERSION: u32 = 2;
/// File that marks a directory as a snapshot. Its modification time is the last use.
pub const DESCRIPTION: &str = "snapshot.json";
/// The data directory in it.
pub const DATA: &str = "data";

/// Settings that affect a server's memory, waits and syncs, and leave the files of a cleanly stopped server unchanged.
/// Contenders that differ only in these share a snapshot.
const LEAVE_DATA_ALONE: &[&str] = &[
    // MySQL and MariaDB
    "innodb_adaptive_flushing",
    "innodb_adaptive_hash_index",
    "innodb_adaptive_hash_index_parts",
    "innodb_buffer_pool_instances",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_neighbors",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_page_cleaners",
    "innodb_read_ahead_threshold",
    "innodb_read_io_threads",
    "innodb_spin_wait_delay",
    "innodb_sync_spin_loops",
    "innodb_thread_concurrency",
    "innodb_write_io_threads",
    "join_buffer_size",
    "key_buffer_size",
    "max_connections",
    "max_heap_table_size",
    "performance_schema",
    "query_cache_size",
    "query_cache_type",
    "sort_buffer_size",
    "sync_binlog",
    "table_open_cache",
    "table_open_cache_instances",
    "thread_cache_size",
    "thread_handling",
    "thread_pool_size",
    "tmp_table_size",
    // PostgreSQL
    "backend_flush_after",
    "bgwriter_delay",
    "bgwriter_lru_maxpages",
    "commit_delay",
    "commit_siblings",
    "effective_cache_size",
    "effective_io_concurrency",
    "io_method",
    "io_workers",
    "jit",
    "max_parallel_workers_per_gather",
    "random_page_cost",
    "shared_buffers",
    "synchronous_commit",
    "wal_buffers",
    "work_mem",
    // SQLite
    "cache_size",
    "cache_spill",
    "mmap_size",
    "synchronous",
    "temp_store",
    "wal_autocheckpoint",
];

/// Description of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The server that wrote it.
    pub build: String,
    /// Name of the workload.
    pub workload: String,
    /// The workload's parameters.
    pub parameters: Parameters,
    /// The server's settings; absent in snapshots of earlier versions.
    #[serde(default)]
    pub settings: Option<Vec<Setting>>,
    /// Allocated on the device, bytes; 0 until it is kept.
    pub bytes: u64,
    /// Load time.
    #[serde(default)]
    pub load: Option<LoadTime>,
}

impl Description {
    /// Of data loaded by a contender's server.
    #[must_use]
    pub fn of(build: &str, contender: &Contender, plan: &Plan, load: LoadTime) -> Self {
        let workload = plan.workload_of(contender);
        Self {
            build: build.to_owned(),
            workload: workload.name,
            parameters: workload.parameters,
            settings: Some(contender.settings.clone()),
            bytes: 0,
            load: Some(load),
        }
    }

    /// What was changed of a dump when it was loaded.
    #[must_use]
    pub fn remarks(&self) -> &[String] {
        self.load.as_ref().map_or(&[], |load| &load.remarks)
    }

    /// Load time of a server with the settings of `contender`; `None` where another one loaded the data.
    #[must_use]
    pub fn load_of(&self, contender: &Contender) -> Option<LoadTime> {
        self.load
            .clone()
            .filter(|_| self.settings.as_ref() == Some(&contender.settings))
    }
}

/// The snapshots below a home.
#[derive(Debug)]
pub struct Snapshots {
    root: PathBuf,
}

/// Snapshot key: build with the digest of its program, settings that change data, workload, parameters that decide its data, seed.
#[must_use]
pub fn key(build: &str, program_digest: &str, contender: &Contender, plan: &Plan) -> String {
    let leaves_data_alone =
        |setting: &&Setting| LEAVE_DATA_ALONE.contains(&normalised_name(&setting.name).as_str());
    let settings: Vec<&Setting> = contender
        .settings
        .iter()
        .filter(|setting| !leaves_data_alone(setting))
        .collect();
    let workload = data_of(plan.workload_of(contender));
    let mut parts = serde_json::json!({
        "content": CONTENT_VERSION,
        "daemon": program_digest,
        "settings": settings,
        "workload": workload,
        "seed": plan.dataset_seed,
    });
    if let Some(beside) = plan.dump_beside() {
        parts["beside"] = serde_json::json!(data_of(beside.clone()));
    }
    let digest = blake3::hash(parts.to_string().as_bytes()).to_hex();
    format!("{build}-{}-{}", plan.workload.name, &digest[..12])
}

/// A workload with the parameters that decide its data.
fn data_of(mut workload: PlannedWorkload) -> PlannedWorkload {
    let known = dbduel_workloads::find(&workload.name).ok();
    if let Some(names) = known.and_then(Workload::data_parameters) {
        workload
            .parameters
            .retain(|name, _| names.contains(&name.as_str()));
    }
    workload
}

impl Snapshots {
    /// The snapshots of a home.
    #[must_use]
    pub fn new(home: &Home) -> Self {
        Self {
            root: home.root().join("snapshots"),
        }
    }

    /// The description of a snapshot; `None` when there is none.
    #[must_use]
    pub fn description(&self, key: &str) -> Option<Description> {
        let text = fs::read(self.root.join(key).join(DESCRIPTION)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Copies a snapshot to a data directory; returns its description, `None` when there is none.
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
            .and_then(|file| file.set_modified(clock::system_time()));
        progress.stage(&format!("restoring the snapshot {key}"));
        copy_tree(&snapshot.join(DATA), data, progress)?;
        Ok(Some(description))
    }

    /// Copies an unused data directory to a snapshot: writes a temporary folder and renames it.
    ///
    /// # Errors
    /// When the copy fails.
    pub fn keep(
        &self,
        key: &str,
        data: &Path,
        loaded: Description,
        progress: &dyn Progress,
    ) -> Result<()> {
        fs::create_dir_all(&self.root)
            .with_context(|| format!("could not create `{}`", self.root.display()))?;
        clear_unfinished(&self.root);
        let beside = unfinished(&self.root, key);
        fs::create_dir(&beside)
            .with_context(|| format!("could not create `{}`", beside.display()))?;
        progress.stage(&format!("keeping the snapshot {key}"));
        let result = copy_tree(data, &beside.join(DATA), progress)
            .map_err(anyhow::Error::from)
            .and_then(|_| {
                let description = Description {
                    bytes: tree_size(&beside)?.allocated_bytes,
                    ..loaded
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

    /// The folder of a snapshot.
    #[must_use]
    pub fn folder(&self, key: &str) -> PathBuf {
        self.root.join(key)
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

    /// Removes one snapshot; returns its size in bytes.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn remove(&self, key: &str) -> Result<u64> {
        let Some((key, description)) = self.list()?.into_iter().find(|(known, _)| known == key)
        else {
            bail!("there is no snapshot `{key}`; `dbduel datasets list` lists all snapshots");
        };
        let path = self.root.join(key);
        fs::remove_dir_all(&path)
            .with_context(|| format!("could not remove `{}`", path.display()))?;
        Ok(description.bytes)
    }

    /// Removes the least recently used snapshots until the others have at most `keep` bytes; returns the removed ones
    /// with their bytes.
    ///
    /// # Errors
    /// When the directory cannot be read or a snapshot cannot be removed.
    pub fn prune(&self, keep: u64) -> Result<Vec<(String, u64)>> {
        self.prune_some(keep, |_| true)
    }

    /// [`Snapshots::prune`] among those that `is_counted` accepts; the other ones stay.
    ///
    /// # Errors
    /// As [`Snapshots::prune`].
    pub fn prune_some(
        &self,
        keep: u64,
        is_counted: impl Fn(&Description) -> bool,
    ) -> Result<Vec<(String, u64)>> {
        let used = |key: &str| {
            let description = fs::metadata(self.root.join(key).join(DESCRIPTION));
            description.and_then(|file| file.modified()).ok()
        };
        let mut list = self.list()?;
        list.retain(|(_, description)| is_counted(description));
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
    use super::*;
    use dbduel_server::Silent;
    use std::time::Duration;

    #[test]
    fn contests_on_the_same_dump_share_a_snapshot() {
        let with = |digest: &str, draw: &str| {
            let mut plan = dbduel_testkit::synthetic::Scenario::duel().record().plan;
            "captured".clone_into(&mut plan.workload.name);
            let given = [("dump_digest", digest), ("draw", draw)];
            plan.workload.parameters = given
                .map(|(name, value)| (name.to_owned(), value.into()))
                .into();
            key("build", "digest", &plan.contenders[0], &plan)
        };
        assert_eq!(with("ab", "transactions"), with("ab", "sessions"));
        assert_ne!(with("ab", "transactions"), with("cd", "transactions"));
    }

    #[test]
    fn settings_that_leave_data_alone_share_a_snapshot_and_not_its_load_time() {
        let plan = dbduel_testkit::synthetic::Scenario::duel().record().plan;
        let with = |name: &str, value: &str| {
            let mut contender = plan.contenders[0].clone();
            contender.settings.push(Setting {
                name: name.to_owned(),
                value: value.to_owned(),
            });
            contender
        };
        let key = |contender: &Contender| key("build", "digest", contender, &plan);
        let small = with("innodb-buffer-pool-size", "64M");
        let large = with("innodb_buffer_pool_size", "128M");
        assert_eq!(key(&small), key(&large));
        assert_ne!(key(&small), key(&with("innodb_page_size", "4K")));
        let load = LoadTime {
            rows: 1,
            rows_s: 1.0,
            finish_s: 0.0,
            cpu_s: 0.5,
            remarks: Vec::new(),
            connections: 1,
        };
        let loaded = Description::of("build", &small, &plan, load.clone());
        assert_eq!(loaded.load_of(&small), Some(load));
        assert_eq!(loaded.load_of(&large), None);
    }

    #[test]
    fn what_was_used_longest_ago_is_pruned_first() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(&Home::new(dir.path()));
        assert_eq!(snapshots.prune(0).unwrap(), []);
        let now = clock::system_time();
        for (hours, key) in [(1, "new"), (3, "old"), (2, "middle")] {
            let folder = snapshots.root.join(key);
            fs::create_dir_all(folder.join("data")).unwrap();
            let description = Description {
                build: "mariadb-10.11".to_owned(),
                workload: "oltp-read-only".to_owned(),
                parameters: Parameters::default(),
                settings: None,
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
        let of_another = |snapshot: &Description| snapshot.build == "mariadb-11.4";
        assert_eq!(snapshots.prune_some(0, of_another).unwrap(), []);
        // Using the oldest makes it the newest.
        let restored = snapshots.restore("old", &dir.path().join("data"), &Silent);
        assert!(restored.unwrap().is_some());
        assert_eq!(snapshots.prune(20).unwrap(), [("middle".to_owned(), 10)]);
        assert_eq!(snapshots.prune(10).unwrap(), [("new".to_owned(), 10)]);
        assert_eq!(snapshots.prune(0).unwrap(), [("old".to_owned(), 10)]);
    }
}
