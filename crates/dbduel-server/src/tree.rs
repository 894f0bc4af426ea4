//! Finds the parts of a server in an unpacked tree: the daemon, its messages, plugins, libraries and loader.
//!
//! Trees differ in shape (a vendor's tarball, a distribution's packages, a trimmed jar); the parts are recognised by
//! content, not by a vendor's paths. Runs nothing.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use dbduel_record::foreign;

use super::machine::Machine;
use super::products;

/// Depth limit of a server; the deepest known is seven folders down in a jar.
const DEPTH_MAX: usize = 9;
/// Limit of searched folders, so that `path:/` does not search a whole disk.
const FOLDERS_MAX: usize = 20_000;
/// Size limit of a list of library folders.
const LIST_BYTES_MAX: u64 = 1 << 16;

/// The parts of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The daemon's architecture.
    pub machine: &'static Machine,
    pub daemon: PathBuf,
    /// The daemon's `basedir`.
    pub basedir: PathBuf,
    /// Folder of error messages, character sets and system SQL.
    pub share: PathBuf,
    /// Folder of dynamic plugins, when there is one.
    pub plugins: Option<PathBuf>,
    /// Folders of the tree's shared libraries that the daemon does not find by itself.
    pub library_path: Vec<PathBuf>,
    /// The tree's own dynamic loader, if any: the tree then has its own C library, which only this loader fits.
    pub loader: Option<PathBuf>,
}

impl Parts {
    /// All files and folders that a server with these parts needs.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        let optional = self.plugins.iter().chain(&self.loader);
        let always = [&self.daemon, &self.share].into_iter();
        let all = always.chain(optional).chain(&self.library_path);
        all.map(PathBuf::as_path)
    }
}

/// Finds the parts below `tree`. A given `daemon` is used as it is.
///
/// # Errors
/// There is no daemon for this architecture, or no folder of messages beside it.
pub fn find(tree: &Path, daemon: Option<&Path>) -> Result<Parts> {
    let (daemon, machine) = match daemon {
        Some(daemon) => (daemon.to_path_buf(), Machine::of_program(daemon)?),
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

    let layout = products::layout(&daemon);
    let shares = (layout.shares)(&basedir);
    let is_share = |place: &&PathBuf| place.join(layout.share_mark).is_file();
    let share = shares.iter().find(is_share).with_context(|| {
        let places: Vec<String> = shares
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        format!(
            "`{}` has no {} beside it (searched for {} in {})",
            daemon.display(),
            layout.share_holds,
            layout.share_mark,
            places.join(", ")
        )
    })?;
    let plugins = layout
        .plugins
        .iter()
        .map(|place| basedir.join(place))
        .find(|place| place.is_dir());

    // The folder of the daemon itself counts only when libraries were put beside it, as some packages do.
    let mut library_path = vec![
        basedir.join("libs"),
        basedir.join("lib").join(machine.triplet),
        tree.join("usr/lib").join(machine.triplet),
        tree.join("lib").join(machine.triplet),
    ];
    if !in_a_bin {
        library_path.push(basedir.clone());
    }
    library_path.extend(layout.libraries.iter().map(|place| basedir.join(place)));
    let loader = find_loader(tree, machine);
    if loader.is_some() {
        // A tree with a C library of its own is the root of a system: its libraries lie where that system looks for them.
        library_path.extend(root_libraries(tree));
    }
    library_path.retain(|place| has_libraries(place));
    let mut seen = BTreeSet::new();
    library_path.retain(|place| place.canonicalize().is_ok_and(|place| seen.insert(place)));
    Ok(Parts {
        machine,
        share: share.clone(),
        daemon,
        basedir,
        plugins,
        library_path,
        loader,
    })
}

/// Library search path of the loader of the system whose root is `tree`.
fn root_libraries(tree: &Path) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = ["lib64", "usr/lib64", "lib", "usr/lib", "usr/local/lib"]
        .map(|place| tree.join(place))
        .to_vec();
    let lists = fs::read_dir(tree.join("etc/ld.so.conf.d"));
    let mut lists: Vec<PathBuf> = lists
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "conf"))
        .collect();
    lists.sort();
    for list in lists {
        let text = foreign::read_text(&list, LIST_BYTES_MAX).unwrap_or_default();
        let folders = text.lines().map(str::trim);
        let folders = folders.filter_map(|line| line.strip_prefix('/'));
        places.extend(folders.map(|folder| tree.join(folder)));
    }
    places
}

