//! The course of a synthetic run: its journal, and what every slice measured.

use dbduel_record::Plan;
use dbduel_record::event::{EndReason, Event, SliceId};
use dbduel_record::latency::{Interval, Packed, new_histogram};
use dbduel_record::plan::Block;
use dbduel_record::rows::{ALL_CLASSES, ErrorRow, ReadingRow, SecondRow, SliceRow, TickRow};
use dbduel_record::seed::named_seed;
use dbduel_record::store::SliceResult;

use super::facts::version;
use super::noise::Noise;
use super::{Observation, START_MS, Scenario, Side};

/// Points of the latency distribution that are recorded per tick.
const LATENCY_POINTS: u64 = 40;

/// One thing that happened.
pub(super) enum Step {
    Event(u64, Event),
    Slice(u64, SliceId, SliceResult),
}

struct Clock {
    now_ms: u64,
    epoch: u32,
}

impl Scenario {
    /// What happened, in order.
    pub(super) fn steps(&self) -> Vec<Step> {
        let plan = self.plan();
        let mut steps = Vec::new();
        let mut clock = Clock {
            now_ms: START_MS,
            epoch: 0,
        };
        self.start(&mut steps, &mut clock);
        let mut drift = 0.0;
        let mut noise = Noise::new(named_seed(self.seed, "noise"));
        for block in plan.blocks.iter().filter(|block| block.round < self.blocks) {
            for position in 0..block.order.len() {
                drift = 0.95 * drift + 0.02 * noise.normal();
                self.slice(
                    &mut steps, &mut clock, &plan, block, position, drift, &mut noise,
                );
            }
            if self.resumed_after == Some(block.id) {
                steps.push(Step::Event(
                    clock.now_ms,
                    Event::Ended {
                        reason: EndReason::Interrupted,
                    },
                ));
                clock.now_ms += 8 * 3_600_000;
                clock.epoch += 1;
                self.start(&mut steps, &mut clock);
            }
        }
        if let Some(reason) = self.ended {
            steps.push(Step::Event(clock.now_ms, Event::Ended { reason }));
        }
        steps
    }

