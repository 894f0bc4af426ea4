//! A server that the machine has already.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{FetchContext, Fetched, Source};

/// Programs that can be the daemon, in the order in which they are looked for.
const DAEMONS: &[&str] = &["mariadbd", "mysqld"];
/// Where distributions and vendors put it when that is not on the PATH of ordinary users.
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

/// `installed` or `installed:mariadbd`.
pub const SOURCE: Source = Source {
    scheme: "installed",
    about: "The server program that this machine has, started privately and without its own configuration.",
    example: "installed:mariadbd",
    is_in_place: true,
    check,
    fetch,
};

fn check(locator: &str) -> Result<(), String> {
    if locator.is_empty() || DAEMONS.contains(&locator) {
        return Ok(());
    }
    Err(format!(
        "`{locator}` is not a server program; write `installed:mariadbd`, `installed:mysqld` or `installed`"
    ))
}

fn fetch(locator: &str, _context: &FetchContext<'_>) -> Result<Fetched> {
    let wanted: Vec<&str> = if locator.is_empty() {
        DAEMONS.to_vec()
    } else {
        vec![locator]
    };
    let on_path: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    let places: Vec<PathBuf> = on_path
        .into_iter()
        .chain(USUAL_PLACES.iter().map(PathBuf::from))
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
        "no `{}` on the PATH or in {}; install a server, or name one that the lab can fetch (`dbduel servers list`)",
        wanted.join("` or `"),
        USUAL_PLACES.join(", ")
    )
}
