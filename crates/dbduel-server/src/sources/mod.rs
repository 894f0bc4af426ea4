//! Sources of server programs.
//!
//! A source turns a locator into files below a folder and returns their artifacts.

mod apt;
mod apt_sources;
mod apt_view;
mod archive;
mod installed;
mod maven;
mod npm;
mod oci;
mod path;
mod received;
mod url;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::digest::{self, Digests};
use super::home::Home;
use super::progress::Progress;
use super::unpack;

pub use apt::fetch_libraries;
pub use received::archive as received_archive;

/// A source of server programs.
pub struct Source {
    /// The part of a server's name before the colon.
    pub scheme: &'static str,
    /// One sentence for the user.
    pub about: &'static str,
    /// A whole server name of this source, as a user would write it.
    pub example: &'static str,
    /// True when the files stay where they are and nothing is fetched.
    pub is_in_place: bool,
    /// Checks the locator, the part after the colon; the error states the fault and the correct form.
    pub check: fn(&str) -> Result<(), String>,
    /// Fetches the files. An error says what was tried, what the client said, and what to do.
    pub fetch: fn(&str, &FetchContext<'_>) -> Result<Fetched>,
}

/// Context of a fetch.
pub struct FetchContext<'a> {
    /// The lab's home.
    pub home: &'a Home,
    /// An empty folder for the tree, renamed into place once complete.
    pub staging: &'a Path,
    /// Approximate size of the download in bytes, where known.
    pub expected_bytes: Option<u64>,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

/// A fetched file or package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Name and version in its registry, or the file's path.
    pub name: String,
    /// Size and digests.
    pub digests: Digests,
}

/// Result of a fetch.
#[derive(Debug)]
pub struct Fetched {
    /// Where to search for the daemon: below the staging folder, or in place.
    pub tree: PathBuf,
    /// The daemon, when the source knows it.
    pub daemon: Option<PathBuf>,
    /// What was fetched; empty for files in place.
    pub artifacts: Vec<Artifact>,
    /// Files that are not needed once everything is in place.
    pub leftovers: Vec<PathBuf>,
}

/// Every source. To add one, add a file beside this and a line here.
pub static SOURCES: &[Source] = &[
    installed::SOURCE,
    path::SOURCE,
    archive::SOURCE,
    url::SOURCE,
    apt::SOURCE,
    maven::SOURCE,
    npm::SOURCE,
    oci::SOURCE,
    received::SOURCE,
];

pub fn by_scheme(scheme: &str) -> Option<&'static Source> {
    SOURCES.iter().find(|source| source.scheme == scheme)
}

/// True when a locator contains a login, which may include a password.
pub fn names_user(scheme: &str, locator: &str) -> bool {
    match scheme {
        "oci" => oci::names_user(locator),
        _ => url::names_user(locator),
    }
}

/// The file or folder of this machine that a locator names, if any.
pub fn path_here<'a>(scheme: &str, locator: &'a str) -> Option<&'a Path> {
    matches!(scheme, "path" | "tar").then(|| Path::new(locator))
}

/// Unpacks an archive into the staging folder; `leftovers` can be removed after that.
fn unpacked(
    name: &str,
    archive: &Path,
    leftovers: Vec<PathBuf>,
    context: &FetchContext<'_>,
) -> Result<Fetched> {
    let digests = digest::of_file(archive)?;
    unpack::archive(archive, context.staging, context.progress)?;
    Ok(Fetched {
        tree: context.staging.to_path_buf(),
        daemon: None,
        artifacts: vec![Artifact {
            name: name.to_owned(),
            digests,
        }],
        leftovers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_source_has_a_unique_scheme_a_sentence_and_a_valid_example() {
        let mut seen = BTreeSet::new();
        for source in SOURCES {
            let scheme = source.scheme;
            assert!(seen.insert(scheme), "`{scheme}` stands twice");
            assert!(
                source.about.ends_with('.'),
                "`{scheme}`: `about` is a sentence"
            );
            let (written, locator) = source
                .example
                .split_once(':')
                .unwrap_or((source.example, ""));
            assert_eq!(written, scheme);
            assert_eq!(
                (source.check)(locator),
                Ok(()),
                "`{scheme}` refuses its own example"
            );
        }
    }

    #[test]
    fn no_source_takes_an_option_for_a_locator() {
        for source in SOURCES {
            assert!(
                (source.check)("--help").is_err(),
                "`{}:--help` would reach a client as an option",
                source.scheme
            );
        }
    }
}
