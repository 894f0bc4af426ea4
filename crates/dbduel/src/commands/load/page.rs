//! A load as terminal text: a line per second while it runs, and a summary; 80 columns. Pure functions.

use std::fmt::Write as _;

use dbduel_load::order::Tick;
use dbduel_record::plan::Arrival;
use dbduel_record::rows::TransactionCounts;
use dbduel_report::words::{count, duration, latency, number, sentence, share, things};
use dbduel_report::wrap;
use dbduel_workloads::fill::FillReport;

use super::outcome::{Document, Latency};

/// Columns of a terminal by default.
const WIDTH: usize = 80;

/// Where the second column of the summary begins.
const INDENT: usize = 16;

/// CPU share of its threads from which on the load process counts as saturated.
const SATURATED: f64 = 0.7;
/// Share of its threads' time spent waiting for a processor from which on this is reported. A batch thread also waits
/// for the pauses of a server beside it.
const WAITED: f64 = 0.5;

/// Placeholder for a latency when nothing was committed.
const NONE: &str = "–";

/// Rows, time and rate of a finished fill.
pub fn filled(report: &FillReport) -> String {
    let filled = report.rows - report.rows_before;
    let per_second = filled as f64 / report.rows_s.max(f64::EPSILON);
    let before = match report.rows_before {
        0 => String::new(),
        rows => format!(" after {} from an earlier fill,", count(rows)),
    };
    let way = report
        .method
        .map_or_else(String::new, |way| format!(" by {way}"));
    let text = format!(
        "filled in {} rows{before} in {:.1} s{way}, {} rows/s over {} connections; then {:.1} s for indexes and statistics",
        count(filled),
        report.rows_s,
        number(per_second),
        report.connections,
        report.finish_s
    );
    wrap(&text, WIDTH, 0, 0).join("\n")
}

/// Header above the per-second lines.
pub fn live_header(arrival: Arrival) -> String {
    // The backlog is shown where transactions fall due by a schedule.
    let first = match arrival {
        Arrival::Closed { .. } => "mean",
        Arrival::Constant { .. } | Arrival::Poisson { .. } => "backlog",
    };
    live_line(
        "second",
        "per second",
        &[first, "p50", "p95", "p99", "max"],
        "failed",
    )
}

/// One second of the load.
pub fn live(tick: &Tick, arrival: Arrival) -> String {
    let ends_s = tick.offset_s + tick.length_s;
    // A tick never spans the end of the warm-up.
    let phase = if ends_s < tick.length_s / 2.0 {
        "warm-up "
    } else {
        ""
    };
    let quantile = |us| match tick.ok {
        0 => NONE.to_owned(),
        _ => latency(us),
    };
    let first = match arrival {
        Arrival::Closed { .. } => quantile(tick.latency_us_sum / tick.ok.max(1) as f64),
        Arrival::Constant { .. } | Arrival::Poisson { .. } => count(tick.backlog),
    };
    let columns = [
        first,
        quantile(tick.latency_us_p50),
        quantile(tick.latency_us_p95),
        quantile(tick.latency_us_p99),
        quantile(tick.latency_us_max),
    ];
    let rate = number(tick.ok as f64 / tick.length_s.max(f64::EPSILON));
    let second = format!("{phase}{ends_s:.0}");
    live_line(&second, &rate, &columns, &count(tick.failed))
}

fn live_line(second: &str, rate: &str, columns: &[impl AsRef<str>], failed: &str) -> String {
    let mut line = format!("{second:>14} {rate:>10}");
    for text in columns {
        // Writing to a string does not fail.
        let _ = write!(line, " {:>8}", text.as_ref());
    }
    line + &format!(" {failed:>8}")
}

/// Summary of the load.
pub fn summary(document: &Document) -> String {
    let mut text = title(document);
    for (name, what) in accounts(document) {
        for (index, line) in wrap(&what, WIDTH, INDENT, INDENT).iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {name:<14}{line}");
        }
    }
    text + "\n" + &latencies(document)
}

fn title(document: &Document) -> String {
    let setup = &document.setup;
    let tls = match (setup.tls, &setup.tls_cipher) {
        (true, Some(cipher)) => format!(", TLS with {cipher}"),
        (true, None) => ", TLS".to_owned(),
        (false, _) => String::new(),
    };
    let what = format!(
        "{} on {} ({}){tls}",
        setup.workload.name, setup.server, setup.version
    );
    let how = format!(
        "{}, {}, {}{} after {} of warm-up{}",
        things(setup.clients.into(), "client"),
        arrival(setup.arrival),
        match setup.busy_poll_us {
            0 => String::new(),
            us => format!("busy polling for {}, ", latency(us.into())),
        },
        duration(document.measured_s),
        duration(setup.warm_up_s),
        match (&document.lost, document.interrupted) {
            (Some(_), _) => ", ended early because the server was lost",
            (None, true) => ", interrupted",
            (None, false) => "",
        },
    );
    let mut text = String::from("\n");
    for line in [what, how] {
        text += &wrap(&line, WIDTH, 0, 2).join("\n  ");
        text.push('\n');
    }
    text.push('\n');
    if let Some(disclaimer) = setup.disclaimer {
        for line in wrap(&sentence(disclaimer), WIDTH, 2, 2) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {line}");
        }
        text.push('\n');
    }
    text
}

