//! One observer per contender: watches its slices and keeps a connection for the lab's queries.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use dbduel_machine::host;
use dbduel_record::Plan;
use dbduel_record::event::{Notice, Severity};
use dbduel_record::facts::LoadHost;
use dbduel_record::plan::Block;

use super::arena::Arena;
use super::load::Load;
use super::{Contest, ContestConfig};
use crate::observe::{Observed, Observer, Subject, Used, Watch, write_accounting};
use crate::server_host::HostObserved;
use crate::server_host::RemoteWatch;

/// Query timeout: a longer query would disturb the server that it observes.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Limit of the samplers' share of the machine's processor time during measurement.
const COST_SHARE_MAX: f64 = 0.01;
/// Least number of a level's blocks with a watched repeat, whatever the cost: a contest decided with fewer has no
/// explanation.
const WATCHED_MIN: u32 = 8;
/// Assumed cost of the first watch, seconds.
const COST_S: f64 = 0.01;

/// Note on contenders where the kernel attributes more bytes to a process than it writes.
pub(super) fn bytes_written_by_disk(about: &[&str]) -> Notice {
    Notice::new(
        "observe.bytes-written-by-disk",
        Severity::Note,
        about,
        "Bytes written by a server are all writes to its disk while it is awake, other programs' included: on this file system \
         the kernel charges a process whole folios for each small write."
            .to_owned(),
        "Keep other programs from writing to this disk, or use a file system without large folios.",
    )
}

/// Note on load from other machines, whose load processes are not sampled.
pub(super) fn load_is_elsewhere(hosts: &[LoadHost]) -> Option<Notice> {
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        Notice::new(
            "observe.missing-source",
            Severity::Note,
            &[],
            format!(
                "Not observed for the load processes on {}: memory, device and threads. Their CPU time is counted.",
                names.join(", ")
            ),
            "Monitor these machines with other tools if that matters.",
        )
    })
}

/// The watch over a turn.
pub struct TurnWatch {
    here: Watch,
    /// The watch by the server's remote host, or why it does not watch.
    there: Option<Result<RemoteWatch, String>>,
}

impl TurnWatch {
    /// As [`Watch::measure`].
    pub fn measure(&self, measured: Range<Instant>) {
        if let Some(Ok(there)) = &self.there {
            there.measure(&measured);
        }
        self.here.measure(measured);
    }

    /// True when the server's remote host watches and thus is polled during the turn.
    pub fn asks_host(&self) -> bool {
        matches!(self.there, Some(Ok(_)))
    }
}

/// The observers of all contenders.
pub struct Observers {
    each: Vec<Option<Observer>>,
    disk: Option<PathBuf>,
    overcounts_writes: bool,
    /// Cost of the most expensive watch of the last slices, seconds.
    cost_s: f64,
    /// Remaining allowance for watches of each contender, seconds.
    credit_s: f64,
    /// Number of blocks with a watched repeat, by level.
    watched_blocks: BTreeMap<usize, u32>,
    /// Number of the machine's processors.
    processors: f64,
}

impl Observers {
    /// Observers before their first watch.
    pub fn new(config: &ContestConfig<'_>) -> Self {
        Self {
            each: config
                .plan
                .contenders
                .iter()
                .map(|_| Some(Observer::default()))
                .collect(),
            disk: host::disk_of(config.home.root()),
            // Where it cannot be found out, the process is not readable either, which each slice says.
            overcounts_writes: write_accounting::overcounts(config.home.root()).unwrap_or(false),
            cost_s: COST_S,
            credit_s: 2.0 * COST_S,
            watched_blocks: BTreeMap::new(),
            processors: host::processors().len().max(1) as f64,
        }
    }

    /// How many of a block's repeats are watched: all, or with short turns as many as the cost limit allows, and one of
    /// each of the first blocks.
    pub fn affordable(&mut self, plan: &Plan, block: &Block) -> u32 {
        if !plan.turns.contains_key(&block.level) {
            return block.repeats;
        }
        let slices = (block.order.len() / plan.contenders.len().max(1)) as f64;
        let measured_s = slices * block.slice_s * f64::from(block.repeats);
        self.credit_s += COST_SHARE_MAX * measured_s * self.processors;
        let each_s = slices * self.cost_s;
        // A quotient beyond any count saturates in the conversion.
        let affordable = ((self.credit_s / each_s) as u32).min(block.repeats);
        let watched_blocks = self.watched_blocks.entry(block.level).or_default();
        let watched = match *watched_blocks < WATCHED_MIN {
            true => affordable.clamp(1, block.repeats.max(1)),
            false => affordable,
        };
        *watched_blocks += u32::from(watched > 0);
        self.credit_s -= f64::from(watched) * each_s;
        // What was saved up for long would be spent at once.
        self.credit_s = self.credit_s.min(each_s);
        watched
    }

