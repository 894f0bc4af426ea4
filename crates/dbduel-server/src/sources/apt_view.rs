//! A private view of a Debian suite: its package lists and packages, without touching the system.
//!
//! The machine's own package sources name the mirror and its signing key; only the suite is replaced, in a copy. Works
//! for any user, since lists, caches and the (empty) list of installed packages are private.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dbduel_machine::clock;

use super::super::command::Tool;
use super::super::home::Home;
use super::super::progress::Progress;
use super::apt_sources::{HostRelease, Scope, derive, own_sources};

const UPDATE_DEADLINE: Duration = Duration::from_secs(600);
const ASK_DEADLINE: Duration = Duration::from_secs(120);
const FETCH_DEADLINE: Duration = Duration::from_secs(1800);
/// Package lists older than this are fetched again: a mirror removes old packages.
const FRESH: Duration = Duration::from_secs(24 * 3600);
const REMEDY: &str = "Debian packages need the client `apt-get` of Debian and its derivatives; on other \
                      systems name a server from another source (`dbduel servers list`)";

/// A viewed suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suite<'a> {
    /// Its name: bookworm, sid …
    pub name: &'a str,
    /// A second architecture whose packages are also offered, such as `i386`.
    pub guest: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Name, with `:` and the architecture where it is not the machine's own.
    pub name: String,
    /// Full Debian version.
    pub version: String,
}

/// A private view of one suite.
pub struct AptView<'a> {
    suite: Suite<'a>,
    scope: Scope,
    folder: PathBuf,
}

impl<'a> AptView<'a> {
    /// Opens the view of a suite, fetching its package lists when there are none or they are old.
    ///
    /// # Errors
    /// This machine has no sources to derive from, or `apt-get update` fails.
    pub fn open(
        suite: Suite<'a>,
        scope: Scope,
        home: &Home,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut name = suite.name.to_owned();
        if let Some(guest) = suite.guest {
            name = format!("{name}-{guest}");
        }
        if scope == Scope::Alone {
            name.push_str("-alone");
        }
        let view = AptView {
            suite,
            scope,
            folder: home.apt().join(name),
        };
        let fresh = fs::metadata(view.folder.join("updated")).and_then(|file| file.modified());
        let age = fresh
            .ok()
            .and_then(|time| clock::system_time().duration_since(time).ok());
        if age.is_none_or(|age| age > FRESH) {
            progress.stage(&format!("reading the package lists of {}", suite.name));
            view.update()?;
        }
        Ok(view)
    }

    fn update(&self) -> Result<()> {
        let host = HostRelease::read();
        if host.id != "debian" {
            bail!(
                "the suite `{}` is Debian's, but this machine's package sources belong to `{}`; name a server from \
                 another source (`dbduel servers list`)",
                self.suite.name,
                host.id
            );
        }
        for folder in ["lists/partial", "cache/archives/partial", "etc"] {
            let folder = self.folder.join(folder);
            fs::create_dir_all(&folder)
                .with_context(|| format!("could not create `{}`", folder.display()))?;
        }
        fs::write(self.folder.join("status"), "")?;
        let sources = derive(&own_sources()?, &host.codename, self.suite.name, self.scope);
        if sources.is_empty() {
            bail!(
                "no package source of this machine offers its own release `{}`, so none can be derived for `{}`",
                host.codename,
                self.suite.name
            );
        }
        fs::write(self.folder.join("sources.list"), sources)?;
        self.apt_get(&["update"])
            .run_ok(UPDATE_DEADLINE)
            .with_context(|| {
                format!("could not read the package lists of `{}`", self.suite.name)
            })?;
        fs::write(self.folder.join("updated"), "")?;
        Ok(())
    }

    /// The packages to install on an empty system for these packages, themselves included.
    ///
    /// # Errors
    /// A package does not exist in the suite, or its dependencies cannot be met.
    pub fn closure(&self, packages: &[&str]) -> Result<Vec<Package>> {
        let tool = self
            .apt_get(&["--simulate", "--no-install-recommends", "install"])
            .with(|command| {
                command.args(packages);
            });
        let finished = tool.run_ok(ASK_DEADLINE).with_context(|| {
            format!(
                "could not resolve `{}` in `{}`",
                packages.join(" "),
                self.suite.name
            )
        })?;
        Ok(finished.stdout.lines().filter_map(parse_inst).collect())
    }

