//! A server that is installed on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{FetchContext, Fetched, Source};
use crate::products::daemons;

/// Folders that distributions and vendors use and that are not on the PATH of ordinary users.
const USUAL_PLACES: &[&str] = &[
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/local/mysql/bin",
    "/usr/local/mariadb/bin",
    "/opt/mysql/bin",
    "/opt/mariadb/bin",
];

/// Folder of Debian's PostgreSQL, with a subfolder per major version.
const POSTGRESQL_VERSIONS: &str = "/usr/lib/postgresql";

/// `installed` or `installed:mariadbd`.
pub const SOURCE: Source = Source {
    scheme: "installed",
    about: "The server program installed on this machine, started privately and without its own configuration.",
    example: "installed:mariadbd",
    is_in_place: true,
    check,
    fetch,
};

fn check(locator: &str) -> Result<(), String> {
    let daemons = daemons();
    if locator.is_empty() || daemons.contains(&locator) {
        return Ok(());
    }
    let known = daemons.join("`, `installed:");
    Err(format!(
        "`{locator}` is not a server program; write `installed:{known}` or `installed`"
    ))
}

fn fetch(locator: &str, _context: &FetchContext<'_>) -> Result<Fetched> {
    let wanted: Vec<&str> = if locator.is_empty() {
        daemons()
    } else {
        vec![locator]
    };
    let on_path: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    let places: Vec<PathBuf> = on_path
        .into_iter()
        .chain(USUAL_PLACES.iter().map(PathBuf::from))
        .chain(versions_below(Path::new(POSTGRESQL_VERSIONS)))
        .collect();
    for name in &wanted {
        let found = places
            .iter()
            .map(|place| place.join(name))
            .find(|path| path.is_file());
        if let Some(daemon) = found.and_then(|path| path.canonicalize().ok()) {
            let tree = daemon.parent().map(PathBuf::from).unwrap_or_default();
            return Ok(Fetched {
                tree,
                daemon: Some(daemon),
                artifacts: Vec::new(),
                leftovers: Vec::new(),
            });
        }
    }
    bail!(
        "no `{}` on the PATH, in {} or below {POSTGRESQL_VERSIONS}; install a server, or name one that the lab can fetch (`dbduel servers list`)",
        wanted.join("` or `"),
        USUAL_PLACES.join(", ")
    )
}

/// The `bin` folders of the versions below `folder`, the newest first.
fn versions_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut versions: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(Result::ok)
        .map(|entry| {
            let name = entry.file_name();
            let numbers = name
                .to_string_lossy()
                .split('.')
                .map_while(|part| part.parse().ok())
                .collect();
            (numbers, entry.path().join("bin"))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, bin)| bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_looked_at_first() {
        let dir = tempfile::tempdir().unwrap();
        for version in ["9.6", "15", "9.10", "10"] {
            fs::create_dir(dir.path().join(version)).unwrap();
        }
        let expected = ["15", "10", "9.10", "9.6"].map(|name| dir.path().join(name).join("bin"));
        assert_eq!(versions_below(dir.path()), expected);
        assert!(versions_below(&dir.path().join("none")).is_empty());
    }
}
