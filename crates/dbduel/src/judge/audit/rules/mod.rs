//! What can be wrong with one side alone, or with the contest as a whole: rules are rows of a table.
//!
//! A rule about a contender says whether it applies to it; whether that is bias or merely makes the
//! result less relevant depends on the others, and is decided here. Limits called a rule of thumb are heuristics
//! and stand in the claim beside the number.
//!
//! Whether a run was long enough, and whether the machine was quiet, is judged from slices and
//! readings by the rules of the judge, not here.

mod client;
mod contest;
mod device;
mod disclosure;
mod engine;
mod explain;
mod memory;
mod option_file;
mod server;
mod taken;
#[cfg(test)]
mod tests;

use dbduel_record::event::Severity;

use super::case::{Case, Contest};
use super::classes::Weight;
use super::finding::{AuditFinding, Kind, RemedySetting, Side};
use super::reading::{self, Read};
use super::subject::{self, Subject};
use super::table::table;
use super::value::Value;

pub use taken::{NotTaken, not_taken};

/// One rule.
pub struct Rule {
    /// Stable name.
    pub id: &'static str,
    /// Its class; `I` for the contest as a whole.
    pub class: &'static str,
    /// How much it weighs when it hits one side only.
    pub weight: Weight,
    /// Why it matters, one sentence.
    pub why: &'static str,
    /// How it is checked.
    pub check: Check,
}

/// How a rule is checked.
#[derive(Clone, Copy)]
pub enum Check {
    /// For each contender: what is wrong with it, if anything.
    Contender(fn(&Look<'_>) -> Option<Hit>),
    /// Once for the contest. The rule's name, class and reason are filled in.
    Contest(fn(&Case) -> Vec<AuditFinding>),
    /// By comparing the facts of the rule's class.
    Facts,
}

/// A measured value that is less than this many times its limit, on one side alone, is no bias (a rule of thumb).
const EXCESS_MIN: f64 = 2.0;

/// How far a gauge of one server swings within a run (a rule of thumb): so many times less does its excess count.
const GAUGE_SWING: f64 = 2.0;

/// One contender of a case.
pub struct Look<'a> {
    /// The case.
    pub case: &'a Case,
    /// Which contender.
    pub index: usize,
}

/// What is wrong with a contender.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// What is wrong, a clause that follows the contender's name, with the numbers in it.
    pub what: String,
    /// What it rests on.
    pub from: Vec<Read>,
    /// What to do.
    pub remedy: String,
    /// Settings that would help.
    pub set: Vec<(String, String)>,
    /// Another weight than the rule's.
    pub severity: Option<Severity>,
    /// How many times the limit it is, for measured values.
    pub excess: Option<f64>,
}

impl Hit {
    fn new(what: String, remedy: &str) -> Self {
        Hit {
            what,
            from: Vec::new(),
            remedy: remedy.to_owned(),
            set: Vec::new(),
            severity: None,
            excess: None,
        }
    }

    fn excess(mut self, excess: f64) -> Self {
        self.excess = Some(excess);
        self
    }

    /// The excess of a value that is read once, at the end, and goes up and down during the run.
    fn gauge(self, excess: f64) -> Self {
        self.excess(excess / GAUGE_SWING)
    }

    fn from(mut self, look: &Look<'_>, names: &[&str]) -> Self {
        self.from = look.reads(names);
        self
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.set.push((name.to_owned(), value.to_owned()));
        self
    }
}

