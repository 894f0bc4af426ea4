//! One slice: the order to the load process, the samplers around its measured part, its rows.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use dbduel_load::monotonic;
use dbduel_load::order::{ClassAnswer, SliceAnswer, SliceOrder};
use dbduel_record::event::SliceId;
use dbduel_record::latency::{self, Interval, Packed};
use dbduel_record::plan::Block;
use dbduel_record::rows::{ALL_CLASSES, ErrorRow, ReadingRow, SecondRow, SliceRow, TickRow};
use dbduel_record::seed::named_seed;
use dbduel_record::store::SliceResult;

use super::Contest;
use super::injector::SlowdownInjector;
use super::warm_up::rate;
use crate::judge::LevelDecision;
use crate::lab::drive::SliceEnd;
use crate::lab::observe::Observed;
use crate::report::words;

/// Share of a slice in which the load process may have stalled; with more of it the slice is lost.
const STALLED_SHARE_MAX: f64 = 0.05;

/// Suspension of the machine that is distinguishable from the time between reading two clocks.
const SUSPENDED_MIN: Duration = Duration::from_millis(100);

/// What came of a slice.
pub enum Outcome {
    /// Its rows.
    Finished(Box<SliceResult>),
    /// Nothing, because of the server, and why.
    Lost(String),
    /// Nothing usable, because the load process or the machine stalled, and for how long. Clients are still connected.
    Stalled(String),
}

impl Contest<'_> {
    /// Runs the slice at `position` of `block` on the awake contender.
    ///
    /// # Errors
    /// When its samplers cannot be started, or its answer cannot be understood.
    pub fn run_slice(
        &mut self,
        block: &Block,
        position: usize,
        decision: &LevelDecision,
    ) -> Result<Outcome> {
        let (plan, console, board) = (self.config.plan, self.config.console, self.config.board);
        let (epoch, used_s) = (self.progress.epoch, self.progress.used_s);
        let (contender, level) = (block.order[position], &plan.levels[block.level]);
        let name = &plan.contenders[contender].name;
        let guard_s = if block.continues(position) {
            0.0
        } else {
            plan.schedule.guard_s
        };
        // Both halves of a block have keys of their own, so that no contender meets its own keys again;
        // within a half every contender gets the same.
        let half = position * 2 / block.order.len();
        let order = SliceOrder {
            contender: name.clone(),
            clients: level.clients,
            arrival: level.arrival,
            guard_s,
            measured_s: block.slice_s,
            tick_s: plan.schedule.tick_s,
            drain_s: plan.schedule.drain_s,
            seed: named_seed(plan.seed, &format!("keys/block/{}/half/{half}", block.id)),
        };
        let watch = self
            .observers
            .watch(self.config, &mut self.arena, contender, &self.load)?;
        let standing = standing(decision);
        let pulses = plan
            .injection
            .as_ref()
            .filter(|injection| injection.contender == contender)
            .zip(
                self.arena
                    .pid(contender)
                    .and_then(|pid| i32::try_from(pid).ok()),
            )
            .map(|(injection, group)| SlowdownInjector::start(group, injection));
        let suspended = self.journal.clock().suspended();
        let length = Duration::from_secs_f64(block.slice_s);
        let on_begin = |opens: Instant| watch.measure(opens..opens + length);
        let end = self.load.slice(order, on_begin, |tick| {
            let ends_at = tick.offset_s + tick.length_s;
            let number = decision.blocks_complete + 1;
            let message = format!(
                "{}, block {number}, {name}: {}{standing}",
                level.label(),
                rate(tick)
            );
            let used_s = used_s + guard_s + ends_at;
            console.measuring(used_s, plan.schedule.budget_s, &message);
            board.tick(contender, block.level, tick, used_s);
            ControlFlow::Continue(())
        });
        // Ended before anything else, so that the server is awake whatever comes.
        let stopped_share = pulses.map(SlowdownInjector::end);
        let suspended = self.journal.clock().suspended().saturating_sub(suspended);
        let observed = self.observers.end(contender, watch);
        self.say_what_is_missing(name, &observed)?;
        let answer = match end {
            SliceEnd::Finished(answer) => answer,
            SliceEnd::Lost { why, .. } => return Ok(Outcome::Lost(why)),
        };
        if let Some(why) = stall(&answer, suspended) {
            return Ok(Outcome::Stalled(why));
        }
        let slice = SliceId {
            block: block.id,
            position: position as u32,
        };
        let opened = monotonic::instant_of(answer.open_ns);
        let start_ms = self.journal.clock().ms_of(opened);
        let mut result = rows(
            &answer,
            slice,
            name,
            level.clients,
            epoch,
            guard_s,
            start_ms,
        )
        .map_err(|why| anyhow!(why))?;
        add_observed(&mut result, slice, name, observed);
        result
            .readings
            .extend(stopped_share.map(|share| ReadingRow {
                block: slice.block,
                position: slice.position,
                contender: name.clone(),
                source: "lab".to_owned(),
                metric: "server_stopped_s".to_owned(),
                value: share * answer.measured_s,
            }));
        Ok(Outcome::Finished(Box::new(result)))
    }
}

