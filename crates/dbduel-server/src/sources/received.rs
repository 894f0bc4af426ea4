//! A server that a contest's orchestrator sent to this host.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::super::home::Home;
use super::super::{digest, unpack};
use super::{Artifact, FetchContext, Fetched, Source};

/// `received:DIGEST`.
pub const SOURCE: Source = Source {
    scheme: "received",
    about: "A server sent by another machine for a contest on this host, identified by the SHA-256 of its packed files.",
    example: "received:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    is_in_place: false,
    check,
    fetch,
};

/// Path of its packed files before they are unpacked.
pub fn archive(home: &Home, digest: &str) -> PathBuf {
    let name = format!("{digest}.tar.gz");
    home.downloads().join("received").join(name)
}

fn check(locator: &str) -> Result<(), String> {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    match locator.len() == 64 && locator.chars().all(is_digit) {
        true => Ok(()),
        false => Err(format!(
            "`{locator}` is not a SHA-256 digest of 64 hexadecimal digits"
        )),
    }
}

fn fetch(locator: &str, context: &FetchContext<'_>) -> Result<Fetched> {
    let archive = archive(context.home, locator);
    ensure!(
        archive.is_file(),
        "no contest sent it to this machine; name the server itself"
    );
    let unpacked = checked_and_unpacked(locator, &archive, context);
    // Fetched again where it is wanted again: it may not even run here.
    let _ = fs::remove_file(&archive);
    unpacked
}

fn checked_and_unpacked(
    digest: &str,
    archive: &Path,
    context: &FetchContext<'_>,
) -> Result<Fetched> {
    let digests = digest::of_file(archive)?;
    ensure!(
        digests.sha256 == digest,
        "the received file has the SHA-256 {}",
        digests.sha256
    );
    unpack::whole(archive, context.staging, context.progress)?;
    Ok(Fetched {
        tree: context.staging.to_path_buf(),
        daemon: None,
        artifacts: vec![Artifact {
            name: digest.to_owned(),
            digests,
        }],
        leftovers: Vec::new(),
    })
}
