//! Digests the sources that derive a report from a record, so that `dbduel verify` can tell a report that was edited from
//! one that another build derived.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Sources of a report in every build: the judge.
const SOURCES: &[&str] = &["src"];
/// Other sources in a checkout: the reports, the crates below, and the libraries' versions.
const IN_CHECKOUT: &[&str] = &[
    "../dbduel-audit/data",
    "../dbduel-audit/src",
    "../dbduel-stats/src",
    "../dbduel-record/src",
    "../dbduel-report/src",
    "../dbduel-text/src",
    "../../Cargo.lock",
];
/// Other sources in a published package: the libraries' versions; the crates of dbduel have this one's.
const IN_PACKAGE: &[&str] = &["Cargo.lock"];
/// Endings of the names of sources; editors and tests leave other files beside them.
const ENDINGS: &[&str] = &["rs", "html", "css", "js", "toml", "tsv", "lock"];
/// Characters of the digest that a report prints.
const CHARACTERS: usize = 8;

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    let is_package = Path::new(IN_PACKAGE[0]).is_file();
    let others = if is_package { IN_PACKAGE } else { IN_CHECKOUT };
    for source in SOURCES.iter().chain(others) {
        println!("cargo::rerun-if-changed={source}");
        list(Path::new(source), &mut files)?;
    }
    files.sort();
    let mut digest = blake3::Hasher::new();
    for file in files {
        // Names and contents are told apart by the digests' fixed length.
        digest.update(blake3::hash(file.as_os_str().as_encoded_bytes()).as_bytes());
        digest.update(blake3::hash(&fs::read(&file)?).as_bytes());
    }
    let digest = digest.finalize().to_hex();
    println!(
        "cargo::rustc-env=DBDUEL_JUDGE_DIGEST={}",
        &digest[..CHARACTERS]
    );
    Ok(())
}

/// Adds a source, or those below a folder.
fn list(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            list(&entry?.path(), files)?;
        }
    } else if path
        .extension()
        .is_some_and(|found| ENDINGS.iter().any(|ending| found == *ending))
    {
        files.push(path.to_owned());
    }
    Ok(())
}
