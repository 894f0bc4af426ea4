//! Digests the sources that derive a report from a record, so that `dbduel verify` can tell a report that was edited from
//! one that another build derived. Tells the unit tests, which cannot ignore themselves while they run, which programs
//! there are.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a report follows from beside its record: the judge and the report.
const SOURCES: &[&str] = &["src/judge", "src/report"];
/// The rest of it in a checkout: the crates below, and the libraries' versions.
const IN_CHECKOUT: &[&str] = &[
    "../dbduel-audit/data",
    "../dbduel-audit/src",
    "../dbduel-stats/src",
    "../dbduel-record/src",
    "../dbduel-text/src",
    "../../Cargo.lock",
];
/// The rest of it in a published package: versions and checksums of all other packages, the crates below among them.
const IN_PACKAGE: &[&str] = &["Cargo.lock"];
/// How the names of sources end; editors and tests leave other files beside them.
const ENDINGS: &[&str] = &["rs", "html", "css", "js", "toml", "tsv", "lock"];
/// Characters of the digest that a report prints.
const CHARACTERS: usize = 8;

fn main() -> io::Result<()> {
    look_for_programs();
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

/// Programs that unit tests run, of those that not every machine has.
const PROGRAMS: &[&str] = &["chromium", "curl", "perf", "postgres", "python3"];
/// Where Debian puts PostgreSQL, not on the path: one folder for each major version below this one.
const POSTGRESQL_VERSIONS: &str = "/usr/lib/postgresql";

/// Sets `has_program = "NAME"` for each that is on the path or, as PostgreSQL, where Debian puts it.
fn look_for_programs() {
    println!("cargo::rerun-if-env-changed=PATH");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    if let Ok(versions) = fs::read_dir(POSTGRESQL_VERSIONS) {
        println!("cargo::rerun-if-changed={POSTGRESQL_VERSIONS}");
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    for name in PROGRAMS {
        println!("cargo::rustc-check-cfg=cfg(has_program, values(\"{name}\"))");
        let mut places = folders.iter().map(|folder| folder.join(name));
        if let Some(program) = places.find(|place| place.is_file()) {
            println!("cargo::rerun-if-changed={}", program.display());
            println!("cargo::rustc-cfg=has_program=\"{name}\"");
        }
    }
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
