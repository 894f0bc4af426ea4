//! Combines the files of one server into evidence.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, bail};
use dbduel_audit::{Machine, Product, ServerEvidence, Texts, Version, version_among};

use super::names::{Moment, moment_of};
use crate::dump::Content;
use crate::includes::Includes;
use crate::option_file::{self, Setting, Settings};

/// Product and version, as far as known.
pub type Hint = (Option<Product>, Option<Version>);

/// The files of one server, by content.
#[derive(Debug, Clone, Default)]
pub struct ServerFiles {
    variables: Vec<(PathBuf, Texts)>,
    status: Vec<(PathBuf, Texts)>,
    engine_status: Vec<(PathBuf, String)>,
    schema: Option<String>,
    error_log: Option<String>,
    option_files: Vec<PathBuf>,
    /// Settings of `SET PERSIST` or ALTER SYSTEM, which follow the option file.
    persisted: Vec<Setting>,
    /// Hints on product and version, from version files and folder names, the nearest first.
    hints: Vec<Hint>,
}

impl ServerFiles {
    pub fn add(&mut self, path: PathBuf, content: Content) {
        match content {
            // A part of the variables does not say whose they are.
            Content::Variables(texts) if version_among(&texts).is_none() => {}
            Content::Variables(texts) => self.variables.push((path, texts)),
            Content::Status(texts) => self.status.push((path, texts)),
            Content::EngineStatus(text) => self.engine_status.push((path, text)),
            Content::Schema(text) => self.schema = Some(text),
            Content::ErrorLog(text) => self.error_log = Some(text),
            Content::OptionFile => self.option_files.push(path),
            Content::Persisted(settings) => self.persisted.extend(settings),
            Content::Version(said) => self.hint((said.product, Some(said.version))),
            Content::Other => {}
        }
    }

    /// Adds a hint from farther away than all previous ones.
    pub fn hint(&mut self, hint: Hint) {
        self.hints.push(hint);
    }

    /// Adds the content of other files of the same server.
    pub fn merge(&mut self, other: ServerFiles) {
        self.variables.extend(other.variables);
        self.status.extend(other.status);
        self.engine_status.extend(other.engine_status);
        self.schema = self.schema.take().or(other.schema);
        self.error_log = self.error_log.take().or(other.error_log);
        self.option_files.extend(other.option_files);
        self.persisted.extend(other.persisted);
        self.hints.extend(other.hints);
    }

    /// Adds files from farther away from the run: an option file of the run takes precedence.
    pub fn merge_farther(&mut self, mut other: ServerFiles) {
        if !self.option_files.is_empty() {
            other.option_files.clear();
            other.persisted.clear();
        }
        self.merge(other);
    }

    /// True when only an option file describes the server's settings.
    pub fn is_option_file(&self) -> bool {
        self.variables.is_empty() && !self.option_files.is_empty()
    }

    /// True when only variables describe the server's settings.
    pub fn is_variables(&self) -> bool {
        !self.variables.is_empty() && self.option_files.is_empty()
    }

    /// The files with variables.
    pub fn places(&self) -> impl Iterator<Item = String> {
        self.variables
            .iter()
            .map(|(path, _)| path.display().to_string())
    }

    /// True when the files describe a server's settings.
    pub fn shows_a_server(&self) -> bool {
        !self.variables.is_empty() || !self.option_files.is_empty()
    }

    /// Evidence of the server called `name` on this machine. `said` is what is known of it apart from its files; option
    /// files include from `includes`.
    ///
    /// # Errors
    /// When the files belong to two servers, or their server is unknown.
    pub fn evidence(
        mut self,
        name: &str,
        said: Hint,
        machine: Machine,
        includes: &Includes,
    ) -> Result<ServerEvidence> {
        self.refuse_two_servers()?;
        self.variables.sort_by_key(|(path, _)| moment_of(path));
        self.engine_status.sort_by_key(|(path, _)| moment_of(path));
        let mut evidence = self.settings(name, said, machine, includes)?;
        if let [_, .., (_, last)] = self.variables.as_slice() {
            evidence.show_after(last.clone());
        }
        self.counters(&mut evidence);
        evidence.schema = self.schema;
        evidence.error_log = self.error_log;
        Ok(evidence)
    }

