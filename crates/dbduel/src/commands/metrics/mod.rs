//! `dbduel run --metrics-addr`: the state of a contest as OpenMetrics 1.0 text, for a collector on this machine.
//!
//! Measures nothing: it shows the contest's board. Counters start at zero with the process.

mod page;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use dbduel_lab::contest::ComparisonStanding;
use dbduel_lab::contest::board::{Board, Phase, Standing, Sums};
use dbduel_record::Plan;
use dbduel_record::Verdict;

use super::http::{Loopback, Reply, Server};
use page::Page;

/// Path of the text.
pub const PATH: &str = "/metrics";
/// Media type of the text.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const PHASES: [(Phase, &str); 4] = [
    (Phase::Preparing, "preparing"),
    (Phase::WarmingUp, "warming-up"),
    (Phase::Measuring, "measuring"),
    (Phase::Closing, "closing"),
];

const VERDICTS: [Verdict; 5] = [
    Verdict::Faster,
    Verdict::Slower,
    Verdict::Equivalent,
    Verdict::Undecided,
    Verdict::Void,
];

/// Serves the state on `board` until the process ends; returns the address.
///
/// # Errors
/// When it cannot listen on the address.
pub fn serve(address: Loopback, board: Arc<Board>) -> Result<SocketAddr> {
    let server = Server::start(address, None, move |path| match path {
        PATH => Reply::Text(KIND, text(&board.standing())),
        _ => Reply::Unknown,
    })?;
    Ok(server.address())
}

fn text(standing: &Standing) -> String {
    let mut page = Page::default();
    page.family("dbduel", "info", None, "The program.");
    page.sample(
        "dbduel_info",
        &[("version", env!("CARGO_PKG_VERSION"))],
        1.0,
    );
    page.family(
        "dbduel_phase",
        "stateset",
        None,
        "Current phase of the contest.",
    );
    for (phase, word) in PHASES {
        let is_it = f64::from(u8::from(phase == standing.phase));
        page.sample("dbduel_phase", &[("dbduel_phase", word)], is_it);
    }
    if let Some(plan) = &standing.plan {
        progress(&mut page, standing, plan);
        slices(&mut page, standing, plan);
        duels(&mut page, standing, plan);
    }
    page.end()
}

fn progress(page: &mut Page, standing: &Standing, plan: &Plan) {
    let seconds = [
        (
            "dbduel_load_used_seconds",
            standing.used_s,
            "Seconds of load used of the budget.",
        ),
        (
            "dbduel_load_budget_seconds",
            plan.schedule.budget_s,
            "Seconds of load that the contest may take; it ends earlier when all is decided.",
        ),
    ];
    for (name, value, help) in seconds {
        page.family(name, "gauge", Some("seconds"), help);
        page.sample(name, &[], value);
    }
    page.family(
        "dbduel_tick_transactions_per_second",
        "gauge",
        None,
        "Committed transactions per second of the last tick, warm-up included; absent while no contender is under load.",
    );
    if let Some(now) = standing.now {
        let labels = Subject::new(plan, now.level);
        page.sample(
            "dbduel_tick_transactions_per_second",
            &labels.of(plan, now.contender),
            now.throughput_per_s,
        );
    }
}

/// Labels of a sample: the load that it is about.
struct Subject {
    load: String,
    clients: String,
}

impl Subject {
    fn new(plan: &Plan, level: usize) -> Self {
        Self {
            load: plan.levels[level].label(),
            clients: plan.levels[level].clients.to_string(),
        }
    }

    fn of<'s>(&'s self, plan: &'s Plan, contender: usize) -> [(&'s str, &'s str); 3] {
        self.named(&plan.contenders[contender].name)
    }

    fn named<'s>(&'s self, contender: &'s str) -> [(&'s str, &'s str); 3] {
        [
            ("contender", contender),
            ("load", &self.load),
            ("clients", &self.clients),
        ]
    }
}

/// A counter over finished slices: name without `_total`, unit, help text and reader.
type Count = (
    &'static str,
    Option<&'static str>,
    &'static str,
    fn(&Sums) -> Option<f64>,
);

