//! A load as text for people: a line per second while it runs, and a summary. Pure functions.

use std::fmt::Write as _;

use dbduel_load::fill::FillReport;
use dbduel_load::order::Tick;
use dbduel_record::plan::Arrival;

use super::outcome::{Counts, Document, Figures, Latency};
use crate::report::words::{count, duration, latency, number, sentence, share};

/// Share of its threads' time from which the load process has nothing to spare.
const SATURATED: f64 = 0.7;

/// What filling the tables took.
pub fn filled(report: &FillReport) -> String {
    let filled = report.rows - report.rows_before;
    let per_second = filled as f64 / report.rows_s.max(f64::EPSILON);
    let before = match report.rows_before {
        0 => String::new(),
        rows => format!(" after {} that were in already", count(rows)),
    };
    let way = report
        .way
        .map_or_else(String::new, |way| format!(" by {way}"));
    format!(
        "filled in {} rows{before} in {:.1} s{way}, {} rows/s over {} connections; then {:.1} s for indexes and statistics",
        count(filled),
        report.rows_s,
        number(per_second),
        report.connections,
        report.finish_s
    )
}

/// One second of the load. How much waits for a free client is told where transactions fall due by a
/// schedule.
pub fn live(tick: &Tick, arrival: Arrival) -> String {
    let ends_s = tick.offset_s + tick.length_s;
    // A tick never spans the end of the warm-up.
    let phase = if ends_s < tick.length_s / 2.0 {
        "warm-up"
    } else {
        ""
    };
    let mean_us = tick.latency_us_sum / tick.ok.max(1) as f64;
    let rate = tick.ok as f64 / tick.length_s.max(f64::EPSILON);
    let columns = [
        ("mean", mean_us),
        ("p50", tick.latency_us_p50),
        ("p95", tick.latency_us_p95),
        ("p99", tick.latency_us_p99),
        ("max", tick.latency_us_max),
    ];
    let mut line = format!("{ends_s:>6.0} s {phase:<7} {:>9}/s", number(rate));
    for (name, us) in columns {
        let text = if tick.ok == 0 {
            "–".to_owned()
        } else {
            latency(us)
        };
        // Writing to a string does not fail.
        let _ = write!(line, "  {name} {text:>8}");
    }
    if !matches!(arrival, Arrival::Closed { .. }) {
        let _ = write!(line, "  backlog {:>6}", count(tick.backlog));
    }
    let _ = write!(line, "  failed {}", count(tick.failed));
    line
}

/// What it all came to.
pub fn summary(document: &Document) -> String {
    let Document {
        setup,
        total,
        classes,
        errors,
        client,
        ..
    } = document;
    let measured = duration(document.measured_s);
    let (clients, plural) = (setup.clients, if setup.clients == 1 { "" } else { "s" });
    let interrupted = if document.interrupted {
        ", interrupted"
    } else {
        ""
    };
    let mut text = format!(
        "\n{} on {} ({}): {clients} client{plural}, {}, {measured} after {} of warm-up{interrupted}\n\n",
        setup.workload.name,
        setup.server,
        setup.version,
        arrival(setup.arrival),
        duration(setup.warm_up_s),
    );
    if let Some(disclaimer) = setup.disclaimer {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {}\n", sentence(disclaimer));
    }
    let mut row = |name: &str, what: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {name:<14}{what}");
    };
    row(
        "throughput",
        &format!("{} transactions/s", number(total.per_second)),
    );
    if let Some(orders) = &document.new_orders {
        let rolled_back = share(orders.rolled_back as f64 / (orders.count as f64).max(1.0));
        let what = format!(
            "{} New-Orders per minute, {rolled_back} of them rolled back on purpose",
            number(orders.per_minute)
        );
        row("NOPM", &what);
    }
    row("latency", &quantiles(total.latency_us));
    row("transactions", &account(&total.counts));
    row(
        "statements",
        &format!(
            "{}, retries {}",
            count(total.counts.statements),
            count(total.counts.retries)
        ),
    );
    if classes.len() > 1 {
        for class in classes {
            row(&class.class, &of_class(class));
        }
    }
    if errors.is_empty() {
        row("errors", "none");
    }
    for error in errors {
        let what = format!("{} × {}: {}", count(error.count), error.code, error.example);
        row("error", &what);
    }
    let per_transaction = client
        .cpu_us_per_transaction
        .map_or_else(String::new, |us| {
            let user =
                client.cpu_user_s / (client.cpu_user_s + client.cpu_system_s).max(f64::EPSILON);
            format!(
                "{} per transaction, {} of it user; ",
                latency(us),
                share(user)
            )
        });
    row(
        "client CPU",
        &format!(
            "{per_transaction}{} of {} thread{}; lag p99 {}",
            share(client.cpu_share),
            setup.threads,
            if setup.threads == 1 { "" } else { "s" },
            latency(client.lag_us_p99)
        ),
    );
    if client.cpu_share > SATURATED {
        row(
            "",
            "The load process is busy itself, which shows in the latencies: try more --threads.",
        );
    }
    row("seed", &setup.seed.to_string());
    text
}

