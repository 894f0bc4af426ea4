//! Packages of a Debian suite, unpacked into a private tree and never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::command::Tool;
use super::super::digest;
use super::super::home::Home;
use super::super::machine::Machine;
use super::super::progress::Progress;
use super::apt_sources::{HostRelease, Scope};
use super::apt_view::{AptView, Package, Suite};
use super::{Artifact, FetchContext, Fetched, Source};

const UNPACK_DEADLINE: Duration = Duration::from_secs(300);
/// The suite whose shared libraries are old enough to run on every C library in use.
const LIBRARY_SUITE: &str = "bookworm";
/// Libraries that belong to the C library or its compiler. Taken from the machine when the tree's release is its own,
/// from the suite otherwise.
const BASE: &[&str] = &["libc6", "libgcc-s1", "libstdc++6", "libcrypt1"];
/// Folders of packages that a private server does not need.
const UNNEEDED: &[&str] = &[
    "etc",
    "var",
    "usr/bin",
    "usr/include",
    "usr/lib/systemd",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/mysql-test",
];

/// `apt:SUITE/PACKAGE[,PACKAGE…]`.
pub const SOURCE: Source = Source {
    scheme: "apt",
    about: "Packages of any Debian suite, unpacked privately with the libraries they need; nothing is installed.",
    example: "apt:bookworm/mariadb-server-core",
    is_in_place: false,
    check,
    fetch,
};

fn check(locator: &str) -> Result<(), String> {
    parse(locator)
        .map(|_| ())
        .ok_or_else(|| format!("`{locator}` is not SUITE/PACKAGE or SUITE/PACKAGE,PACKAGE"))
}

fn fetch(locator: &str, context: &FetchContext<'_>) -> Result<Fetched> {
    let Some((suite, asked)) = parse(locator) else {
        bail!("`{locator}` does not name packages")
    };
    let own_libc = HostRelease::read().codename != suite;
    let keep = |name: &str| asked.contains(&name) || is_library(name, own_libc);
    let suite = Suite {
        name: suite,
        guest: None,
    };
    let (artifacts, folder) = fetch_closure(suite, &asked, keep, context)?;
    Ok(Fetched {
        tree: context.staging.to_path_buf(),
        daemon: None,
        artifacts,
        leftovers: vec![folder],
    })
}

