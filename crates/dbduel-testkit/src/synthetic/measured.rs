//! What one synthetic slice measured.

use dbduel_record::event::SliceId;
use dbduel_record::latency::{Interval, Packed, new_histogram};
use dbduel_record::rows::{ALL_CLASSES, ErrorRow, ReadingRow, SecondRow, SliceRow, TickRow};
use dbduel_record::store::SliceResult;

use crate::noise::Noise;
use hdrhistogram::Histogram;

use super::{Observation, Scenario, Side};

/// Points of the latency distribution that are recorded per tick.
const LATENCY_POINTS: u64 = 40;

/// A slice that ran to its end.
pub(super) struct SyntheticSlice<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) id: SliceId,
    pub(super) side: &'a Side,
    pub(super) clients: u32,
    /// Transactions per second that it would do without noise and stalls.
    pub(super) rate: f64,
    pub(super) start_ms: u64,
    pub(super) epoch: u32,
    pub(super) guard_s: f64,
    pub(super) measured_s: f64,
}

impl SyntheticSlice<'_> {
    /// All that a record keeps of it. The noise is drawn in a fixed order: ticks, readings, seconds.
    pub(super) fn result(&self, noise: &mut Noise) -> SliceResult {
        let mut histogram = new_histogram();
        let ticks = self.ticks(&mut histogram, noise);
        let row = self.row(&ticks, &histogram);
        let readings = self.readings(row.ok, noise);
        let seconds = self.seconds(&ticks, noise);
        let errors = (row.failed > 0).then(|| self.error(row.failed));
        SliceResult {
            seconds,
            ticks,
            readings,
            errors: errors.into_iter().collect(),
            latencies: vec![self.interval(&histogram)],
            classes: vec![row],
            statements: Vec::new(),
        }
    }

    fn ticks(&self, histogram: &mut Histogram<u64>, noise: &mut Noise) -> Vec<TickRow> {
        let mut ticks = Vec::new();
        let mut stalled = 0.0;
        let mut offset_s = 0.0;
        while offset_s < self.measured_s - 1e-9 {
            let length_s = (self.measured_s - offset_s).min(1.0);
            if noise.uniform() < self.side.stalls_per_s {
                stalled = 1.0 + 3.0 * noise.uniform();
            }
            let brake = if stalled > 0.0 { 0.1 } else { 1.0 };
            stalled -= length_s;
            let rate = self.rate * brake * (self.scenario.noise * noise.normal()).exp();
            let done = (rate * length_s).round();
            let failed = (done * self.side.failed_share).round();
            let ok = (done - failed) as u64;
            let mean_ns = f64::from(self.clients) / rate * 1e9;
            let (sum_us, max_us) = record_latencies(histogram, ok, mean_ns, noise);
            ticks.push(TickRow {
                block: self.id.block,
                position: self.id.position,
                offset_s,
                length_s,
                ok,
                failed: failed as u64,
                latency_us_sum: sum_us,
                latency_us_max: max_us,
            });
            offset_s += length_s;
        }
        ticks
    }

    fn row(&self, ticks: &[TickRow], histogram: &Histogram<u64>) -> SliceRow {
        let ok: u64 = ticks.iter().map(|tick| tick.ok).sum();
        let failed: u64 = ticks.iter().map(|tick| tick.failed).sum();
        let quantile_us = |q: f64| histogram.value_at_quantile(q) as f64 / 1e3;
        let largest_us = ticks.iter().map(|tick| tick.latency_us_max);
        SliceRow {
            block: self.id.block,
            position: self.id.position,
            epoch: self.epoch,
            contender: self.side.name.clone(),
            clients: self.clients,
            class: ALL_CLASSES.to_owned(),
            start_ms: self.start_ms,
            guard_s: self.guard_s,
            measured_s: self.measured_s,
            drained_s: None,
            due: ok + failed,
            ok,
            failed,
            skipped: 0,
            unfinished: 0,
            retries: ok / 1000,
            statements: ok * 20,
            latency_us_sum: ticks.iter().map(|tick| tick.latency_us_sum).sum(),
            latency_us_p50: quantile_us(0.5),
            latency_us_p95: quantile_us(0.95),
            latency_us_p99: quantile_us(0.99),
            latency_us_p999: quantile_us(0.999),
            latency_us_max: largest_us.fold(0.0, f64::max),
        }
    }

    fn error(&self, count: u64) -> ErrorRow {
        ErrorRow {
            block: self.id.block,
            position: self.id.position,
            contender: self.side.name.clone(),
            code: "1205".to_owned(),
            count,
            example: "Lock wait timeout exceeded".to_owned(),
        }
    }

    fn interval(&self, histogram: &Histogram<u64>) -> Interval {
        Interval {
            block: self.id.block,
            position: self.id.position,
            contender: self.side.name.clone(),
            clients: self.clients,
            class: ALL_CLASSES.to_owned(),
            start_s: self.start_ms as f64 / 1e3,
            length_s: self.measured_s,
            histogram: Packed::of(histogram),
        }
    }

    /// What the samplers summed up; more of it of an observed server.
    fn readings(&self, ok: u64, noise: &mut Noise) -> Vec<ReadingRow> {
        let spread = 1.0 + 0.02 * noise.normal();
        let mut values = vec![
            ("load", "cpu_user_s", ok as f64 * 4e-6 * spread),
            ("load", "cpu_system_s", ok as f64 * 18e-6 * spread),
            ("load", "lag_us_p99", 40.0),
            ("server", "cpu_user_s", ok as f64 * 210e-6 * spread),
            ("server", "cpu_system_s", ok as f64 * 60e-6 * spread),
        ];
        if let Some(observation) = &self.scenario.observation {
            values.extend(self.observed(observation, ok, noise));
        }
        let row = |(source, metric, value): (&str, &str, f64)| ReadingRow {
            block: self.id.block,
            position: self.id.position,
            contender: self.side.name.clone(),
            source: source.to_owned(),
            metric: metric.to_owned(),
            value,
        };
        values.into_iter().map(row).collect()
    }

    /// The place of the server among the contenders.
    fn number(&self) -> usize {
        let mut sides = self.scenario.sides.iter();
        sides
            .position(|one| one.name == self.side.name)
            .unwrap_or(0)
    }

    /// Readings of a server whose every transaction runs, waits, reads and answers for fixed times, and spends
    /// the rest of its time waiting for other threads.
    fn observed(
        &self,
        observation: &Observation,
        ok: u64,
        noise: &mut Noise,
    ) -> Vec<(&'static str, &'static str, f64)> {
        let (ok, clients) = (ok as f64, f64::from(self.clients));
        let (number, slice_s) = (self.number(), self.measured_s);
        let whole_s = clients * slice_s;
        let share = |us: f64| (ok * us * 1e-6).min(whole_s / 8.0);
        let (on_cpu, queued, disk, client) =
            (share(200.0), share(50.0), share(200.0), share(300.0));
        let mut near = |value: f64| value * (1.0 + 0.002 * noise.normal());
        vec![
            ("server", "connections_count", clients + 1.0),
            ("server", "state_looks_count", 250.0),
            ("server", "connections_on_cpu_s", on_cpu),
            ("server", "connections_run_queue_s", queued),
            ("server", "connections_disk_read_s", disk),
            ("server", "connections_disk_write_s", 0.0),
            ("server", "connections_log_s", 0.0),
            ("server", "connections_client_s", client + slice_s),
            ("server", "connections_other_s", 0.0),
            (
                "server",
                "connections_other_thread_s",
                whole_s - on_cpu - queued - disk - client,
            ),
            ("server", "connections_in_commit_s", 0.0),
            (
                "server",
                "device_write_bytes",
                near(ok * observation.written_bytes[number]),
            ),
            (
                "engine",
                "doublewrite_pages_count",
                near(ok * observation.doublewrite_pages[number]),
            ),
            ("engine", "redo_written_bytes", near(ok * 900.0)),
            ("engine", "row_lock_wait_s", 0.0),
            ("observer", "window_s", slice_s),
            ("observer", "engine_window_s", slice_s),
            ("observer", "cpu_s", 0.004 * slice_s),
            ("observer", "asked_s", 0.002 * slice_s),
        ]
    }

    /// What samplers saw second by second of an observed server: it runs and writes as it commits, and its log
    /// fills until a checkpoint frees it.
    fn seconds(&self, ticks: &[TickRow], noise: &mut Noise) -> Vec<SecondRow> {
        let Some(observation) = &self.scenario.observation else {
            return Vec::new();
        };
        let written = observation.written_bytes[self.number()];
        let mut rows = Vec::new();
        for (second, tick) in ticks.iter().enumerate() {
            let ok = tick.ok as f64;
            let is_checkpoint = second % 12 == 11;
            let pressure = (0.3 + 0.1 * noise.normal()).clamp(0.0, 1.0) * tick.length_s;
            for (source, metric, value) in [
                ("server", "cpu_user_s", ok * 210e-6),
                ("server", "cpu_system_s", ok * 60e-6),
                ("server", "device_write_bytes", ok * written),
                ("host", "pressure_io_some_s", pressure),
                (
                    "engine",
                    "checkpoint_age_bytes",
                    40e6 * (second % 12 + 1) as f64 / 12.0,
                ),
                (
                    "engine",
                    "checkpoint_advance_bytes",
                    if is_checkpoint { 40e6 } else { 1e6 },
                ),
            ] {
                rows.push(SecondRow {
                    block: self.id.block,
                    position: self.id.position,
                    offset_s: tick.offset_s + tick.length_s,
                    length_s: tick.length_s,
                    source: source.to_owned(),
                    metric: metric.to_owned(),
                    value,
                });
            }
        }
        rows
    }
}

/// A skewed distribution with this mean, as points of equal weight; returns sum and maximum in µs.
fn record_latencies(
    histogram: &mut Histogram<u64>,
    ok: u64,
    mean_ns: f64,
    noise: &mut Noise,
) -> (f64, f64) {
    let (mut sum_us, mut max_us) = (0.0, 0.0_f64);
    let mut left = ok;
    for point in 0..LATENCY_POINTS {
        let count = left / (LATENCY_POINTS - point);
        left -= count;
        if count == 0 {
            continue;
        }
        let latency_ns = mean_ns * (0.5 * noise.normal() - 0.125).exp();
        histogram.saturating_record_n(latency_ns as u64, count);
        sum_us += latency_ns * count as f64 / 1e3;
        max_us = max_us.max(latency_ns / 1e3);
    }
    (sum_us, max_us)
}