fn arrival(arrival: Arrival) -> String {
    match arrival {
        Arrival::Closed { think_ms: 0.0 } => "closed loop".to_owned(),
        Arrival::Closed { think_ms } => {
            format!("closed loop with {} of think time", latency(think_ms * 1e3))
        }
        Arrival::Constant { per_second } => format!("{} due per second", number(per_second)),
        Arrival::Poisson { per_second } => {
            format!("{} due per second (Poisson)", number(per_second))
        }
    }
}

fn quantiles(figures: Option<Latency>) -> String {
    let Some(figures) = figures else {
        return "nothing was committed".to_owned();
    };
    let Latency {
        mean,
        p50,
        p95,
        p99,
        p999,
        max,
    } = figures;
    let columns = [
        ("mean", mean),
        ("p50", p50),
        ("p95", p95),
        ("p99", p99),
        ("p99.9", p999),
        ("max", max),
    ];
    columns
        .map(|(name, us)| format!("{name} {}", latency(us)))
        .join("  ")
}

fn account(counts: &Counts) -> String {
    format!(
        "{} due = {} ok + {} failed + {} skipped + {} unfinished",
        count(counts.due),
        count(counts.ok),
        count(counts.failed),
        count(counts.skipped),
        count(counts.unfinished)
    )
}

fn of_class(class: &Figures) -> String {
    let rate = number(class.per_second);
    format!("{rate:>8}/s  {}", quantiles(class.latency_us))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Outcome;
    use super::super::outcome::tests::{answer, setup};
    use super::*;

    #[test]
    fn a_live_line_has_all_figures() {
        let tick = Tick {
            offset_s: 2.0,
            length_s: 1.0,
            ok: 12_345,
            failed: 2,
            latency_us_sum: 12_345.0 * 800.0,
            latency_us_max: 30_000.0,
            latency_us_p50: 700.0,
            latency_us_p95: 1_500.0,
            latency_us_p99: 2_000.0,
            backlog: 41,
        };
        let closed = Arrival::Closed { think_ms: 0.0 };
        assert_eq!(
            live(&tick, closed),
            "     3 s            12,345/s  mean   800 µs  p50   700 µs  p95  1.50 ms  p99  2.00 ms  max  30.0 ms  failed 2"
        );
        let before = Tick {
            offset_s: -1.0,
            ..tick
        };
        assert!(live(&before, closed).starts_with("     0 s warm-up"));
        let scheduled = Arrival::Poisson { per_second: 1e4 };
        assert!(live(&tick, scheduled).ends_with("  backlog     41  failed 2"));
        let silent = Tick {
            length_s: 1.0,
            ..Tick::default()
        };
        assert!(live(&silent, closed).contains("p99        –"));
    }

    #[test]
    fn the_summary_balances_its_account_and_names_errors() {
        let document = Outcome::of(setup(), answer(), false).unwrap().document;
        let text = summary(&document);
        for part in [
            "oltp-read-write on unix:/run/db.sock (10.11.1-MariaDB): 16 clients, closed loop",
            "100 transactions/s",
            "1,013 due = 1,000 ok + 7 failed + 2 skipped + 4 unfinished",
            "7 × 1213: Deadlock found",
            "2.00 ms per transaction, 25 % of it user; 10 % of 2 threads",
        ] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
        assert!(!text.contains("interrupted") && !text.contains("--threads"));
    }
}
