//! Throughput over time and who ran when, thinned so that a day fits a page.
//!
//! Stretches without any slice (a night between two sittings) are cut out and listed. A chart may thin further.

mod axis;

use std::collections::BTreeMap;

use dbduel_record::event::{Event, SliceId};
use dbduel_record::rows::{ALL_CLASSES, SliceRow, TickRow};
use serde::Serialize;

use super::tracks::{self, Checkpoint, Track};
use crate::evidence::Evidence;
use crate::evidence::blocks::LevelBlocks;
use axis::{Clock, thin};

/// Entries of the schedule at most; more cannot be distinguished on a page.
const SCHEDULE_MAX: usize = 240;

/// Throughput over time and who ran when.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeline {
    /// Zero of all times below, milliseconds since 1970-01-01 UTC.
    pub origin_ms: u64,
    /// Length of the whole timeline with pauses cut out, seconds.
    pub length_s: f64,
    /// Long stretches without any slice, cut out of the times below.
    pub pauses: Vec<Pause>,
    /// Warm-ups, which do not count.
    #[serde(default)]
    pub warm_ups: Vec<WarmUp>,
    /// Pilots and rounds of the continuity check, which are no part of the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<Apart>,
    /// Throughput of each contender at each level.
    pub series: Vec<Series>,
    /// Second-by-second readings of the samplers.
    #[serde(default)]
    pub tracks: Vec<Track>,
    /// When a server's log was emptied by much at once; the largest only when there are very many.
    #[serde(default)]
    pub checkpoints: Vec<Checkpoint>,
    /// Who ran when; the first slices only when there are very many.
    pub schedule: Vec<Ran>,
    /// Slices that are left out of `schedule`.
    pub schedule_omitted: u32,
}

/// A warm-up on the timeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WarmUp {
    /// Index into `Summary::contenders`.
    pub contender: usize,
    /// Index into the plan's levels of the load that it ran under: the one with most clients.
    pub level: usize,
    /// Start, seconds of the timeline.
    pub start_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// True when a steady state ended it, false when the cap did.
    pub steady: bool,
    /// Committed transactions per second in equal steps; empty when the record does not have them.
    pub steps_per_s: Vec<f64>,
}

/// Load outside of warm-ups and blocks, of all contenders.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Apart {
    /// Start, seconds of the timeline.
    pub start_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// Index into the plan's levels.
    pub level: usize,
    /// Its purpose.
    pub purpose: ApartPurpose,
}

/// Purpose of load outside of warm-ups and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ApartPurpose {
    /// A pilot chose the length of turns, and checked how they compare with load without a switch.
    Pilot,
    /// Long turns between blocks.
    LongTurns,
}

/// A stretch that is cut out of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pause {
    /// Where, seconds of the timeline.
    pub at_s: f64,
    /// Length, seconds.
    pub length_s: f64,
}

/// Throughput of one contender at one level over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Index into the plan's levels.
    pub level: usize,
    /// Index into `Summary::contenders`.
    pub contender: usize,
    /// Stretches without a gap, one per slice unless slices had to be merged.
    pub stretches: Vec<Stretch>,
}

/// Throughput in equal steps from a moment on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stretch {
    /// Start, seconds of the timeline.
    pub start_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// Number of slices in it.
    pub slices: u32,
    /// Committed transactions per second over all of it.
    pub throughput_per_s: f64,
    /// The same in equal steps; empty when it was thinned away.
    pub steps_per_s: Vec<f64>,
}

/// One entry of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ran {
    /// Start, seconds of the timeline.
    pub start_s: f64,
    /// Measured length, seconds.
    pub length_s: f64,
    /// Index into `Summary::contenders`.
    pub contender: usize,
    /// Index into the plan's levels.
    pub level: usize,
    /// `Block::id` of the plan.
    pub block: u32,
    /// False when its block does not count.
    pub counts: bool,
}

