//! One observer per contender, who watches its slices and keeps a connection for questions.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_record::event::Severity;

use super::arena::Arena;
use super::measure::finding;
use super::{Contest, ContestConfig};
use crate::lab::drive::LoadProcess;
use crate::lab::host;
use crate::lab::observe::{Observed, Observer, Subject, Watch};

/// A question that takes longer than this would disturb what it asks about.
const PATIENCE: Duration = Duration::from_secs(5);

/// The observers of all contenders.
pub struct Observers {
    each: Vec<Option<Observer>>,
    disk: Option<PathBuf>,
}

impl Observers {
    /// Observers that have seen nothing.
    pub fn new(config: &ContestConfig<'_>) -> Self {
        Self {
            each: config
                .plan
                .contenders
                .iter()
                .map(|_| Some(Observer::default()))
                .collect(),
            disk: host::disk_of(config.home.root()),
        }
    }

    /// Starts the watch over a slice of an awake contender.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn watch(
        &mut self,
        config: &ContestConfig<'_>,
        arena: &mut Arena,
        contender: usize,
        load: &LoadProcess,
    ) -> Result<Watch> {
        let mut observer = self.each[contender].take().unwrap_or_default();
        if observer.connection.is_none() {
            let patience = PATIENCE.min(Duration::from_secs_f64(config.plan.limits.statement_s));
            // Without a connection the slice is measured all the same; what then is missing is said.
            observer.connection = arena.connect(contender, patience).ok();
        }
        let server = Subject {
            pid: arena.pid(contender),
            disk: self.disk.clone(),
        };
        let load = Subject {
            pid: Some(load.pid()),
            disk: None,
        };
        Watch::start(observer, server, load).context("could not start the watch over a slice")
    }

    pub fn end(&mut self, contender: usize, watch: Watch) -> Observed {
        let (observer, observed) = watch.finish();
        self.each[contender] = Some(observer);
        observed
    }
}

impl Contest<'_> {
    /// Sources that gave nothing are a finding, not a failure.
    pub(super) fn say_what_is_missing(&mut self, name: &str, observed: &Observed) -> Result<()> {
        if observed.missing.is_empty() {
            return Ok(());
        }
        let claim = format!("not observed of `{name}`: {}", observed.missing.join("; "));
        let remedy =
            "run where these can be read (same user, no container that hides them), or do without";
        self.journal.notice(finding(
            "observe.missing-source",
            Severity::Note,
            &[name],
            claim,
            remedy,
        ))?;
        Ok(())
    }
}
