//! A wall clock that can be set for the program alone. Root could set that of the machine, and then everything on it.

use std::fs;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/chaos/clock.c");

/// A library that programs are started with, and the file that says by how much it moves their clock.
pub struct Clock {
    folder: tempfile::TempDir,
    moved_s: i64,
}

impl Clock {
    /// # Errors
    /// When there is no C compiler, with what it said.
    pub fn build() -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let clock = Self { folder, moved_s: 0 };
        fs::write(clock.file(), 0_i64.to_ne_bytes()).unwrap();
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", SOURCE, "-ldl", "-o"])
            .arg(clock.library())
            .output()
            .map_err(|error| format!("`cc` cannot be started: {error}"))?;
        match output.status.success() {
            true => Ok(clock),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn library(&self) -> std::path::PathBuf {
        self.folder.path().join("clock.so")
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("moved")
    }

    /// Makes the command's program go by this clock.
    pub fn set_in(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", self.library())
            .env("DBDUEL_TEST_CLOCK", self.file());
    }

    /// Sets the clock forward, or back when negative.
    pub fn step(&mut self, seconds: i64) {
        self.moved_s += seconds;
        // In place: what is mapped is this file.
        let path: &Path = &self.file();
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &self.moved_s.to_ne_bytes(), 0).unwrap();
    }
}
