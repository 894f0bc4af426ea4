//! Throughput over time and who ran when, thinned so that a day fits a page.
//!
//! Stretches without any slice (a night between two sittings) are cut out and listed. Knows no
//! pixels; a chart may thin further.

use dbduel_record::event::{Event, SliceId};
use dbduel_record::rows::{ALL_CLASSES, SliceRow, TickRow};

use super::blocks::LevelBlocks;
use super::evidence::{Evidence, slice_of};
use super::summary::{Pause, Ran, Series, Stretch, Timeline, WarmUp};
use super::tracks;

/// Steps per series at most; neighbouring ticks are merged to get there.
const STEPS_MAX: usize = 900;
/// Stretches per series at most; neighbouring slices are merged to get there.
const STRETCHES_MAX: usize = 600;
/// Entries of the schedule at most; more cannot be told apart on a page.
const SCHEDULE_MAX: usize = 240;
/// A gap is cut out when it is longer than this and than a twentieth of the time under load.
const PAUSE_S: f64 = 120.0;

/// The timeline of all finished slices, those of incomplete blocks included.
#[must_use]
pub fn timeline(evidence: &Evidence<'_>) -> Timeline {
    let plan = evidence.plan();
    let is_planned = |row: &&SliceRow| {
        plan.blocks
            .get(row.block as usize)
            .is_some_and(|block| block.id == row.block)
    };
    let mut rows: Vec<&SliceRow> = evidence
        .record
        .slices
        .iter()
        .filter(|row| {
            row.class == ALL_CLASSES && row.measured_s > 0.0 && row.measured_s.is_finite()
        })
        .filter(is_planned)
        .collect();
    rows.sort_by_key(|row| (row.start_ms, row.block, row.position));
    if rows.is_empty() {
        return Timeline::default();
    }
    let warm_ups = warm_ups(evidence);
    let clock = Clock::new(&busy(&rows, &warm_ups));
    let mut timeline = Timeline {
        origin_ms: clock.origin_ms,
        length_s: rows
            .iter()
            .map(|row| clock.at_s(row.start_ms) + row.measured_s)
            .chain(
                warm_ups
                    .iter()
                    .map(|(start_ms, one)| clock.at_s(*start_ms) + one.length_s),
            )
            .fold(0.0, f64::max),
        pauses: clock.pauses.clone(),
        warm_ups: warm_ups
            .into_iter()
            .map(|(start_ms, warm_up)| WarmUp {
                start_s: clock.at_s(start_ms),
                ..warm_up
            })
            .collect(),
        ..Timeline::default()
    };
    let placed: Vec<(Ran, &SliceRow)> = rows
        .iter()
        .filter_map(|row| {
            let level = plan.blocks[row.block as usize].level;
            let contender = plan
                .contenders
                .iter()
                .position(|contender| contender.name == row.contender)?;
            let counts = is_counted(&evidence.levels[level], row.block);
            let start_s = clock.at_s(row.start_ms);
            Some((
                Ran {
                    start_s,
                    length_s: row.measured_s,
                    contender,
                    level,
                    block: row.block,
                    counts,
                },
                *row,
            ))
        })
        .collect();
    for level in 0..plan.levels.len() {
        for contender in 0..plan.contenders.len() {
            let own = placed
                .iter()
                .filter(|(ran, _)| ran.level == level && ran.contender == contender);
            let stretches = thin(own.map(|(ran, row)| stretch(ran, row, evidence)).collect());
            if !stretches.is_empty() {
                timeline.series.push(Series {
                    level,
                    contender,
                    stretches,
                });
            }
        }
    }
    let ran: Vec<(Ran, SliceId)> = placed
        .iter()
        .map(|(ran, row)| (*ran, slice_of(row)))
        .collect();
    timeline.tracks = tracks::tracks(evidence, &ran);
    timeline.checkpoints = tracks::checkpoints(evidence, &ran);
    timeline.schedule = placed
        .iter()
        .take(SCHEDULE_MAX)
        .map(|(ran, _)| *ran)
        .collect();
    timeline.schedule_omitted = placed.len().saturating_sub(SCHEDULE_MAX) as u32;
    timeline
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
                level,
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

/// Stretches under load from first to last, milliseconds since 1970-01-01 UTC.
fn busy(rows: &[&SliceRow], warm_ups: &[(u64, WarmUp)]) -> Vec<(u64, u64)> {
    let ms = |seconds: f64| (1e3 * seconds) as u64;
    let slices = rows.iter().map(|row| {
        let start_ms = row.start_ms.saturating_sub(ms(row.guard_s));
        (start_ms, row.start_ms + ms(row.measured_s))
    });
    let others = warm_ups
        .iter()
        .map(|(start_ms, warm_up)| (*start_ms, start_ms + ms(warm_up.length_s)));
    let mut busy: Vec<(u64, u64)> = slices.chain(others).collect();
    busy.sort_unstable();
    busy
}

/// Wall-clock time with the pauses cut out.
struct Clock {
    origin_ms: u64,
    pauses: Vec<Pause>,
    /// Real seconds since the origin at which each pause ends.
    ends_s: Vec<f64>,
}

impl Clock {
    /// A clock over stretches under load, which are sorted.
    fn new(busy: &[(u64, u64)]) -> Self {
        let origin_ms = busy.first().map_or(0, |(start_ms, _)| *start_ms);
        let since = |at_ms: u64| at_ms.saturating_sub(origin_ms) as f64 / 1e3;
        let lengths = busy.iter().map(|(start_ms, end_ms)| end_ms - start_ms);
        let longest_kept = PAUSE_S.max(lengths.sum::<u64>() as f64 / 1e3 / 20.0);
        let mut clock = Self {
            origin_ms,
            pauses: Vec::new(),
            ends_s: Vec::new(),
        };
        let (mut cut, mut end_ms) = (0.0, origin_ms);
        for (start_ms, until_ms) in busy {
            let length_s = since(*start_ms) - since(end_ms);
            if length_s > longest_kept {
                clock.pauses.push(Pause {
                    at_s: since(end_ms) - cut,
                    length_s,
                });
                clock.ends_s.push(since(*start_ms));
                cut += length_s;
            }
            end_ms = end_ms.max(*until_ms);
        }
        clock
    }

    fn at_s(&self, at_ms: u64) -> f64 {
        let since = at_ms.saturating_sub(self.origin_ms) as f64 / 1e3;
        let passed = self
            .pauses
            .iter()
            .zip(&self.ends_s)
            .filter(|(_, end)| **end <= since + 1e-9);
        since - passed.map(|(pause, _)| pause.length_s).sum::<f64>()
    }
}

fn stretch(ran: &Ran, row: &SliceRow, evidence: &Evidence<'_>) -> Stretch {
    let slice: SliceId = slice_of(row);
    Stretch {
        start_s: ran.start_s,
        length_s: row.measured_s,
        slices: 1,
        throughput_per_s: row.ok as f64 / row.measured_s.max(f64::MIN_POSITIVE),
        steps_per_s: rates(evidence.ticks(slice), 1),
    }
}

fn rates(ticks: &[&TickRow], merged: usize) -> Vec<f64> {
    ticks
        .chunks(merged)
        .map(|chunk| {
            let ok: u64 = chunk.iter().map(|tick| tick.ok).sum();
            ok as f64 / chunk.iter().map(|tick| tick.length_s).sum::<f64>()
        })
        .collect()
}

fn thin(stretches: Vec<Stretch>) -> Vec<Stretch> {
    let steps: usize = stretches
        .iter()
        .map(|stretch| stretch.steps_per_s.len())
        .sum();
    if steps <= STEPS_MAX {
        return stretches;
    }
    if stretches.len() * 3 <= STEPS_MAX {
        let merged = steps.div_ceil(STEPS_MAX);
        return stretches
            .into_iter()
            .map(|stretch| merge_steps(stretch, merged))
            .collect();
    }
    let merged = stretches.len().div_ceil(STRETCHES_MAX);
    stretches.chunks(merged).map(merge_stretches).collect()
}

fn merge_steps(mut stretch: Stretch, merged: usize) -> Stretch {
    let mean = |chunk: &[f64]| chunk.iter().sum::<f64>() / chunk.len() as f64;
    stretch.steps_per_s = stretch.steps_per_s.chunks(merged).map(mean).collect();
    stretch
}

fn merge_stretches(stretches: &[Stretch]) -> Stretch {
    let (first, last) = (&stretches[0], &stretches[stretches.len() - 1]);
    let active_s: f64 = stretches.iter().map(|stretch| stretch.length_s).sum();
    let ok: f64 = stretches
        .iter()
        .map(|stretch| stretch.throughput_per_s * stretch.length_s)
        .sum();
    Stretch {
        start_s: first.start_s,
        length_s: last.start_s + last.length_s - first.start_s,
        slices: stretches.iter().map(|stretch| stretch.slices).sum(),
        throughput_per_s: ok / active_s.max(f64::MIN_POSITIVE),
        steps_per_s: Vec::new(),
    }
}