    fn start(&self, steps: &mut Vec<Step>, clock: &mut Clock) {
        let mut events = vec![Event::Started {
            pid: 4242,
            dbduel: "0.1.0".to_owned(),
            epoch: clock.epoch,
        }];
        for (index, side) in self.sides.iter().enumerate() {
            let contender = || side.name.clone();
            events.push(Event::ServerReady {
                contender: contender(),
                version: version(index),
                start_s: Some(1.2),
            });
            events.push(Event::DatasetReady {
                contender: contender(),
                restored: clock.epoch > 0,
                rows: 8_000_000,
                seconds: 74.0,
                digest: side.digest.clone(),
                bytes: 2_100_000_000,
                allocated_bytes: 2_000_000_000,
                load: None,
            });
            events.push(Event::WarmedUp {
                contender: contender(),
                seconds: 140.0,
                steady: true,
                steps_per_s: (1..=28)
                    .map(|step| 6000.0 * (1.0 - (-f64::from(step) / 5.0).exp()))
                    .collect(),
            });
        }
        events.extend(self.noticed.iter().map(|finding| Event::Noticed {
            finding: finding.clone(),
        }));
        for event in events {
            if let Event::WarmedUp { seconds, .. } = &event {
                clock.now_ms += (1e3 * seconds) as u64;
            }
            steps.push(Step::Event(clock.now_ms, event));
            clock.now_ms += 500;
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call site; a struct for it would only rename the arguments"
    )]
    fn slice(
        &self,
        steps: &mut Vec<Step>,
        clock: &mut Clock,
        plan: &Plan,
        block: &Block,
        position: usize,
        drift: f64,
        noise: &mut Noise,
    ) {
        let id = SliceId {
            block: block.id,
            position: position as u32,
        };
        let side = &self.sides[block.order[position]];
        steps.push(Step::Event(
            clock.now_ms,
            Event::SliceStarted {
                slice: id,
                contender: side.name.clone(),
            },
        ));
        let guard_s = if block.continues(position) {
            0.0
        } else {
            plan.schedule.guard_s
        };
        let start_ms = clock.now_ms + (guard_s * 1e3) as u64;
        clock.now_ms = start_ms + (block.slice_s * 1e3) as u64 + 300;
        if self.lost.contains(&id) {
            let why = "the server closed the connection".to_owned();
            steps.push(Step::Event(
                clock.now_ms,
                Event::SliceLost {
                    slice: id,
                    why,
                    seconds: 0.0,
                },
            ));
            return;
        }
        let clients = self.clients[block.level];
        let rate = 900.0 * f64::from(clients).powf(0.55) * side.speed[block.level] * drift.exp();
        let result = self.result(
            id,
            side,
            clients,
            rate,
            block.slice_s,
            start_ms,
            clock.epoch,
            guard_s,
            noise,
        );
        steps.push(Step::Slice(clock.now_ms, id, result));
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call site; a struct for it would only rename the arguments"
    )]
    fn result(
        &self,
        id: SliceId,
        side: &Side,
        clients: u32,
        rate: f64,
        slice_s: f64,
        start_ms: u64,
        epoch: u32,
        guard_s: f64,
        noise: &mut Noise,
    ) -> SliceResult {
        let mut histogram = new_histogram();
        let mut ticks = Vec::new();
        let mut stalled = 0.0;
        let mut offset_s = 0.0;
        while offset_s < slice_s - 1e-9 {
            let length_s = (slice_s - offset_s).min(1.0);
            if noise.uniform() < side.stalls_per_s {
                stalled = 1.0 + 3.0 * noise.uniform();
            }
            let brake = if stalled > 0.0 { 0.1 } else { 1.0 };
            stalled -= length_s;
            let tick_rate = rate * brake * (self.noise * noise.normal()).exp();
            let done = (tick_rate * length_s).round();
            let failed = (done * side.failed_share).round();
            let ok = (done - failed) as u64;
            let mean_ns = f64::from(clients) / tick_rate * 1e9;
            let (sum_us, max_us) = record_latencies(&mut histogram, ok, mean_ns, noise);
            ticks.push(TickRow {
                block: id.block,
                position: id.position,
                offset_s,
                length_s,
                ok,
                failed: failed as u64,
                latency_us_sum: sum_us,
                latency_us_max: max_us,
            });
            offset_s += length_s;
        }
        let ok: u64 = ticks.iter().map(|tick| tick.ok).sum();
        let failed: u64 = ticks.iter().map(|tick| tick.failed).sum();
        let quantile_us = |q: f64| histogram.value_at_quantile(q) as f64 / 1e3;
        let row = SliceRow {
            block: id.block,
            position: id.position,
            epoch,
            contender: side.name.clone(),
            clients,
            class: ALL_CLASSES.to_owned(),
            start_ms,
            guard_s,
            measured_s: slice_s,
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
            latency_us_max: ticks
                .iter()
                .map(|tick| tick.latency_us_max)
                .fold(0.0, f64::max),
        };
        let reading = |source: &str, metric: &str, value: f64| ReadingRow {
            block: id.block,
            position: id.position,
            contender: side.name.clone(),
            source: source.to_owned(),
            metric: metric.to_owned(),
            value,
        };
        let spread = 1.0 + 0.02 * noise.normal();
        let mut readings = vec![
            reading("load", "cpu_user_s", ok as f64 * 4e-6 * spread),
            reading("load", "cpu_system_s", ok as f64 * 18e-6 * spread),
            reading("load", "lag_us_p99", 40.0),
            reading("server", "cpu_user_s", ok as f64 * 210e-6 * spread),
            reading("server", "cpu_system_s", ok as f64 * 60e-6 * spread),
        ];
        if let Some(observation) = &self.observation {
            let number = self.sides.iter().position(|one| one.name == side.name);
            let observed = observe(
                observation,
                number.unwrap_or(0),
                clients,
                slice_s,
                ok,
                noise,
            );
            readings.extend(
                observed
                    .into_iter()
                    .map(|(source, metric, value)| reading(source, metric, value)),
            );
        }
        let error = ErrorRow {
            block: id.block,
            position: id.position,
            contender: side.name.clone(),
            code: 1205,
            count: failed,
            example: "Lock wait timeout exceeded".to_owned(),
        };
        let interval = Interval {
            block: id.block,
            position: id.position,
            contender: side.name.clone(),
            clients,
            class: ALL_CLASSES.to_owned(),
            start_s: start_ms as f64 / 1e3,
            length_s: slice_s,
            histogram: Packed::of(&histogram),
        };
        SliceResult {
            classes: vec![row],
            seconds: self.seconds(id, side, &ticks, noise),
            ticks,
            readings,
            errors: if failed > 0 { vec![error] } else { Vec::new() },
            latencies: vec![interval],
        }
    }
}

impl Scenario {
    /// What samplers saw second by second of an observed server: it runs and writes as it commits, and its log
    /// fills until a checkpoint frees it.
    fn seconds(
        &self,
        id: SliceId,
        side: &Side,
        ticks: &[TickRow],
        noise: &mut Noise,
    ) -> Vec<SecondRow> {
        let Some(observation) = &self.observation else {
            return Vec::new();
        };
        let number = self.sides.iter().position(|one| one.name == side.name);
        let written = observation.written_bytes[number.unwrap_or(0)];
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
                    block: id.block,
                    position: id.position,
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

/// Readings of a server whose every transaction runs, waits, reads and answers for fixed times, and spends
/// the rest of its time waiting for other threads.
fn observe(
    observation: &Observation,
    number: usize,
    clients: u32,
    slice_s: f64,
    ok: u64,
    noise: &mut Noise,
) -> Vec<(&'static str, &'static str, f64)> {
    let (ok, clients) = (ok as f64, f64::from(clients));
    let whole_s = clients * slice_s;
    let share = |us: f64| (ok * us * 1e-6).min(whole_s / 8.0);
    let (on_cpu, queued, disk, client) = (share(200.0), share(50.0), share(200.0), share(300.0));
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

/// A skewed distribution with this mean, as points of equal weight; returns sum and maximum in µs.
fn record_latencies(
    histogram: &mut hdrhistogram::Histogram<u64>,
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
