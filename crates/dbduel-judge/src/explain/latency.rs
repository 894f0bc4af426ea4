//! Where the time of one transaction goes.
//!
//! In a closed loop without think time a client is always in a transaction, so clients × time ÷
//! transactions is the time of one (Little, 1961), and the threads that serve the clients divide it.
//! Time on a processor and in the run queue is counted by the kernel; the rest is divided as the samples
//! of those threads fall. Row locks are what the engine says of them, and the log's share of waits for
//! other threads is what the server's list of connections says; both are taken out of these waits.
//!
//! With think time or an open arrival clients also rest, and nothing here tells resting from waiting.

use dbduel_record::event::SliceId;
use dbduel_record::plan::Arrival;
use dbduel_record::rows::SliceRow;

use super::paired::{Paired, Taken};
use super::{Division, Doing, Part};
use crate::evidence::Evidence;
use crate::evidence::figures::ratio_over_slices;
use crate::summary::{Figure, How};

/// Looks at the threads of a slice below which its division is left to chance.
const LOOKS_MIN: f64 = 10.0;

/// Seconds by what was being done; the order is that of [`Doing::ALL`].
type Seconds = [f64; Doing::ALL.len()];

/// Divides the latency of `contender` and of the baseline.
///
/// # Errors
/// The reason, when it cannot be done.
pub fn divide(
    evidence: &Evidence<'_>,
    level: usize,
    contender: usize,
    paired: Paired,
) -> Result<Division, String> {
    let plan = evidence.plan();
    match plan.levels[level].arrival {
        Arrival::Closed { think_ms: 0.0 } => {}
        Arrival::Closed { .. } | Arrival::Constant { .. } | Arrival::Poisson { .. } => {
            return Err("clients pause between transactions, which looks like waiting".to_owned());
        }
    }
    let mut sides = [
        side(evidence, level, plan.baseline)?,
        side(evidence, level, contender)?,
    ];
    // Threads are recognised one after the other, in short turns over several slices.
    let is_whole = |blocks: &[Side; 2], block: usize| blocks.iter().all(|side| side[block].is_ok());
    let whole: Vec<bool> = (0..sides[0].len())
        .map(|block| is_whole(&sides, block))
        .collect();
    if plan.turns.contains_key(&level) && whole.contains(&true) {
        for side in &mut sides {
            let mut whole = whole.iter();
            side.retain(|_| whole.next() == Some(&true));
        }
    }
    let [baseline, other] = sides.map(|side| side.into_iter().collect::<Result<Vec<_>, _>>());
    let (baseline, other) = (baseline?, other?);
    let confidence_alpha = 1.0 - plan.decision.confidence;
    let compared = |pick: &dyn Fn(&Slice) -> f64| {
        [
            per_transaction(&baseline, pick, confidence_alpha),
            per_transaction(&other, pick, confidence_alpha),
            paired.difference(&taken(&baseline, pick), &taken(&other, pick)),
        ]
    };
    let [baseline_us, contender_us, difference_us] = compared(&|slice| slice.whole_s);
    let parts = Doing::ALL.iter().enumerate().map(|(index, doing)| {
        let [baseline_us, contender_us, difference_us] = compared(&|slice| slice.parts[index]);
        Part {
            doing: *doing,
            baseline_us,
            contender_us,
            difference_us,
        }
    });
    Ok(Division {
        clients: plan.levels[level].clients,
        baseline_us,
        contender_us,
        difference_us,
        identity_gap: [gap(&baseline), gap(&other)],
        parts: parts.collect(),
    })
}

/// The difference in the mean latency of committed transactions, contender − baseline, microseconds. It needs no division
/// and no closed loop.
pub fn difference(
    evidence: &Evidence<'_>,
    level: usize,
    contender: usize,
    paired: Paired,
) -> Figure {
    let of_side = |who: usize| {
        let blocks = evidence.watched(level).iter();
        Taken::new(blocks.map(|block| {
            let rows = || block.slices_of(who);
            let sum_us: f64 = rows().map(|row| row.latency_us_sum).sum();
            let ok: f64 = rows().map(|row| row.ok as f64).sum();
            (sum_us, ok)
        }))
    };
    paired.difference(&of_side(evidence.plan().baseline), &of_side(contender))
}

/// A slice with its clients' time divided.
struct Slice {
    ok: f64,
    latency_s: f64,
    whole_s: f64,
    parts: Seconds,
}

