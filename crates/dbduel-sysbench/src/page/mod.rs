//! The output of a run, in sysbench's words and columns. Pure functions: other people's parsers read this text.

mod block;
mod histogram;

use std::fmt::Write as _;

use dbduel_client::run::IntervalStats;

pub use block::{clients, cumulative};
pub use histogram::histogram;

use super::general::General;

const MIB: f64 = (1 << 20) as f64;
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// Kind of output lines of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Statements.
    Sql,
    /// Events alone.
    Events,
    /// Events, with the processor's speed.
    Cpu,
    /// Operations and bytes.
    Memory,
    /// Reads, writes and syncs.
    Files,
}

/// An interval of a run and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The counts.
    pub interval_stats: &'a IntervalStats,
    /// Length of the interval, seconds.
    pub length_s: f64,
    /// Time since the beginning of the run, without the warm-up, seconds.
    pub elapsed_s: f64,
    /// Clients that have not ended.
    pub running: u32,
    /// Percentile of the latencies; 0 for none.
    pub percentile: u32,
}

impl View<'_> {
    fn per_s(&self, count: u64) -> f64 {
        // Nothing that is timed takes no time; a caller without a clock gets no infinity.
        count as f64 / self.length_s.max(1e-9)
    }

    fn percentile_ms(&self) -> f64 {
        match self.percentile {
            0 => 0.0,
            percent => self.interval_stats.quantile_ns(percent) as f64 / NS_PER_MS,
        }
    }
}

/// The lines between the banner and the beginning.
pub fn options(general: &General) -> String {
    let mut text = format!(
        "Running the test with following options:\nNumber of threads: {}\n",
        general.threads
    );
    let mut line = |is_shown: bool, line: String| {
        if is_shown {
            text.push_str(&line);
            text.push('\n');
        }
    };
    let limits = &general.limits;
    let warm_up = limits.warm_up.as_secs();
    line(warm_up > 0, format!("Warmup time: {warm_up}s"));
    let rate = limits.per_second.unwrap_or_default();
    line(
        rate > 0.0,
        format!("Target transaction rate: {rate:.0}/sec"),
    );
    let interval = general.report_interval.unwrap_or_default().as_secs();
    line(
        interval > 0,
        format!("Report intermediate results every {interval} second(s)"),
    );
    let checkpoints: Vec<String> = general
        .checkpoints
        .iter()
        .map(|at| at.as_secs().to_string())
        .collect();
    line(
        !checkpoints.is_empty(),
        format!("Report checkpoint(s) at {} seconds", checkpoints.join(", ")),
    );
    line(general.debug, "Debug mode enabled.\n".to_owned());
    line(general.validate, "Validation checks: on.\n".to_owned());
    let source = match general.seed_given {
        0 => "current time".to_owned(),
        seed => format!("seed ({seed})."),
    };
    line(
        true,
        format!("Initializing random number generator from {source}\n"),
    );
    if let Some(at) = general.forced_shutdown {
        line(
            true,
            format!("Forcing shutdown in {:.0} seconds", at.as_secs_f64()),
        );
    }
    text.push('\n');
    text
}

