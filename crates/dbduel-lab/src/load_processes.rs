//! The load processes of a contest: one for all servers, which may be a link to load hosts, and a separate one for each
//! in-process contender, whose threads are its clients and whose processor time, bytes and memory are counted alone.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use dbduel_driver::session::Session;
use dbduel_load::order::{OpenOrder, SliceOrder, Tick};
use dbduel_record::Plan;
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::LoadHost;
use dbduel_record::plan::LoadProcess as Written;
use dbduel_record::statements::StatementExample;
use dbduel_server::runs_in_process;

use super::contest::Load;
use super::drive::{HostAccess, LoadProcess, SliceEnd};

/// All load processes of a contest. Dropping them ends them.
#[derive(Debug)]
pub struct LoadProcesses {
    /// For contenders with servers; `None` when there is none.
    shared: Option<LoadProcess>,
    /// By the names of contenders.
    own: BTreeMap<String, LoadProcess>,
    /// Load hosts of the shared process; empty when this machine drives the load.
    hosts: Vec<LoadHost>,
    /// Round trip to the farthest of them, seconds.
    round_trip_s: f64,
}

impl LoadProcesses {
    /// Starts the load processes that the contenders of a plan need. Load hosts are reached through `access`; `contest`
    /// is the contest's name towards their agents.
    ///
    /// # Errors
    /// When a load host cannot be used, or this program cannot be executed again.
    pub fn start(plan: &Plan, access: Option<&Arc<dyn HostAccess>>, contest: &str) -> Result<Self> {
        let clients = plan.levels.iter().map(|level| level.clients).max();
        let mut processes = Self {
            shared: None,
            own: BTreeMap::new(),
            hosts: Vec::new(),
            round_trip_s: 0.0,
        };
        if let Some(hosts) = &plan.hosts {
            let access = access.context(
                "this contest drives its load from other machines ([hosts]); give the URL of their nats-server with `--nats URL`",
            )?;
            let attached =
                LoadProcess::start_on_hosts(&plan.load, hosts, access.as_ref(), contest)?;
            processes.shared = Some(attached.link);
            processes.hosts = attached.hosts;
            processes.round_trip_s = attached.round_trip_s;
        }
        for contender in &plan.contenders {
            if runs_in_process(&contender.server) {
                let load = Written {
                    threads: clients.unwrap_or_default().max(1),
                    ..plan.load.clone()
                };
                let process = LoadProcess::start(&load)?;
                processes.own.insert(contender.name.clone(), process);
            } else if processes.shared.is_none() {
                processes.shared = Some(LoadProcess::start(&plan.load)?);
            }
        }
        Ok(processes)
    }

    fn of(&mut self, contender: &str) -> Result<&mut LoadProcess> {
        let own = self.own.get_mut(contender);
        own.or(self.shared.as_mut())
            .with_context(|| format!("`{contender}` has no load process"))
    }
}

impl Load for LoadProcesses {
    fn open(&mut self, order: OpenOrder) -> Result<Session> {
        self.of(&order.contender)?.open(order)
    }

    fn close(&mut self, contender: &str) -> Result<()> {
        self.of(contender)?.close(contender).map(drop)
    }

    fn slice(
        &mut self,
        order: SliceOrder,
        on_begin: &mut dyn FnMut(Instant),
        on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<()>,
    ) -> SliceEnd {
        match self.of(&order.contender) {
            Ok(process) => process.slice(order, on_begin, on_tick),
            Err(error) => SliceEnd::lost(format!("{error:#}")),
        }
    }

    fn halt(&mut self, contender: &str) {
        if let Ok(process) = self.of(contender) {
            process.halt();
        }
    }

    fn take_commits(&mut self) -> Vec<CommitRange> {
        let all = self.own.values_mut().chain(&mut self.shared);
        all.flat_map(LoadProcess::take_commits).collect()
    }

    fn sample_statements(
        &mut self,
        order: OpenOrder,
        slice: SliceOrder,
    ) -> Result<Vec<StatementExample>> {
        let contender = order.contender.clone();
        let process = self.of(&contender)?;
        process.close(&contender)?;
        process.keep_examples()?;
        process.open(order)?;
        let end = process.slice(slice, |_| {}, |_| ControlFlow::Continue(()));
        let examples = process.close(&contender)?;
        match end {
            SliceEnd::Finished(_) => Ok(examples),
            SliceEnd::Lost { why, .. } => bail!("the sample was lost: {why}"),
        }
    }

    fn is_broken(&self) -> bool {
        let all = self.own.values().chain(&self.shared);
        all.into_iter().any(LoadProcess::is_broken)
    }

    fn failure(&self) -> Option<&str> {
        self.shared.as_ref().and_then(LoadProcess::failure)
    }

    fn hosts(&self) -> &[LoadHost] {
        &self.hosts
    }

    fn round_trip_s(&self) -> f64 {
        self.round_trip_s
    }

    fn pid(&self, contender: &str) -> Option<u32> {
        if !self.hosts.is_empty() {
            return None;
        }
        let own = self.own.get(contender);
        own.or(self.shared.as_ref()).map(LoadProcess::pid)
    }
}
