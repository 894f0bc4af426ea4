//! The machine's own package sources, and the same sources for another suite.
//!
//! They name the mirror and its signing key, so none is built in. Transforms texts only.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

/// The release that this machine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRelease {
    /// `ID` of os-release: debian, ubuntu …
    pub id: String,
    /// `VERSION_CODENAME` of os-release; empty where there is none.
    pub codename: String,
}

impl HostRelease {
    /// Reads `/etc/os-release`. What cannot be read is empty.
    pub fn read() -> Self {
        HostRelease::parse(&fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value.unwrap_or("").trim().trim_matches('"').to_owned()
        };
        HostRelease {
            id: field("ID"),
            codename: field("VERSION_CODENAME"),
        }
    }
}

/// Which archives of a suite are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The suite with its updates and security fixes.
    WithUpdates,
    /// The suite as released. Unreleased suites have nothing else, and the other archives of old ones decay.
    Alone,
}

/// The texts of the machine's own package sources.
pub fn own_sources() -> Result<Vec<(PathBuf, String)>> {
    let mut files: Vec<PathBuf> = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    files.sort();
    let texts: Vec<_> = files
        .into_iter()
        .filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text)))
        .collect();
    if texts.is_empty() {
        bail!("this machine has no package sources in `/etc/apt` to find a mirror by");
    }
    Ok(texts)
}

/// One-line sources of `suite`, made from those that offer `codename`.
pub fn derive(own: &[(PathBuf, String)], codename: &str, suite: &str, scope: Scope) -> String {
    let mut lines = Vec::new();
    for (path, text) in own {
        let entries = if path.extension().is_some_and(|ending| ending == "sources") {
            stanzas(text)
        } else {
            one_liners(text)
        };
        for entry in entries {
            for theirs in &entry.suites {
                let ours = match theirs.strip_prefix(codename) {
                    Some("") if !codename.is_empty() => suite.to_owned(),
                    Some(branch @ ("-updates" | "-security")) if scope == Scope::WithUpdates => {
                        format!("{suite}{branch}")
                    }
                    _ => continue,
                };
                for uri in &entry.uris {
                    let signed = entry
                        .signed_by
                        .as_ref()
                        .map(|key| format!("[signed-by={key}] "))
                        .unwrap_or_default();
                    let line = format!("deb {signed}{uri} {ours} {}\n", entry.components.join(" "));
                    if !lines.contains(&line) {
                        lines.push(line);
                    }
                }
            }
        }
    }
    lines.concat()
}

/// One entry of the package sources.
#[derive(Debug, Default)]
struct Entry {
    uris: Vec<String>,
    suites: Vec<String>,
    components: Vec<String>,
    signed_by: Option<String>,
}

/// The entries of a file in the deb822 form; none when it is not in that form.
fn stanzas(text: &str) -> Vec<Entry> {
    let Ok(stanzas) = text.parse::<deb822_fast::Deb822>() else {
        return Vec::new();
    };
    let entry = |stanza: &deb822_fast::Paragraph| {
        let field = |name: &str| -> Vec<String> {
            let value = stanza.get(name).unwrap_or_default();
            value.split_ascii_whitespace().map(str::to_owned).collect()
        };
        let is_used = field("Types").iter().any(|kind| kind == "deb")
            && !field("Enabled").iter().any(|value| value == "no");
        // A key that is written out instead of named is left to the system's trusted keys.
        let signed_by = field("Signed-By")
            .first()
            .filter(|key| key.starts_with('/'))
            .cloned();
        is_used.then(|| Entry {
            uris: field("URIs"),
            suites: field("Suites"),
            components: field("Components"),
            signed_by,
        })
    };
    stanzas.iter().filter_map(entry).collect()
}

/// The entries of a file in the one-line form.
fn one_liners(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for line in text.lines() {
        let Some(mut rest) = line.trim().strip_prefix("deb ").map(str::trim_start) else {
            continue;
        };
        let mut signed_by = None;
        if let Some((options, after)) = rest
            .strip_prefix('[')
            .and_then(|inner| inner.split_once(']'))
        {
            signed_by = options
                .split_ascii_whitespace()
                .find_map(|option| option.strip_prefix("signed-by="))
                .map(str::to_owned);
            rest = after;
        }
        let rest = rest.split('#').next().unwrap_or("");
        let mut words = rest.split_ascii_whitespace().map(str::to_owned);
        if let (Some(uri), Some(suite)) = (words.next(), words.next()) {
            entries.push(Entry {
                uris: vec![uri],
                suites: vec![suite],
                components: words.collect(),
                signed_by,
            });
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "\
# a comment
Types: deb deb-src
# another
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
 contrib
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: https://other.example/tool
Suites: nodistro
Components: main
";

    fn own(name: &str, text: &str) -> Vec<(PathBuf, String)> {
        vec![(PathBuf::from(name), text.to_owned())]
    }

    #[test]
    fn only_the_suite_is_replaced() {
        let sources = derive(
            &own("debian.sources", DEB822),
            "bookworm",
            "trixie",
            Scope::WithUpdates,
        );
        assert_eq!(
            sources,
            "deb [signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example/debian trixie main contrib\n\
             deb [signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example/debian trixie-updates main contrib\n\
             deb [signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example/security trixie-security main\n"
        );
        let alone = derive(
            &own("debian.sources", DEB822),
            "bookworm",
            "sid",
            Scope::Alone,
        );
        assert_eq!(alone.lines().count(), 1);
        assert!(alone.contains("mirror.example/debian sid main"));
    }

    #[test]
    fn the_one_line_form_is_read_too() {
        let text = "# deb http://old.example/debian bookworm main\n\
                    deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main # mirror\n\
                    deb-src http://mirror.example/debian bookworm main\n\
                    deb https://vendor.example/apt tool-bookworm main\n";
        let sources = derive(
            &own("sources.list", text),
            "bookworm",
            "trixie",
            Scope::WithUpdates,
        );
        assert_eq!(
            sources,
            "deb [signed-by=/k.gpg] http://mirror.example/debian trixie main\n"
        );
    }

    #[test]
    fn a_machine_without_a_code_name_derives_nothing() {
        assert_eq!(
            derive(
                &own("debian.sources", DEB822),
                "",
                "trixie",
                Scope::WithUpdates
            ),
            ""
        );
    }

    #[test]
    fn the_release_is_read_with_and_without_quotes() {
        let release =
            HostRelease::parse("PRETTY_NAME=\"Debian\"\nVERSION_CODENAME=bookworm\nID=debian\n");
        assert_eq!(
            release,
            HostRelease {
                id: "debian".to_owned(),
                codename: "bookworm".to_owned()
            }
        );
        assert_eq!(HostRelease::parse("ID=\"rocky\"\n").codename, "");
    }
}
