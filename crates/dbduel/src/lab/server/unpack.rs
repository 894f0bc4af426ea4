//! Unpacks vendors' archives: only what a running server needs of them.
//!
//! Uses the machine's own `tar` and `unzip`. Does not look for the daemon in what it unpacked.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::command::Tool;
use super::progress::Progress;

const DEADLINE: Duration = Duration::from_secs(1800);
/// Endings of the archives that can be unpacked.
pub const ENDINGS: &[&str] = &[
    ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tar.bz2", ".tar", ".zip", ".jar",
];
/// Parts of vendors' archives that no server needs at run time; together they are most of the size.
const UNNEEDED_FOLDERS: &[&str] = &[
    "mysql-test",
    "mariadb-test",
    "sql-bench",
    "include",
    "man",
    "support-files",
    "data",
    "debug",
    "META-INF",
];

/// Ways to unpack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tar,
    /// With `unzip`.
    Zip,
}

/// How a file of this name is unpacked; `None` when it is no archive.
pub fn kind(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_str()?;
    if !ENDINGS
        .iter()
        .any(|ending| name.len() > ending.len() && name.ends_with(ending))
    {
        return None;
    }
    Some(if name.ends_with(".zip") || name.ends_with(".jar") {
        Kind::Zip
    } else {
        Kind::Tar
    })
}

/// Unpacks `archive` into the existing folder `into`.
///
/// # Errors
/// The ending is unknown, `tar` or `unzip` is missing, or it fails.
pub fn archive(archive: &Path, into: &Path, progress: &dyn Progress) -> Result<()> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    progress.stage(&format!("unpacking {name}"));
    match kind(archive) {
        Some(Kind::Tar) => tar(archive, into, progress, &unneeded()),
        Some(Kind::Zip) => zip(archive, into, progress),
        None => bail!(
            "`{}` is not an archive; its name must end in {}",
            archive.display(),
            ENDINGS.join(", ")
        ),
    }
}

/// Unpacks all of a tar archive that another dbduel has packed.
///
/// # Errors
/// `tar` is missing, or it fails.
pub fn whole(archive: &Path, into: &Path, progress: &dyn Progress) -> Result<()> {
    tar(archive, into, progress, &[])
}

/// Options of `tar` that leave out what no server needs at run time.
pub fn unneeded() -> Vec<String> {
    let folders = UNNEEDED_FOLDERS.iter();
    folders
        .map(|folder| format!("--exclude=*/{folder}"))
        .chain(["--exclude=*.a".to_owned(), "--exclude=*-debug".to_owned()])
        .collect()
}

fn tar(archive: &Path, into: &Path, progress: &dyn Progress, without: &[String]) -> Result<()> {
    Tool::new(
        "tar",
        "install `tar` (and `xz-utils` or `zstd` for archives that need them)",
    )
    .with(|command| {
        command
            .arg("--extract")
            .arg("--file")
            .arg(archive)
            .arg("--directory")
            .arg(into)
            .arg("--no-same-owner")
            .args(without);
    })
    .watching(into, None, progress)
    .run_ok(DEADLINE)?;
    Ok(())
}

fn zip(archive: &Path, into: &Path, progress: &dyn Progress) -> Result<()> {
    let unzip = || Tool::new("unzip", "install the package `unzip`");
    let listing = unzip()
        .with(|command| {
            command.arg("-Z1").arg(archive);
        })
        .run_ok(DEADLINE)?;
    let needed: Vec<&str> = listing
        .stdout
        .lines()
        .filter(|name| is_needed(name))
        .collect();
    if needed.is_empty() {
        bail!("`{}` holds no server", archive.display());
    }
    unzip()
        .with(|command| {
            // Names are patterns to unzip; none of these holds a bracket, a star or a question mark.
            command
                .args(["-q", "-o"])
                .arg(archive)
                .args(&needed)
                .arg("-d")
                .arg(into);
        })
        .watching(into, None, progress)
        .run_ok(DEADLINE)?;
    for name in needed.into_iter().filter(|name| is_tar(name)) {
        // Some artifacts hold no server but an archive of one.
        let inner = into.join(name);
        let folder = inner.parent().unwrap_or(into);
        tar(&inner, folder, progress, &unneeded())?;
        fs::remove_file(&inner)
            .with_context(|| format!("could not remove `{}`", inner.display()))?;
    }
    Ok(())
}

/// Whether a file in a zip archive is a tar archive.
fn is_tar(name: &str) -> bool {
    kind(Path::new(name)) == Some(Kind::Tar)
}

