//! Shared libraries that a server needs and the machine lacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::command::{Tool, quote};
use super::home::Home;
use super::progress::Progress;
use super::sources::{Artifact, fetch_libraries};
use super::tree::{Parts, find_loader};

const DEADLINE: Duration = Duration::from_secs(30);
/// Folder inside a server's folder for libraries fetched for it.
const FOLDER: &str = "libraries";

/// Libraries that servers use and small systems lack, with their packages.
const PACKAGES: &[(&str, &str)] = &[
    ("libaio.so.1", "libaio1"),
    ("libnuma.so.1", "libnuma1"),
    ("liburing.so.2", "liburing2"),
    ("libsystemd.so.0", "libsystemd0"),
    ("liblzma.so.5", "liblzma5"),
    ("liblz4.so.1", "liblz4-1"),
    ("libzstd.so.1", "libzstd1"),
    ("libgcrypt.so.20", "libgcrypt20"),
    ("libgpg-error.so.0", "libgpg-error0"),
    ("libcap.so.2", "libcap2"),
    ("libpcre2-8.so.0", "libpcre2-8-0"),
    ("libssl.so.3", "libssl3"),
    ("libcrypto.so.3", "libssl3"),
    ("libcrypt.so.1", "libcrypt1"),
    ("libz.so.1", "zlib1g"),
];

/// The C library with its dynamic loader, and the libraries of its compiler. A machine that also runs programs of
/// another architecture seldom has them.
const BASE_PACKAGES: &[&str] = &["libc6", "libgcc-s1", "libstdc++6"];

/// Fetches the daemon's missing libraries into `folder` and adds it to the library path. Returns the artifacts.
///
/// # Errors
/// A missing library is in no known package, or cannot be fetched.
pub fn complete(
    parts: &mut Parts,
    home: &Home,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Vec<Artifact>> {
    let mut store = Store {
        into: folder.join(FOLDER),
        home,
        progress,
        fetched: Vec::new(),
        artifacts: Vec::new(),
    };
    if parts.loader.is_none() && !parts.machine.is_this() {
        store.fetch(parts, BASE_PACKAGES)?;
        parts.loader = find_loader(&store.into, parts.machine);
        if parts.loader.is_none() {
            bail!(
                "the package `{}` lacks `{}`, the dynamic loader of `{}`",
                BASE_PACKAGES[0],
                parts.machine.loader,
                parts.daemon.display()
            );
        }
    }
    // A loader may name only the first that it lacks, so one look is not enough; each look brings a package at least.
    for _ in 0..=PACKAGES.len() {
        let missing = missing(parts)?;
        if missing.is_empty() {
            return Ok(store.artifacts);
        }
        let packages = packages_of(&missing).with_context(|| {
            format!(
                "could not complete the libraries of `{}`",
                parts.daemon.display()
            )
        })?;
        if packages.iter().all(|package| store.has(package)) {
            break;
        }
        store.fetch(parts, &packages)?;
    }
    bail!(
        "`{}` still lacks {} after their packages were fetched",
        parts.daemon.display(),
        missing(parts)?.join(", ")
    )
}

/// The packages that hold the libraries, each once.
fn packages_of(libraries: &[String]) -> Result<Vec<&'static str>> {
    let mut packages = Vec::new();
    for library in libraries {
        match PACKAGES.iter().find(|(name, _)| name == library) {
            Some((_, package)) if !packages.contains(package) => packages.push(*package),
            Some(_) => {}
            None => {
                bail!("this machine lacks the shared library `{library}`")
            }
        }
    }
    Ok(packages)
}

/// The fetched libraries of one server.
struct Store<'a> {
    into: PathBuf,
    home: &'a Home,
    progress: &'a dyn Progress,
    fetched: Vec<String>,
    artifacts: Vec<Artifact>,
}

impl Store<'_> {
    /// True when a package was fetched already.
    fn has(&self, package: &str) -> bool {
        self.fetched.iter().any(|fetched| fetched == package)
    }

    /// Fetches packages for the daemon's architecture and adds their folders to its library path.
    fn fetch(&mut self, parts: &mut Parts, packages: &[&str]) -> Result<()> {
        let into = &self.into;
        self.progress
            .stage(&format!("fetching the libraries {}", packages.join(", ")));
        fs::create_dir_all(into)
            .with_context(|| format!("could not create `{}`", into.display()))?;
        let fetched = fetch_libraries(packages, parts.machine, self.home, into, self.progress);
        self.artifacts.extend(fetched.with_context(|| {
            format!(
                "`{}` needs libraries of {}, which this machine lacks",
                parts.daemon.display(),
                packages.join(", ")
            )
        })?);
        self.fetched
            .extend(packages.iter().map(|package| (*package).to_owned()));
        for place in ["usr/lib", "lib"] {
            let place = into.join(place).join(parts.machine.triplet);
            if place.is_dir() && !parts.library_path.contains(&place) {
                parts.library_path.push(place);
            }
        }
        Ok(())
    }
}

/// Names of the libraries that the dynamic loader does not find.
fn missing(parts: &Parts) -> Result<Vec<String>> {
    let path = std::env::join_paths(&parts.library_path)
        .context("a library folder has a colon in its name")?;
    let tool = match &parts.loader {
        Some(loader) => Tool::new(&loader.display().to_string(), "").with(|command| {
            command
                .arg("--library-path")
                .arg(path)
                .arg("--list")
                .arg(&parts.daemon);
        }),
        None => Tool::new(
            "ldd",
            "install the package `libc-bin`, it lists shared libraries",
        )
        .with(|command| {
            command.arg(&parts.daemon);
            if !path.is_empty() {
                command.env("LD_LIBRARY_PATH", path);
            }
        }),
    };
    let finished = tool.run(DEADLINE)?;
    let missing = parse_missing(&finished.stdout, &finished.stderr);
    if missing.is_empty() && !finished.status.success() {
        bail!(
            "could not list the libraries of `{}`{}",
            parts.daemon.display(),
            quote(&finished.stderr)
        );
    }
    Ok(missing)
}

/// Reads `libaio.so.1 => not found` and the loader's `libaio.so.1: cannot open shared object file`.
fn parse_missing(stdout: &str, stderr: &str) -> Vec<String> {
    let not_found = stdout
        .lines()
        .filter_map(|line| line.trim().strip_suffix("=> not found").map(str::trim));
    let refused = stderr.lines().filter_map(|line| {
        line.contains("cannot open shared object file").then(|| {
            line.split(": ")
                .find(|part| part.starts_with("lib") && part.contains(".so"))
        })?
    });
    let mut missing: Vec<String> = not_found.chain(refused).map(str::to_owned).collect();
    missing.sort();
    missing.dedup();
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_are_read_from_both_programs() {
        let stdout = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibaio.so.1 => not found\n\tlibm.so.6 => /lib/libm.so.6 (0x1)\n\tlibnuma.so.1 => not found\n";
        assert_eq!(parse_missing(stdout, ""), ["libaio.so.1", "libnuma.so.1"]);
        let stderr = "/x/mysqld: error while loading shared libraries: libaio.so.1: cannot open shared object file: No such file or directory\n";
        assert_eq!(parse_missing("", stderr), ["libaio.so.1"]);
        assert!(parse_missing("\tlibc.so.6 => /lib/libc.so.6 (0x1)\n", "").is_empty());
    }
}
