//! Captures of small logs.

use std::path::{Path, PathBuf};

use dbduel_capture::import::{ImportOptions, import};
use dbduel_record::plan::Parameters;
use tempfile::TempDir;

/// The argument of `Connect` in a [general log](general_log).
pub const CONNECT: &str = "app@localhost on shop using Socket";

/// A general log of MySQL with these lines: session, command and argument.
#[must_use]
pub fn general_log(lines: &[(u32, &str, &str)]) -> String {
    let mut log = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time                 Id Command    Argument\n"
        .to_owned();
    for (number, (session, command, argument)) in lines.iter().enumerate() {
        log += &format!("2026-11-28T00:00:01.{number:06}Z\t{session:5} {command}\t{argument}\n");
    }
    log
}

/// The capture of a log, in a directory of `dir`. PostgreSQL's log needs its `log_line_prefix`.
#[must_use]
pub fn import_below(dir: &Path, log: &str, prefix: Option<&str>) -> PathBuf {
    let path = dir.join("log");
    std::fs::write(&path, log).unwrap();
    let options = ImportOptions {
        logs: vec![path],
        target: dir.join("a.cap"),
        prefix: prefix.map(|prefix| prefix.as_bytes().to_vec()),
        ..ImportOptions::default()
    };
    import(&options, &mut |_| Ok(())).unwrap();
    options.target
}

/// A capture that lives as long as this value.
#[derive(Debug)]
pub struct Imported {
    _dir: TempDir,
    capture: PathBuf,
}

impl Imported {
    /// Of a log; PostgreSQL's needs its `log_line_prefix`.
    #[must_use]
    pub fn of(log: &str, prefix: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let capture = import_below(dir.path(), log, prefix);
        Imported { _dir: dir, capture }
    }

    /// Of a [general log](general_log) of MySQL.
    #[must_use]
    pub fn general(lines: &[(u32, &str, &str)]) -> Self {
        Self::of(&general_log(lines), None)
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.capture
    }

    /// The workload's parameter that names it.
    #[must_use]
    pub fn given(&self) -> Parameters {
        let capture = self.capture.display().to_string();
        Parameters::from([("capture".to_owned(), capture.into())])
    }
}
