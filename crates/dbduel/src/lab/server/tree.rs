//! Finds the parts of a server in an unpacked tree: the daemon, its messages, plugins, libraries and loader.
//!
//! Trees come in many shapes (a vendor's tarball, a distribution's packages, a trimmed jar); the parts are recognised
//! by what they are, not by where a certain vendor puts them. Runs nothing.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Names a daemon can have, the preferred first.
const DAEMONS: &[&str] = &["mariadbd", "mysqld"];
/// A server lies this deep at most; the deepest known is seven folders down in a jar.
const DEPTH_MAX: usize = 9;
/// Folders looked into before giving up, so that `path:/` does not search a whole disk.
const FOLDERS_MAX: usize = 20_000;

/// The parts of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The daemon.
    pub daemon: PathBuf,
    /// What the daemon calls `basedir`.
    pub basedir: PathBuf,
    /// Folder of error messages, character sets and system SQL.
    pub share: PathBuf,
    /// Folder of dynamic plugins, when there is one.
    pub plugins: Option<PathBuf>,
    /// Folders of shared libraries that belong to the tree and are not found by the daemon itself.
    pub library_path: Vec<PathBuf>,
    /// The tree's own dynamic loader, when it has one: then it has its own C library too, and only this loader fits it.
    pub loader: Option<PathBuf>,
}

/// Finds the parts below `tree`. With `daemon` given only the rest is looked for.
///
/// # Errors
/// There is no daemon for this kind of machine, or no folder of messages beside it.
pub fn find(tree: &Path, daemon: Option<&Path>) -> Result<Parts> {
    let daemon = match daemon {
        Some(daemon) => {
            runnable(daemon)?;
            daemon.to_path_buf()
        }
        None => find_daemon(tree)?,
    };
    let folder = daemon.parent().unwrap_or(tree);
    let in_a_bin = folder
        .file_name()
        .is_some_and(|name| name == "bin" || name == "sbin" || name == "libexec");
    let basedir = if in_a_bin {
        folder.parent().unwrap_or(folder)
    } else {
        folder
    }
    .to_path_buf();

    let shares = ["share", "share/mysql", "share/mariadb"].map(|place| basedir.join(place));
    let share = shares.iter().find(|place| place.join("charsets/Index.xml").is_file()).with_context(|| {
        format!("`{}` has no character sets beside it (looked for charsets/Index.xml below `{}/share`)", daemon.display(), basedir.display())
    })?;
    let plugins = [
        "lib/mysql/plugin",
        "lib/plugin",
        "lib64/mysql/plugin",
        "lib/mariadb/plugin",
        "lib64/mariadb/plugin",
    ]
    .map(|place| basedir.join(place))
    .into_iter()
    .find(|place| place.is_dir());

    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    // The folder of the daemon itself counts only when libraries were put beside it, as some packages do.
    let mut library_path = vec![
        basedir.join("libs"),
        basedir.join("lib").join(&triplet),
        tree.join("lib").join(&triplet),
    ];
    if !in_a_bin {
        library_path.push(basedir.clone());
    }
    library_path.retain(|place| has_libraries(place));
    library_path.dedup();
    let loader_name = loader_name();
    let loader = ["lib64", "usr/lib64", "lib", "usr/lib"]
        .into_iter()
        .flat_map(|place| {
            [
                tree.join(place).join(loader_name),
                tree.join(place).join(&triplet).join(loader_name),
            ]
        })
        .find(|place| place.is_file() && !is_the_machines(place));
    Ok(Parts {
        share: share.clone(),
        daemon,
        basedir,
        plugins,
        library_path,
        loader,
    })
}

/// Whether a loader is the one that the machine's own programs use, as when the tree is the machine's `/usr`.
fn is_the_machines(loader: &Path) -> bool {
    let theirs = loader.canonicalize().ok();
    let places =
        ["/lib64", "/lib"].map(|place| Path::new(place).join(loader_name()).canonicalize().ok());
    theirs.is_some() && places.contains(&theirs)
}

/// File name of the dynamic loader of this kind of machine.
fn loader_name() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "ld-linux-aarch64.so.1",
        _ => "ld-linux-x86-64.so.2",
    }
}

fn has_libraries(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    entries.filter_map(Result::ok).any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("lib") && name.contains(".so")
    })
}

/// The daemon nearest to the top of the tree.
fn find_daemon(tree: &Path) -> Result<PathBuf> {
    let mut folders = VecDeque::from([(tree.to_path_buf(), 0)]);
    let mut looked = 0;
    let mut unfit = None;
    while let Some((folder, depth)) = folders.pop_front() {
        looked += 1;
        if looked > FOLDERS_MAX {
            break;
        }
        for name in DAEMONS {
            let path = folder.join(name);
            if path.is_file() {
                match runnable(&path) {
                    Ok(()) => return Ok(path),
                    Err(error) => unfit = Some(error),
                }
            }
        }
        if depth < DEPTH_MAX {
            let entries = fs::read_dir(&folder)
                .with_context(|| format!("could not read `{}`", folder.display()))?;
            let mut below: Vec<PathBuf> = entries
                .filter_map(Result::ok)
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path())
                .collect();
            below.sort();
            folders.extend(below.into_iter().map(|path| (path, depth + 1)));
        }
    }
    match unfit {
        Some(error) => Err(error),
        None => bail!(
            "there is no `{}` below `{}`",
            DAEMONS.join("` or `"),
            tree.display()
        ),
    }
}