const COUNTS: [Count; 7] = [
    ("dbduel_slices", None, "Finished slices.", |sums| {
        Some(sums.slices as f64)
    }),
    (
        "dbduel_measured_seconds",
        Some("seconds"),
        "Measured time of finished slices.",
        |sums| Some(sums.measured_s),
    ),
    (
        "dbduel_committed_transactions",
        None,
        "Committed transactions of finished slices.",
        |sums| Some(sums.ok as f64),
    ),
    (
        "dbduel_failed_transactions",
        None,
        "Transactions of finished slices that ended with an error.",
        |sums| Some(sums.failed as f64),
    ),
    (
        "dbduel_server_cpu_user_seconds",
        Some("seconds"),
        "Processor time of the server in user mode, in finished slices.",
        |sums| sums.server_cpu_user_s,
    ),
    (
        "dbduel_server_cpu_system_seconds",
        Some("seconds"),
        "Processor time of the server in the kernel, in finished slices.",
        |sums| sums.server_cpu_system_s,
    ),
    (
        "dbduel_server_device_write_bytes",
        Some("bytes"),
        "Bytes that the server had written to devices, in finished slices.",
        |sums| sums.server_device_write_bytes,
    ),
];

fn slices(page: &mut Page, standing: &Standing, plan: &Plan) {
    for (name, unit, help, take) in COUNTS {
        page.family(name, "counter", unit, help);
        for (&(contender, level), sums) in &standing.sums {
            if let Some(value) = take(sums) {
                let labels = Subject::new(plan, level);
                page.sample(&format!("{name}_total"), &labels.of(plan, contender), value);
            }
        }
    }
    page.family(
        "dbduel_lost_slices",
        "counter",
        None,
        "Slices that were lost.",
    );
    page.sample("dbduel_lost_slices_total", &[], standing.lost as f64);
}

/// A gauge of a comparison: name, help text and reader.
type Gauge = (
    &'static str,
    &'static str,
    fn(&ComparisonStanding) -> Option<f64>,
);

const GAUGES: [Gauge; 3] = [
    (
        "dbduel_ratio",
        "Throughput ratio, contender to baseline; read it with its interval only.",
        |one| one.ratio,
    ),
    (
        "dbduel_ratio_low",
        "Lower end of the ratio's interval, which is valid at every look.",
        |one| one.interval.map(|(low, _)| low),
    ),
    (
        "dbduel_ratio_high",
        "Upper end of the ratio's interval; infinite when the blocks cannot bound it.",
        |one| one.interval.map(|(_, high)| high),
    ),
];

fn duels(page: &mut Page, standing: &Standing, plan: &Plan) {
    page.family(
        "dbduel_complete_blocks",
        "gauge",
        None,
        "Blocks that count towards the verdict.",
    );
    for (&level, decision) in &standing.levels {
        let labels = Subject::new(plan, level);
        page.sample(
            "dbduel_complete_blocks",
            &labels.named("")[1..],
            f64::from(decision.blocks_complete),
        );
    }
    for (name, help, take) in GAUGES {
        page.family(name, "gauge", None, help);
        for (&level, decision) in &standing.levels {
            let labels = Subject::new(plan, level);
            for one in &decision.comparisons {
                if let Some(value) = take(one) {
                    page.sample(name, &labels.named(&one.contender), value);
                }
            }
        }
    }
    page.family(
        "dbduel_verdict",
        "stateset",
        None,
        "Verdict so far on a contender against the baseline.",
    );
    for (&level, decision) in &standing.levels {
        let labels = Subject::new(plan, level);
        for one in &decision.comparisons {
            for verdict in VERDICTS {
                let [contender, load, clients] = labels.named(&one.contender);
                let labels = [contender, load, clients, ("dbduel_verdict", verdict.word())];
                let is_it = f64::from(u8::from(verdict == one.verdict));
                page.sample("dbduel_verdict", &labels, is_it);
            }
        }
    }
}