    fn refuse_two_servers(&self) -> Result<()> {
        let versions: BTreeSet<&str> = self
            .variables
            .iter()
            .filter_map(|(_, texts)| Some(version_among(texts)?.1))
            .collect();
        let mut versions = versions.into_iter();
        if let (Some(one), Some(other)) = (versions.next(), versions.next()) {
            bail!(
                "files of two servers, {one} and {other}; use a separate directory for each server's files"
            );
        }
        Ok(())
    }

    fn settings(
        &self,
        name: &str,
        said: Hint,
        machine: Machine,
        includes: &Includes,
    ) -> Result<ServerEvidence> {
        let shown = self.variables.first().and_then(|(path, texts)| {
            let mut evidence = ServerEvidence::of_variables(name, texts.clone())?;
            evidence.source = path.display().to_string();
            Some(evidence)
        });
        if let Some(mut evidence) = shown {
            // What was asked for is read where it can be; what was in effect is shown anyhow.
            let server = (Some(evidence.product), Some(evidence.version));
            if let Ok(Some(settings)) = self.option_file(server, includes) {
                settings.asked_of(&mut evidence);
            }
            return Ok(evidence);
        }
        let (product, version) = self.server(said);
        if product.is_none() || version.is_none() {
            bail!(
                "an option file whose server is unknown; name its directory after the server, such as `mysql-8.4.8/`, or add a \
                 file such as `mysql_version.txt`"
            );
        }
        match self.option_file((product, version), includes)? {
            Some(settings) => option_file::evidence(name, &settings, product, version, machine),
            None => bail!("variables without a readable `version`"),
        }
    }

    /// Product and version from the nearest hint.
    fn server(&self, said: Hint) -> Hint {
        let hints = || std::iter::once(&said).chain(&self.hints);
        let product = hints().find_map(|(product, _)| *product);
        let version = hints()
            .filter(|(other, _)| other.is_none() || *other == product)
            .find_map(|(_, version)| *version);
        (product, version)
    }

    /// The option file with the most settings for this server, with its includes and the persisted settings.
    fn option_file(&self, server: Hint, includes: &Includes) -> Result<Option<Settings>> {
        let mut best: Option<Settings> = None;
        for path in &self.option_files {
            let settings = option_file::read(path, server.0, server.1, includes)?;
            let is_better = best
                .as_ref()
                .is_none_or(|best| settings.settings.len() > best.settings.len());
            if is_better {
                best = Some(settings);
            }
        }
        if let Some(best) = &mut best
            && !self.persisted.is_empty()
        {
            best.settings.extend(self.persisted.iter().cloned());
            best.files
                .extend(self.persisted.first().map(|one| one.path.clone()));
        }
        Ok(best)
    }

    fn counters(&mut self, evidence: &mut ServerEvidence) {
        // The uptime says which of two looks at the counters came first.
        self.status.sort_by_key(|(_, texts)| {
            texts
                .get("uptime")
                .and_then(|uptime| uptime.parse::<u64>().ok())
        });
        match self.status.as_slice() {
            [] => {}
            [(path, only)] if moment_of(path) == Moment::Before => {
                evidence.status_before.clone_from(only);
            }
            [(_, only)] => evidence.status_after.clone_from(only),
            [(_, first), .., (_, last)] => {
                evidence.status_before.clone_from(first);
                evidence.status_after.clone_from(last);
            }
        }
        match self.engine_status.as_slice() {
            [] => {}
            [(path, only)] if moment_of(path) == Moment::Before => {
                evidence.engine_status_before = Some(only.clone());
            }
            [(_, only)] => evidence.engine_status_after = Some(only.clone()),
            [(_, first), .., (_, last)] => {
                evidence.engine_status_before = Some(first.clone());
                evidence.engine_status_after = Some(last.clone());
            }
        }
    }
}
