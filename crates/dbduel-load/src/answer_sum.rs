//! Sums of slice results: over classes, over the turns of a slice, over the load hosts of a turn.

use std::collections::BTreeMap;

use dbduel_record::latency::{decode, encode, new_histogram};
use dbduel_record::rows::TransactionCounts;
use hdrhistogram::Histogram;

use crate::order::{ClassAnswer, Orchestration, SliceAnswer, StatementAnswers, Tick};

impl SliceAnswer {
    /// All classes together under the name `class`, with the histogram of all latencies.
    ///
    /// # Errors
    /// When a histogram cannot be decoded.
    pub fn total(&self, class: &str) -> Result<(ClassAnswer, Histogram<u64>), String> {
        let mut counts = TransactionCounts::default();
        let mut latency_us_sum = 0.0;
        let mut merged = new_histogram();
        for one in &self.classes {
            add(&mut merged, &one.histogram)?;
            counts += one.counts;
            latency_us_sum += one.latency_us_sum;
        }
        let total = ClassAnswer {
            class: class.to_owned(),
            counts,
            latency_us_sum,
            histogram: encode(&merged),
        };
        Ok((total, merged))
    }

    /// Excludes the time in which no load thread ran, and the ticks that it touches: nothing was sent then, so it
    /// shows nothing about the server. Returns the excluded time, seconds; 0 for an open loop, which sent later what
    /// fell due then.
    pub fn leave_out_gaps(&mut self) -> f64 {
        if self.service_times.is_some() {
            return 0.0;
        }
        let gaps_s = std::mem::take(&mut self.gaps_s);
        let left_out_s: f64 = gaps_s.iter().map(|[from, until]| until - from).sum();
        self.measured_s -= left_out_s;
        self.stalled_s = (self.stalled_s - left_out_s).max(0.0);
        self.ticks.retain(|tick| {
            let ends_s = tick.offset_s + tick.length_s;
            !gaps_s
                .iter()
                .any(|[from, until]| *from < ends_s && tick.offset_s < *until)
        });
        left_out_s
    }

    /// Adds the result of a later turn of the same slice, without its ticks of the guard.
    ///
    /// The lag becomes the mean of the turns' quantiles, weighted by transactions.
    ///
    /// # Errors
    /// When a histogram cannot be decoded.
    pub fn append(&mut self, later: SliceAnswer) -> Result<(), String> {
        let after_s = later.open_ns.saturating_sub(self.open_ns) as f64 / 1e9;
        self.measured_s += later.measured_s;
        let (own_ok, later_ok) = (self.ok(), later.ok());
        self.lag_us_p99 =
            (own_ok * self.lag_us_p99 + later_ok * later.lag_us_p99) / (own_ok + later_ok).max(1.0);
        let counted = later.ticks.iter().filter(|tick| tick.offset_s >= 0.0);
        self.ticks.extend(counted.map(|tick| Tick {
            offset_s: tick.offset_s + after_s,
            ..*tick
        }));
        self.stalled_s += later.stalled_s;
        self.drained_s += later.drained_s;
        self.add_work(later)
    }

    /// Adds the result of another load host for the same turn: counts and histograms exactly, ticks by position; of
    /// lag, stall and length of the drain the largest. Each host ends a turn when its own transactions have ended; the
    /// length becomes the one at which throughput is the sum of the hosts' throughputs.
    ///
    /// # Errors
    /// When a histogram cannot be decoded.
    pub fn add_host(&mut self, other: SliceAnswer) -> Result<(), String> {
        let per_s = self.ok() / self.measured_s + other.ok() / other.measured_s;
        let measured_s = (self.ok() + other.ok()) / per_s;
        self.measured_s = match measured_s.is_finite() {
            true => measured_s,
            false => self.measured_s.max(other.measured_s),
        };
        self.lag_us_p99 = self.lag_us_p99.max(other.lag_us_p99);
        self.stalled_s = self.stalled_s.max(other.stalled_s);
        self.drained_s = self.drained_s.max(other.drained_s);
        for (place, tick) in other.ticks.iter().enumerate() {
            match self.ticks.get_mut(place) {
                Some(own) => own.add_host(tick),
                None => self.ticks.push(*tick),
            }
        }
        self.add_work(other)
    }

    /// Number of committed transactions.
    fn ok(&self) -> f64 {
        self.classes
            .iter()
            .map(|class| class.counts.ok as f64)
            .sum()
    }

