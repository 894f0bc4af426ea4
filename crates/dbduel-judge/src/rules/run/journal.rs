//! Rules about the course of the run and the state of its record.

use std::collections::BTreeMap;

use dbduel_audit::Finding;
use dbduel_record::event::{EndReason, Event, Severity, SliceId};
use dbduel_text::counts;

use super::RunEvidence;
use super::verdict::has_changed;
use crate::duel::steady::is_beyond;
use crate::judged::Judged;
use crate::summary::{CellCourse, Comparison, Duel, Scope, SteadyState};
use crate::workloads::has_fixed_work;

/// Complaints that are quoted; the rest is counted.
const COMPLAINTS_QUOTED: usize = 3;
/// Lost slices whose reason is quoted.
const LOST_QUOTED: usize = 3;

fn events<'a>(run: &'a RunEvidence<'_>) -> impl Iterator<Item = &'a Event> {
    run.evidence.record.events.iter().map(|event| &event.what)
}

pub fn not_steady(run: &RunEvidence<'_>) -> Vec<Finding> {
    // Such a warm-up ends with its work, however steady the throughput was.
    let workload = &run.evidence.plan().workload;
    if has_fixed_work(&workload.name, &workload.parameters) {
        return Vec::new();
    }
    // Every start of the servers has a warm-up. On a busy machine none of them ends steady, hence one finding for all
    // contenders, and only where the measurement shows that it matters.
    let mut warm_ups: BTreeMap<&str, Vec<(f64, bool)>> = BTreeMap::new();
    for event in events(run) {
        if let Event::WarmedUp {
            contender,
            seconds,
            steady,
            level: None,
            ..
        } = event
        {
            let own = warm_ups.entry(contender).or_default();
            own.push((*seconds, *steady));
        }
    }
    let mut unsteady: Vec<(&str, String)> = Vec::new();
    let mut longest_s: f64 = 0.0;
    let mut worst = None;
    for (name, own) in warm_ups {
        let ended: Vec<f64> = own
            .iter()
            .filter(|(_, steady)| !steady)
            .map(|(seconds, _)| *seconds)
            .collect();
        let changed = changed_since(run.judged, name);
        if ended.is_empty() || changed.is_none() {
            continue;
        }
        worst = worst.max(changed);
        longest_s = ended.iter().copied().fold(longest_s, f64::max);
        unsteady.push(match own.len() {
            1 => (name, format!("`{name}`")),
            all => (name, format!("`{name}` in {} of {all} starts", ended.len())),
        });
    }
    let Some(worst) = worst else {
        return Vec::new();
    };
    let (names, shares): (Vec<&str>, Vec<String>) = unsteady.into_iter().unzip();
    let (severity, meaning) = match worst {
        Changed::NotChecked => (
            Severity::Note,
            "Too few slices to show whether throughput changed during the measurement.",
        ),
        Changed::Figures => (
            Severity::Note,
            "Throughput changed during the measurement: figures of single contenders are means over a changing state.",
        ),
        Changed::Ratio => (
            Severity::Doubt,
            "Throughput relative to the other contenders changed during the measurement.",
        ),
    };
    let claim = format!(
        "Warm-up ended without a steady state after at most {longest_s:.0} s: {}. {meaning}",
        shares.join(", ")
    );
    let remedy = "Use a longer warm-up; on a noisy machine a steady state may never be shown.";
    vec![Finding::new(severity, &names, claim, remedy)]
}

/// Change of a contender's throughput while it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    /// Not known: too few slices.
    NotChecked,
    /// In its own figures.
    Figures,
    /// In a ratio too.
    Ratio,
}

