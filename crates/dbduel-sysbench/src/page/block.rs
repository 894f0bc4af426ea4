//! The block of figures at a checkpoint or the end.

use std::fmt::Write as _;

use dbduel_client::run::{Counts, Share};

use super::{MIB, NS_PER_MS, NS_PER_S, Style, View};

/// The block at the end of a run or at a checkpoint. `unfinished` is given after a forced shutdown.
pub fn cumulative(
    style: Style,
    view: &View<'_>,
    shares: &[Share],
    unfinished: Option<u32>,
) -> String {
    let mut text = what_was_done(style, view);
    // Writing to a string does not fail.
    if let Some(count) = unfinished {
        let _ = write!(
            text,
            "\nNumber of unfinished transactions on forced shutdown: {count}\n"
        );
    }
    let counts = &view.interval_stats.counts;
    let _ = write!(
        text,
        "\nGeneral statistics:\n    total time:                          {:.4}s\n    total number of events:              {}\n\n",
        view.elapsed_s, counts.events
    );
    text.push_str(&latency(view));
    text.push_str(&fairness(shares));
    text
}

fn what_was_done(style: Style, view: &View<'_>) -> String {
    let counts = &view.interval_stats.counts;
    match style {
        Style::Sql => statements(view, counts),
        Style::Events => String::new(),
        Style::Cpu => format!(
            "CPU speed:\n    events per second: {:8.2}\n",
            view.per_s(counts.events)
        ),
        Style::Memory => {
            let bytes = counts.bytes_read + counts.bytes_written;
            let mut text = format!(
                "Total operations: {} ({:8.2} per second)\n\n",
                counts.events,
                view.per_s(counts.events)
            );
            if bytes > 0 {
                let _ = write!(
                    text,
                    "{:.2} MiB transferred ({:.2} MiB/sec)\n\n",
                    bytes as f64 / MIB,
                    view.per_s(bytes) / MIB
                );
            }
            text
        }
        Style::Files => format!(
            "\nFile operations:\n    reads/s:                      {:.2}\n    writes/s:                     {:.2}\n    fsyncs/s:                     {:.2}\n\n\
             Throughput:\n    read, MiB/s:                  {:.2}\n    written, MiB/s:               {:.2}\n",
            view.per_s(counts.reads),
            view.per_s(counts.writes),
            view.per_s(counts.others),
            view.per_s(counts.bytes_read) / MIB,
            view.per_s(counts.bytes_written) / MIB,
        ),
    }
}

fn statements(view: &View<'_>, counts: &Counts) -> String {
    let queries = counts.reads + counts.writes + counts.others;
    let mut text = format!(
        "SQL statistics:\n    queries performed:\n        read:                            {}\n        write:                           {}\n        \
         other:                           {}\n        total:                           {queries}\n",
        counts.reads, counts.writes, counts.others
    );
    for (label, count) in [
        ("transactions:", counts.events),
        ("queries:", queries),
        ("ignored errors:", counts.errors),
        ("reconnects:", counts.reconnects),
    ] {
        let _ = writeln!(
            text,
            "    {label:<36} {count:<6} ({:.2} per sec.)",
            view.per_s(count)
        );
    }
    text
}

fn latency(view: &View<'_>) -> String {
    let interval_stats = view.interval_stats;
    let events = interval_stats.counts.events;
    let sum_ms = interval_stats.latency_ns_sum as f64 / NS_PER_MS;
    let (min_ns, mean_ms) = match events {
        0 => (0, 0.0),
        _ => (interval_stats.latency_ns_min, sum_ms / events as f64),
    };
    let mut text = "Latency (ms):\n".to_owned();
    let line = |label: &str, value: &str| format!("         {label:<24}{value:>20}\n");
    let number = |label: &str, ms: f64| line(label, &format!("{ms:.2}"));
    text += &number("min:", min_ns as f64 / NS_PER_MS);
    text += &number("avg:", mean_ms);
    text += &number("max:", interval_stats.latency_ns_max as f64 / NS_PER_MS);
    match view.percentile {
        0 => text += &line("percentile stats:", "disabled"),
        // One column less for the label, which makes room for `100`.
        percent => {
            let label = format!("{percent:>3}th percentile:");
            let _ = writeln!(text, "        {label:<25}{:>20.2}", view.percentile_ms());
        }
    }
    text += &number("sum:", sum_ms);
    text.push('\n');
    text
}

fn fairness(shares: &[Share]) -> String {
    let events: Vec<f64> = shares.iter().map(|share| share.events as f64).collect();
    let times: Vec<f64> = shares
        .iter()
        .map(|share| share.ns as f64 / NS_PER_S)
        .collect();
    let ((events, events_dev), (time, time_dev)) = (spread(&events), spread(&times));
    format!(
        "Threads fairness:\n    events (avg/stddev):           {events:.4}/{events_dev:.2}\n    execution time (avg/stddev):   {time:.4}/{time_dev:.2}\n\n"
    )
}

/// Mean and standard deviation of all values.
fn spread(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / count).sqrt())
}

/// A line per client, for debugging.
pub fn clients(shares: &[Share]) -> Vec<String> {
    let mut lines = vec!["Verbose per-thread statistics:\n".to_owned()];
    for (number, share) in shares.iter().enumerate() {
        let seconds = |ns: u64| ns as f64 / NS_PER_S;
        let mean = seconds(share.ns) / share.events.max(1) as f64;
        lines.push(format!(
            "    thread #{number:3}: min: {:.4}s  avg: {mean:.4}s  max: {:.4}s  events: {}",
            seconds(share.ns_min),
            seconds(share.ns_max),
            share.events
        ));
        lines.push(format!(
            "                 total time taken by event execution: {:.4}s",
            seconds(share.ns)
        ));
    }
    lines
}
