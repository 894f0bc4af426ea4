//! Status of a fleet: campaigns, queue, agents, failures.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::agent::{self, AgentState};
use super::cell::{CellEntry, CellOutcome, CellResult, Failure, key};
use super::{Fleet, PROTOCOL};

/// Status of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetStatus {
    /// Address of nats-server.
    pub url: String,
    /// Version of nats-server.
    pub server: String,
    /// The fleet's protocol.
    pub protocol: u32,
    /// Campaigns in the order of their names.
    pub campaigns: Vec<Campaign>,
    /// Agents that answered.
    pub agents: Vec<AgentState>,
    /// Cells of all campaigns with neither a result nor a place in the queue: their submission was interrupted.
    pub not_queued: u64,
    /// Estimated time until all cells have a result, from the mean time of those that have one, seconds.
    pub left_s: Option<f64>,
    /// Cells that failed for good, and failed attempts of cells without a result.
    pub failures: Vec<CellFailure>,
}

/// The cells of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Campaign {
    /// Its name.
    pub name: String,
    /// Cells that were submitted.
    pub cells: u64,
    /// Cells without a result and with no agent that answers.
    pub waiting: u64,
    /// Cells with an agent that answers.
    pub running: u64,
    /// Cells with a record.
    pub done: u64,
    /// Cells that failed for good.
    pub failed: u64,
    /// Of the done cells, those with more than one result; the first one counts.
    pub repeated: u64,
}

/// A failure of a cell, by the agent that reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CellFailure {
    /// Which cell it is.
    pub cell: CellEntry,
    /// The agent that tried it last.
    pub agent: String,
    /// Why it failed.
    pub why: String,
    /// True when the cell is not tried again.
    pub is_final: bool,
}

/// Entries of a fleet.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Cells, by their keys.
    pub cells: BTreeMap<String, CellEntry>,
    /// Results, by the keys of their cells.
    pub results: BTreeMap<String, CellResult>,
    failures: BTreeMap<String, Failure>,
    repeated: BTreeSet<String>,
}

impl Ledger {
    /// Reads the entries, of one campaign if it is named.
    ///
    /// # Errors
    /// When they cannot be read or parsed.
    pub fn read(fleet: &Fleet<'_>, campaign: Option<&str>) -> Result<Self> {
        let entries = fleet.entries.all()?;
        let mut cells: BTreeMap<String, CellEntry> = of_kind(&entries, key::CELL)?;
        cells.retain(|_, cell| campaign.is_none_or(|campaign| cell.campaign == campaign));
        let is_meant = |digest: &String| cells.contains_key(digest);
        let mut results: BTreeMap<String, CellResult> = of_kind(&entries, key::RESULT)?;
        results.retain(|digest, _| is_meant(digest));
        let mut failures: BTreeMap<String, Failure> = of_kind(&entries, key::FAILURE)?;
        failures.retain(|digest, _| is_meant(digest));
        let repeated: BTreeMap<String, CellResult> = of_kind(&entries, key::REPEATED)?;
        Ok(Ledger {
            repeated: repeated.into_keys().filter(is_meant).collect(),
            cells,
            results,
            failures,
        })
    }
}

fn of_kind<T: DeserializeOwned>(
    entries: &BTreeMap<String, Vec<u8>>,
    kind: &str,
) -> Result<BTreeMap<String, T>> {
    let ours = entries
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(kind)?, value)));
    ours.map(|(digest, value)| {
        let value = serde_json::from_slice(value).with_context(|| {
            format!("the entry `{kind}{digest}` of the fleet is not understood")
        })?;
        Ok((digest.to_owned(), value))
    })
    .collect()
}

/// Reads the status of the fleet, of one campaign if it is named.
///
/// # Errors
/// When NATS does not answer.
pub fn status(fleet: &Fleet<'_>, campaign: Option<&str>) -> Result<FleetStatus> {
    let agents = agent::all(fleet.nats)?;
    let counts = fleet.queue.counts()?;
    // Read after the queue was counted: a cell that is done meanwhile is not taken for one that was never queued.
    let everything = Ledger::read(fleet, None)?;
    let open = everything
        .cells
        .len()
        .saturating_sub(everything.results.len()) as u64;
    let ledger = match campaign {
        None => everything,
        Some(_) => Ledger::read(fleet, campaign)?,
    };
    Ok(FleetStatus {
        url: fleet.nats.url().to_owned(),
        server: fleet.nats.server_version(),
        protocol: PROTOCOL,
        campaigns: campaigns(&ledger, &agents),
        not_queued: open.saturating_sub(counts.messages),
        left_s: left_s(&ledger, &agents),
        failures: failures(&ledger),
        agents,
    })
}

fn campaigns(ledger: &Ledger, agents: &[AgentState]) -> Vec<Campaign> {
    let at_hand: BTreeSet<&str> = agents
        .iter()
        .filter_map(|agent| Some(agent.cell.as_ref()?.entry.digest.as_str()))
        .collect();
    let mut campaigns: BTreeMap<&str, Campaign> = BTreeMap::new();
    for (digest, cell) in &ledger.cells {
        let campaign = campaigns.entry(&cell.campaign).or_insert_with(|| Campaign {
            name: cell.campaign.clone(),
            ..Campaign::default()
        });
        campaign.cells += 1;
        campaign.repeated += u64::from(ledger.repeated.contains(digest));
        let is_at_hand = at_hand.contains(digest.as_str());
        let count = match ledger.results.get(digest).map(|result| &result.outcome) {
            Some(CellOutcome::Record { .. }) => &mut campaign.done,
            Some(CellOutcome::Failed { .. }) => &mut campaign.failed,
            None if is_at_hand => &mut campaign.running,
            None => &mut campaign.waiting,
        };
        *count += 1;
    }
    campaigns.into_values().collect()
}

fn left_s(ledger: &Ledger, agents: &[AgentState]) -> Option<f64> {
    let workers = agents.iter().filter(|agent| agent.works).count();
    let took: Vec<f64> = ledger.results.values().map(|one| one.took_s).collect();
    let open = ledger.cells.len() - ledger.results.len();
    if workers == 0 || took.is_empty() || open == 0 {
        return None;
    }
    let mean_s = took.iter().sum::<f64>() / took.len() as f64;
    let begun_s: f64 = agents
        .iter()
        .filter_map(|agent| Some(agent.cell.as_ref()?.for_s.min(mean_s)))
        .sum();
    Some((mean_s * open as f64 - begun_s).max(0.0) / workers.min(open) as f64)
}

fn failures(ledger: &Ledger) -> Vec<CellFailure> {
    let failure = |digest: &String, result: &CellResult, is_final: bool| {
        let CellOutcome::Failed { why } = &result.outcome else {
            return None;
        };
        Some(CellFailure {
            cell: ledger.cells.get(digest)?.clone(),
            agent: result.agent.clone(),
            why: why.clone(),
            is_final,
        })
    };
    let final_ones = ledger.results.iter();
    let final_ones = final_ones.filter_map(|(digest, result)| failure(digest, result, true));
    let attempts = ledger
        .failures
        .iter()
        .filter(|(digest, _)| !ledger.results.contains_key(*digest));
    let attempts = attempts.filter_map(|(digest, one)| failure(digest, &one.last, false));
    final_ones.chain(attempts).collect()
}
