//! Unpacks vendors' archives: only the files that a running server needs.
//!
//! Tar archives, with any compression, by the machine's own `tar`. Finding the daemon is left to the caller.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufReader, Read as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_machine::interrupt;
use dbduel_record::foreign;

use zip::ZipArchive;

use super::command::Tool;
use super::confined::{Root, below};
use super::progress::{Progress, ProgressUnit};

const DEADLINE: Duration = Duration::from_secs(1800);
/// Size limit far above any server, bytes.
const BYTES_MAX: u64 = 64 << 30;
/// Length limit of a link's target.
const LINK_BYTES_MAX: u64 = 4096;
/// File name extensions of supported archives.
pub const ENDINGS: &[&str] = &[
    ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tar.bz2", ".tar", ".zip", ".jar",
];
/// Parts of vendors' archives that no server needs at run time; they are most of the size.
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

/// Archive formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tar,
    Zip,
}

/// The archive format by file name; `None` when it is no archive.
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
/// The extension is unknown, `tar` is missing or fails, or the archive cannot be read or leads out of `into`.
pub fn archive(archive: &Path, into: &Path, progress: &dyn Progress) -> Result<()> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    progress.stage(&format!("unpacking {name}"));
    // The programs would wait for a pipe.
    foreign::open(archive).with_context(|| format!("could not read `{}`", archive.display()))?;
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

/// Unpacks all of a tar archive that another dbduel packed.
///
/// # Errors
/// `tar` is missing, or it fails.
pub fn whole(archive: &Path, into: &Path, progress: &dyn Progress) -> Result<()> {
    tar(archive, into, progress, &[])
}

/// Options of `tar` that leave out files that no server needs at run time.
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
        "install `tar` (and `xz-utils` or `zstd` for archives compressed with them)",
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

/// Unpacks the needed files of a zip archive. Nothing is written outside of `into`, whatever its names and links say.
fn zip(archive: &Path, into: &Path, progress: &dyn Progress) -> Result<()> {
    let failed = || format!("could not unpack `{}`", archive.display());
    let file = foreign::open(archive).with_context(failed)?;
    let mut members = ZipArchive::new(BufReader::new(file)).with_context(failed)?;
    let root = Root::open(into).with_context(|| format!("could not open `{}`", into.display()))?;
    let mut tars = Vec::new();
    let (mut written, mut left) = (0, BYTES_MAX);
    for number in 0..members.len() {
        interrupt::check()?;
        // What is not needed may be of any kind.
        let name = members.name_for_index(number).transpose();
        let Some(name) = name.with_context(failed)?.map(Cow::into_owned) else {
            continue;
        };
        if !is_needed(&name) {
            continue;
        }
        let mut member = members.by_index(number).with_context(failed)?;
        let named = || format!("{}: `{name}`", failed());
        let path = below(Path::new(&name)).with_context(named)?;
        let Some(place) = root.entry(&path).with_context(named)? else {
            continue;
        };
        let mode = member.unix_mode().unwrap_or(0o644);
        if member.is_symlink() {
            let mut target = String::new();
            let mut text = member.by_ref().take(LINK_BYTES_MAX);
            text.read_to_string(&mut target).with_context(named)?;
            let target = root
                .target(&place, Path::new(&target))
                .with_context(named)?;
            place.make_link(&target).with_context(named)?;
        } else {
            let mut file = place.make_file(mode).with_context(named)?;
            let bytes =
                io::copy(&mut member.by_ref().take(left + 1), &mut file).with_context(named)?;
            left = left.checked_sub(bytes).with_context(|| {
                format!(
                    "{}: it exceeds {} GiB, too large for a server",
                    failed(),
                    BYTES_MAX >> 30
                )
            })?;
            progress.advance(BYTES_MAX - left, None, ProgressUnit::Bytes);
            if is_tar(&name) {
                tars.push(into.join(&path));
            }
        }
        written += 1;
    }
    if written == 0 {
        bail!("`{}` contains no server", archive.display());
    }
    for inner in tars {
        // Some artifacts hold no server but an archive of one.
        let folder = inner.parent().unwrap_or(into);
        tar(&inner, folder, progress, &unneeded())?;
        fs::remove_file(&inner)
            .with_context(|| format!("could not remove `{}`", inner.display()))?;
    }
    Ok(())
}

/// True when a file in a zip archive is a tar archive.
fn is_tar(name: &str) -> bool {
    kind(Path::new(name)) == Some(Kind::Tar)
}