    /// Downloads packages into a folder and returns their files in the same order.
    ///
    /// # Errors
    /// A package cannot be downloaded or is not found in the folder afterwards.
    pub fn download(
        &self,
        packages: &[Package],
        folder: &Path,
        expected_bytes: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<Vec<PathBuf>> {
        progress.stage(&format!(
            "fetching {} packages of {}",
            packages.len(),
            self.suite.name
        ));
        self.apt_get(&["download"])
            .with(|command| {
                command.args(
                    packages
                        .iter()
                        .map(|package| format!("{}={}", package.name, package.version)),
                );
                command.current_dir(folder);
            })
            .watching(folder, expected_bytes, progress)
            .run_ok(FETCH_DEADLINE)
            .with_context(|| format!("could not fetch packages of `{}`", self.suite.name))?;
        packages
            .iter()
            .map(|package| {
                let name = package.name.split(':').next().unwrap_or_default();
                let prefix = format!("{name}_{}_", package.version.replace(':', "%3a"));
                let found = fs::read_dir(folder)?
                    .filter_map(Result::ok)
                    .find(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
                found
                    .map(|entry| entry.path())
                    .with_context(|| format!("`{prefix}*.deb` is not in `{}`", folder.display()))
            })
            .collect()
    }

    /// `apt-get` with private paths in place of the system's.
    fn apt_get(&self, arguments: &[&str]) -> Tool<'static> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let options = [
            format!("Dir::State::Lists={}", path("lists")),
            format!("Dir::State::status={}", path("status")),
            format!("Dir::State::extended_states={}", path("extended_states")),
            format!("Dir::Cache={}", path("cache")),
            format!("Dir::Etc::sourcelist={}", path("sources.list")),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            "Dir::Etc::preferences=/dev/null".to_owned(),
            "Dir::Etc::preferencesparts=/dev/null".to_owned(),
            "Acquire::Languages=none".to_owned(),
            // The download sandbox user cannot enter a private home; as an ordinary user there is none anyway.
            "APT::Sandbox::User=".to_owned(),
            "APT::Get::Assume-Yes=true".to_owned(),
            "Acquire::Retries=2".to_owned(),
            // Else it warns of lists that it could not fetch, ends well, and every package seems not to exist.
            "APT::Update::Error-Mode=any".to_owned(),
        ];
        // The first is the machine's own, which apt adds by itself.
        let guest = self
            .suite
            .guest
            .map(|guest| format!("APT::Architectures={guest}"));
        Tool::new("apt-get", REMEDY).with(|command| {
            for option in options.into_iter().chain(guest) {
                command.arg("-o").arg(option);
            }
            command.arg("-q").args(arguments);
        })
    }
}

/// Reads a line such as `Inst libaio1 (0.3.113-4 Debian:12/stable [amd64])`.
fn parse_inst(line: &str) -> Option<Package> {
    let mut words = line.strip_prefix("Inst ")?.split_ascii_whitespace();
    let name = words.next()?;
    let version = words.find_map(|word| word.strip_prefix('('))?;
    Some(Package {
        name: name.to_owned(),
        version: version.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_simulated_installation() {
        let package = |name: &str, version: &str| {
            Some(Package {
                name: name.to_owned(),
                version: version.to_owned(),
            })
        };
        assert_eq!(
            parse_inst("Inst libaio1 (0.3.113-4 Debian:12/stable [amd64])"),
            package("libaio1", "0.3.113-4")
        );
        assert_eq!(
            parse_inst("Inst libc6 [2.36-9] (2.41-12 Debian:13/testing [amd64]) []"),
            package("libc6", "2.41-12")
        );
        assert_eq!(
            parse_inst("Inst libaio1:i386 (0.3.113-4 Debian:12/stable [i386])"),
            package("libaio1:i386", "0.3.113-4")
        );
        assert_eq!(
            parse_inst("Conf libaio1 (0.3.113-4 Debian:12/stable [amd64])"),
            None
        );
        assert_eq!(parse_inst("Inst broken"), None);
    }
}
