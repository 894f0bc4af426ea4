//! The state that an agent reports, and the question for it.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use dbduel_judge::IDENTITY;
use dbduel_nats::Nats;
use dbduel_record::facts::Host;
use serde::{Deserialize, Serialize};

use super::cell::CellEntry;
use super::{AGENTS, ANSWERS_WAIT, PROTOCOL, clock};

/// State of an agent, as it reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// Its name in the fleet.
    pub name: String,
    /// Its version of the fleet's protocol.
    pub protocol: u32,
    /// Version of dbduel, with the digest of its judge.
    pub dbduel: String,
    /// Logical processors of its machine.
    pub cpus: Option<u32>,
    /// Model of its processors.
    pub cpu_model: Option<String>,
    /// Memory of its machine, bytes.
    pub memory_bytes: Option<u64>,
    /// Release of its kernel.
    pub kernel: Option<String>,
    /// Whether it takes cells.
    pub works: bool,
    /// The cell that it works on.
    pub cell: Option<CellAtHand>,
    /// Cells delivered since it started.
    pub delivered: u64,
    /// Reason why it cannot work at the moment.
    pub trouble: Option<String>,
    /// Whether it drives load for contests on other machines.
    #[serde(default)]
    pub loads: bool,
    /// Whether it runs servers for contests on other machines.
    #[serde(default)]
    pub serves: bool,
    /// The contest that it drives load or runs servers for.
    #[serde(default)]
    pub drives_for: Option<String>,
}

/// The cell that an agent works on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellAtHand {
    /// Which cell it is.
    pub entry: CellEntry,
    /// `running` or `delivering`.
    pub phase: String,
    /// When the agent took it, milliseconds since 1970-01-01 UTC by the agent's clock.
    pub since_ms: u64,
    /// For how long, seconds.
    pub for_s: f64,
}

/// Offers of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// To run cells.
    Cells,
    /// To drive load.
    Load,
    /// To run servers.
    Servers,
    /// Nothing but its state.
    Nothing,
}

/// The state of this process's agent, shared with the task that answers.
#[derive(Debug, Clone)]
pub struct Agent {
    state: Arc<Mutex<AgentState>>,
}

impl Agent {
    /// Starts answering for the agent `name` of this machine.
    ///
    /// # Errors
    /// When another agent has this name, or NATS refuses.
    pub fn start(nats: &Nats, name: &str, host: &Host, offer: Offer) -> Result<Self> {
        if let Some(other) = all(nats)?.into_iter().find(|other| other.name == name) {
            bail!(
                "an agent named `{name}` is connected already (dbduel {}, kernel {}); give this \
                 one another name with `--name`",
                other.dbduel,
                other.kernel.as_deref().unwrap_or("unknown")
            );
        }
        let agent = Agent {
            state: Arc::new(Mutex::new(AgentState {
                name: name.to_owned(),
                protocol: PROTOCOL,
                dbduel: IDENTITY.to_owned(),
                cpus: host.cpus,
                cpu_model: host.cpu_model.clone(),
                memory_bytes: host.memory_bytes,
                kernel: host.kernel.clone(),
                works: offer == Offer::Cells,
                cell: None,
                delivered: 0,
                trouble: None,
                loads: offer == Offer::Load,
                serves: offer == Offer::Servers,
                drives_for: None,
            })),
        };
        let answering = agent.clone();
        nats.answer(AGENTS, move || {
            let mut state = answering.state();
            if let Some(cell) = &mut state.cell {
                let passed = dbduel_lab::contest::now_ms().saturating_sub(cell.since_ms);
                cell.for_s = passed as f64 / 1000.0;
            }
            serde_json::to_vec(&state).unwrap_or_default()
        })?;
        nats.answer(&clock::subject(name), clock::answer)?;
        Ok(agent)
    }

    /// Changes the state that it reports.
    pub fn update(&self, change: impl FnOnce(&mut AgentState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The state that it reports.
    #[must_use]
    pub fn state(&self) -> AgentState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Every agent that answers, by name.
///
/// # Errors
/// When they cannot be asked.
pub fn all(nats: &Nats) -> Result<Vec<AgentState>> {
    let answers = nats.ask_all(AGENTS, ANSWERS_WAIT)?;
    let mut agents: Vec<AgentState> = answers
        .iter()
        .filter_map(|answer| serde_json::from_slice(answer).ok())
        .collect();
    agents.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(agents)
}

/// A name reduced to the characters allowed in a subject of NATS: letters, digits, `-` and `_`.
#[must_use]
pub fn plain_name(name: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || c == '_' {
        true => c,
        false => '-',
    };
    name.trim().chars().map(plain).take(60).collect()
}
