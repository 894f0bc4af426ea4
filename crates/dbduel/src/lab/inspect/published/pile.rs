//! What the files of one server show, put together.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::names::{Moment, moment_of, server_of};
use crate::judge::audit::{Machine, Product, ServerEvidence, Texts, Version, variable_name};
use crate::lab::inspect::dump::Content;
use crate::lab::inspect::option_file;

/// The files of one server, by what is in them.
#[derive(Debug, Default)]
pub struct Pile {
    variables: Vec<(PathBuf, Texts)>,
    status: Vec<(PathBuf, Texts)>,
    engine_status: Vec<(PathBuf, String)>,
    schema: Option<String>,
    error_log: Option<String>,
    option_files: Vec<PathBuf>,
}

impl Pile {
    /// Adds a file.
    pub fn add(&mut self, path: PathBuf, content: Content) {
        match content {
            // A part of the variables does not say whose they are.
            Content::Variables(texts) if !texts.contains_key("version") => {}
            Content::Variables(texts) => self.variables.push((path, texts)),
            Content::Status(texts) => self.status.push((path, texts)),
            Content::EngineStatus(text) => self.engine_status.push((path, text)),
            Content::Schema(text) => self.schema = Some(text),
            Content::ErrorLog(text) => self.error_log = Some(text),
            Content::OptionFile => self.option_files.push(path),
            Content::Other => {}
        }
    }

    /// Adds what another pile of the same server has.
    pub fn merge(&mut self, other: Pile) {
        self.variables.extend(other.variables);
        self.status.extend(other.status);
        self.engine_status.extend(other.engine_status);
        self.schema = self.schema.take().or(other.schema);
        self.error_log = self.error_log.take().or(other.error_log);
        self.option_files.extend(other.option_files);
    }

    /// True when its files say how a server was set.
    pub fn shows_a_server(&self) -> bool {
        !self.variables.is_empty() || !self.option_files.is_empty()
    }

    /// Evidence of the server called `name`; product, version and machine are for option
    /// files, which do not say them.
    ///
    /// # Errors
    /// When the files are of two servers, or do not say which server it is.
    pub fn evidence(
        mut self,
        name: &str,
        product: Option<Product>,
        version: Option<Version>,
        machine: Machine,
    ) -> Result<ServerEvidence> {
        self.refuse_two_servers(name)?;
        self.variables.sort_by_key(|(path, _)| moment_of(path));
        self.engine_status.sort_by_key(|(path, _)| moment_of(path));
        let mut evidence = self.settings(name, product, version, machine)?;
        if let [_, .., (_, last)] = self.variables.as_slice() {
            evidence.variables_after.clone_from(last);
        }
        self.counters(&mut evidence);
        evidence.schema = self.schema;
        evidence.error_log = self.error_log;
        Ok(evidence)
    }

    fn refuse_two_servers(&self, name: &str) -> Result<()> {
        let versions: BTreeSet<&String> = self
            .variables
            .iter()
            .filter_map(|(_, texts)| texts.get("version"))
            .collect();
        let mut versions = versions.into_iter();
        if let (Some(one), Some(other)) = (versions.next(), versions.next()) {
            bail!(
                "the files of `{name}` are of two servers, {one} and {other}: put those of each into a directory of its own"
            );
        }
        Ok(())
    }

    fn settings(
        &self,
        name: &str,
        product: Option<Product>,
        version: Option<Version>,
        machine: Machine,
    ) -> Result<ServerEvidence> {
        let (product, version) = match (product, version) {
            (Some(product), Some(version)) => (Some(product), Some(version)),
            _ => server_of(name),
        };
        let shown = self.variables.first().and_then(|(path, texts)| {
            let mut evidence = ServerEvidence::of_variables(name, texts.clone())?;
            evidence.source = path.display().to_string();
            Some(evidence)
        });
        match (shown, self.option_files.first()) {
            (Some(mut evidence), option_file) => {
                // What was asked for is read where it can be; what was in effect is shown anyhow.
                let settings = option_file.and_then(|path| {
                    option_file::read(path, Some(evidence.product), Some(evidence.version)).ok()
                });
                for setting in settings.into_iter().flat_map(|settings| settings.settings) {
                    evidence
                        .asked
                        .insert(variable_name(&setting.name), setting.value);
                }
                Ok(evidence)
            }
            (None, Some(path)) => {
                let settings = option_file::read(path, product, version)?;
                option_file::evidence(name, &settings, product, version, machine)
            }
            (None, None) => bail!(
                "nothing of `{name}` says which server it is: its variables have no `version` that can be read"
            ),
        }
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