/// The dynamic loader below `tree` for programs of `machine`, if there is one other than the system's.
pub fn find_loader(tree: &Path, machine: &Machine) -> Option<PathBuf> {
    ["lib64", "usr/lib64", "lib", "usr/lib"]
        .into_iter()
        .map(|place| tree.join(place))
        .flat_map(|place| {
            [
                place.join(machine.loader),
                place.join(machine.triplet).join(machine.loader),
            ]
        })
        .find(|place| place.is_file() && !is_the_systems(place, machine))
}

/// True when a loader is the system's own, as when the tree is the system's `/usr`.
fn is_the_systems(loader: &Path, machine: &Machine) -> bool {
    let theirs = loader.canonicalize().ok();
    let places =
        ["/lib64", "/lib"].map(|place| Path::new(place).join(machine.loader).canonicalize().ok());
    theirs.is_some() && places.contains(&theirs)
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
fn find_daemon(tree: &Path) -> Result<(PathBuf, &'static Machine)> {
    let mut folders = VecDeque::from([(tree.to_path_buf(), 0)]);
    let mut looked = 0;
    let mut unfit = None;
    let daemons = products::daemons();
    while let Some((folder, depth)) = folders.pop_front() {
        looked += 1;
        if looked > FOLDERS_MAX {
            break;
        }
        for name in &daemons {
            let path = folder.join(name);
            if path.is_file() {
                match Machine::of_program(&path) {
                    Ok(machine) => return Ok((path, machine)),
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
            daemons.join("` or `"),
            tree.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::examples::{elf, ours, this_machine};
    use super::*;

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
    fn a_postgresql_of_a_jar_and_of_a_distribution() {
        let dir = tree(&[
            ("bin/postgres", &ours()),
            ("share/postgresql/postgres.bki", b""),
            ("lib/postgresql/pgcrypto.so", b""),
            ("lib/libpq.so.5", b""),
        ]);
        let parts = find(dir.path(), None).unwrap();
        assert_eq!(parts.basedir, dir.path());
        assert_eq!(parts.library_path, [dir.path().join("lib")]);
        assert_eq!(parts.share, dir.path().join("share/postgresql"));
        let dir = tree(&[
            ("usr/lib/postgresql/17/bin/postgres", &ours()),
            ("usr/share/postgresql/17/postgres.bki", b""),
            (
                &format!("usr/lib/{}/libpq.so.5", this_machine().triplet),
                b"",
            ),
        ]);
        let parts = find(dir.path(), None).unwrap();
        assert_eq!(parts.share, dir.path().join("usr/share/postgresql/17"));
        let libraries = dir.path().join("usr/lib").join(this_machine().triplet);
        assert_eq!(parts.library_path, [libraries]);
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
            (&format!("usr/lib64/{}", this_machine().loader), b""),
        ]);
        assert_eq!(
            find(dir.path(), None).unwrap().loader,
            Some(dir.path().join("usr/lib64").join(this_machine().loader))
        );
    }

    #[test]
    fn the_systems_own_loader_is_not_a_trees() {
        let places = ["/lib64", "/lib"].map(|place| Path::new(place).join(this_machine().loader));
        if let Some(own) = places.iter().find(|place| place.exists()) {
            assert!(is_the_systems(own, this_machine()));
        }
        assert!(!is_the_systems(
            Path::new("/nonexistent/ld.so"),
            this_machine()
        ));
    }

    #[test]
    fn programs_that_do_not_fit_say_why() {
        let dir = tree(&[
            ("bin/mysqld", &elf(2, 22)),
            ("share/charsets/Index.xml", b""),
        ]);
        let error = find(dir.path(), None).unwrap_err().to_string();
        assert!(error.contains("another architecture"), "{error}");
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
