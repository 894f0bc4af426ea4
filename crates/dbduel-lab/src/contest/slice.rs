//! One slice: assembles its turns into rows of the record.

use anyhow::{Result, anyhow};
use dbduel_load::order::{ClassAnswer, Orchestration, SliceAnswer, StatementAnswers};
use dbduel_machine::clock::RecordClock;
use dbduel_record::event::SliceId;
use dbduel_record::latency::{self, Interval, Packed};
use dbduel_record::rows::{
    ALL_CLASSES, ErrorRow, ReadingRow, SecondRow, SliceRow, TickRow, error_name,
};
use dbduel_record::statement_classes::{StatementCounts, StatementRow, join_counts};
use dbduel_record::store::SliceResult;

use super::injector::InjectedTime;
use super::turn::Turn;
use crate::observe::Observed;

/// A slice while its turns run.
#[derive(Debug, Default)]
pub struct SliceSoFar {
    answer: Option<SliceAnswer>,
    guard_s: f64,
    left_out_s: f64,
    observed: Observed,
    /// Time stopped by injection; absent without one.
    injected: Option<InjectedTime>,
}

/// Number and contender of a slice.
#[derive(Debug, Clone, Copy)]
pub struct SliceLabel<'a> {
    pub slice: SliceId,
    pub contender: &'a str,
    pub clients: u32,
    pub epoch: u32,
}

impl SliceSoFar {
    /// Adds the next turn.
    ///
    /// # Errors
    /// When the answer of the load process is invalid.
    pub fn add(&mut self, turn: Turn) -> Result<()> {
        let Turn {
            answer,
            guard_s,
            left_out_s,
            observed,
            injected,
        } = turn;
        self.guard_s += guard_s;
        self.left_out_s += left_out_s;
        self.injected = match (self.injected, injected) {
            (Some(before), Some(now)) => Some(before.plus(now)),
            (before, now) => before.or(now),
        };
        match &mut self.answer {
            None => {
                self.observed = observed;
                self.answer = Some(answer);
            }
            Some(sum) => {
                let after_s = answer.open_ns.saturating_sub(sum.open_ns) as f64 / 1e9;
                self.observed.append(observed, after_s);
                sum.append(answer).map_err(|why| anyhow!(why))?;
            }
        }
        Ok(())
    }

    /// Load of the turns so far, seconds.
    #[must_use]
    pub fn load_s(&self) -> f64 {
        let measured_s = self.answer.as_ref().map_or(0.0, |answer| answer.measured_s);
        self.guard_s + measured_s
    }

    /// The slice as rows; `None` before its first turn.
    ///
    /// # Errors
    /// When the answer of the load process is invalid.
    pub fn into_rows(
        self,
        label: SliceLabel<'_>,
        clock: &RecordClock,
    ) -> Result<Option<SliceResult>> {
        let Some(answer) = self.answer else {
            return Ok(None);
        };
        let start_ms = clock.ms_of_ns(answer.open_ns);
        let mut result =
            rows(&answer, label, self.guard_s, start_ms).map_err(|why| anyhow!(why))?;
        add_observed(&mut result, label, self.observed);
        let SliceLabel {
            slice, contender, ..
        } = label;
        let left_out = Some(("left_out_s", self.left_out_s)).filter(|(_, seconds)| *seconds > 0.0);
        let injected = self.injected.into_iter().flat_map(|time| {
            [
                ("server_stopped_s", time.stopped_s),
                ("server_awake_s", time.awake_s),
            ]
        });
        result
            .readings
            .extend(injected.chain(left_out).map(|(metric, value)| ReadingRow {
                block: slice.block,
                position: slice.position,
                contender: contender.to_owned(),
                source: "lab".to_owned(),
                metric: metric.to_owned(),
                value,
            }));
        Ok(Some(result))
    }
}

