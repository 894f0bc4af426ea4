//! Stores the result of the newest self-test, with the machine that it is about.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dbduel_machine::host;
use dbduel_record::facts::SelfTest;
use dbduel_record::whole::write_whole;

use dbduel_server::Home;

/// Permissions: readable by all.
const MODE: u32 = 0o644;

fn path(home: &Home) -> PathBuf {
    home.root().join("selftest.json")
}

/// The newest result of this home; `None` when it is missing or cannot be parsed.
#[must_use]
pub fn read(home: &Home) -> Option<SelfTest> {
    serde_json::from_slice(&fs::read(path(home)).ok()?).ok()
}

/// The newest result, if it was measured on this machine.
#[must_use]
pub fn of_this_host(home: &Home) -> Option<SelfTest> {
    read(home).filter(|kept| kept.host == this_host() && !kept.resolution.is_empty())
}

/// Stores a result, written beside its place and renamed.
///
/// # Errors
/// When it cannot be written.
pub fn write(home: &Home, kept: &SelfTest) -> Result<()> {
    let place = path(home);
    fs::create_dir_all(home.root())
        .and_then(|()| write_whole(&place, &serde_json::to_vec_pretty(kept)?, MODE))
        .with_context(|| format!("could not store the result in `{}`", place.display()))
}

/// The identity of this machine.
#[must_use]
pub fn this_host() -> String {
    host::read(Path::new("/")).machine.unwrap_or_default()
}
