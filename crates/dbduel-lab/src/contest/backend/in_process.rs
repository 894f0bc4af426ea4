//! A contender that runs in its load process: its database file.

use anyhow::{Context as _, Result};
use dbduel_driver::address::Address;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{Credentials, Dialect, Settings, sqlite_version};
use dbduel_experiment::normalised_name;
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_record::Record;
use dbduel_record::event::{LoadTime, Notice, Severity};
use dbduel_record::facts::FileSizes;
use dbduel_record::plan::{Contender, Limits, Plan, Setting};
use dbduel_server::{Build, DatabaseFile, database_file_id, file_sizes};

use super::super::arena::run_name;
use super::super::journal::Journal;
use super::super::prepare::{Content, is_dataset_known};
use super::sandboxed::folder;
use super::{Backend, ServerTexts};
use crate::contest::ContestConfig;
use crate::snapshots::{self, Description, Snapshots};
use dbduel_inspect::planned::check_workload;

/// Snapshot key: a name made of everything that loading the contender's file depends on.
pub fn key(contender: &Contender, plan: &Plan) -> String {
    snapshots::key(&database_file_id(), sqlite_version(), contender, plan)
}

/// Creates the contender's folder; refuses a workload that cannot run on SQLite.
///
/// # Errors
/// When the workload is refused or the folder cannot be created.
pub fn create(
    config: &ContestConfig<'_>,
    number: usize,
    contender: &Contender,
) -> Result<DatabaseFile> {
    check_workload(&config.plan, contender, Dialect::Sqlite, sqlite_version())
        .with_context(|| format!("contender `{}`", contender.name))?;
    DatabaseFile::create(
        config.home,
        &run_name(config),
        &folder(number, contender),
        by_name(&contender.settings),
    )
    .with_context(|| format!("contender `{}`", contender.name))
}

/// The contender's settings under the names that the driver knows: in an experiment they may have dashes and capitals.
fn by_name(settings: &[Setting]) -> Settings {
    let named = |setting: &Setting| (normalised_name(&setting.name), setting.value.clone());
    settings.iter().map(named).collect()
}

impl Backend for DatabaseFile {
    fn start_on_data(
        &mut self,
        config: &ContestConfig<'_>,
        past: &Record,
        contender: &Contender,
    ) -> Result<Option<Content>> {
        // A contender may have begun a block that the others have not, so all begin with their snapshots again.
        let is_usable = !dbduel_workloads::find(&config.plan.workload.name)?
            .depends_on_past_work(&config.plan.workload.parameters);
        let is_there = self.data().is_dir() && is_dataset_known(past, &contender.name);
        let damage = match is_there && is_usable {
            true => DatabaseFile::damage(self, Cancel::when(interrupt::gives_up))?,
            false => None,
        };
        if is_there && is_usable && damage.is_none() {
            return Ok(Some(Content::InUse));
        }
        self.clear()?;
        let begun = clock::now();
        let key = key(contender, &config.plan);
        let snapshots = Snapshots::new(config.home);
        let restored = snapshots.restore(&key, &self.data(), config.console)?;
        if restored.is_none() {
            self.make()?;
        }
        Ok(Some(Content::Fresh {
            restored: restored.map(Box::new),
            begun,
            damage,
        }))
    }

    fn snapshot_key(&self, contender: &Contender, plan: &Plan) -> Option<String> {
        Some(key(contender, plan))
    }

    /// Closing the last connection left nothing in a journal.
    fn keep_data(
        &mut self,
        config: &ContestConfig<'_>,
        contender: &Contender,
        load: LoadTime,
    ) -> Result<()> {
        Snapshots::new(config.home).keep(
            &key(contender, &config.plan),
            &self.data(),
            Description::of(&database_file_id(), contender, &config.plan, load),
            config.console,
        )
    }

    fn endpoint(&mut self) -> Result<(Address, Credentials)> {
        Ok((self.address(), Credentials::default()))
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn build(&self) -> Option<&Build> {
        None
    }

    fn origin(&self) -> String {
        format!("in dbduel {}", env!("CARGO_PKG_VERSION"))
    }

    /// A file that cannot be read for another reason, such as a lock, is not called damaged.
    fn damage(&self) -> Option<String> {
        let damage = DatabaseFile::damage(self, Cancel::when(interrupt::gives_up));
        damage.ok().flatten()
    }

    fn ready_after_s(&self) -> Option<f64> {
        None
    }

    fn texts(&mut self) -> Result<Option<ServerTexts>> {
        Ok(None)
    }

    fn sizes(&mut self) -> Result<Option<FileSizes>> {
        Ok(Some(file_sizes(&self.data())?))
    }

    fn log_place(&self) -> Option<String> {
        None
    }

    fn stop(&mut self, _limits: &Limits) -> Result<()> {
        Ok(())
    }

    /// The next connection opens the file.
    fn restart(&mut self, _limits: &Limits) -> Result<f64> {
        Ok(0.0)
    }

    fn remove(self: Box<Self>) -> Result<()> {
        self.remove_folder()
    }
}

/// Journals the note on what a contest with such contenders measures.
///
/// # Errors
/// When the record cannot be written.
pub fn announce(contenders: &[&str], journal: &mut Journal<'_>) -> Result<()> {
    if contenders.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = contenders.iter().map(|name| format!("`{name}`")).collect();
    Ok(journal.notice(Notice::new(
        "contest.in-process",
        Severity::Note,
        contenders,
        format!(
            "SQLite has no server and runs inside the load process, one process for each of {}: client CPU, bytes, syncs and memory \
             include the database, and server CPU is not measured. A statement costs no round trip. Writers wait in dbduel's \
             queue, first come, first served, instead of SQLite's own busy handler. Nothing is frozen: turns \
             alternate, each starts with the write-ahead log that its contender left, and the system may write pages of \
             one file in another's turn.",
            names.join(" and ")
        ),
        "Compare it with a server at few clients, and state that one is a library and the other a server.",
    ))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_server::Home;

    #[test]
    fn a_database_without_a_server_has_no_log() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let file = DatabaseFile::create(&home, "run-1", "a", Settings::default()).unwrap();
        assert_eq!(file.log_place(), None);
    }

    #[test]
    fn no_spelling_of_a_setting_is_dropped() {
        let setting = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let settings = by_name(&[
            setting("JOURNAL_MODE", "wal"),
            setting("cache-size", "-2000"),
        ]);
        let names: Vec<&str> = settings.keys().map(String::as_str).collect();
        assert_eq!(names, ["cache_size", "journal_mode"]);
    }
}
