//! Conversion of counts to answers: names, and units of the record.

use dbduel_client::tally::{ClassTally, StatementTally, TickTally};
use dbduel_record::latency::{encode, new_histogram};
use dbduel_record::rows::TransactionCounts;

use crate::load_thread::{SliceReport, Used};
use crate::order::{ClassAnswer, ErrorCount, SliceAnswer, StatementAnswers, Tick};

use super::ClassNames;

/// Class of transactions that fell due and were never sent, when there are several classes: the class is drawn when a
/// transaction is sent.
const UNDRAWN: &str = "undrawn";

const NS_PER_S: f64 = 1e9;
const NS_PER_US: f64 = 1e3;

/// The slice of all threads, without acknowledged commits.
pub(super) fn slice(report: &SliceReport, names: &ClassNames, open_ns: u64) -> SliceAnswer {
    let SliceReport {
        tally,
        used: Used { cpu, polled },
        drained,
        stalled,
        gaps: _,
    } = report;
    debug_assert!(tally.balances(), "a transaction was lost or counted twice");
    let window = tally.window();
    let mut answers: Vec<ClassAnswer> = names
        .classes
        .iter()
        .zip(tally.classes())
        .map(|(name, class)| class_answer(name, class))
        .collect();
    if tally.undrawn() > 0 {
        answers.push(undrawn(tally.undrawn()));
    }
    let statements = names.statements.iter().zip(tally.statements());
    let statements = statements.filter(|(_, statement)| !statement.is_empty());
    let errors = tally.errors().iter().map(|error| ErrorCount {
        code: error.code,
        is_conflict: error.is_conflict,
        count: error.count,
        example: error.example.clone(),
    });
    SliceAnswer {
        open_ns,
        measured_s: (window.close_ns - window.open_ns) as f64 / NS_PER_S,
        is_finished: false,
        classes: answers,
        statements: statements
            .map(|(name, statement)| statement_answers(name, statement))
            .collect(),
        ticks: tally
            .ticks()
            .iter()
            .map(|counted| tick(counted, window.open_ns))
            .collect(),
        errors: errors.collect(),
        cpu_user_s: cpu.user_s,
        cpu_system_s: cpu.system_s,
        cpu_wait_s: cpu.waited_s,
        polled_s: polled.as_secs_f64(),
        lag_us_p99: tally.lags().value_at_quantile(0.99) as f64 / NS_PER_US,
        service_times: (!tally.services().is_empty()).then(|| encode(tally.services())),
        stalled_s: stalled.as_secs_f64(),
        gaps_s: Vec::new(),
        drained_s: drained.as_secs_f64(),
        client_drained_s: tally.client_drained_ns() as f64 / NS_PER_S,
        reported: None,
        rolled_back: tally.rolled_back_on_purpose(),
        commits: Vec::new(),
        orchestration: None,
    }
}

/// One tick.
pub(super) fn tick(tick: &TickTally, open_ns: u64) -> Tick {
    // The largest is known exactly, and no quantile lies beyond it.
    let quantile_us = |q| tick.latencies.quantile_ns(q).min(tick.latency_ns_max) as f64 / NS_PER_US;
    Tick {
        offset_s: (tick.start_ns as f64 - open_ns as f64) / NS_PER_S,
        length_s: (tick.end_ns - tick.start_ns) as f64 / NS_PER_S,
        ok: tick.ok,
        failed: tick.failed,
        latency_us_sum: tick.latency_ns_sum as f64 / NS_PER_US,
        latency_us_max: tick.latency_ns_max as f64 / NS_PER_US,
        latency_us_p50: quantile_us(0.5),
        latency_us_p95: quantile_us(0.95),
        latency_us_p99: quantile_us(0.99),
        backlog: tick.waiting,
    }
}

fn class_answer(name: &str, class: &ClassTally) -> ClassAnswer {
    ClassAnswer {
        class: name.to_owned(),
        counts: class.counts,
        latency_us_sum: class.latency_ns_sum as f64 / NS_PER_US,
        histogram: encode(&class.latencies),
    }
}

fn statement_answers(name: &str, statement: &StatementTally) -> StatementAnswers {
    StatementAnswers {
        statement: name.to_owned(),
        counts: statement.counts,
        latency_us_sum: statement.latency_ns_sum as f64 / NS_PER_US,
        failed_us_sum: statement.failed_ns_sum as f64 / NS_PER_US,
        errors: statement.errors.clone(),
        latencies_ns: statement.latencies().counts().to_vec(),
    }
}

fn undrawn(count: u64) -> ClassAnswer {
    ClassAnswer {
        class: UNDRAWN.to_owned(),
        counts: TransactionCounts {
            due: count,
            skipped: count,
            ..TransactionCounts::default()
        },
        latency_us_sum: 0.0,
        histogram: encode(&new_histogram()),
    }
}
