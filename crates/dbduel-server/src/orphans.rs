//! Orphans: servers that outlived the process that started them.
//!
//! A guard stops servers when the lab ends, also on panic; only a SIGKILL of the lab leaves them, possibly frozen. The
//! next start finds and ends them by their command lines, which name a configuration in a sandbox with a dead owner.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbduel_machine::clock;
use dbduel_powercut::mount::detach;
use dbduel_record::files::{Change, FileSystem};
use nix::sys::signal::Signal;

use super::home::{Home, create_private_dir, write_whole};
use super::process::{self, ProcessIdentity, poll_until, signal_one, signal_tree, tree};
use super::products::{self, PRODUCTS, ServerProduct};
use super::sandbox::{Owner, data_of};

const POLL: Duration = Duration::from_millis(20);
const KILL_DEADLINE: Duration = Duration::from_secs(30);

/// A server found without its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Its sandbox.
    pub sandbox: PathBuf,
    /// The first of its processes.
    pub process: ProcessIdentity,
    /// How it was ended.
    pub end: End,
    /// How long ending it took.
    pub took: Duration,
}

/// How an orphan was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited on request.
    Terminated,
    /// It was killed after its timeout.
    Killed,
    /// It still runs: it cannot be signalled, or waits for a device.
    StillThere,
}

/// Ends every server of this home whose owner is dead, and clears the note in its sandbox. Each gets `timeout` to exit
/// by itself.
pub fn sweep(home: &Home, timeout: Duration) -> Vec<Orphan> {
    // Paths in command lines are without symbolic links.
    let home = home.canonical().unwrap_or_else(|_| home.clone());
    let mut found = Vec::new();
    for run in folders(&home.sandboxes()) {
        for sandbox in folders(&run) {
            let Some(owner) = Owner::load(&sandbox) else {
                continue;
            };
            if owner.dbduel.is_alive() {
                continue;
            }
            for process in servers_in(&sandbox) {
                let begun = clock::now();
                found.push(Orphan {
                    sandbox: sandbox.clone(),
                    process,
                    end: end(process, &sandbox, timeout),
                    took: clock::since(begun),
                });
            }
            // A file system that ended with its process keeps the folder from being used or removed.
            let _ = detach(&data_of(&sandbox));
            if owner.server.is_some() && servers_in(&sandbox).is_empty() {
                // Should this fail, the next sweep finds the same dead process and writes again.
                let _ = Owner {
                    server: None,
                    group: None,
                    ..owner
                }
                .save(&**home.files(), &sandbox);
            }
        }
    }
    found
}

/// The servers that run with a sandbox's configuration, noted or not: their starter may have been killed between the
/// start and the note. Also processes forked by a dead server that still run in its data directory, but not those
/// forked by a living one.
pub(super) fn servers_in(sandbox: &Path) -> Vec<ProcessIdentity> {
    let data = data_of(sandbox);
    let mut processes = process::all();
    processes
        .retain(|process| product_of(*process, sandbox).is_some() || serves_in(*process, &data));
    let found: Vec<i32> = processes.iter().map(|process| process.pid).collect();
    processes.retain(|process| {
        let parent = process.parent();
        parent.is_none_or(|parent| !found.contains(&parent))
    });
    processes
}

/// True when a process runs a server's program, or a loader that may run one, in a data directory. A user's shell may
/// be there as well.
fn serves_in(process: ProcessIdentity, data: &Path) -> bool {
    let is_server = |program: PathBuf| {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        products::daemons().contains(&&*name) || name.starts_with("ld-linux")
    };
    process.folder().as_deref() == Some(data) && process.program().is_some_and(is_server)
}

/// The product of a server process with a sandbox's configuration.
fn product_of(process: ProcessIdentity, sandbox: &Path) -> Option<&'static dyn ServerProduct> {
    let arguments = process.arguments();
    PRODUCTS.iter().copied().find(|product| {
        let configuration = sandbox.join(product.configuration_name());
        let argument = product.configuration_argument(&configuration);
        arguments.contains(&argument.to_string_lossy().into_owned())
    })
}

/// Kills leftover processes of a dead server of this sandbox and waits for a while until they are gone.
pub(super) fn kill_leftovers(sandbox: &Path) {
    let data = data_of(sandbox);
    let mut left = process::all();
    left.retain(|process| serves_in(*process, &data));
    for process in &left {
        // Not ours to kill, then; the next start of a server here says so.
        let _ = signal_one(*process, Signal::SIGKILL);
    }
    poll_until(clock::now() + KILL_DEADLINE, POLL, || {
        left.iter().all(|process| !process.is_alive()).then_some(())
    });
}

/// File in a run's folder that names the run's record.
const RECORD: &str = "record";