/// Adds the observations; the load process's own readings come before those of its samplers.
fn add_observed(result: &mut SliceResult, label: SliceLabel<'_>, observed: Observed) {
    let SliceId { block, position } = label.slice;
    for reading in observed.readings {
        let is_known = result
            .readings
            .iter()
            .any(|row| row.source == reading.source && row.metric == reading.metric);
        if !is_known {
            result.readings.push(ReadingRow {
                block,
                position,
                contender: label.contender.to_owned(),
                source: reading.source.to_owned(),
                metric: reading.metric,
                value: reading.value,
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

/// Converts an answer into rows of the record.
fn rows(
    answer: &SliceAnswer,
    label: SliceLabel<'_>,
    guard_s: f64,
    start_ms: u64,
) -> Result<SliceResult, String> {
    let SliceLabel {
        slice: SliceId { block, position },
        contender,
        clients,
        epoch,
    } = label;
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
            drained_s: Some(answer.client_drained_s / f64::from(clients.max(1))),
            due: class.counts.due,
            ok: class.counts.ok,
            failed: class.counts.failed,
            skipped: class.counts.skipped,
            unfinished: class.counts.unfinished,
            retries: class.counts.retries,
            statements: class.counts.statements,
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
    result.statements = answer
        .statements
        .iter()
        .map(|statement| statement_row(statement, label))
        .collect();
    result.errors = answer
        .errors
        .iter()
        .map(|error| ErrorRow {
            block,
            position,
            contender: contender.to_owned(),
            code: error_name(error.code),
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
    let own = own.into_iter().chain(some);
    let own = own.map(|(metric, value)| (metric.to_owned(), value));
    result.readings = own
        .chain(answer.orchestration.iter().flat_map(of_hosts))
        .map(|(metric, value)| ReadingRow {
            block,
            position,
            contender: contender.to_owned(),
            source: "load".to_owned(),
            metric,
            value,
        })
        .collect();
    Ok(result)
}

/// The statements of one class.
fn statement_row(answers: &StatementAnswers, label: SliceLabel<'_>) -> StatementRow {
    let StatementCounts {
        ok,
        failed,
        key_exists,
        unchanged,
        rows_returned,
        rows_changed,
    } = answers.counts;
    StatementRow {
        block: label.slice.block,
        position: label.slice.position,
        contender: label.contender.to_owned(),
        statement: answers.statement.clone(),
        ok,
        failed,
        key_exists,
        unchanged,
        rows_returned,
        rows_changed,
        latency_us_sum: answers.latency_us_sum,
        failed_us_sum: answers.failed_us_sum,
        errors: join_counts(
            answers
                .errors
                .iter()
                .map(|(code, count)| (error_name(*code), *count)),
        ),
        latencies: join_counts(answers.latencies_ns.iter().copied()),
    }
}

/// Readings on the orchestration of several load hosts.
fn of_hosts(orchestration: &Orchestration) -> Vec<(String, f64)> {
    let Orchestration {
        clock_uncertainty_us,
        orchestration_ms,
        orchestration_bytes,
        lag_us_p99,
        was_cut_off: _,
        // A slice with trouble is lost.
        trouble: _,
    } = orchestration;
    let lags = lag_us_p99.iter();
    let lags = lags.map(|(host, lag_us)| (format!("{host}.lag_us_p99"), *lag_us));
    let mut readings = vec![
        ("clock_uncertainty_us".to_owned(), *clock_uncertainty_us),
        ("orchestration_ms".to_owned(), *orchestration_ms),
        (
            "orchestration_bytes".to_owned(),
            *orchestration_bytes as f64,
        ),
    ];
    readings.extend(lags);
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_a_class_are_a_row_with_errors_and_latencies_by_number() {
        let answers = StatementAnswers {
            statement: "3f9a01c2".to_owned(),
            counts: StatementCounts {
                ok: 5,
                failed: 3,
                key_exists: 2,
                unchanged: 1,
                rows_returned: 0,
                rows_changed: 4,
            },
            latency_us_sum: 900.0,
            failed_us_sum: 30.0,
            errors: vec![(1062, 2), (u32::from_str_radix("40P01", 36).unwrap(), 1)],
            latencies_ns: vec![(131_071, 4), (400_383, 1)],
        };
        let label = SliceLabel {
            slice: SliceId {
                block: 7,
                position: 2,
            },
            contender: "next",
            clients: 4,
            epoch: 0,
        };
        let row = statement_row(&answers, label);
        assert_eq!((row.slice(), row.contender.as_str()), (label.slice, "next"));
        assert_eq!((row.ok, row.failed, row.key_exists), (5, 3, 2));
        assert_eq!((row.unchanged, row.rows_changed), (1, 4));
        assert_eq!(row.errors, "1062:2 40P01:1");
        assert_eq!(row.latencies, "131071:4 400383:1");
    }
}