const fn contender(
    id: &'static str,
    class: &'static str,
    weight: Weight,
    why: &'static str,
    check: fn(&Look<'_>) -> Option<Hit>,
) -> Rule {
    Rule {
        id,
        class,
        weight,
        why,
        check: Check::Contender(check),
    }
}

const fn contest(
    id: &'static str,
    class: &'static str,
    why: &'static str,
    check: fn(&Case) -> Vec<AuditFinding>,
) -> Rule {
    Rule {
        id,
        class,
        weight: Weight::Performance,
        why,
        check: Check::Contest(check),
    }
}

const fn facts(id: &'static str, class: &'static str, why: &'static str) -> Rule {
    Rule {
        id,
        class,
        weight: Weight::Performance,
        why,
        check: Check::Facts,
    }
}

use Weight::{Durability, Performance};

/// The rule about option files that their servers do not take. What else is said of such a server is moot.
pub(super) const REFUSED_OPTION_FILE: &str = "R46";

/// Every rule.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    contender("R1", "P4", Performance, "A redo log that is soon full forces checkpoints, and throughput saws.", engine::redo_too_small),
    contender("R2", "P1", Performance, "A server that waits for free pages waits for its own flushing.", engine::waits_for_free_pages),
    contest("R2b", "P1", "A contest between data in memory and data on disk is not about the servers.", contest::data_against_pool),
    contender("R3", "P5", Performance, "The scan depth is per instance: the product is what the server walks through each second.", engine::scan_budget),
    contender("R4", "P15", Performance, "Tables that are closed to open others cost every statement that needs them.", server::table_cache),
    contender("R5", "P8", Performance, "A limit of threads inside the engine queues clients.", engine::admission),
    contender("R6", "P10", Performance, "The software checksum is much slower than crc32, which the server has.", engine::software_checksum),
    contender("R7", "P7", Performance, "Flushing neighbours wastes writes on devices that do not seek.", device::neighbours),
    contender("R8", "P22", Performance, "Clients that cannot connect do no work.", server::connections),
    contender("R9", "P15", Performance, "Without enough file handles caches shrink by themselves.", server::open_files),
    contender("R10", "P3", Performance, "Fewer page cleaners than instances leave instances waiting.", engine::starved_flushers),
    contender("R11", "P6", Performance, "The default I/O capacity is that of one rotating disk.", device::io_capacity),
    contender("R12", "P6", Performance, "Adaptive flushing and a hand-set I/O capacity both pace writes.", engine::adaptive_flushing),
    contender("R13", "P14", Performance, "A query cache answers without doing the work.", server::query_cache),
    facts("R14", "D4", "A binary log on one side is durable work that the other does not do."),
    facts("R15", "D3", "Doublewrite, checksums and syncs cost time and buy safety."),
    contender("R16", "D1", Durability, "Commits that claim a sync and show none are not durable.", engine::syncs_missing),
    contender("R17", "I", Performance, "A setting that did not take was not tested.", taken::rule),
    contender("R18", "P26", Performance, "A debug or 32-bit build is another server.", server::build),
    facts("R19", "P13", "Instrumentation costs time on the side that has it."),
    contender("R20", "P9", Performance, "A pool of another size than the machine is a limit of its own.", server::pool_size),
    contender("R21", "P22", Performance, "Creating a thread per connection costs more than most statements.", server::thread_cache),
    contest("R22", "P21", "Temporary tables on disk on one side are other work.", contest::temporary_tables),
    facts("R23", "P22", "TLS on one side encrypts every packet there."),
    facts("R24", "P23", "Prepared statements on one side skip parsing there."),
    contest("R25", "S6", "Transactions that fail are not work done.", contest::rollbacks),
    contender("R26", "P6", Performance, "Writes put off until after the run are borrowed throughput.", engine::debt),
    contender("R30", "S4", Performance, "Compression that was asked for and did not happen was not tested.", engine::compression_missing),
    contender("R31", "P7", Performance, "A virtual disk that claims to rotate keeps neighbour flushing alive.", device::claims_to_rotate),
    contender("R32", "D3", Durability, "On a device without atomic writes this setting removes torn-page protection.", device::atomic_writes),
    contender("R33", "P18", Performance, "A server that lost its asynchronous I/O reads and writes with a few threads.", device::lost_aio),
    contender("R34", "P24", Performance, "Huge pages bloat the memory of these allocators.", memory::huge_pages),
    contender("R35", "P1", Performance, "A value far outside the usual is often a wrong unit.", memory::envelope),
    contest("R36", "P29", "A result holds for the storage that it was measured on.", contest::one_platform),
    contest("R37", "I", "A difference without a cause is benchmarketing.", explain::unexplained),
    contest("R38", "I", "When several things differ at once nobody knows which made the difference.", contest::confounded),
    contender("R39", "I", Performance, "A setting that changed during the run makes two runs of one.", server::changed),
    contest("R40", "I", "What a server really ran with, and what it did, must be shown.", disclosure::missing_dumps),
    contest("R41", "P25", "Processors, threads and storage decide what a limit or a thread count means.", disclosure::missing_host),
    contender("R45", "I", Performance, "Counters begin anew with a server; what was not read before it ended is lost.", server::counters_lost),
    contender("R43", "P13", Performance, "An audit plugin writes or counts every statement.", server::watching_plugins),
    contender("R44", "D3", Durability, "Switching it off without atomic writes is for tests only.", device::no_doublewrite),
    contest(REFUSED_OPTION_FILE, "I", "A server that does not start with its option file did not run with it.", option_file::refused),
    contest("R47", "I", "What an option file includes may set anything.", option_file::incomplete),
    contest("R42", "P23", "Whether statements were prepared can move point reads by a fifth.", client::protocol_unknown),
];

/// The findings of every rule.
#[must_use]
pub fn check_all(case: &Case) -> Vec<AuditFinding> {
    let mut findings = Vec::new();
    let (subject, classes) = (Subject::of(case), subject::classes(case));
    for rule in RULES {
        let mut found = match rule.check {
            Check::Contender(check) => check_contenders(rule, check, case).into_iter().collect(),
            Check::Contest(check) => check(case)
                .into_iter()
                .map(|finding| named(rule, finding))
                .collect(),
            Check::Facts => Vec::new(),
        };
        let is_of_performance = rule.class.starts_with('P');
        if is_of_performance && (classes.contains(rule.class) || subject.has(rule.id)) {
            found.iter_mut().for_each(declare);
        }
        findings.extend(found);
    }
    findings
}