/// The largest change of a contender over all levels; `None` where none is shown.
fn changed_since(judged: &Judged, name: &str) -> Option<Changed> {
    let at = |duel: &Duel| {
        let is_about_it = |one: &&Comparison| one.contender == name || judged.baseline == name;
        let mut courses = duel.contenders.iter();
        let course = courses.find(|one| one.contender == name)?.course.as_ref()?;
        if duel.comparisons.iter().filter(is_about_it).any(has_changed) {
            return Some(Changed::Ratio);
        }
        match course.state {
            SteadyState::NeverSettled if is_beyond(&course.own_change, CellCourse::TOLERANCE) => {
                Some(Changed::Ratio)
            }
            SteadyState::NeverSettled => Some(Changed::Figures),
            _ if course.transient.is_some() => Some(Changed::Figures),
            _ if course.change.interval().is_none() => Some(Changed::NotChecked),
            SteadyState::Steady | SteadyState::NotShown => None,
        }
    };
    judged.duels.iter().filter_map(at).max()
}

pub fn server_died(run: &RunEvidence<'_>) -> Vec<Finding> {
    let deaths = events(run).filter_map(|event| match event {
        Event::ServerDied { contender, how } => Some((contender.as_str(), how)),
        _ => None,
    });
    deaths
        .map(|(name, how)| {
            let claim = format!("`{name}` died during the run: {how}");
            Finding::new(
                Severity::Doubt,
                &[name],
                claim,
                "Read the server's log where the record has it (not with the workload `captured`), and the kernel log, which names processes killed for lack of memory.",
            )
        })
        .collect()
}

pub fn lost_slices(run: &RunEvidence<'_>) -> Vec<Finding> {
    let lost: Vec<(SliceId, &str)> = events(run)
        .filter_map(|event| match event {
            Event::SliceLost { slice, why, .. } => Some((*slice, why.as_str())),
            _ => None,
        })
        .collect();
    if lost.is_empty() {
        // The last block of an interrupted run is no mystery; `run.unfinished` speaks of it.
        return Vec::new();
    }
    let plan = run.evidence.plan();
    let mut of_each: BTreeMap<&str, u64> = BTreeMap::new();
    for (slice, _) in &lost {
        let block = plan.blocks.get(slice.block as usize);
        let contender = block.and_then(|block| block.order.get(slice.position as usize));
        if let Some(contender) = contender.and_then(|index| plan.contenders.get(*index)) {
            *of_each.entry(&contender.name).or_default() += 1;
        }
    }
    let of_each = of_each
        .iter()
        .map(|(name, count)| format!("{count} of `{name}`"));
    let quoted = lost.iter().take(LOST_QUOTED);
    let mut reasons: Vec<String> = quoted
        .map(|(slice, why)| format!("{slice}: {why}"))
        .collect();
    if lost.len() > LOST_QUOTED {
        reasons.push(format!("and {} more", lost.len() - LOST_QUOTED));
    }
    let claim = format!(
        "{} lost ({}): {}. {} left out.",
        counts::things(lost.len() as u64, "slice"),
        of_each.collect::<Vec<_>>().join(", "),
        reasons.join("; "),
        match run.judged.run.blocks_incomplete {
            1 => "1 block was".to_owned(),
            count => format!("{count} blocks were"),
        }
    );
    let remedy = "See events.jsonl. A server that loses more slices than the others is less available; a load process \
                  that stalled was stopped or had no CPU.";
    vec![Finding::new(Severity::Doubt, &[], claim, remedy)]
}

/// Advice on a record that was extended: it stays valid, at a price.
const EXTENDED: &str = "The error probability holds for extended records. Where starts of a server may differ, run the experiment \
     again with the whole budget, or with `epochs` in [schedule].";
const EXTENDED_AND_RESUMED: &str = "Run the experiment again with the whole budget and without interruption, or with `epochs` in [schedule].";

pub fn resumed(run: &RunEvidence<'_>) -> Vec<Finding> {
    // Where starts are the units, one more of them is no flaw.
    if run.judged.scope == Scope::TheseServers {
        return Vec::new();
    }
    let again = StartsAgain::of(events(run));
    let (what, remedy) = match again {
        StartsAgain {
            extended: 0,
            interrupted: 0,
        } => return Vec::new(),
        StartsAgain { extended: 0, .. } => ("resumed", "Repeat it without interruption."),
        StartsAgain { interrupted: 0, .. } => ("extended", EXTENDED),
        _ => ("extended and resumed", EXTENDED_AND_RESUMED),
    };
    let claim = format!(
        "The run was {what}: its blocks come from {} starts of all servers, treated as one. If starts differ, the \
         interval is too narrow.",
        1 + again.extended + again.interrupted
    );
    vec![Finding::new(Severity::Doubt, &[], claim, remedy)]
}