/// Lines of the summary beside the latencies: a name, and a text to be wrapped.
fn accounts(document: &Document) -> Vec<(&'static str, String)> {
    let Document {
        setup,
        total,
        errors,
        client,
        ..
    } = document;
    let mut rows = vec![(
        "throughput",
        format!("{} transactions/s", number(total.per_second)),
    )];
    if let Some(orders) = &document.new_orders {
        let rolled_back = share(orders.rolled_back as f64 / (orders.count as f64).max(1.0));
        let what = format!(
            "{} New-Orders per minute, {rolled_back} of them intended rollbacks",
            number(orders.per_minute)
        );
        rows.push(("NOPM", what));
    }
    rows.extend(row_rates(document));
    rows.push(("transactions", account(&total.counts)));
    let (statements, retries) = (count(total.counts.statements), count(total.counts.retries));
    rows.push(("statements", format!("{statements}, retries {retries}")));
    if errors.is_empty() {
        rows.push(("errors", "none".to_owned()));
    }
    for error in errors {
        let what = format!("{} × {}: {}", count(error.count), error.code, error.example);
        rows.push(("error", what));
    }
    if let Some(us) = client.cpu_us_per_transaction {
        let user = client.cpu_user_s / (client.cpu_user_s + client.cpu_system_s).max(f64::EPSILON);
        // How polling divides into user and system is not known, and so not what the rest does.
        let part = match setup.busy_poll_us {
            0 => format!(", {} of it user", share(user)),
            _ => " beside polling".to_owned(),
        };
        rows.push((
            "client CPU",
            format!("{} per transaction{part}", latency(us)),
        ));
    }
    let threads = f64::from(setup.threads);
    let polling = match setup.busy_poll_us {
        0 => String::new(),
        _ => {
            let polled = client.polled_s / (threads * document.measured_s).max(f64::EPSILON);
            format!(" and {} polling in vain", share(polled))
        }
    };
    let waited = client.cpu_wait_s / (threads * document.measured_s).max(f64::EPSILON);
    let mut what = format!(
        "{} of {}{polling}; {} waiting for a processor; lag p99 {}",
        share(client.cpu_share),
        things(setup.threads.into(), "thread"),
        share(waited),
        latency(client.lag_us_p99)
    );
    if client.cpu_share > SATURATED {
        what += "; it may be the bottleneck, which would raise the latencies: try more --threads";
    }
    if waited > WAITED {
        what += "; other programs on these processors lower the throughput: stop them, or give the \
                 load process its own processors";
    }
    if client.stalled_s > 0.0 {
        let stalled = duration(client.stalled_s);
        what += &format!(
            "; it stalled for {stalled} and sent less: was it stopped, or was the machine \
             overloaded?"
        );
    }
    rows.push(("load process", what));
    rows.push(("seed", setup.seed.to_string()));
    rows
}

/// Lines on row rates, required rates and fixed work.
fn row_rates(document: &Document) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let classes = document.classes.iter();
    let rates: Vec<String> = classes
        .clone()
        .filter_map(|class| {
            Some(format!(
                "{} {}/s",
                class.class,
                number(class.rows_per_second?)
            ))
        })
        .collect();
    if !rates.is_empty() {
        rows.push(("rows", rates.join(", ")));
    }
    for class in classes {
        let Some(required) = class.required else {
            continue;
        };
        let verdict = if required.kept { "kept" } else { "failed" };
        let what = format!(
            "{verdict}: {} {} statements/s of {}",
            class.class,
            number(class.per_second),
            number(required.per_second)
        );
        rows.push(("required rate", what));
    }
    match document.work_done {
        Some(true) => rows.push(("work", "all done".to_owned())),
        Some(false) => rows.push(("work", "not all done: raise --duration".to_owned())),
        None => {}
    }
    rows
}

/// Latencies of all transactions together and of each class, one below the other.
fn latencies(document: &Document) -> String {
    let heads = ["mean", "p50", "p95", "p99", "p99.9", "max"];
    let mut text = table_row("", "", &heads);
    if document.total.latency_us.is_none() {
        return "  latency       nothing was committed\n".to_owned();
    }
    text += &quantiles("latency", "", document.total.latency_us);
    if document.service_us.is_some() {
        text += &quantiles("service time", "", document.service_us);
    }
    if document.classes.len() > 1 {
        for class in &document.classes {
            let rate = format!("{}/s", number(class.per_second));
            text += &quantiles(&class.class, &rate, class.latency_us);
        }
    }
    text
}

