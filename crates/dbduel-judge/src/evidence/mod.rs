//! A record, indexed by slice and by level, so that no rule has to search.
//!
//! Interprets nothing: it says what belongs together. Rows that a crash left twice count once, with
//! the later ones.

pub mod blocks;
pub mod figures;
pub mod reports;

use std::collections::BTreeMap;

use dbduel_record::event::SliceId;
use dbduel_record::latency::{Interval, new_histogram};
use dbduel_record::rows::{ALL_CLASSES, SecondRow, SliceRow, TickRow};
use dbduel_record::{Plan, Record};
use hdrhistogram::Histogram;

use blocks::{CompleteBlock, LevelBlocks};
use reports::Reports;

/// Relative difference between a slice and the time over which its counters were read, from which it is reported.
pub const WINDOW_ERROR: f64 = 0.2;

/// Share of short turns that samplers must have seen of a slice for their counters to be taken as those of all of it.
const WATCHED_SHARE_MIN: f64 = 0.5;

/// Groups of counters that are read over a time of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Those of the kernel: of processes, threads, devices and the machine.
    Kernel,
    /// Counters that the server reports.
    Engine,
}

/// A record with its indices.
pub struct Evidence<'a> {
    pub record: &'a Record,
    /// The blocks of each level.
    pub levels: Vec<LevelBlocks<'a>>,
    /// Of each level, the complete blocks that samplers looked at: all, or where turns are short some of them.
    watched: Vec<Vec<CompleteBlock<'a>>>,
    ticks: BTreeMap<SliceId, Vec<&'a TickRow>>,
    seconds: BTreeMap<SliceId, Vec<&'a SecondRow>>,
    readings: BTreeMap<(SliceId, &'a str, &'a str), f64>,
    latencies: BTreeMap<SliceId, BTreeMap<&'a str, &'a Interval>>,
    measured_s: BTreeMap<SliceId, f64>,
    /// Where sessions count for a server.
    pub reports: Reports,
}

