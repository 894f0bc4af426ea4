//! Slices on noisy machines with known truth: the machines that the statistics are checked on
//! ([`dbduel_stats::simulate`]), laid out by a plan. Has throughput and its latencies and nothing else, so
//! that many runs are cheap.

use dbduel_record::plan::Block;
use dbduel_record::rows::{ALL_CLASSES, SliceRow};
use dbduel_record::{Plan, Record};
use dbduel_stats::simulate::{Contender, Machine};

use super::{START_MS, Scenario};

pub use dbduel_stats::simulate::{NASTY, Noise, QUIET, TYPICAL};

/// Transactions per second of every contender without noise; large, so that counting adds no noise.
const USUAL_PER_S: f64 = 1e6;

impl Scenario {
    /// The record of the scenario's plan on a machine, run to the last block. `log_speed` is the logarithm
    /// of what a contender is faster than usual in a slice: block, position.
    pub fn on_machine(
        &self,
        noise: Noise,
        seed: u64,
        log_speed: impl Fn(&Block, usize) -> f64,
    ) -> Record {
        let empty = Self {
            blocks: 0,
            ..self.clone()
        };
        let mut record = empty.record();
        record.plan = self.plan();
        record.slices = slices(&record.plan, noise, seed, log_speed);
        record
    }
}

fn slices(
    plan: &Plan,
    noise: Noise,
    seed: u64,
    log_speed: impl Fn(&Block, usize) -> f64,
) -> Vec<SliceRow> {
    let mut machine = Machine::new(noise, seed);
    let mut contenders: Vec<Contender> = (plan.contenders.iter())
        .map(|_| Contender::new(&noise, 0.0, &mut machine.random))
        .collect();
    let mut slices = Vec::new();
    for block in &plan.blocks {
        for (position, &contender) in block.order.iter().enumerate() {
            let guard = match block.continues(position) {
                true => 0,
                false => plan.schedule.guard_s.round() as usize,
            };
            let measured = block.slice_s.round() as usize;
            let start_ms = START_MS + 1000 * (machine.second() + guard) as u64;
            let level = contenders[contender].slice(&mut machine, guard, measured);
            let per_s = USUAL_PER_S * level * log_speed(block, position).exp();
            let ok = per_s * measured as f64;
            let clients = plan.levels[block.level].clients;
            // Every client waits for its answer, so that throughput and latency are one figure (Little 1961).
            let latency_us = 1e6 * f64::from(clients) / per_s;
            slices.push(SliceRow {
                block: block.id,
                position: position as u32,
                epoch: 0,
                contender: plan.contenders[contender].name.clone(),
                clients,
                class: ALL_CLASSES.to_owned(),
                start_ms,
                guard_s: guard as f64,
                measured_s: measured as f64,
                drained_s: None,
                due: ok as u64,
                ok: ok as u64,
                failed: 0,
                skipped: 0,
                unfinished: 0,
                retries: 0,
                statements: ok as u64,
                latency_us_sum: ok * latency_us,
                latency_us_p50: latency_us,
                latency_us_p95: 2.0 * latency_us,
                latency_us_p99: 3.0 * latency_us,
                latency_us_p999: 4.0 * latency_us,
                latency_us_max: 5.0 * latency_us,
            });
        }
    }
    slices
}