fn quantiles(name: &str, rate: &str, figures: Option<Latency>) -> String {
    let Some(figures) = figures else {
        return table_row(name, rate, &[NONE; 6]);
    };
    let Latency {
        mean,
        p50,
        p95,
        p99,
        p999,
        max,
    } = figures;
    table_row(name, rate, &[mean, p50, p95, p99, p999, max].map(latency))
}

fn table_row(name: &str, rate: &str, columns: &[impl AsRef<str>]) -> String {
    let mut line = format!("  {name:<14}{rate:>10}");
    for text in columns {
        // Writing to a string does not fail.
        let _ = write!(line, " {:>8}", text.as_ref());
    }
    line + "\n"
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

fn account(counts: &TransactionCounts) -> String {
    format!(
        "{} due = {} ok + {} failed + {} skipped + {} unfinished",
        count(counts.due),
        count(counts.ok),
        count(counts.failed),
        count(counts.skipped),
        count(counts.unfinished)
    )
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Outcome;
    use super::super::outcome::tests::{answer, of_insert_benchmark, setup};
    use super::*;

    const CLOSED: Arrival = Arrival::Closed { think_ms: 0.0 };

    #[test]
    fn rates_that_must_be_kept_have_a_verdict() {
        let document = of_insert_benchmark(1_000, false);
        assert_eq!(
            row_rates(&document),
            [
                ("rows", "insert 500/s".to_owned()),
                (
                    "required rate",
                    "failed: insert 10.0 statements/s of 20.0".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn a_live_line_has_all_figures_below_their_names() {
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
        assert_eq!(
            [live_header(CLOSED), live(&tick, CLOSED)],
            [
                "        second per second     mean      p50      p95      p99      max   failed",
                "             3     12,345   800 µs   700 µs  1.50 ms  2.00 ms  30.0 ms        2"
            ]
        );
        let before = Tick {
            offset_s: -1.0,
            ..tick
        };
        assert!(live(&before, CLOSED).starts_with("     warm-up 0 "));
        let scheduled = Arrival::Poisson { per_second: 1e4 };
        assert!(live_header(scheduled).contains(" backlog "));
        assert!(live(&tick, scheduled).contains(" 41   700 µs"));
        let silent = Tick {
            length_s: 1.0,
            ..Tick::default()
        };
        assert!(live(&silent, CLOSED).ends_with("–        –        –        0"));
    }

    #[test]
    fn the_summary_balances_its_account_and_names_errors() {
        let document = Outcome::of(setup(), answer(), false, None)
            .unwrap()
            .document;
        let text = summary(&document);
        for part in [
            "oltp-read-write on unix:/run/db.sock (10.11.1-MariaDB)\n16 clients, closed loop",
            "100 transactions/s",
            "1,013 due = 1,000 ok + 7 failed + 2 skipped + 4 unfinished",
            "7 × 1213: Deadlock found",
            "2.00 ms per transaction, 25 % of it user\n",
            "10 % of 2 threads",
            "mean      p50",
        ] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
        for part in ["interrupted", "--threads", "service time"] {
            assert!(!text.contains(part), "`{part}` is in {text}");
        }
    }

    #[test]
    fn polling_is_told_and_is_no_work() {
        let mut document = Outcome::of(setup(), answer(), false, None)
            .unwrap()
            .document;
        document.setup.busy_poll_us = 2_000;
        document.client.polled_s = 16.0;
        let text = summary(&document);
        for part in [
            "16 clients, closed loop, busy polling for 2.00 ms, ",
            "2.00 ms per transaction beside polling\n",
            "10 % of 2 threads and 80 % polling in vain; 0.5 % waiting for",
        ] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
        assert!(!text.contains("--threads"), "{text}");
    }

    #[test]
    fn a_load_that_waited_for_processors_says_what_that_costs() {
        let mut document = Outcome::of(setup(), answer(), false, None)
            .unwrap()
            .document;
        assert!(!summary(&document).contains("other programs"));
        document.client.cpu_wait_s = 12.0;
        let text = summary(&document);
        assert!(
            text.contains("60 % waiting for a processor") && text.contains("other programs"),
            "{text}"
        );
    }

    #[test]
    fn service_times_stand_below_latencies_where_they_differ() {
        let mut document = Outcome::of(setup(), answer(), false, None)
            .unwrap()
            .document;
        document.service_us = document.total.latency_us;
        let text = summary(&document);
        assert!(text.contains("\n  service time "), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut document = Outcome::of(setup(), answer(), true, None).unwrap().document;
        document.setup.disclaimer = Some(workloads_longest_sentence());
        document.client.cpu_share = 0.9;
        document.errors[0].example = "Lock wait timeout exceeded; ".repeat(5);
        document.classes[0].per_second = 123_456.0;
        document.total.per_second = 1e7;
        for line in summary(&document).lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    fn workloads_longest_sentence() -> &'static str {
        "unaudited and derived; not comparable with published results of any kind whatever they are, also when equal"
    }
}
