//! Status of a fleet: campaigns, queue, agents, failures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::Result;
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
    /// Entries that cannot be parsed, which are left out.
    pub unreadable: Vec<UnreadableEntry>,
}

/// An entry of the fleet, or an object of its archive, that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableEntry {
    /// Its key, or the name of the object.
    pub name: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for UnreadableEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "left out `{}`: {}", self.name, self.why)
    }
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
    /// Entries that cannot be parsed.
    pub unreadable: Vec<UnreadableEntry>,
    failures: BTreeMap<String, Failure>,
    repeated: BTreeSet<String>,
}

impl Ledger {
    /// Reads the entries, of one campaign if it is named.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(fleet: &Fleet<'_>, campaign: Option<&str>) -> Result<Self> {
        Ok(Self::of(&fleet.entries.all()?, campaign))
    }

    /// As [`Ledger::read`], of these entries by their keys.
    fn of(entries: &BTreeMap<String, Vec<u8>>, campaign: Option<&str>) -> Self {
        let mut unreadable = Vec::new();
        let mut cells: BTreeMap<String, CellEntry> = of_kind(entries, key::CELL, &mut unreadable);
        cells.retain(|_, cell| campaign.is_none_or(|campaign| cell.campaign == campaign));
        let is_meant = |digest: &String| cells.contains_key(digest);
        let mut results: BTreeMap<String, CellResult> =
            of_kind(entries, key::RESULT, &mut unreadable);
        results.retain(|digest, _| is_meant(digest));
        let mut failures: BTreeMap<String, Failure> =
            of_kind(entries, key::FAILURE, &mut unreadable);
        failures.retain(|digest, _| is_meant(digest));
        let repeated: BTreeMap<String, CellResult> =
            of_kind(entries, key::REPEATED, &mut unreadable);
        Ledger {
            repeated: repeated.into_keys().filter(is_meant).collect(),
            cells,
            results,
            unreadable,
            failures,
        }
    }
}

/// The entries of one kind, by their digests. Others may write to the bucket too: what cannot be parsed is left out.
fn of_kind<T: DeserializeOwned>(
    entries: &BTreeMap<String, Vec<u8>>,
    kind: &str,
    unreadable: &mut Vec<UnreadableEntry>,
) -> BTreeMap<String, T> {
    let mut parsed = BTreeMap::new();
    for (key, value) in entries {
        let Some(digest) = key.strip_prefix(kind) else {
            continue;
        };
        match serde_json::from_slice(value) {
            Ok(value) => {
                parsed.insert(digest.to_owned(), value);
            }
            Err(error) => unreadable.push(UnreadableEntry {
                name: key.clone(),
                why: error.to_string(),
            }),
        }
    }
    parsed
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
        unreadable: ledger.unreadable,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_cannot_be_parsed_is_left_out_and_named() {
        let cell = |digest: &str| CellEntry {
            digest: digest.to_owned(),
            campaign: "x".to_owned(),
            experiment: "duel".to_owned(),
            label: String::new(),
            submitted_ms: 0,
        };
        let result = CellResult {
            agent: "one".to_owned(),
            ended_ms: 1,
            took_s: 2.0,
            outcome: CellOutcome::Failed {
                why: "?".to_owned(),
            },
        };
        let entries: BTreeMap<String, Vec<u8>> = [
            (
                key::of(key::CELL, "a"),
                serde_json::to_vec(&cell("a")).unwrap(),
            ),
            (
                key::of(key::CELL, "b"),
                serde_json::to_vec(&cell("b")).unwrap(),
            ),
            (key::of(key::CELL, "c"), b"garbage".to_vec()),
            (
                key::of(key::RESULT, "a"),
                serde_json::to_vec(&result).unwrap(),
            ),
            (key::of(key::RESULT, "b"), b"{}".to_vec()),
        ]
        .into();
        let ledger = Ledger::of(&entries, Some("x"));
        assert_eq!(ledger.cells.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(ledger.results.keys().collect::<Vec<_>>(), ["a"]);
        let named: Vec<String> = ledger.unreadable.iter().map(ToString::to_string).collect();
        assert_eq!(named.len(), 2);
        assert!(named[0].starts_with("left out `cell.c`: "), "{named:?}");
        assert!(named[1].starts_with("left out `result.b`: "), "{named:?}");
        let counted = campaigns(&ledger, &[]);
        assert_eq!(
            (counted[0].cells, counted[0].waiting, counted[0].failed),
            (2, 1, 1)
        );
    }
}