/// Says that the machine slept, or that the load process stalled for so long that the slice shows nothing of the server.
fn stall(answer: &SliceAnswer, suspended: Duration) -> Option<String> {
    if suspended >= SUSPENDED_MIN {
        let suspended = words::duration(suspended.as_secs_f64());
        return Some(format!("the machine was suspended for {suspended}"));
    }
    (answer.stalled_s > STALLED_SHARE_MAX * answer.measured_s).then(|| {
        format!(
            "the load process stalled for {:.1} s of {:.1} s and sent nothing meanwhile",
            answer.stalled_s, answer.measured_s
        )
    })
}

/// Adds what was observed; what the load process says of itself goes before what was seen of it.
fn add_observed(result: &mut SliceResult, slice: SliceId, contender: &str, observed: Observed) {
    let SliceId { block, position } = slice;
    for (source, metric, value) in observed.readings {
        let is_known = result
            .readings
            .iter()
            .any(|row| row.source == source && row.metric == metric);
        if !is_known {
            result.readings.push(ReadingRow {
                block,
                position,
                contender: contender.to_owned(),
                source: source.to_owned(),
                metric,
                value,
            });
        }
    }
    let seconds = observed.seconds.into_iter();
    result.seconds = seconds
        .map(|(offset_s, length_s, source, metric, value)| SecondRow {
            block,
            position,
            offset_s,
            length_s,
            source: source.to_owned(),
            metric,
            value,
        })
        .collect();
}

/// What is known of the level so far, for the progress line.
fn standing(decision: &LevelDecision) -> String {
    let known = decision.comparisons.iter().filter_map(|comparison| {
        let (low, high) = comparison.ratio.interval()?;
        let value = comparison.ratio.value()?;
        Some(format!(
            ", {} ×{value:.3} [{low:.3}, {high:.3}]",
            comparison.contender
        ))
    });
    known.collect()
}

/// The answer as rows of the record.
fn rows(
    answer: &SliceAnswer,
    slice: SliceId,
    contender: &str,
    clients: u32,
    epoch: u32,
    guard_s: f64,
    start_ms: u64,
) -> Result<SliceResult, String> {
    let SliceId { block, position } = slice;
    let mut result = SliceResult::default();
    let mut add = |class: &ClassAnswer, histogram: hdrhistogram::Histogram<u64>| {
        let quantile_us = |q: f64| {
            if histogram.is_empty() {
                0.0
            } else {
                histogram.value_at_quantile(q) as f64 / 1e3
            }
        };
        result.classes.push(SliceRow {
            block,
            position,
            epoch,
            contender: contender.to_owned(),
            clients,
            class: class.class.clone(),
            start_ms,
            guard_s,
            measured_s: answer.measured_s,
            due: class.due,
            ok: class.ok,
            failed: class.failed,
            skipped: class.skipped,
            unfinished: class.unfinished,
            retries: class.retries,
            statements: class.statements,
            latency_us_sum: class.latency_us_sum,
            latency_us_p50: quantile_us(0.5),
            latency_us_p95: quantile_us(0.95),
            latency_us_p99: quantile_us(0.99),
            latency_us_p999: quantile_us(0.999),
            latency_us_max: histogram.max() as f64 / 1e3,
        });
        result.latencies.push(Interval {
            block,
            position,
            contender: contender.to_owned(),
            clients,
            class: class.class.clone(),
            start_s: start_ms as f64 / 1e3,
            length_s: answer.measured_s,
            histogram: Packed::of(&histogram),
        });
    };
    // With one class the sum would only repeat it.
    if answer.classes.len() > 1 {
        for class in &answer.classes {
            add(class, latency::decode(&class.histogram)?);
        }
    }
    let (total, merged) = answer.total(ALL_CLASSES)?;
    add(&total, merged);
    result.ticks = answer
        .ticks
        .iter()
        .map(|tick| TickRow {
            block,
            position,
            offset_s: tick.offset_s,
            length_s: tick.length_s,
            ok: tick.ok,
            failed: tick.failed,
            latency_us_sum: tick.latency_us_sum,
            latency_us_max: tick.latency_us_max,
        })
        .collect();
    result.errors = answer
        .errors
        .iter()
        .map(|error| ErrorRow {
            block,
            position,
            contender: contender.to_owned(),
            code: error.code,
            count: error.count,
            example: error.example.clone(),
        })
        .collect();
    let own = [
        ("cpu_user_s", answer.cpu_user_s),
        ("cpu_system_s", answer.cpu_system_s),
        ("cpu_wait_s", answer.cpu_wait_s),
        ("lag_us_p99", answer.lag_us_p99),
        ("drained_s", answer.drained_s),
        ("rolled_back", answer.rolled_back as f64),
    ];
    let some = [
        ("polled_s", answer.polled_s),
        ("stalled_s", answer.stalled_s),
    ];
    let some = some.into_iter().filter(|(_, seconds)| *seconds > 0.0);
    result.readings = own
        .into_iter()
        .chain(some)
        .map(|(metric, value)| ReadingRow {
            block,
            position,
            contender: contender.to_owned(),
            source: "load".to_owned(),
            metric: metric.to_owned(),
            value,
        })
        .collect();
    Ok(result)
}