/// The timeline of all finished slices, those of incomplete blocks included.
#[must_use]
pub fn timeline(evidence: &Evidence<'_>) -> Timeline {
    let rows = finished(evidence);
    if rows.is_empty() {
        return Timeline::default();
    }
    let warm_ups = warm_ups(evidence);
    let apart = apart(evidence);
    let clock = Clock::new(&busy(&rows, &warm_ups, &apart));
    let warm_ups: Vec<WarmUp> = warm_ups
        .into_iter()
        .map(|(start_ms, warm_up)| WarmUp {
            start_s: clock.at_s(start_ms),
            ..warm_up
        })
        .collect();
    let slices = rows
        .iter()
        .map(|row| clock.at_s(row.start_ms) + row.measured_s);
    let others = warm_ups.iter().map(|one| one.start_s + one.length_s);
    let length_s = slices.chain(others).fold(0.0, f64::max);
    let placed: Vec<(Ran, &SliceRow)> = rows
        .iter()
        .filter_map(|row| Some((ran(evidence, row, &clock)?, *row)))
        .collect();
    let ran: Vec<(Ran, SliceId)> = placed
        .iter()
        .map(|(ran, row)| (*ran, row.slice()))
        .collect();
    Timeline {
        origin_ms: clock.origin_ms,
        length_s,
        series: series(evidence, &placed),
        tracks: tracks::tracks(evidence, &ran),
        checkpoints: tracks::checkpoints(evidence, &ran),
        schedule: ran.iter().take(SCHEDULE_MAX).map(|(ran, _)| *ran).collect(),
        schedule_omitted: ran.len().saturating_sub(SCHEDULE_MAX) as u32,
        apart: apart
            .into_iter()
            .map(|(start_ms, apart)| Apart {
                start_s: clock.at_s(start_ms),
                ..apart
            })
            .collect(),
        pauses: clock.pauses,
        warm_ups,
    }
}

/// Slices with a length that the plan knows, in the order of their start.
fn finished<'a>(evidence: &Evidence<'a>) -> Vec<&'a SliceRow> {
    let plan = evidence.plan();
    let is_planned = |row: &&SliceRow| {
        plan.blocks
            .get(row.block as usize)
            .is_some_and(|block| block.id == row.block)
    };
    let has_length = |row: &&SliceRow| row.measured_s > 0.0 && row.measured_s.is_finite();
    let slices = evidence.record.slices.iter();
    let mut rows: Vec<&SliceRow> = slices
        .filter(|row| row.class == ALL_CLASSES)
        .filter(has_length)
        .filter(is_planned)
        .collect();
    rows.sort_by_key(|row| (row.start_ms, row.block, row.position));
    rows
}

/// From the begin of a slice to its end, seconds; of one in several turns from the first to the last.
fn extent_s(evidence: &Evidence<'_>, row: &SliceRow) -> f64 {
    let block = &evidence.plan().blocks[row.block as usize];
    let last = evidence.ticks(row.slice()).last();
    match last.filter(|_| block.repeats > 1) {
        Some(last) => last.offset_s + last.length_s,
        None => row.measured_s,
    }
}

/// Where a slice stands on the timeline; `None` for a contender that the plan does not know.
fn ran(evidence: &Evidence<'_>, row: &SliceRow, clock: &Clock) -> Option<Ran> {
    let plan = evidence.plan();
    let level = plan.blocks[row.block as usize].level;
    let mut contenders = plan.contenders.iter();
    Some(Ran {
        start_s: clock.at_s(row.start_ms),
        length_s: extent_s(evidence, row),
        contender: contenders.position(|contender| contender.name == row.contender)?,
        level,
        block: row.block,
        counts: is_counted(&evidence.levels[level], row.block),
    })
}

/// Throughput of every contender at every level that it ran at.
fn series(evidence: &Evidence<'_>, placed: &[(Ran, &SliceRow)]) -> Vec<Series> {
    let plan = evidence.plan();
    let of = |level: usize, contender: usize| {
        let own = placed
            .iter()
            .filter(|(ran, _)| ran.level == level && ran.contender == contender);
        let stretches = thin(own.map(|(ran, row)| stretch(ran, row, evidence)).collect());
        (!stretches.is_empty()).then_some(Series {
            level,
            contender,
            stretches,
        })
    };
    let levels = 0..plan.levels.len();
    levels
        .flat_map(|level| {
            (0..plan.contenders.len()).filter_map(move |contender| of(level, contender))
        })
        .collect()
}

fn is_counted(level: &LevelBlocks<'_>, block: u32) -> bool {
    level
        .complete
        .binary_search_by_key(&block, |complete| complete.block.id)
        .is_ok()
}