/// True when a file of an archive is needed to run the server: the daemon, its messages and SQL, its libraries and
/// plugins, and the note on how it was built.
fn is_needed(name: &str) -> bool {
    if name.ends_with('/') {
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
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::super::progress::Silent;
    use super::*;

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

    /// A zip archive of these files and links.
    fn zipped(path: &Path, files: &[(&str, &[u8])], links: &[(&str, &str)]) {
        let mut writer = ZipWriter::new(fs::File::create(path).unwrap());
        let options = SimpleFileOptions::default().unix_permissions(0o4755);
        for (name, content) in files {
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
        for (name, target) in links {
            writer.add_symlink(*name, *target, options).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn an_archive_in_an_archive_is_unpacked_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("bin")).unwrap();
        fs::write(at("bin/postgres"), "").unwrap();
        let made = Command::new("tar")
            .args(["-cJf", "postgres-linux.txz", "bin"])
            .current_dir(dir.path())
            .status();
        assert!(made.unwrap().success());
        let inner = fs::read(at("postgres-linux.txz")).unwrap();
        zipped(&at("a.jar"), &[("postgres-linux.txz", &inner)], &[]);
        fs::create_dir(at("into")).unwrap();
        archive(&at("a.jar"), &at("into"), &Silent).unwrap();
        assert!(at("into/bin/postgres").is_file());
        assert!(!at("into/postgres-linux.txz").exists());
    }

    #[test]
    fn members_of_a_zip_archive_are_names_and_no_options_and_stay_below_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("into")).unwrap();
        // `-d` was an option of `unzip` that names another folder.
        let elsewhere = format!("-d{}/lib/libx.so", dir.path().join("else").display());
        zipped(
            &at("a.zip"),
            &[
                ("bin/mysqld", b"server"),
                ("-d/tmp/lib/liby.so", b"y"),
                (elsewhere.as_str(), b"x"),
                ("lib/lib[1]*.so", b"z"),
            ],
            &[
                ("lib/libup.so", "../../../../victim"),
                ("lib/libz.so", "lib[1]*.so"),
            ],
        );
        archive(&at("a.zip"), &at("into"), &Silent).unwrap();
        assert!(!at("else").exists());
        let into = |name: &str| at("into").join(name);
        assert_eq!(fs::read(into("-d/tmp/lib/liby.so")).unwrap(), b"y");
        assert_eq!(fs::read(into("lib/libz.so")).unwrap(), b"z");
        assert_eq!(
            fs::read_link(into("lib/libup.so")).unwrap(),
            Path::new("../victim")
        );
        let mode = fs::metadata(into("bin/mysqld"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o755);
        // At the root of what is unpacked, and not at that of the machine.
        let outside = at("lib/outside.tar");
        fs::create_dir(at("lib")).unwrap();
        fs::write(&outside, "kept").unwrap();
        zipped(
            &at("e.zip"),
            &[(outside.to_str().unwrap(), b"no archive")],
            &[],
        );
        assert!(archive(&at("e.zip"), &at("into"), &Silent).is_err());
        assert_eq!(fs::read(&outside).unwrap(), b"kept");
        fs::remove_dir_all(at("lib")).unwrap();
        for name in ["../lib/libx.so", "a/../../lib/libx.so"] {
            zipped(&at("b.zip"), &[(name, b"x")], &[]);
            let error = archive(&at("b.zip"), &at("into"), &Silent).unwrap_err();
            assert!(
                format!("{error:#}").contains("leads outside of it"),
                "{error:#}"
            );
        }
        // Through a link of the archive itself.
        zipped(
            &at("c.zip"),
            &[],
            &[("lib/out.so", dir.path().to_str().unwrap())],
        );
        archive(&at("c.zip"), &at("into"), &Silent).unwrap();
        zipped(&at("d.zip"), &[("lib/out.so/lib/x.so", b"x")], &[]);
        let _ = archive(&at("d.zip"), &at("into"), &Silent);
        assert!(!at("lib").exists());
    }

    #[test]
    fn a_pipe_is_no_archive() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.zip", "a.tar.gz"] {
            let pipe = dir.path().join(name);
            mkfifo(&pipe, Mode::S_IRWXU).unwrap();
            let error = archive(&pipe, dir.path(), &Silent).unwrap_err();
            assert!(
                format!("{error:#}").contains("not a regular file"),
                "{error:#}"
            );
        }
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