impl Slice {
    fn of(evidence: &Evidence<'_>, row: &SliceRow) -> Result<Self, String> {
        let id = row.slice();
        let reading = |source: &str, metric: &str| {
            evidence
                .reading(id, source, metric)
                .ok_or_else(|| missing(id, source, metric))
        };
        let clients = f64::from(row.clients);
        let threads = reading("server", "connections_count")?;
        if threads < clients {
            return Err(format!(
                "slice {id}: only {threads} of {clients} connections were matched to a server thread of their own; \
                 does the server use a thread pool?"
            ));
        }
        reading("observer", "window_s")?;
        let time = |metric: &str| {
            reading("server", metric)?;
            Ok::<f64, String>(evidence.used(id, "server", metric).unwrap_or(0.0))
        };
        let optional =
            |source: &str, metric: &str| evidence.used(id, source, metric).unwrap_or(0.0);
        Ok(Self {
            ok: row.ok as f64,
            latency_s: row.latency_us_sum / 1e6,
            whole_s: clients * row.measured_s,
            parts: split(&Raw {
                whole_s: clients * row.measured_s,
                // Clients of other levels, and the observer, wait all the time.
                idle_s: (threads - clients) * row.measured_s,
                on_cpu_s: time("connections_on_cpu_s")?,
                run_queue_s: time("connections_run_queue_s")?,
                disk_read_s: time("connections_disk_read_s")?,
                disk_write_s: time("connections_disk_write_s")?,
                log_s: time("connections_log_s")?,
                other_thread_s: time("connections_other_thread_s")?,
                client_s: time("connections_client_s")?,
                other_s: time("connections_other_s")?,
                in_commit_s: optional("server", "connections_in_commit_s"),
                row_lock_s: optional("engine", "row_lock_wait_s"),
                client_cpu_s: evidence.cpu_s(id, "load").unwrap_or(0.0),
                client_wait_s: optional("load", "cpu_wait_s"),
            }),
        })
    }
}

/// Readings of one slice, seconds of all its connections together.
struct Raw {
    whole_s: f64,
    idle_s: f64,
    on_cpu_s: f64,
    run_queue_s: f64,
    disk_read_s: f64,
    disk_write_s: f64,
    log_s: f64,
    other_thread_s: f64,
    client_s: f64,
    other_s: f64,
    in_commit_s: f64,
    row_lock_s: f64,
    client_cpu_s: f64,
    client_wait_s: f64,
}

/// Divides `whole_s`; the parts add up to it.
fn split(raw: &Raw) -> Seconds {
    let counted = raw.on_cpu_s + raw.run_queue_s;
    let shrink = if counted > raw.whole_s {
        raw.whole_s / counted
    } else {
        1.0
    };
    let (running, runnable) = (raw.on_cpu_s * shrink, raw.run_queue_s * shrink);
    let client = (raw.client_s - raw.idle_s).max(0.0);
    let asleep =
        raw.disk_read_s + raw.disk_write_s + raw.log_s + raw.other_thread_s + client + raw.other_s;
    let left = raw.whole_s - running - runnable;
    let fit = if asleep > 0.0 { left / asleep } else { 0.0 };
    let unseen = if asleep > 0.0 { 0.0 } else { left };
    let (log, waits, client) = (raw.log_s * fit, raw.other_thread_s * fit, client * fit);
    let row_lock = raw.row_lock_s.min(waits);
    // A connection that ends its transaction runs, writes the log, or waits for the connection that does.
    let waiting_share = waits / (waits + running + runnable).max(f64::MIN_POSITIVE);
    let group_commit = ((raw.in_commit_s - log).max(0.0) * waiting_share).min(waits - row_lock);
    let client_runs = raw.client_cpu_s.min(client);
    let client_waits = raw.client_wait_s.min(client - client_runs);
    let mut parts = [0.0; Doing::ALL.len()];
    for (index, doing) in Doing::ALL.iter().enumerate() {
        parts[index] = match doing {
            Doing::Running => running,
            Doing::Runnable => runnable,
            Doing::DiskRead => raw.disk_read_s * fit,
            Doing::DiskWrite => raw.disk_write_s * fit,
            Doing::Commit => log + group_commit,
            Doing::RowLock => row_lock,
            Doing::OtherThread => waits - row_lock - group_commit,
            Doing::Client => client_runs,
            Doing::ClientRunnable => client_waits,
            Doing::Network => client - client_runs - client_waits,
            Doing::Other => raw.other_s * fit + unseen,
        };
    }
    parts
}

fn missing(slice: SliceId, source: &str, metric: &str) -> String {
    format!("slice {slice} has no reading `{metric}` of the {source}")
}

/// The slices of one contender, block by block, or why those of a block cannot be divided.
type Side = Vec<Result<Vec<Slice>, String>>;