/// One intermediate report, with its newline; with a rate, also the queue's line.
pub fn interval(style: Style, view: &View<'_>, queue: Option<(u64, u32)>) -> String {
    let View {
        interval_stats,
        elapsed_s,
        running,
        percentile,
        ..
    } = view;
    let counts = &interval_stats.counts;
    let latency = view.percentile_ms();
    let per_s = |count| view.per_s(count);
    let at = format!("[ {elapsed_s:.0}s ]");
    let mut text = match style {
        Style::Sql => format!(
            "{at} thds: {running} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{percentile}%): {latency:.2} err/s: {:.2} reconn/s: {:.2}\n",
            per_s(counts.events),
            per_s(counts.reads + counts.writes + counts.others),
            per_s(counts.reads),
            per_s(counts.writes),
            per_s(counts.others),
            per_s(counts.errors),
            per_s(counts.reconnects),
        ),
        Style::Events | Style::Cpu => format!(
            "{at} thds: {running} eps: {:.2} lat (ms,{percentile}%): {latency:.2}\n",
            per_s(counts.events)
        ),
        Style::Memory => format!(
            "{at} {:.2} MiB/sec\n",
            per_s(counts.bytes_read + counts.bytes_written) / MIB
        ),
        Style::Files => format!(
            "{at} reads: {:.2} MiB/s writes: {:.2} MiB/s fsyncs: {:.2}/s latency (ms,{percentile}%): {latency:.3}\n",
            per_s(counts.bytes_read) / MIB,
            per_s(counts.bytes_written) / MIB,
            per_s(counts.others),
        ),
    };
    if let Some((length, busy)) = queue {
        let comma = if style == Style::Sql { "," } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{at} queue length: {length}{comma} concurrency: {busy}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use dbduel_client::run::{Counts, RunMetrics, Share};

    use super::*;

    fn interval_stats() -> (IntervalStats, Vec<Share>) {
        let metrics = RunMetrics::new(2, 1);
        let counts = Counts {
            reads: 14,
            writes: 4,
            others: 2,
            bytes_read: 1 << 20,
            ..Counts::default()
        };
        for (client, ms) in [(0, 1), (0, 2), (1, 3), (0, 10)] {
            metrics.event(client, counts, ms * 1_000_000);
        }
        let mut interval_stats = IntervalStats::default();
        metrics.take(&mut interval_stats);
        (interval_stats, metrics.shares())
    }

    fn view(interval_stats: &IntervalStats) -> View<'_> {
        View {
            interval_stats,
            length_s: 2.0,
            elapsed_s: 5.0,
            running: 2,
            percentile: 50,
        }
    }

    #[test]
    fn intermediate_lines_have_the_known_shapes() {
        let (interval_stats, _) = interval_stats();
        let view = view(&interval_stats);
        assert_eq!(
            interval(Style::Sql, &view, Some((3, 1))),
            "[ 5s ] thds: 2 tps: 2.00 qps: 40.00 (r/w/o: 28.00/8.00/4.00) lat (ms,50%): 2.00 err/s: 0.00 reconn/s: 0.00\n\
             [ 5s ] queue length: 3, concurrency: 1\n"
        );
        assert_eq!(
            interval(Style::Cpu, &view, Some((3, 1))),
            "[ 5s ] thds: 2 eps: 2.00 lat (ms,50%): 2.00\n[ 5s ] queue length: 3 concurrency: 1\n"
        );
        assert_eq!(
            interval(Style::Memory, &view, None),
            "[ 5s ] 2.00 MiB/sec\n"
        );
        assert_eq!(
            interval(Style::Files, &view, None),
            "[ 5s ] reads: 2.00 MiB/s writes: 0.00 MiB/s fsyncs: 4.00/s latency (ms,50%): 2.001\n"
        );
    }

    #[test]
    fn the_final_block_has_the_known_columns() {
        let (interval_stats, shares) = interval_stats();
        let text = cumulative(Style::Sql, &view(&interval_stats), &shares, Some(1));
        let expected = "\
SQL statistics:
    queries performed:
        read:                            56
        write:                           16
        other:                           8
        total:                           80
    transactions:                        4      (2.00 per sec.)
    queries:                             80     (40.00 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

Number of unfinished transactions on forced shutdown: 1

General statistics:
    total time:                          5.0000s
    total number of events:              4

Latency (ms):
         min:                                    1.00
         avg:                                    4.00
         max:                                   10.00
         50th percentile:                        2.00
         sum:                                   16.00

Threads fairness:
    events (avg/stddev):           2.0000/1.00
    execution time (avg/stddev):   0.0080/0.01

";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_histogram_has_the_known_bins_and_all_counts() {
        let (interval_stats, _) = interval_stats();
        let text = histogram(&interval_stats);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains('|')).collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(rows[0].starts_with("       1.007 |"), "{text}");
        assert!(
            rows[0].ends_with(&format!("{} 1", "*".repeat(40))),
            "{text}"
        );
        assert!(text.ends_with("\n \n"));
    }

    #[test]
    fn a_run_without_events_has_no_infinities() {
        let interval_stats = IntervalStats::default();
        let view = View {
            length_s: 0.0,
            ..view(&interval_stats)
        };
        for style in [
            Style::Sql,
            Style::Events,
            Style::Cpu,
            Style::Memory,
            Style::Files,
        ] {
            let text = cumulative(style, &view, &[], None) + &interval(style, &view, None);
            assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        }
    }
}