/// Whether a file is a program for this kind of machine, told by its ELF header.
fn runnable(path: &Path) -> Result<()> {
    let mut header = [0u8; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    if read.is_err() || header[..4] != *b"\x7fELF" {
        bail!(
            "`{}` is not a program but a script, a link that was lost, or empty",
            path.display()
        );
    }
    let class = header[4];
    let machine = u16::from_le_bytes([header[18], header[19]]);
    let ours = match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        other => bail!("servers are not known to run on machines of kind `{other}`"),
    };
    if class != 2 || machine != ours {
        bail!(
            "`{}` was built for another kind of machine ({} bits, ELF machine {machine})",
            path.display(),
            if class == 2 { 64 } else { 32 }
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(class: u8, machine: u16) -> Vec<u8> {
        let mut header = vec![0u8; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        header[4] = class;
        header[18..20].copy_from_slice(&machine.to_le_bytes());
        header
    }

    fn ours() -> Vec<u8> {
        elf(
            2,
            if std::env::consts::ARCH == "aarch64" {
                183
            } else {
                62
            },
        )
    }

    fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        dir
    }

    #[test]
    fn a_distribution_tree() {
        let dir = tree(&[
            ("usr/sbin/mariadbd", &ours()),
            ("usr/sbin/mysqld", b"#!/bin/sh"),
            ("usr/share/mysql/charsets/Index.xml", b""),
            ("usr/lib/mysql/plugin/ha_rocksdb.so", b""),
        ]);
        let parts = find(dir.path(), None).unwrap();
        assert_eq!(parts.daemon, dir.path().join("usr/sbin/mariadbd"));
        assert_eq!(parts.basedir, dir.path().join("usr"));
        assert_eq!(parts.share, dir.path().join("usr/share/mysql"));
        assert_eq!(parts.plugins, Some(dir.path().join("usr/lib/mysql/plugin")));
        assert_eq!(parts.loader, None);
    }

    #[test]
    fn a_jar_with_lost_links_and_its_own_libraries() {
        let dir = tree(&[
            ("ch/x/linux/bin/mariadbd", b""),
            ("ch/x/linux/bin/mysqld", &ours()),
            ("ch/x/linux/share/charsets/Index.xml", b""),
            ("ch/x/linux/libs/libaio.so.1", b""),
        ]);
        let base = dir.path().join("ch/x/linux");
        let parts = find(dir.path(), None).unwrap();
        assert_eq!(
            (parts.daemon, parts.basedir),
            (base.join("bin/mysqld"), base.clone())
        );
        assert_eq!(parts.library_path, vec![base.join("libs")]);
    }

    #[test]
    fn a_daemon_outside_of_a_bin_folder_with_libraries_beside_it() {
        let dir = tree(&[
            ("package/server/mysqld", &ours()),
            ("package/server/libaio.so.1", b""),
            ("package/server/share/charsets/Index.xml", b""),
        ]);
        let parts = find(dir.path(), None).unwrap();
        assert_eq!(parts.basedir, dir.path().join("package/server"));
        assert_eq!(parts.library_path, vec![dir.path().join("package/server")]);
    }

    #[test]
    fn a_tree_with_its_own_loader() {
        let dir = tree(&[
            ("usr/sbin/mysqld", &ours()),
            ("usr/share/mysql/charsets/Index.xml", b""),
            (&format!("usr/lib64/{}", loader_name()), b""),
        ]);
        assert_eq!(
            find(dir.path(), None).unwrap().loader,
            Some(dir.path().join("usr/lib64").join(loader_name()))
        );
    }

    #[test]
    fn the_machines_own_loader_is_not_a_trees() {
        let places = ["/lib64", "/lib"].map(|place| Path::new(place).join(loader_name()));
        if let Some(own) = places.iter().find(|place| place.exists()) {
            assert!(is_the_machines(own));
        }
        assert!(!is_the_machines(Path::new("/nonexistent/ld.so")));
    }

    #[test]
    fn programs_that_do_not_fit_say_why() {
        let dir = tree(&[
            ("bin/mysqld", &elf(1, 3)),
            ("share/charsets/Index.xml", b""),
        ]);
        let error = find(dir.path(), None).unwrap_err().to_string();
        assert!(error.contains("32 bits"), "{error}");
        let dir = tree(&[("bin/mysqld", b"#!/bin/sh")]);
        assert!(
            find(dir.path(), None)
                .unwrap_err()
                .to_string()
                .contains("script")
        );
        let dir = tree(&[("bin/mysqld", &ours())]);
        assert!(
            find(dir.path(), None)
                .unwrap_err()
                .to_string()
                .contains("character sets")
        );
        let dir = tree(&[("readme", b"")]);
        assert!(
            find(dir.path(), None)
                .unwrap_err()
                .to_string()
                .contains("there is no `mariadbd`")
        );
    }
}