/// The warm-ups with their starts, milliseconds since 1970-01-01 UTC. The journal has a line when one ends.
fn warm_ups(evidence: &Evidence<'_>) -> Vec<(u64, WarmUp)> {
    let plan = evidence.plan();
    let heaviest = plan.levels.iter().enumerate();
    let Some((level, _)) = heaviest.max_by_key(|(_, level)| level.clients) else {
        return Vec::new();
    };
    let found = evidence.record.events.iter().filter_map(|event| {
        let Event::WarmedUp {
            contender,
            seconds,
            steady,
            steps_per_s,
            level: own,
        } = &event.what
        else {
            return None;
        };
        let is_length = seconds.is_finite() && *seconds > 0.0;
        let contender = plan
            .contenders
            .iter()
            .position(|one| one.name == *contender)?;
        is_length.then(|| {
            let warm_up = WarmUp {
                contender,
                level: own.filter(|own| *own < plan.levels.len()).unwrap_or(level),
                start_s: 0.0,
                length_s: *seconds,
                steady: *steady,
                steps_per_s: steps_per_s.clone(),
            };
            (event.at_ms.saturating_sub((1e3 * seconds) as u64), warm_up)
        })
    });
    found.collect()
}

/// Pilots and rounds of long turns with their starts, milliseconds since 1970-01-01 UTC. The journal has a line when one ends, and how
/// much load it took; switches take some more time.
fn apart(evidence: &Evidence<'_>) -> Vec<(u64, Apart)> {
    let mut found = Vec::new();
    // Where the rehearsals of a level's pilot began, which follow its trials of lengths.
    let mut rehearsals: BTreeMap<usize, u64> = BTreeMap::new();
    for event in &evidence.record.events {
        let ms = |seconds: f64| (1e3 * seconds) as u64;
        let (level, seconds, purpose, end_ms) = match &event.what {
            // Of a pilot that was interrupted nothing is used.
            Event::Started { .. } => {
                rehearsals.clear();
                continue;
            }
            Event::ContinuityRound(round) if round.in_turns.is_empty() => (
                round.level,
                round.seconds,
                ApartPurpose::LongTurns,
                event.at_ms,
            ),
            Event::ContinuityRound(round) => {
                let start_ms = event.at_ms.saturating_sub(ms(round.seconds));
                rehearsals.entry(round.level).or_insert(start_ms);
                (round.level, round.seconds, ApartPurpose::Pilot, event.at_ms)
            }
            Event::TurnsChosen { level, choice, .. } => {
                let end_ms = rehearsals.remove(level).unwrap_or(event.at_ms);
                (*level, choice.seconds, ApartPurpose::Pilot, end_ms)
            }
            _ => continue,
        };
        if seconds.is_finite() && seconds > 0.0 {
            let apart = Apart {
                start_s: 0.0,
                length_s: seconds,
                level,
                purpose,
            };
            found.push((end_ms.saturating_sub(ms(seconds)), apart));
        }
    }
    found
}

/// Stretches under load from first to last, milliseconds since 1970-01-01 UTC.
fn busy(rows: &[&SliceRow], warm_ups: &[(u64, WarmUp)], apart: &[(u64, Apart)]) -> Vec<(u64, u64)> {
    let ms = |seconds: f64| (1e3 * seconds) as u64;
    let slices = rows.iter().map(|row| {
        let start_ms = row.start_ms.saturating_sub(ms(row.guard_s));
        (start_ms, row.start_ms + ms(row.measured_s))
    });
    let others = warm_ups
        .iter()
        .map(|(start_ms, warm_up)| (*start_ms, start_ms + ms(warm_up.length_s)));
    let apart = apart
        .iter()
        .map(|(start_ms, apart)| (*start_ms, start_ms + ms(apart.length_s)));
    let mut busy: Vec<(u64, u64)> = slices.chain(others).chain(apart).collect();
    busy.sort_unstable();
    busy
}

fn stretch(ran: &Ran, row: &SliceRow, evidence: &Evidence<'_>) -> Stretch {
    let slice: SliceId = row.slice();
    Stretch {
        start_s: ran.start_s,
        length_s: ran.length_s,
        slices: 1,
        throughput_per_s: row.ok as f64 / row.measured_s.max(f64::MIN_POSITIVE),
        steps_per_s: rates(evidence.ticks(slice)),
    }
}

fn rates(ticks: &[&TickRow]) -> Vec<f64> {
    let rates = ticks.iter().map(|tick| tick.ok as f64 / tick.length_s);
    rates.collect()
}