impl<'a> Evidence<'a> {
    /// Indexes `record`.
    #[must_use]
    pub fn of(record: &'a Record) -> Self {
        let plan = &record.plan;
        let begun = record.begun_blocks();
        let levels: Vec<LevelBlocks<'_>> = (0..plan.levels.len())
            .map(|level| {
                let mut blocks = LevelBlocks::sort(plan, &record.slices, level);
                blocks.leave_out(plan, &begun, level);
                blocks
            })
            .collect();
        let readings = record.readings.iter().map(|reading| {
            let slice = SliceId {
                block: reading.block,
                position: reading.position,
            };
            (
                (slice, reading.source.as_str(), reading.metric.as_str()),
                reading.value,
            )
        });
        let mut latencies: BTreeMap<SliceId, BTreeMap<&str, &Interval>> = BTreeMap::new();
        for interval in &record.latencies {
            let slice = SliceId {
                block: interval.block,
                position: interval.position,
            };
            latencies
                .entry(slice)
                .or_default()
                .insert(&interval.class, interval);
        }
        let mut seconds: BTreeMap<SliceId, Vec<&SecondRow>> = BTreeMap::new();
        for row in &record.seconds {
            let slice = SliceId {
                block: row.block,
                position: row.position,
            };
            seconds.entry(slice).or_default().push(row);
        }
        let readings: BTreeMap<(SliceId, &str, &str), f64> = readings.collect();
        let reports = Reports::of(record, |slice, source, metric| {
            readings.get(&(slice, source, metric)).copied()
        });
        let mut evidence = Self {
            record,
            reports,
            watched: Vec::new(),
            levels,
            ticks: index_ticks(&record.ticks),
            seconds,
            readings,
            latencies,
            measured_s: record
                .slices
                .iter()
                .filter(|row| row.class == ALL_CLASSES)
                .map(|row| (row.slice(), row.measured_s))
                .collect(),
        };
        let watched = (0..).zip(&evidence.levels).map(|(level, blocks)| {
            let is_seen = |row: &&SliceRow| {
                let slice = row.slice();
                let has = |window| evidence.window_share(slice, window).is_some();
                has(Window::Kernel) && evidence.is_watched(slice, Window::Kernel)
            };
            let is_watched = |block: &&CompleteBlock<'_>| {
                !plan.turns.contains_key(&level) || block.rows.iter().all(is_seen)
            };
            blocks.complete.iter().filter(is_watched).cloned().collect()
        });
        evidence.watched = watched.collect();
        evidence
    }

    #[must_use]
    pub fn plan(&self) -> &'a Plan {
        &self.record.plan
    }

    /// The complete blocks of a level that samplers looked at.
    #[must_use]
    pub fn watched(&self, level: usize) -> &[CompleteBlock<'a>] {
        &self.watched[level]
    }

    /// The ticks of a slice after its guard, in order.
    #[must_use]
    pub fn ticks(&self, slice: SliceId) -> &[&'a TickRow] {
        self.ticks.get(&slice).map_or(&[], Vec::as_slice)
    }

    /// Second-by-second readings of samplers in a slice, in the order of reading.
    #[must_use]
    pub fn seconds(&self, slice: SliceId) -> &[&'a SecondRow] {
        self.seconds.get(&slice).map_or(&[], Vec::as_slice)
    }

    #[must_use]
    pub fn reading(&self, slice: SliceId, source: &str, metric: &str) -> Option<f64> {
        self.readings.get(&(slice, source, metric)).copied()
    }

    /// The increase of a counter over the measured part of a slice. On a busy machine the samplers see a
    /// little less or more than that part; the increase is taken to be even over time, or over transactions where sessions report
    /// what they did.
    #[must_use]
    pub fn used(&self, slice: SliceId, source: &str, metric: &str) -> Option<f64> {
        let seen = self.reading(slice, source, metric)?;
        if let Some(used) = self.reports.used(slice, source, metric, seen) {
            return used;
        }
        let window = match source {
            "server" | "host" => Window::Kernel,
            "engine" | "waits" => Window::Engine,
            // The load process reads its own clock at both ends.
            _ => return Some(seen),
        };
        let share = self.window_share(slice, window);
        let is_seen = self.is_watched(slice, window);
        is_seen.then(|| share.map_or(seen, |share| seen / share))
    }

    /// False when samplers saw less than half of the short turns of a slice: their readings then represent nothing.
    fn is_watched(&self, slice: SliceId, window: Window) -> bool {
        self.reading(slice, "observer", "watched_s").is_none()
            || (self.watched_share(slice, window)).is_none_or(|share| share >= WATCHED_SHARE_MIN)
    }

    /// As [`Evidence::window_share`], of the turns that were watched.
    #[must_use]
    pub fn watched_share(&self, slice: SliceId, window: Window) -> Option<f64> {
        let of_slice = self.window_share(slice, window)?;
        let watched_s = self.reading(slice, "observer", "watched_s");
        let watched_s = watched_s.filter(|watched_s| *watched_s > 0.0);
        let measured_s = self.measured_s.get(&slice)?;
        Some(watched_s.map_or(of_slice, |watched_s| of_slice * measured_s / watched_s))
    }

    /// Over how much of the measured part of a slice the counters of that kind were read; above 1 for longer.
    #[must_use]
    pub fn window_share(&self, slice: SliceId, window: Window) -> Option<f64> {
        let metric = match window {
            Window::Kernel => "window_s",
            Window::Engine => "engine_window_s",
        };
        let seen_s = self.reading(slice, "observer", metric);
        let seen_s = seen_s.filter(|seen_s| *seen_s > 0.0)?;
        let measured_s = self
            .measured_s
            .get(&slice)
            .filter(|length| **length > 0.0)?;
        Some(seen_s / measured_s)
    }

    /// Processor time of `source` in a slice, user and system, seconds; without what load threads polled in vain, which is
    /// no work and grows with the time that servers take.
    #[must_use]
    pub fn cpu_s(&self, slice: SliceId, source: &str) -> Option<f64> {
        let user = self.used(slice, source, "cpu_user_s")?;
        let system = self.used(slice, source, "cpu_system_s")?;
        let polled = self.used(slice, source, "polled_s").unwrap_or(0.0);
        Some((user + system - polled).max(0.0))
    }

    /// The latencies of one class of a slice.
    #[must_use]
    pub fn class_latencies(&self, slice: SliceId, class: &str) -> Option<Histogram<u64>> {
        Some(self.latencies.get(&slice)?.get(class)?.histogram.unpack())
    }

    /// The latencies of all classes of a slice; `None` when the log has nothing about it.
    #[must_use]
    pub fn latencies(&self, slice: SliceId) -> Option<Histogram<u64>> {
        let classes = self.latencies.get(&slice)?;
        if let Some(all) = classes.get(ALL_CLASSES) {
            return Some(all.histogram.unpack());
        }
        let mut merged = new_histogram();
        for interval in classes.values() {
            merged.add(interval.histogram.unpack()).ok()?;
        }
        Some(merged)
    }
}

fn index_ticks(ticks: &[TickRow]) -> BTreeMap<SliceId, Vec<&TickRow>> {
    let mut index: BTreeMap<SliceId, Vec<&TickRow>> = BTreeMap::new();
    for tick in ticks
        .iter()
        .filter(|tick| tick.offset_s >= 0.0 && tick.length_s > 0.0)
    {
        let slice = index
            .entry(SliceId {
                block: tick.block,
                position: tick.position,
            })
            .or_default();
        // Time that does not go on means that the slice was run again.
        if slice
            .last()
            .is_some_and(|last| tick.offset_s <= last.offset_s)
        {
            slice.clear();
        }
        slice.push(tick);
    }
    index
}