    /// Adds the parts that are summed in the same way over turns and over hosts.
    fn add_work(&mut self, other: SliceAnswer) -> Result<(), String> {
        // Taken apart by name, so that a new figure cannot be forgotten.
        let SliceAnswer {
            open_ns: _,
            measured_s: _,
            is_finished,
            classes,
            statements,
            ticks: _,
            errors,
            cpu_user_s,
            cpu_system_s,
            cpu_wait_s,
            polled_s,
            lag_us_p99: _,
            service_times,
            stalled_s: _,
            gaps_s: _,
            drained_s: _,
            client_drained_s,
            reported,
            rolled_back,
            commits,
            orchestration,
        } = other;
        self.is_finished &= is_finished;
        for class in classes {
            match self.classes.iter_mut().find(|own| own.class == class.class) {
                Some(own) => {
                    own.counts += class.counts;
                    own.latency_us_sum += class.latency_us_sum;
                    own.histogram = merged(&own.histogram, &class.histogram)?;
                }
                None => self.classes.push(class),
            }
        }
        for statement in statements {
            let name = &statement.statement;
            match self
                .statements
                .iter_mut()
                .find(|own| own.statement == *name)
            {
                Some(own) => own.add(statement),
                None => self.statements.push(statement),
            }
        }
        for error in errors {
            match self.errors.iter_mut().find(|own| own.code == error.code) {
                Some(own) => own.count += error.count,
                None => self.errors.push(error),
            }
        }
        self.cpu_user_s += cpu_user_s;
        self.cpu_system_s += cpu_system_s;
        self.cpu_wait_s += cpu_wait_s;
        self.polled_s += polled_s;
        self.service_times = match (self.service_times.take(), service_times) {
            (Some(own), Some(later)) => Some(merged(&own, &later)?),
            (own, later) => own.or(later),
        };
        self.client_drained_s += client_drained_s;
        self.reported = self.reported.zip(reported).map(|(own, other)| own + other);
        self.rolled_back += rolled_back;
        self.commits.extend(commits);
        self.orchestration = match (self.orchestration.take(), orchestration) {
            (Some(own), Some(later)) => Some(own.with_later(later)),
            (own, later) => own.or(later),
        };
        Ok(())
    }
}

impl StatementAnswers {
    /// Adds the statements of the same class of another turn or host.
    fn add(&mut self, other: StatementAnswers) {
        // Taken apart by name, so that a new figure cannot be forgotten.
        let StatementAnswers {
            statement: _,
            counts,
            latency_us_sum,
            failed_us_sum,
            errors,
            latencies_ns,
        } = other;
        self.counts += counts;
        self.latency_us_sum += latency_us_sum;
        self.failed_us_sum += failed_us_sum;
        add_counts(&mut self.errors, errors);
        add_counts(&mut self.latencies_ns, latencies_ns);
    }
}

/// Adds counts by key; the result is in the order of the keys.
fn add_counts<K: Ord + Copy>(own: &mut Vec<(K, u64)>, other: Vec<(K, u64)>) {
    let mut sum: BTreeMap<K, u64> = own.drain(..).collect();
    for (key, count) in other {
        *sum.entry(key).or_default() += count;
    }
    own.extend(sum);
}

impl Tick {
    /// Adds the same tick of another load host. Quantiles of both together are unknown; the larger is kept, which is
    /// not less than theirs.
    pub fn add_host(&mut self, other: &Tick) {
        // Taken apart by name, so that a new figure cannot be forgotten.
        let Tick {
            offset_s: _,
            length_s,
            ok,
            failed,
            latency_us_sum,
            latency_us_max,
            latency_us_p50,
            latency_us_p95,
            latency_us_p99,
            backlog,
        } = *other;
        self.length_s = self.length_s.max(length_s);
        self.ok += ok;
        self.failed += failed;
        self.latency_us_sum += latency_us_sum;
        self.latency_us_max = self.latency_us_max.max(latency_us_max);
        self.latency_us_p50 = self.latency_us_p50.max(latency_us_p50);
        self.latency_us_p95 = self.latency_us_p95.max(latency_us_p95);
        self.latency_us_p99 = self.latency_us_p99.max(latency_us_p99);
        self.backlog += backlog;
    }
}

