//! System tables of servers that are initialised by SQL on standard input.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dbduel_record::files::LocalFiles;

use super::super::build::Build;
use super::super::command::quote;
use super::super::home::create_private_dir;
use super::super::refusal;
use super::super::settings::Setting;

const DEADLINE: Duration = Duration::from_secs(600);

/// How the daemon of MySQL or MariaDB initialises an empty data directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Initialisation {
    /// Arguments of the daemon, after those that name its folders.
    pub arguments: Vec<&'static str>,
    /// SQL for its standard input; empty when the daemon has its own.
    pub sql: Vec<u8>,
    /// Folders to create in the data directory first.
    pub folders: &'static [&'static str],
}

impl Initialisation {
    /// Runs the daemon until `data` is initialised.
    ///
    /// # Errors
    /// The server refuses a setting ([`refusal::RefusedSetting`]) or cannot be initialised; the text quotes it.
    pub fn run(
        self,
        build: &Build,
        settings: &[Setting],
        data: &Path,
        staging: &Path,
    ) -> Result<()> {
        let tmp = staging.join("tmp");
        create_private_dir(&LocalFiles, &tmp)?;
        if !self.sql.is_empty() {
            create_private_dir(&LocalFiles, data)?;
        }
        for folder in self.folders {
            create_private_dir(&LocalFiles, &data.join(folder))?;
        }
        let finished = build
            .tool()
            .with(|command| {
                // Must come first, or the machine's own option files would be read.
                command.arg("--no-defaults");
                let mut path = |name: &str, path: &Path| {
                    command.arg(format!("--{name}={}", path.display()));
                };
                path("basedir", &build.basedir);
                path("datadir", data);
                path("tmpdir", &tmp);
                path("lc-messages-dir", &build.share);
                path("character-sets-dir", &build.share.join("charsets"));
                if let Some(plugins) = &build.plugins {
                    path("plugin-dir", plugins);
                }
                if nix::unistd::geteuid().is_root() {
                    command.arg("--user=root");
                }
                command.args(&self.arguments);
                for setting in settings {
                    match &setting.value {
                        Some(value) => command.arg(format!("--{}={value}", setting.name)),
                        None => command.arg(format!("--{}", setting.name)),
                    };
                }
                command.current_dir(staging);
            })
            .stdin(self.sql)
            .run(DEADLINE)?;
        if finished.status.success() && data.join("mysql").is_dir() {
            return Ok(());
        }
        if let Some(refused) = refusal::refused(&finished.stderr, settings, &build.product) {
            return Err(refused.into());
        }
        bail!(
            "could not initialise a data directory of `{}` ({}){}",
            build.id,
            finished.status,
            quote(&finished.stderr)
        );
    }
}

/// A piece of the bootstrap's input.
pub enum Piece<'a> {
    /// A statement.
    Text(&'a str),
    /// A required file.
    File(&'a str),
    /// A file that some versions lack.
    Optional(&'a str),
}

/// Concatenates the pieces. Every piece ends with a line end: a bootstrap reads statements by lines.
///
/// # Errors
/// A required file cannot be read.
pub fn assemble(folder: &Path, pieces: &[Piece<'_>]) -> Result<Vec<u8>> {
    let mut sql = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => sql.extend_from_slice(text.as_bytes()),
            Piece::Optional(name) if !folder.join(name).is_file() => continue,
            Piece::File(name) | Piece::Optional(name) => {
                let path = folder.join(name);
                let text = fs::read(&path).with_context(|| {
                    format!("could not read the server's system tables from `{}`; the tree is incomplete", path.display())
                })?;
                sql.extend_from_slice(&text);
            }
        }
        sql.push(b'\n');
    }
    Ok(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_a_line_and_optional_ones_may_lack() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.sql"), "CREATE TABLE a (i int);").unwrap();
        let pieces = [
            Piece::Text("use mysql;"),
            Piece::File("a.sql"),
            Piece::Optional("b.sql"),
        ];
        assert_eq!(
            assemble(dir.path(), &pieces).unwrap(),
            b"use mysql;\nCREATE TABLE a (i int);\n"
        );
        let error = assemble(dir.path(), &[Piece::File("b.sql")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("b.sql") && error.contains("incomplete"),
            "{error}"
        );
    }
}
