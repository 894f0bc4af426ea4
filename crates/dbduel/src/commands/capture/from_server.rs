//! `dbduel capture import --from`, and `dbduel capture restore`.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use dbduel_capture::import::{ImportOptions, LogSource};
use dbduel_capture::store::StoreError;
use dbduel_machine::interrupt;
use dbduel_server::Progress as _;
use dbduel_text::counts;

use super::general_log::{GeneralLog, LogStates, RunningServer};
use super::import::{self, Arguments};
use crate::commands::connection::Tls;
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::home;

/// The user has not agreed to a change of a running server.
#[derive(Debug, thiserror::Error)]
#[error("nothing was changed; add --yes to do this")]
pub struct ConsentMissing;

/// Turns the general log of a running server on for a time, and imports what it got.
///
/// # Errors
/// When the log cannot be turned on, read or turned off, or the capture not be written.
pub fn import_from(home: Option<PathBuf>, address: &str, arguments: &Arguments) -> Result<Exit> {
    let password_file = arguments.password_file.as_deref();
    let server = RunningServer::named(address, password_file, &arguments.tls)?;
    let target = &arguments.output;
    if target.symlink_metadata().is_ok() {
        return Err(StoreError::Exists(target.clone()).into());
    }
    let length = Duration::from_secs_f64(60.0 * arguments.minutes.unwrap_or_default());
    if !arguments.yes {
        console::status_line(&plan(address, length));
        return Err(ConsentMissing.into());
    }
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    // The first request ends the capture early, the second one all.
    let _measuring = interrupt::begin_measuring();
    let states = LogStates::of(&home::find(home)?);
    // What is known to fail fails before the log is on.
    let (file, rows_to) = RowFile::create(target)?;
    let log = GeneralLog::turn_on(&server, &states)?;
    let mut count = None;
    let imported = import_logged(log, length, (&file, rows_to), arguments, &mut count);
    console::status_line(&left_in_table(address, count));
    imported
}

/// Waits while the log is on, turns it off, and imports its rows, whose number goes to `count` once it is known.
fn import_logged(
    mut log: GeneralLog<'_>,
    length: Duration,
    (file, rows_to): (&RowFile, File),
    arguments: &Arguments,
    count: &mut Option<u64>,
) -> Result<Exit> {
    let address = log.address().to_owned();
    let console = Console::new();
    let waited = log.wait(length, &console);
    let ended = log.end();
    console.finish();
    let (waited, rows) = match (waited, ended) {
        (Ok(waited), Ok(rows)) => (waited, rows),
        (Err(error), Ok(_)) => return Err(error),
        (Ok(_), Err(failed)) => return Err(failed),
        (Err(error), Err(failed)) => return Err(failed.context(format!("{error:#}"))),
    };
    let console = Console::new();
    console.stage("reading `mysql.general_log`");
    let written = rows.write(rows_to);
    console.finish();
    let written = written?;
    *count = Some(written);
    ensure!(
        written > 0,
        "no other session sent anything to `{address}` while its general log was on; its settings are restored"
    );
    let options = ImportOptions {
        logs: vec![file.path.clone()],
        product: Some(rows.product()),
        source: Some(LogSource {
            name: format!("{address} mysql.general_log"),
            version: rows.version().to_owned(),
        }),
        ..import::options(arguments)
    };
    import::run(&options)?;
    match waited {
        true => Ok(Exit::Done),
        false => Ok(Exit::Interrupted),
    }
}

/// What stays on the server, and how to remove it. Nothing here does: others may read the table, and its replicas would lose their rows.
fn left_in_table(address: &str, count: Option<u64>) -> String {
    let rows = match count {
        Some(count) => format!(
            "{} and those of dbduel itself",
            counts::things(count, "row")
        ),
        None => "its rows".to_owned(),
    };
    format!(
        "`mysql.general_log` of `{address}` keeps what this import logged ({rows}): statements of all sessions with their values. {REMOVE_ROWS}"
    )
}

/// How to remove the rows of an import.
const REMOVE_ROWS: &str = "`TRUNCATE TABLE mysql.general_log` removes all rows, also older ones, and is replicated: check first that no one else needs them";

