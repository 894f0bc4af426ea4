//! Installed client programs: where they are, what version they say, and how they end.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Folders in which Debian has PostgreSQL's clients of each version.
pub const VERSIONS: &str = "/usr/lib/postgresql";
/// Time for a program to say its version, or to exit after the end of its output.
const EXIT: Duration = Duration::from_secs(10);
/// Pause between two checks of a process.
pub const PAUSE: Duration = Duration::from_millis(5);
/// Text of a program that is kept, bytes.
const TEXT_MAX: u64 = 4096;

/// Paths where a program of this name is: the folders of `PATH`, then Debian's of PostgreSQL's versions.
pub fn candidates(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten();
    folders.extend(versions.flatten().map(|entry| entry.path().join("bin")));
    let programs = folders.iter().map(|folder| folder.join(name));
    programs.filter(|program| program.is_file()).collect()
}

/// What a program prints for `--version`; `None` where it fails or says nothing in time.
pub fn version_text(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let is_well = exit_of(&mut child)?;
    let mut text = String::new();
    output.take(TEXT_MAX).read_to_string(&mut text).ok()?;
    is_well.then_some(text)
}

/// Whether a process succeeded; ends it after [`EXIT`] and returns `None`.
pub fn exit_of(child: &mut Child) -> Option<bool> {
    let give_up = Instant::now() + EXIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < give_up => std::thread::sleep(PAUSE),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// The beginning of a program's errors, read while it runs: a process that cannot write its errors stands still.
#[derive(Debug)]
pub struct Errors(JoinHandle<String>);

impl Errors {
    /// Reads them until the program closes them.
    pub fn read(mut errors: ChildStderr) -> Self {
        Self(std::thread::spawn(move || {
            let mut first = Vec::new();
            let _ = errors.by_ref().take(TEXT_MAX).read_to_end(&mut first);
            let _ = io::copy(&mut errors, &mut io::sink());
            String::from_utf8_lossy(&first).trim().to_owned()
        }))
    }

    /// Their text, once the program has ended.
    pub fn text(self) -> String {
        self.0.join().unwrap_or_default()
    }
}