/// Notes the record of a run's sandboxes.
///
/// # Errors
/// The note cannot be written.
pub fn note_record(home: &Home, run: &str, record: &Path) -> io::Result<()> {
    let folder = home.sandboxes().join(run);
    create_private_dir(&**home.files(), &folder)?;
    write_whole(
        &**home.files(),
        &folder.join(RECORD),
        record.as_os_str().as_encoded_bytes(),
        0o600,
    )
}

/// The record of a run, as far as its folder names one.
fn record_of(run: &Path) -> Option<PathBuf> {
    let bytes = fs::read(run.join(RECORD)).ok()?;
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

/// Records of runs that have sandboxes in this home: running or interrupted ones, which can be resumed.
#[must_use]
pub fn resumable_records(home: &Home) -> Vec<PathBuf> {
    let runs = folders(&home.sandboxes());
    let records = runs.iter().filter_map(|run| record_of(run));
    records.filter(|record| record.exists()).collect()
}

/// Removes the folder of a run without sandboxes.
pub(super) fn remove_empty_run(files: &dyn FileSystem, run: &Path) {
    if folders(run).is_empty() {
        // What stays behind is empty but for a note, and found again when the record is gone.
        let _ = files.apply(Change::Remove { path: run });
    }
}

/// Removes the sandboxes of interrupted runs whose record is gone: they cannot be resumed. Returns their folders.
pub fn remove_leftovers(home: &Home) -> Vec<PathBuf> {
    let is_left = |run: &PathBuf| {
        let is_in_use = folders(run)
            .iter()
            .any(|sandbox| Owner::load(sandbox).is_some_and(|owner| owner.dbduel.is_alive()));
        record_of(run).is_some_and(|record| !record.exists()) && !is_in_use
    };
    let left: Vec<PathBuf> = folders(&home.sandboxes())
        .into_iter()
        .filter(is_left)
        .collect();
    left.into_iter()
        .filter(|run| home.files().apply(Change::Remove { path: run }).is_ok())
        .collect()
}

fn end(process: ProcessIdentity, sandbox: &Path, timeout: Duration) -> End {
    let processes = tree(process.pid);
    let signals = product_of(process, sandbox).map(ServerProduct::stop_signals);
    let request = signals
        .and_then(|signals| signals.first().copied())
        .unwrap_or(Signal::SIGTERM);
    // A stopped process sees a request to end only after it was thawed.
    let asked =
        signal_tree(process.pid, Signal::SIGCONT).and_then(|()| signal_one(process, request));
    let gone = |wait: Duration| {
        poll_until(clock::now() + wait, POLL, || {
            (!processes.iter().any(ProcessIdentity::is_alive)).then_some(())
        })
        .is_some()
    };
    if asked.is_ok() && gone(timeout) {
        return End::Terminated;
    }
    let killed = processes
        .iter()
        .try_for_each(|process| signal_one(*process, Signal::SIGKILL));
    if killed.is_ok() && gone(KILL_DEADLINE) {
        End::Killed
    } else {
        End::StillThere
    }
}

/// A process whose program lies in a folder, recognised by its arguments.
pub(super) fn process_using(folder: &Path) -> Option<ProcessIdentity> {
    process::all().into_iter().find(|process| {
        // The daemon itself, or the loader with the daemon after its own two arguments.
        process
            .arguments()
            .iter()
            .take(4)
            .any(|argument| Path::new(argument).starts_with(folder))
    })
}

/// A living process of the lab with a sandbox for the server `build`, started or not.
pub(super) fn run_with(home: &Home, build: &str) -> Option<ProcessIdentity> {
    folders(&home.sandboxes())
        .iter()
        .flat_map(|run| folders(run))
        .filter_map(|sandbox| Owner::load(&sandbox))
        .find(|owner| owner.build == build && owner.dbduel.is_alive())
        .map(|owner| owner.dbduel)
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_record::files::LocalFiles;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use std::process::{Child, Command};

    const TIMEOUT: Duration = Duration::from_secs(60);

    /// A process with the command line of a server, which ignores SIGTERM when `stubborn`.
    fn impostor(sandbox: &Path, stubborn: bool) -> Child {
        let trap = if stubborn { "trap '' TERM; " } else { "" };
        let fifo = sandbox.join("marker.fifo");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        // Waits without a child, which would look like a second server for a moment.
        Command::new("sh")
            .arg("-c")
            .arg(format!("{trap}: >\"$0.ready\"; read line <\"$0.fifo\""))
            .arg(sandbox.join("marker"))
            .arg(format!(
                "--defaults-file={}",
                sandbox.join("my.cnf").display()
            ))
            .spawn()
            .unwrap()
    }

    fn sandbox(home: &Home) -> PathBuf {
        let path = home
            .root()
            .canonicalize()
            .unwrap()
            .join("sandboxes/run/contender");
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn wait_for(path: &Path) {
        assert!(poll_until(clock::now() + TIMEOUT, POLL, || path.exists().then_some(())).is_some());
    }

    fn identity(child: &Child) -> ProcessIdentity {
        ProcessIdentity::of(i32::try_from(child.id()).unwrap()).unwrap()
    }

    /// A process that ran once and is gone.
    fn dead() -> ProcessIdentity {
        ProcessIdentity {
            start_ticks: 1,
            ..ProcessIdentity::current().unwrap()
        }
    }

    /// What the sandbox says of its server.
    enum Note {
        Server,
        EarlierServer,
        Nothing,
    }

    #[track_caller]
    fn check(note: &Note, stubborn: bool, frozen: bool, expected: End) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let sandbox = sandbox(&home);
        let mut child = impostor(&sandbox, stubborn);
        wait_for(&sandbox.join("marker.ready"));
        let process = identity(&child);
        let server = match note {
            Note::Server => Some(process),
            Note::EarlierServer => Some(dead()),
            Note::Nothing => None,
        };
        Owner {
            dbduel: dead(),
            build: String::new(),
            server,
            group: server.map(|server| server.pid),
            socket_folder: None,
        }
        .save(&LocalFiles, &sandbox)
        .unwrap();
        if frozen {
            signal_one(process, Signal::SIGSTOP).unwrap();
        }
        // A zombie counts as gone, so that it need not be waited for here.
        let found = sweep(
            &home,
            if stubborn {
                Duration::from_millis(300)
            } else {
                TIMEOUT
            },
        );
        // Not waited for when nothing was found: it would run on.
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].process, found[0].end), (process, expected));
        assert!(Owner::load(&sandbox).unwrap().server.is_none());
        assert!(sweep(&home, TIMEOUT).is_empty(), "nothing is found twice");
    }

    #[test]
    fn an_orphan_ends_when_asked() {
        check(&Note::Server, false, false, End::Terminated);
    }

    #[test]
    fn a_frozen_orphan_is_thawed_first() {
        check(&Note::Server, false, true, End::Terminated);
    }

    #[test]
    fn a_stubborn_orphan_is_killed() {
        check(&Note::Server, true, false, End::Killed);
    }

    #[test]
    fn sandboxes_go_when_their_record_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let record = dir.path().join("record of the run");
        fs::create_dir(&record).unwrap();
        sandbox(&home);
        assert!(remove_leftovers(&home).is_empty(), "its owner is unknown");
        note_record(&home, "run", &record).unwrap();
        assert!(remove_leftovers(&home).is_empty(), "the run can be resumed");
        fs::remove_dir(&record).unwrap();
        assert_eq!(remove_leftovers(&home), [home.sandboxes().join("run")]);
        assert!(!home.sandboxes().join("run").exists());
    }

    #[test]
    fn a_server_that_was_never_noted_is_found_by_its_command_line() {
        check(&Note::Nothing, false, false, End::Terminated);
    }

    #[test]
    fn a_restarted_server_of_which_only_the_one_before_was_noted_is_found_too() {
        check(&Note::EarlierServer, false, false, End::Terminated);
    }

    #[test]
    fn a_server_with_a_living_owner_and_a_stranger_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let sandbox = sandbox(&home);
        let mut server = impostor(&sandbox, false);
        let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
        wait_for(&sandbox.join("marker.ready"));
        let me = ProcessIdentity::current().unwrap();
        let owner = Owner {
            dbduel: me,
            build: "mariadb-10.11".to_owned(),
            server: Some(identity(&server)),
            group: None,
            socket_folder: None,
        };
        owner.save(&LocalFiles, &sandbox).unwrap();
        assert!(sweep(&home, TIMEOUT).is_empty());
        assert!(identity(&server).is_alive());
        // A pid that now belongs to another program.
        server.kill().unwrap();
        server.wait().unwrap();
        Owner {
            dbduel: dead(),
            server: Some(identity(&stranger)),
            ..owner
        }
        .save(&LocalFiles, &sandbox)
        .unwrap();
        assert!(sweep(&home, TIMEOUT).is_empty());
        assert!(identity(&stranger).is_alive());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_server_is_in_use_while_the_owner_of_a_sandbox_for_it_lives() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let sandbox = sandbox(&home);
        let me = ProcessIdentity::current().unwrap();
        let owner = Owner {
            dbduel: me,
            build: "mariadb-10.11".to_owned(),
            server: None,
            group: None,
            socket_folder: None,
        };
        owner.save(&LocalFiles, &sandbox).unwrap();
        assert_eq!(run_with(&home, "mariadb-10.11"), Some(me));
        assert_eq!(run_with(&home, "mariadb-10.5"), None);
        Owner {
            dbduel: dead(),
            ..owner
        }
        .save(&LocalFiles, &sandbox)
        .unwrap();
        assert_eq!(run_with(&home, "mariadb-10.11"), None);
    }
}