impl Orchestration {
    /// The sum with that of a later turn of the same slice.
    fn with_later(mut self, later: Orchestration) -> Self {
        self.clock_uncertainty_us = self.clock_uncertainty_us.max(later.clock_uncertainty_us);
        self.orchestration_ms += later.orchestration_ms;
        self.orchestration_bytes += later.orchestration_bytes;
        for (host, lag_us) in later.lag_us_p99 {
            let own = self.lag_us_p99.entry(host).or_default();
            *own = own.max(lag_us);
        }
        self.was_cut_off |= later.was_cut_off;
        self.trouble = self.trouble.or(later.trouble);
        self
    }
}

fn add(sum: &mut Histogram<u64>, encoded: &str) -> Result<(), String> {
    sum.add(decode(encoded)?)
        .map_err(|error| format!("histograms of different bounds: {error:?}"))
}

/// Merges two encoded histograms.
fn merged(one: &str, other: &str) -> Result<String, String> {
    let mut sum = decode(one)?;
    add(&mut sum, other)?;
    Ok(encode(&sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::ErrorCount;
    use dbduel_record::statement_classes::StatementCounts;

    fn turn(open_ns: u64, ok: u64, latency_ns: u64) -> SliceAnswer {
        let mut histogram = new_histogram();
        histogram.record_n(latency_ns, ok).unwrap();
        let tick = |offset_s: f64| Tick {
            offset_s,
            length_s: 0.1,
            ok,
            ..Tick::default()
        };
        SliceAnswer {
            open_ns,
            measured_s: 0.1,
            is_finished: false,
            statements: vec![StatementAnswers {
                statement: "3f9a01c2".to_owned(),
                counts: StatementCounts {
                    ok,
                    key_exists: 1,
                    failed: 2,
                    ..StatementCounts::default()
                },
                latency_us_sum: 5.0,
                failed_us_sum: 1.0,
                errors: vec![(1062, 1), (1213, 1)],
                latencies_ns: vec![(latency_ns, ok)],
            }],
            classes: vec![ClassAnswer {
                class: "select".to_owned(),
                counts: TransactionCounts {
                    due: ok + 1,
                    ok,
                    unfinished: 1,
                    retries: 2,
                    statements: ok,
                    ..TransactionCounts::default()
                },
                latency_us_sum: (ok * latency_ns) as f64 / 1e3,
                histogram: encode(&histogram),
            }],
            ticks: vec![tick(-0.1), tick(0.0)],
            errors: vec![ErrorCount {
                code: 1213,
                is_conflict: true,
                count: 2,
                example: "Deadlock".to_owned(),
            }],
            cpu_user_s: 0.01,
            cpu_system_s: 0.02,
            cpu_wait_s: 0.0,
            polled_s: 0.0,
            lag_us_p99: ok as f64,
            service_times: None,
            stalled_s: 0.0,
            gaps_s: Vec::new(),
            drained_s: 1.0 / ok as f64,
            client_drained_s: 0.1,
            reported: Some(ok + 2),
            rolled_back: 1,
            commits: Vec::new(),
            orchestration: None,
        }
    }

    /// Answer about a server that does 1000 transactions a second while it is asked.
    fn turn_with_stalls(gaps_s: &[[f64; 2]], server_stalls_s: f64) -> SliceAnswer {
        let gap_s: f64 = gaps_s.iter().map(|[from, until]| until - from).sum();
        let mut answer = turn(
            0,
            (1000.0 * (4.0 - gap_s - server_stalls_s)) as u64,
            200_000,
        );
        answer.measured_s = 4.0;
        answer.stalled_s = gap_s;
        answer.gaps_s = gaps_s.to_vec();
        answer.ticks = (0..40)
            .map(|number| Tick {
                offset_s: f64::from(number) * 0.1,
                length_s: 0.1,
                ..Tick::default()
            })
            .collect();
        answer
    }

    #[test]
    fn time_without_a_load_thread_is_left_out_and_a_stall_of_the_server_is_not() {
        let rate = |answer: &SliceAnswer| answer.ok() / answer.measured_s;
        let mut stopped = turn_with_stalls(&[[0.5, 1.5], [3.0, 3.25]], 0.0);
        assert_eq!(stopped.leave_out_gaps(), 1.25);
        assert!((rate(&stopped) - 1000.0).abs() < 1e-9);
        assert_eq!(stopped.stalled_s, 0.0);
        // Ten ticks and three, of which one is half in the gap, or eleven and four where borders are rounded.
        assert!(
            (25..=27).contains(&stopped.ticks.len()),
            "{}",
            stopped.ticks.len()
        );
        let mut slow = turn_with_stalls(&[], 1.0);
        assert_eq!(slow.leave_out_gaps(), 0.0);
        assert!((rate(&slow) - 750.0).abs() < 1e-9);
        // The gap of one thread alone is no gap of the process.
        let mut one = turn_with_stalls(&[], 0.5);
        one.stalled_s = 1.0;
        assert_eq!((one.leave_out_gaps(), one.stalled_s), (0.0, 1.0));
        let mut open_loop = turn_with_stalls(&[[0.5, 1.5]], 0.0);
        open_loop.service_times = Some(encode(&new_histogram()));
        assert_eq!(
            (open_loop.leave_out_gaps(), open_loop.measured_s),
            (0.0, 4.0)
        );
    }

    #[test]
    fn the_turns_of_a_slice_are_summed_and_their_ticks_keep_their_time() {
        let mut slice = turn(1_000_000_000, 10, 200_000);
        slice.append(turn(1_500_000_000, 30, 400_000)).unwrap();
        let class = &slice.classes[0];
        let counts = class.counts;
        assert_eq!((counts.due, counts.ok, counts.unfinished), (42, 40, 2));
        let latencies = decode(&class.histogram).unwrap();
        assert_eq!(latencies.len(), 40);
        assert!(latencies.value_at_quantile(0.2) < latencies.value_at_quantile(0.3));
        assert_eq!(slice.measured_s, 0.2);
        let offsets: Vec<f64> = slice.ticks.iter().map(|tick| tick.offset_s).collect();
        assert_eq!(offsets, [-0.1, 0.0, 0.5]);
        assert_eq!(slice.errors[0].count, 4);
        let [statements] = slice.statements.as_slice() else {
            panic!("{:?}", slice.statements)
        };
        let counts = statements.counts;
        assert_eq!((counts.ok, counts.failed, counts.key_exists), (40, 4, 2));
        assert_eq!(statements.errors, [(1062, 2), (1213, 2)]);
        assert_eq!(statements.latencies_ns, [(200_000, 10), (400_000, 30)]);
        assert_eq!(
            (statements.latency_us_sum, statements.failed_us_sum),
            (10.0, 2.0)
        );
        assert_eq!(slice.lag_us_p99, 25.0);
        assert!((slice.drained_s - (0.1 + 1.0 / 30.0)).abs() < 1e-12);
        assert_eq!(slice.client_drained_s, 0.2);
        assert_eq!((slice.rolled_back, slice.reported), (2, Some(44)));
        let unknown = SliceAnswer {
            reported: None,
            ..turn(2_000_000_000, 10, 200_000)
        };
        slice.append(unknown).unwrap();
        assert_eq!(slice.reported, None);
    }
    #[test]
    fn the_hosts_of_a_turn_are_added_exactly_and_their_ticks_by_place() {
        let mut slice = turn(1_000_000_000, 10, 200_000);
        slice.add_host(turn(1_000_000_900, 30, 400_000)).unwrap();
        let counts = slice.classes[0].counts;
        assert_eq!((counts.due, counts.ok, counts.unfinished), (42, 40, 2));
        let mut whole = new_histogram();
        whole.record_n(200_000, 10).unwrap();
        whole.record_n(400_000, 30).unwrap();
        assert_eq!(decode(&slice.classes[0].histogram).unwrap(), whole);
        assert!((slice.measured_s - 0.1).abs() < 1e-12);
        let mut longer = turn(1_000_000_900, 30, 400_000);
        longer.measured_s = 0.3;
        let mut whole = turn(1_000_000_000, 10, 200_000);
        whole.add_host(longer).unwrap();
        assert!((40.0 / whole.measured_s - (10.0 / 0.1 + 30.0 / 0.3)).abs() < 1e-9);
        let ticks: Vec<(f64, u64)> = slice
            .ticks
            .iter()
            .map(|tick| (tick.offset_s, tick.ok))
            .collect();
        assert_eq!(ticks, [(-0.1, 40), (0.0, 40)]);
        assert_eq!((slice.lag_us_p99, slice.drained_s), (30.0, 0.1));
        assert_eq!(slice.client_drained_s, 0.2);
        assert_eq!((slice.open_ns, slice.rolled_back), (1_000_000_000, 2));
    }
}