/// Fetches single library packages for programs of `machine` into the folder `into`, without their dependencies.
///
/// # Errors
/// There is no `apt-get`, or the packages cannot be fetched.
pub fn fetch_libraries(
    names: &[&str],
    machine: &Machine,
    home: &Home,
    into: &Path,
    progress: &dyn Progress,
) -> Result<Vec<Artifact>> {
    let context = FetchContext {
        home,
        staging: into,
        expected_bytes: None,
        progress,
    };
    let guest = (!machine.is_this()).then_some(machine.debian);
    let suite = Suite {
        name: LIBRARY_SUITE,
        guest,
    };
    let names: Vec<String> = names
        .iter()
        .map(|name| match guest {
            Some(architecture) => format!("{name}:{architecture}"),
            None => (*name).to_owned(),
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (artifacts, folder) = fetch_closure(suite, &names, |name| names.contains(&name), &context)?;
    // The files are unpacked; a folder that stays behind only takes room.
    let _ = fs::remove_dir_all(folder);
    Ok(artifacts)
}

/// Fetches and unpacks the required packages of the closure. Returns the artifacts and their folders.
fn fetch_closure(
    suite: Suite<'_>,
    asked: &[&str],
    keep: impl Fn(&str) -> bool,
    context: &FetchContext<'_>,
) -> Result<(Vec<Artifact>, PathBuf)> {
    let attempt = |scope| -> Result<_> {
        let view = AptView::open(suite, scope, context.home, context.progress)?;
        let mut packages = view.closure(asked)?;
        packages.retain(|package| keep(&package.name));
        let (files, folder) = download(&view, &packages, context)?;
        Ok((packages, files, folder))
    };
    // The error of the simpler one is the clearer one.
    let (packages, files, folder) =
        attempt(Scope::WithUpdates).or_else(|_| attempt(Scope::Alone))?;
    context
        .progress
        .stage(&format!("unpacking {} packages", files.len()));
    let mut artifacts = Vec::new();
    for (package, file) in packages.iter().zip(&files) {
        unpack_package(file, context.staging)?;
        artifacts.push(Artifact {
            name: format!("{} {}", package.name, package.version),
            digests: digest::of_file(file)?,
        });
    }
    for unneeded in UNNEEDED {
        let path = context.staging.join(unneeded);
        if path.exists() {
            fs::remove_dir_all(&path)
                .with_context(|| format!("could not remove `{}`", path.display()))?;
        }
    }
    Ok((artifacts, folder))
}

fn download(
    view: &AptView<'_>,
    packages: &[Package],
    context: &FetchContext<'_>,
) -> Result<(Vec<PathBuf>, PathBuf)> {
    let names: String = packages
        .iter()
        .map(|package| format!("{}={} ", package.name, package.version))
        .collect();
    let folder = context.home.downloads().join(format!(
        "apt-{}",
        &blake3::hash(names.as_bytes()).to_hex()[..16]
    ));
    fs::create_dir_all(&folder)
        .with_context(|| format!("could not create `{}`", folder.display()))?;
    let files = view.download(packages, &folder, context.expected_bytes, context.progress)?;
    Ok((files, folder))
}

fn unpack_package(file: &Path, into: &Path) -> Result<()> {
    Tool::new(
        "dpkg-deb",
        "install the package `dpkg`, it unpacks Debian packages",
    )
    .with(|command| {
        command.arg("--extract").arg(file).arg(into);
    })
    .run_ok(UNPACK_DEADLINE)?;
    Ok(())
}

/// Suite and packages of a locator.
fn parse(locator: &str) -> Option<(&str, Vec<&str>)> {
    let usable = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_'))
    };
    let (suite, packages) = locator.split_once('/')?;
    let packages: Vec<&str> = packages.split(',').collect();
    (usable(suite) && packages.iter().all(|package| usable(package))).then_some((suite, packages))
}

/// Libraries of programs that only the package's scripts use: interpreters, tools, file formats. No server loads them,
/// and they are a third of the download.
const OF_SCRIPTS: &[&str] = &[
    "libbpf",
    "libdb5",
    "libelf",
    "libgdbm",
    "libgmp",
    "libmpfr",
    "libncursesw",
    "libperl",
    "libproc2",
    "libpython",
    "libreadline",
    "librocksdb",
    "libsigsegv",
    "libsqlite",
    "libtirpc",
    "libxtables",
];

/// True when a package of the closure may hold shared libraries for a server.
fn is_library(name: &str, own_libc: bool) -> bool {
    if BASE.contains(&name) {
        return own_libc;
    }
    if OF_SCRIPTS
        .iter()
        .any(|beginning| name.starts_with(beginning))
    {
        return false;
    }
    let other = ["-perl", "-bin", "-data", "-common", "-l10n"];
    (name.starts_with("lib") || name == "zlib1g")
        && !other.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locators() {
        assert_eq!(
            parse("trixie/mariadb-server-core"),
            Some(("trixie", vec!["mariadb-server-core"]))
        );
        assert_eq!(parse("sid/a,b+c"), Some(("sid", vec!["a", "b+c"])));
        for wrong in ["sid", "sid/", "/x", "sid/a,", "sid/-o", "../x/y", "sid/a b"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_c_library_comes_along_only_with_another_release() {
        assert!(is_library("libc6", true) && !is_library("libc6", false));
        assert!(is_library("libaio1", false) && is_library("zlib1g", false));
        assert!(
            !is_library("libdbi-perl", true)
                && !is_library("libc-bin", true)
                && !is_library("perl", true)
        );
    }
}