/// Why all servers were started again.
#[derive(Debug, Default, Clone, Copy)]
struct StartsAgain {
    /// The run had come to its end and was given more.
    extended: usize,
    /// The run had stopped before its end.
    interrupted: usize,
}

impl StartsAgain {
    fn of<'e>(events: impl Iterator<Item = &'e Event>) -> Self {
        let mut again = Self::default();
        // How the last run ended; nothing before the first, and no reason where it was killed.
        let mut last: Option<Option<EndReason>> = None;
        for event in events {
            match (event, last) {
                (Event::Started { .. }, before) => {
                    match before {
                        None => {}
                        Some(Some(EndReason::Decided | EndReason::BudgetSpent)) => {
                            again.extended += 1;
                        }
                        Some(_) => again.interrupted += 1,
                    }
                    last = Some(None);
                }
                (Event::Ended { reason }, Some(_)) => last = Some(Some(*reason)),
                _ => {}
            }
        }
        again
    }
}

pub fn extended(run: &RunEvidence<'_>) -> Vec<Finding> {
    let Some(extensions) = run.evidence.record.extensions() else {
        return Vec::new();
    };
    let claim = format!(
        "The run was extended beyond its plan ({}): {:.0} s of load and {} were added. Blocks beyond the planned \
         ones are decided with the reserve of the error probability.",
        counts::things(extensions.count as u64, "extension"),
        extensions.used_s,
        counts::things(extensions.blocks as u64, "block"),
    );
    vec![Finding::new(
        Severity::Note,
        &[],
        claim,
        "Extending is valid. A larger budget from the start decides sooner.",
    )]
}

pub fn unfinished(run: &RunEvidence<'_>) -> Vec<Finding> {
    let run = &run.judged.run;
    let (severity, what) = match run.ended {
        Some(EndReason::Decided | EndReason::BudgetSpent) => return Vec::new(),
        Some(EndReason::Interrupted) => (Severity::Note, "was interrupted"),
        Some(EndReason::Failed) => (Severity::Doubt, "failed"),
        None => (Severity::Note, "has no recorded end"),
    };
    let claim = format!(
        "The run {what}; {} and {} begun.",
        match run.blocks_complete {
            1 => "1 block is complete".to_owned(),
            count => format!("{count} blocks are complete"),
        },
        run.blocks_incomplete
    );
    vec![Finding::new(
        severity,
        &[],
        claim,
        "Resume it with `dbduel run DIR`.",
    )]
}

pub fn complaints(run: &RunEvidence<'_>) -> Vec<Finding> {
    let complaints = &run.evidence.record.complaints;
    if complaints.is_empty() {
        return Vec::new();
    }
    let quoted: Vec<String> = complaints
        .iter()
        .take(COMPLAINTS_QUOTED)
        .map(|complaint| match complaint.line {
            0 => format!("{}: {}", complaint.file, complaint.why),
            line => format!("{} line {line}: {}", complaint.file, complaint.why),
        })
        .collect();
    let claim = format!(
        "{} of the record {} unreadable and left out: {}{}.",
        counts::things(complaints.len() as u64, "part"),
        if complaints.len() == 1 { "was" } else { "were" },
        quoted.join("; "),
        match complaints.len().saturating_sub(COMPLAINTS_QUOTED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        }
    );
    // Earlier versions left the line that a crash tore in its file; more than one is damage.
    let severity = if complaints.len() == 1 {
        Severity::Note
    } else {
        Severity::Doubt
    };
    vec![Finding::new(
        severity,
        &[],
        claim,
        "Compare with a copy of the record; `dbduel verify` names the changed files.",
    )]
}
