//! Digests the sources that derive a report from a record, so that `dbduel verify` can tell a report that was edited from
//! one that another build derived.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a report follows from beside its record: the judge, the statistics, the reader of records and the report itself.
const SOURCES: [&str; 5] = [
    "src/judge",
    "src/report",
    "data/audit",
    "../dbduel-stats/src",
    "../dbduel-record/src",
];
/// Characters of the digest that a report prints.
const CHARACTERS: usize = 8;

fn main() -> io::Result<()> {
    let mut digest = blake3::Hasher::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        let mut files = Vec::new();
        list(Path::new(folder), &mut files)?;
        files.sort();
        for file in files {
            // Names and contents are told apart by the digests' fixed length.
            digest.update(blake3::hash(file.as_os_str().as_encoded_bytes()).as_bytes());
            digest.update(blake3::hash(&fs::read(&file)?).as_bytes());
        }
    }
    let digest = digest.finalize().to_hex();
    println!(
        "cargo::rustc-env=DBDUEL_JUDGE_DIGEST={}",
        &digest[..CHARACTERS]
    );
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