fn side(evidence: &Evidence<'_>, level: usize, who: usize) -> Result<Side, String> {
    let blocks = evidence.watched(level);
    // A thread is recognised when it is seen to wait for its client, which takes some looks. Which they are is
    // remembered from slice to slice, so that short ones are seen often enough together.
    let looks = blocks
        .iter()
        .flat_map(|block| block.slices_of(who))
        .map(|row| {
            let looks = evidence.reading(row.slice(), "server", "state_looks_count");
            looks.ok_or_else(|| format!("thread states of `{}` were not observed", row.contender))
        });
    let looks: Vec<f64> = looks.collect::<Result<_, _>>()?;
    let enough = match evidence.plan().turns.contains_key(&level) {
        true => looks.iter().sum::<f64>() >= LOOKS_MIN,
        false => looks.iter().all(|looks| *looks >= LOOKS_MIN),
    };
    if !enough {
        return Err("thread states were sampled too rarely".to_owned());
    }
    let blocks = blocks.iter().map(|block| {
        let slices: Vec<Slice> = block
            .slices_of(who)
            .map(|row| Slice::of(evidence, row))
            .collect::<Result<_, _>>()?;
        if slices.iter().all(|slice| slice.ok <= 0.0) {
            return Err(format!("block {} has no transaction", block.block.id));
        }
        Ok(slices)
    });
    Ok(blocks.collect())
}

/// Microseconds and transactions of each block.
fn taken(blocks: &[Vec<Slice>], pick: &dyn Fn(&Slice) -> f64) -> Taken {
    Taken::new(blocks.iter().map(|slices| {
        let seconds: f64 = slices.iter().map(pick).sum();
        let ok: f64 = slices.iter().map(|slice| slice.ok).sum();
        (seconds * 1e6, ok)
    }))
}

fn per_transaction(blocks: &[Vec<Slice>], pick: &dyn Fn(&Slice) -> f64, alpha: f64) -> Figure {
    let slices = || blocks.iter().flatten();
    let us: Vec<f64> = slices().map(|slice| pick(slice) * 1e6).collect();
    let ok: Vec<f64> = slices().map(|slice| slice.ok).collect();
    ratio_over_slices(&us, &ok, alpha, How::Readings)
}

/// How far the recorded latencies are from what the loop implies.
fn gap(blocks: &[Vec<Slice>]) -> f64 {
    let slices = || blocks.iter().flatten();
    let recorded: f64 = slices().map(|slice| slice.latency_s).sum();
    let implied: f64 = slices().map(|slice| slice.whole_s).sum();
    recorded / implied.max(f64::MIN_POSITIVE) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> Raw {
        Raw {
            whole_s: 100.0,
            idle_s: 20.0,
            on_cpu_s: 10.0,
            run_queue_s: 5.0,
            disk_read_s: 30.0,
            disk_write_s: 0.0,
            log_s: 10.0,
            other_thread_s: 25.0,
            client_s: 40.0,
            other_s: 0.0,
            in_commit_s: 20.0,
            row_lock_s: 5.0,
            client_cpu_s: 8.0,
            client_wait_s: 1.0,
        }
    }

    fn part(parts: &Seconds, doing: Doing) -> f64 {
        parts[Doing::ALL.iter().position(|one| *one == doing).unwrap()]
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        for raw in [
            raw(),
            Raw {
                on_cpu_s: 300.0,
                ..raw()
            },
            Raw {
                disk_read_s: 0.0,
                log_s: 0.0,
                other_thread_s: 0.0,
                client_s: 0.0,
                ..raw()
            },
        ] {
            let parts = split(&raw);
            assert!(
                (parts.iter().sum::<f64>() - 100.0).abs() < 1e-9,
                "{parts:?}"
            );
            assert!(parts.iter().all(|seconds| *seconds >= 0.0), "{parts:?}");
        }
    }

    #[test]
    fn idle_connections_do_not_count_as_waiting_for_clients() {
        let parts = split(&raw());
        // 85 s asleep were sampled for the 85 s that are left.
        let client = part(&parts, Doing::Client)
            + part(&parts, Doing::ClientRunnable)
            + part(&parts, Doing::Network);
        assert!((client - 20.0).abs() < 1e-9, "{client}");
        assert!((part(&parts, Doing::Client) - 8.0).abs() < 1e-9);
    }

    #[test]
    fn row_locks_and_group_commit_come_out_of_waits_for_other_threads() {
        let parts = split(&raw());
        assert!((part(&parts, Doing::RowLock) - 5.0).abs() < 1e-9);
        // 10 s of the commits were not spent on the log itself; 25 of 40 s off the client were waits.
        assert!((part(&parts, Doing::Commit) - (10.0 + 10.0 * 25.0 / 40.0)).abs() < 1e-9);
        let sum = part(&parts, Doing::RowLock)
            + part(&parts, Doing::Commit)
            + part(&parts, Doing::OtherThread);
        assert!((sum - 35.0).abs() < 1e-9);
    }
}