/// Whether a file of an archive is needed to run the server: the daemon, its messages and SQL, its libraries and
/// plugins, and the note on how it was built.
fn is_needed(name: &str) -> bool {
    if name.ends_with('/')
        || name.contains(['*', '?', '[', '\\'])
        || name.split('/').any(|part| part == "..")
    {
        return false;
    }
    let (folders, file) = name.rsplit_once('/').unwrap_or(("", name));
    let folders: Vec<&str> = folders.split('/').collect();
    if folders
        .iter()
        .any(|folder| UNNEEDED_FOLDERS.contains(folder))
    {
        return false;
    }
    match file {
        "mysqld" | "mariadbd" => true,
        _ if is_tar(file) => true,
        _ if file.starts_with("INFO_") => true,
        _ if folders
            .iter()
            .any(|folder| matches!(*folder, "share" | "libs" | "private" | "plugin")) =>
        {
            true
        }
        _ => folders.last() == Some(&"lib") && file.contains(".so"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::progress::Silent;
    use super::*;
    use std::process::Command;

    #[test]
    fn kinds_by_ending() {
        assert_eq!(
            kind(Path::new("/x/mysql-8.0.33-linux.tar.xz")),
            Some(Kind::Tar)
        );
        assert_eq!(kind(Path::new("db.jar")), Some(Kind::Zip));
        assert_eq!(kind(Path::new("mysql.deb")), None);
        assert_eq!(kind(Path::new(".zip")), None);
    }

    #[test]
    fn of_an_archive_only_what_runs_is_needed() {
        for needed in [
            "bin/mysqld",
            "a/b/linux/bin/mariadbd",
            "share/english/errmsg.sys",
            "share/mysql_system_tables.sql",
            "lib/private/libcrypto.so.1.1",
            "lib/plugin/semisync_master.so",
            "linux/libs/libaio.so.1",
            "docs/INFO_BIN",
            "postgres-linux-x86_64.txz",
        ] {
            assert!(is_needed(needed), "{needed}");
        }
        for other in [
            "bin/mysql",
            "bin/mysqld-debug",
            "lib/libmysqld.a",
            "lib/plugin/debug/semisync_master.so",
            "mysql-test/share/x",
            "share/../../etc/passwd",
            "docs/manual",
            "share/",
        ] {
            assert!(!is_needed(other), "{other}");
        }
    }

    #[test]
    fn a_tarball_is_unpacked_without_what_is_not_needed() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("mysql-9.9.9");
        for file in [
            "bin/mysqld",
            "share/charsets/Index.xml",
            "mysql-test/big",
            "include/mysql.h",
            "lib/libmysqld.a",
        ] {
            let path = tree.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let tarball = dir.path().join("mysql.tar.gz");
        let made = Command::new("tar")
            .arg("-czf")
            .arg(&tarball)
            .arg("-C")
            .arg(dir.path())
            .arg("mysql-9.9.9")
            .status();
        assert!(made.unwrap().success());
        let into = dir.path().join("into");
        fs::create_dir(&into).unwrap();
        archive(&tarball, &into, &Silent).unwrap();
        let base = into.join("mysql-9.9.9");
        assert!(base.join("bin/mysqld").exists() && base.join("share/charsets/Index.xml").exists());
        assert!(
            !base.join("mysql-test").exists()
                && !base.join("include").exists()
                && !base.join("lib/libmysqld.a").exists()
        );
    }

    #[test]
    #[cfg_attr(not(has_program = "python3"), ignore = "no python3 on this machine")]
    fn an_archive_in_an_archive_is_unpacked_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("bin")).unwrap();
        fs::write(at("bin/postgres"), "").unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(dir.path());
            command.output().is_ok_and(|said| said.status.success())
        };
        assert!(run("tar", &["-cJf", "postgres-linux.txz", "bin"]));
        let script = "import zipfile; zipfile.ZipFile('a.jar', 'w').write('postgres-linux.txz')";
        assert!(
            run("python3", &["-c", script]),
            "python3 makes a zip archive"
        );
        fs::create_dir(at("into")).unwrap();
        archive(&at("a.jar"), &at("into"), &Silent).unwrap();
        assert!(at("into/bin/postgres").is_file());
        assert!(!at("into/postgres-linux.txz").exists());
    }

    #[test]
    fn a_broken_archive_is_an_error_with_the_words_of_its_program() {
        let dir = tempfile::tempdir().unwrap();
        let broken = dir.path().join("broken.tar.gz");
        fs::write(&broken, "not an archive").unwrap();
        let error = archive(&broken, dir.path(), &Silent)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`tar` failed") && error.contains("it said"),
            "{error}"
        );
    }
}
