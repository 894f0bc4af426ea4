//! A server program or an unpacked tree in a folder of the user.

use std::path::Path;

use anyhow::{Context, Result};

use super::{FetchContext, Fetched, Source};

/// `path:/opt/mysql`, `path:/opt/mysql/bin/mysqld`.
pub const SOURCE: Source = Source {
    scheme: "path",
    about: "An unpacked server or a single server program on this machine, used where it is.",
    example: "path:/opt/mysql",
    is_in_place: true,
    check,
    fetch,
};

fn check(locator: &str) -> Result<(), String> {
    absolute(locator)
}

fn fetch(locator: &str, _context: &FetchContext<'_>) -> Result<Fetched> {
    let path = Path::new(locator)
        .canonicalize()
        .with_context(|| format!("there is no server at `{locator}`"))?;
    let daemon = path.is_file().then(|| path.clone());
    Ok(Fetched {
        tree: path,
        daemon,
        artifacts: Vec::new(),
        leftovers: Vec::new(),
    })
}

/// True for an absolute path. A relative one would differ when a run is resumed from another folder.
pub(super) fn absolute(path: &str) -> Result<(), String> {
    if path.starts_with('/') {
        Ok(())
    } else {
        Err(format!("`{path}` is not an absolute path"))
    }
}