/// Makes a note of a doubt about performance in a class that the contest is about.
fn declare(finding: &mut AuditFinding) {
    if finding.severity == Severity::Doubt {
        finding.severity = Severity::Note;
        finding.kind = Kind::Declared;
        finding.claim.push_str(" The contest is about this.");
    }
}

fn named(rule: &Rule, mut finding: AuditFinding) -> AuditFinding {
    rule.id.clone_into(&mut finding.rule);
    rule.class.clone_into(&mut finding.class);
    rule.why.clone_into(&mut finding.why);
    finding
}

/// One finding for all contenders that the rule hits, weighed by whether it hits all.
fn check_contenders(
    rule: &Rule,
    check: fn(&Look<'_>) -> Option<Hit>,
    case: &Case,
) -> Option<AuditFinding> {
    let hits: Vec<(usize, Hit)> = (0..case.contenders.len())
        .filter_map(|index| Some((index, check(&Look { case, index })?)))
        .collect();
    let (_, first) = hits.first()?;
    let is_everywhere = hits.len() == case.contenders.len();
    let is_listed_only = case.contest != Contest::Equalised && rule.weight == Performance;
    // Of two equal servers one may be just above a limit and the other just below.
    let is_close = |(_, hit): &(usize, Hit)| hit.excess.is_some_and(|excess| excess < EXCESS_MIN);
    let is_chance = !is_everywhere && hits.iter().all(is_close);
    let heaviest = hits.iter().filter_map(|(_, hit)| hit.severity).max();
    let (kind, severity) = match heaviest {
        Some(severity) => (Kind::Misconfigured, severity),
        None if is_everywhere || is_listed_only || is_chance => {
            (Kind::Relevance, rule.weight.severity_unread())
        }
        None => (Kind::Misconfigured, rule.weight.severity()),
    };
    let rests_on_inference = |(index, hit): &(usize, Hit)| {
        let inferred = &case.contenders[*index].basis.inferred;
        hit.from.iter().any(|read| inferred.contains(&read.name))
    };
    let severity = if hits.iter().any(rests_on_inference) {
        Severity::Note
    } else {
        severity
    };
    let name = |index: usize| case.contenders[index].name.clone();
    let is_alike =
        is_everywhere && hits.len() > 1 && hits.iter().all(|(_, hit)| hit.what == first.what);
    let claim = if is_alike {
        format!("Each side {}.", first.what)
    } else {
        let clauses: Vec<String> = hits
            .iter()
            .map(|(index, hit)| format!("`{}` {}", name(*index), hit.what))
            .collect();
        format!("{}.", clauses.join("; "))
    };
    let evidence = hits
        .iter()
        .map(|(index, hit)| Side {
            contender: name(*index),
            value: hit.what.clone(),
            from: hit.from.clone(),
        })
        .collect();
    let remedy_settings = hits
        .iter()
        .flat_map(|(index, hit)| {
            hit.set.iter().map(|(setting, value)| RemedySetting {
                contender: name(*index),
                name: setting.clone(),
                value: value.clone(),
            })
        })
        .collect();
    Some(AuditFinding {
        rule: rule.id.to_owned(),
        class: rule.class.to_owned(),
        kind,
        severity,
        about: hits.iter().map(|(index, _)| name(*index)).collect(),
        favours: None,
        claim,
        why: rule.why.to_owned(),
        remedy: first.remedy.clone(),
        evidence,
        remedy_settings,
        waived: None,
    })
}

/// A finding about the contest; name, class and reason come from the table.
fn about_contest(kind: Kind, severity: Severity, claim: String, remedy: &str) -> AuditFinding {
    AuditFinding {
        rule: String::new(),
        class: String::new(),
        kind,
        severity,
        about: Vec::new(),
        favours: None,
        claim,
        why: String::new(),
        remedy: remedy.to_owned(),
        evidence: Vec::new(),
        remedy_settings: Vec::new(),
        waived: None,
    }
}

impl<'a> Look<'a> {
    fn server(&self) -> &'a super::evidence::ServerEvidence {
        &self.case.contenders[self.index]
    }

    /// A fact of this contender.
    fn fact(&self, name: &str) -> Option<Value> {
        reading::read(table().fact(name)?, self.case, self.index)
            .value()
            .cloned()
    }

    fn number(&self, fact: &str) -> Option<f64> {
        self.fact(fact)?.number()
    }

    /// What a variable says, as a switch.
    fn switch(&self, variable: &str) -> Option<bool> {
        Value::read(self.server().variables.get(variable)?).switch()
    }

    /// Names with what stands there; `after.` and `delta.` before the name of a counter.
    fn reads(&self, names: &[&str]) -> Vec<Read> {
        let server = self.server();
        let value = |name: &str| match name.split_once('.') {
            Some(("after", counter)) => server.status_after.get(counter).cloned(),
            Some(("delta", counter)) => server.delta(counter).map(|delta| delta.to_string()),
            _ => server.look_up(name).map(|(raw, _)| raw),
        };
        names
            .iter()
            .filter_map(|name| {
                Some(Read {
                    name: (*name).to_owned(),
                    value: value(name)?,
                })
            })
            .collect()
    }
}