    /// Starts the watch over a slice of an awake contender.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn watch(
        &mut self,
        config: &ContestConfig<'_>,
        arena: &mut Arena,
        contender: usize,
        load: &dyn Load,
    ) -> Result<TurnWatch> {
        let server = self.server(config, arena, contender, load);
        let (is_in_process, is_elsewhere) = (server.is_load, server.is_elsewhere);
        let mut observer = self.each[contender].take().unwrap_or_default();
        // A look of ours would lock the file that the clients wait for.
        if observer.connection.is_none() && !is_in_process && !is_elsewhere {
            let timeout = TIMEOUT.min(Duration::from_secs_f64(config.plan.limits.statement_s));
            // Without a connection the slice is measured all the same; what then is missing is said.
            observer.connection = arena.connect(contender, timeout).ok();
        }
        let load = Subject {
            pid: load.pid(&config.plan.contenders[contender].name),
            disk: None,
            is_load: true,
            is_elsewhere: !load.hosts().is_empty(),
            overcounts_writes: self.overcounts_writes,
        };
        let there = arena.resident(contender).backend.watch();
        let here = Watch::start(observer, server, load);
        let here = here.context("could not start the watch over a slice")?;
        Ok(TurnWatch { here, there })
    }

    /// The samplers' view of a contender's server.
    fn server(
        &self,
        config: &ContestConfig<'_>,
        arena: &mut Arena,
        contender: usize,
        load: &dyn Load,
    ) -> Subject {
        let resident = arena.resident(contender);
        let is_in_process = resident.dialect.is_in_process();
        let is_elsewhere = resident.backend.is_elsewhere();
        Subject {
            // What runs in the load process uses what that uses.
            pid: match is_in_process {
                true => load.pid(&config.plan.contenders[contender].name),
                false => arena.pid(contender),
            },
            disk: self.disk.clone().filter(|_| !is_elsewhere),
            is_load: is_in_process,
            is_elsewhere,
            overcounts_writes: self.overcounts_writes,
        }
    }

    /// Resources that a contender's server has used so far; `None` where they cannot be read here.
    pub fn used(
        &self,
        config: &ContestConfig<'_>,
        arena: &mut Arena,
        contender: usize,
        load: &dyn Load,
    ) -> Used {
        let server = self.server(config, arena, contender, load);
        if server.is_elsewhere || !config.provider.has_processes() {
            return Used::default();
        }
        Used::of(&server)
    }

    /// Caveat about the figures of servers on this machine, known before measuring.
    pub fn caveat(&self) -> Option<Notice> {
        self.overcounts_writes.then(|| bytes_written_by_disk(&[]))
    }

    pub fn end(&mut self, contender: usize, watch: TurnWatch) -> Observed {
        let (observer, observed) = watch.here.finish();
        self.each[contender] = Some(observer);
        let observed = match watch.there {
            Some(there) => {
                let seen = there.and_then(RemoteWatch::finish);
                let seen = seen.unwrap_or_else(|why| HostObserved::unwatched(&why));
                seen.beside(observed)
            }
            None => observed,
        };
        // Falls slowly, so that one cheap watch does not make the next ones frequent.
        self.cost_s = observed.cost_s().max(0.9 * self.cost_s);
        observed
    }
}

impl Contest<'_, '_> {
    /// Reports sources without data as a notice, not a failure.
    pub(super) fn say_what_is_missing(&mut self, name: &str, observed: &Observed) -> Result<()> {
        if observed.missing.is_empty() {
            return Ok(());
        }
        let missing = observed.missing.iter().map(|(_, what)| what.as_str());
        let missing: Vec<&str> = missing.collect();
        let claim = format!("not observed for `{name}`: {}", missing.join("; "));
        let remedy = "run where these are readable (same user, no container that hides them), or accept the gap";
        self.journal.notice(Notice::new(
            "observe.missing-source",
            Severity::Note,
            &[name],
            claim,
            remedy,
        ))?;
        Ok(())
    }
}
