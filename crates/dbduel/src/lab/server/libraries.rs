//! Shared libraries that a server needs and the machine lacks.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::command::{Tool, quote};
use super::home::Home;
use super::progress::Progress;
use super::sources::{Artifact, fetch_libraries};
use super::tree::Parts;

const DEADLINE: Duration = Duration::from_secs(30);
/// Folder inside a server's folder for libraries that were fetched for it.
const FOLDER: &str = "libraries";

/// Libraries that servers use and small systems lack, with the package that has them.
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

/// Fetches what the daemon lacks into `folder` and adds it to the library path. Returns what was fetched.
///
/// # Errors
/// A library is missing that no known package has, or it cannot be fetched.
pub fn complete(
    parts: &mut Parts,
    home: &Home,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Vec<Artifact>> {
    let missing = missing(parts)?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let mut packages = Vec::new();
    for library in &missing {
        match PACKAGES.iter().find(|(name, _)| name == library) {
            Some((_, package)) if !packages.contains(package) => packages.push(package),
            Some(_) => {}
            None => bail!(
                "`{}` needs the shared library `{library}`, which this machine does not have",
                parts.daemon.display()
            ),
        }
    }
    progress.stage(&format!("fetching the libraries {}", packages.join(", ")));
    let into = folder.join(FOLDER);
    fs::create_dir_all(&into).with_context(|| format!("could not create `{}`", into.display()))?;
    let artifacts = fetch_libraries(&packages, home, &into, progress).with_context(|| {
        format!(
            "`{}` needs {}, which this machine does not have",
            parts.daemon.display(),
            missing.join(", ")
        )
    })?;
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let places = ["usr/lib", "lib"].map(|place| into.join(place).join(&triplet));
    parts
        .library_path
        .extend(places.into_iter().filter(|place| place.is_dir()));
    let missing = self::missing(parts)?;
    if !missing.is_empty() {
        bail!(
            "`{}` still lacks {} after {} were fetched",
            parts.daemon.display(),
            missing.join(", "),
            packages.join(", ")
        );
    }
    Ok(artifacts)
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