/// What an import from a server does, and what it costs.
fn plan(address: &str, length: Duration) -> String {
    format!(
        "This turns on the general log of `{address}` for {length}, written to the table mysql.general_log, and then imports its rows.
It sets log_output and general_log (SET GLOBAL), and restores them at the end, on errors and on SIGINT and SIGTERM; after SIGKILL or a power \
failure `dbduel capture restore` does, or the next import from this server.
Cost: about 20 µs per statement. A server of point selects ran half as many (0.37 to 0.61) with this log, one at 2,300 statements per second took 5 % of a \
processor more. The disk of the server needs about 150 bytes per statement and twice that while the capture is written here.
The table has all statements of all sessions with their values, on MariaDB passwords of account statements too. They \
stay in it. {REMOVE_ROWS}.",
        length = dbduel_text::duration(length.as_secs_f64()),
    )
}

/// The rows of the table, in a file beside the capture that only the user can read; removed when dropped.
struct RowFile {
    path: PathBuf,
}

impl RowFile {
    /// The path of the file, and the new file.
    fn create(target: &Path) -> Result<(Self, File)> {
        let name = target
            .file_name()
            .context("the path of the capture has no last name")?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".rows-{}", std::process::id()));
        let path = target.with_file_name(hidden);
        // Of a process that was killed and had the same number.
        let _ = fs::remove_file(&path);
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&path);
        let opened = opened.with_context(|| {
            format!(
                "could not create `{}` for the rows of the log",
                path.display()
            )
        })?;
        Ok((RowFile { path }, opened))
    }
}

impl Drop for RowFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Options of `dbduel capture restore`.
#[derive(Debug, Args)]
pub struct RestoreArguments {
    /// File whose first line is the password [default: $DBDUEL_PASSWORD or $MYSQL_PWD].
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    #[command(flatten)]
    pub tls: Tls,
}

/// Restores the log settings of all servers that an import which did not end left changed.
///
/// # Errors
/// When a server cannot be reached or refuses it.
pub fn restore(home: Option<PathBuf>, arguments: &RestoreArguments) -> Result<Exit> {
    let states = LogStates::of(&home::find(home)?);
    let (restored, failed) = states.restore(arguments.password_file.as_deref(), &arguments.tls)?;
    let mut text: String = restored
        .iter()
        .map(|server| {
            format!(
                "restored the log settings of `{server}`; the statements that were logged stay in its mysql.general_log. {REMOVE_ROWS}\n"
            )
        })
        .collect();
    if text.is_empty() && failed.is_none() {
        text = "no import left the log of a server on\n".to_owned();
    }
    console::print(&text)?;
    failed.map_or(Ok(Exit::Done), Err)
}

/// Says which servers an import that did not end left with their log on, or why that is unknown. A home that cannot be found is none of
/// the verb at hand.
pub fn warn_of_leftovers(home: Option<PathBuf>) {
    let Ok(home) = home::find(home) else {
        return;
    };
    let (left_on, failed) = match LogStates::of(&home).left_on() {
        Ok(found) => found,
        Err(error) => (Vec::new(), Some(error)),
    };
    for server in left_on {
        console::status_line(&format!(
            "an import that did not end left the general log of `{server}` on; turn it off with `dbduel capture restore`"
        ));
    }
    if let Some(error) = failed {
        console::status_line(&format!("{error:#}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_in_the_table_is_said_with_how_to_remove_it() {
        for (count, rows) in [
            (Some(3), "(3 rows and"),
            (Some(0), "(0 rows and"),
            (None, "(its rows)"),
        ] {
            let said = left_in_table("tcp://root@db", count);
            assert!(said.contains(rows), "{said}");
            assert!(said.contains("`tcp://root@db` keeps"), "{said}");
            assert!(said.contains("is replicated"), "{said}");
        }
        let plan = plan("tcp://root@db", Duration::from_secs(60));
        assert!(plan.contains("is replicated"), "{plan}");
    }

    #[test]
    fn a_capture_in_a_folder_that_is_missing_fails_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("missing/shop.cap");
        let error = RowFile::create(&target).err().unwrap();
        assert!(error.to_string().contains("could not create"), "{error:#}");
    }
}
