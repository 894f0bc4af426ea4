//! A fault at every single change of a sandbox's files: whatever happens, no server stays behind, and the sandbox can be
//! used again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use dbduel_record::files::{FileSystem, LocalFiles};
use dbduel_record::plan::Limits;
use dbduel_testkit::faulty_files::{Fault, FaultyFiles};
use dbduel_text::Version;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::digest::Digests;
use super::super::process::ProcessIdentity;
use super::super::{Build, Home, orphans};
use super::{Owner, Sandbox, StartError};

/// In the environment of a process that is to be killed: the fault, the change, the folder.
const VARIABLE: &str = "DBDUEL_TEST_SANDBOX_CRASH";
const TIMEOUT: Duration = Duration::from_secs(20);

/// A server that runs and never answers.
fn build(folder: &Path) -> Build {
    let daemon = folder.join("mariadbd");
    // Waits without a child, which would look like a second server for a moment.
    fs::write(&daemon, "#!/bin/sh\nread line <\"$0.fifo\"\n").unwrap();
    let fifo = folder.join("mariadbd.fifo");
    if !fifo.exists() {
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    }
    fs::set_permissions(&daemon, fs::Permissions::from_mode(0o700)).unwrap();
    Build {
        id: "mariadb-0".to_owned(),
        source: "path".to_owned(),
        locator: String::new(),
        artifacts: Vec::new(),
        product: "mariadb".to_owned(),
        version: Version::new(10, 11, 6),
        version_text: String::new(),
        daemon,
        daemon_digests: Digests {
            bytes: 0,
            sha256: String::new(),
            blake3: String::new(),
        },
        basedir: folder.to_owned(),
        share: folder.to_owned(),
        plugins: None,
        library_path: Vec::new(),
        loader: None,
    }
}

/// No time to answer.
const LIMITS: Limits = Limits {
    server_start_s: 0.0,
    server_stop_s: 1.0,
    statement_s: 1.0,
    dataset_s: 1.0,
    transaction_retries: 0,
    server_restarts: 0,
    free_disk_bytes_min: 0,
    prove: None,
};

/// Makes the sandbox, starts its server twice, and removes it.
fn use_sandbox(files: Arc<dyn FileSystem>, folder: &Path) -> anyhow::Result<()> {
    let home = Home::on(files, folder.join("home"));
    let mut sandbox = Sandbox::create(&home, "run", "first", build(folder), Vec::new())?;
    fs::create_dir_all(sandbox.data())?;
    for _ in 0..2 {
        match sandbox.start(&LIMITS) {
            Ok(_) => anyhow::bail!("the server answered"),
            // It was started, had no time to answer, and was ended.
            Err(StartError::NeverReady { .. }) => leave_note(&sandbox)?,
            Err(error) => return Err(error.into()),
        }
    }
    sandbox.remove()
}

/// Notes a server that is gone, as one that died by itself leaves it.
fn leave_note(sandbox: &Sandbox) -> anyhow::Result<()> {
    let owner = Owner::load(&sandbox.folder).context("there is a note")?;
    let gone = ProcessIdentity {
        start_ticks: 1,
        ..owner.dbduel
    };
    Owner {
        server: Some(gone),
        ..owner
    }
    .save(&*sandbox.files, &sandbox.folder)?;
    Ok(())
}

fn sandbox_of(folder: &Path) -> PathBuf {
    folder
        .canonicalize()
        .unwrap()
        .join("home/sandboxes/run/first")
}

/// After the fault: the next start of the lab finds no more than `orphans_max` servers, ends them, and can go on.
#[track_caller]
fn check_usable(folder: &Path, orphans_max: usize, fault: &str) -> usize {
    let found = orphans::sweep(&Home::new(folder.join("home")), TIMEOUT);
    assert!(found.len() <= orphans_max, "{fault}: {found:?}");
    assert_eq!(orphans::servers_in(&sandbox_of(folder)), [], "{fault}");
    let whole = Arc::new(FaultyFiles::new(Fault::Error, usize::MAX));
    use_sandbox(whole, folder).unwrap_or_else(|error| panic!("{fault}: {error:#}"));
    assert_eq!(orphans::servers_in(&sandbox_of(folder)), [], "{fault}");
    found.len()
}

#[test]
fn a_fault_at_any_change_of_a_sandbox_leaves_no_server_and_no_ruin() {
    for fault in [Fault::Error, Fault::Full, Fault::FullTorn, Fault::PowerLoss] {
        for at in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let faulty = Arc::new(FaultyFiles::new(fault, at));
            // Some changes may fail without consequence: a note that no server runs, for example.
            let _ = use_sandbox(Arc::clone(&faulty) as Arc<dyn FileSystem>, folder.path());
            check_usable(folder.path(), 0, &format!("{fault:?} at change {at}"));
            if faulty.changes() <= at {
                assert!(at > 30, "{at} changes");
                break;
            }
        }
    }
}

#[test]
fn a_kill_at_any_change_of_a_sandbox_leaves_no_server_that_the_next_start_does_not_end() {
    let mut orphans = 0;
    for fault in [Fault::Kill, Fault::KillTorn] {
        for at in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "--ignored", "--nocapture"])
                .arg(
                    concat!(module_path!(), "::the_process_that_is_killed")
                        .split_once("::")
                        .unwrap()
                        .1,
                )
                .env(
                    VARIABLE,
                    format!("{fault:?} {at} {}", folder.path().display()),
                )
                .output()
                .unwrap()
                .status;
            if status.success() {
                assert!(at > 30, "{at} changes");
                break;
            }
            assert_eq!(status.signal(), Some(9), "{fault:?} at change {at}");
            orphans += check_usable(folder.path(), 1, &format!("{fault:?} at change {at}"));
        }
    }
    assert!(
        orphans > 4,
        "only {orphans} of the kills met a running server"
    );
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn the_process_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let order = std::env::var(VARIABLE);
    let files: Arc<dyn FileSystem> = match &order {
        Ok(order) => {
            let mut words = order.splitn(3, ' ');
            let fault = words.next().unwrap();
            let fault = Fault::ALL
                .into_iter()
                .find(|one| format!("{one:?}") == fault);
            let at = words.next().unwrap().parse().unwrap();
            Arc::new(FaultyFiles::deadly(fault.unwrap(), at))
        }
        // Asked for alone, it goes through unharmed.
        Err(_) => Arc::new(LocalFiles),
    };
    let named = order
        .as_ref()
        .ok()
        .and_then(|order| order.splitn(3, ' ').nth(2));
    use_sandbox(files, named.map_or(folder.path(), Path::new)).unwrap();
}
