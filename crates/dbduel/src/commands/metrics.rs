//! `dbduel run --metrics-addr`: how a contest stands, as OpenMetrics 1.0 text for a collector on this machine.
//!
//! Measures nothing: it shows what the contest has noted on its board. Counts begin with the process.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use dbduel_record::Plan;

use super::http::{Loopback, Reply, Server};
use crate::judge::Verdict;
use crate::judge::summary::Comparison;
use crate::lab::contest::board::{Board, Phase, Standing, Sums};

/// Where the text is.
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

/// Serves what is on `board` until the process ends; gives the address.
///
/// # Errors
/// When the address cannot be listened on.
pub fn serve(address: Loopback, board: Arc<Board>) -> Result<SocketAddr> {
    let server = Server::start(address, None, move |path| match path {
        PATH => Reply::Text(KIND, text(&board.standing())),
        _ => Reply::Unknown,
    })?;
    Ok(server.address())
}

/// Labels of a sample: names and values.
type Labels<'l> = [(&'l str, &'l str)];

/// A text that is being written, family after family.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Begins a family. A unit must also be the last word of the name.
    fn family(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if let Some(unit) = unit {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        if value.is_infinite() {
            let sign = if value > 0.0 { '+' } else { '-' };
            let _ = writeln!(self.0, " {sign}Inf");
        } else {
            let _ = writeln!(self.0, " {value}");
        }
    }
}

/// A label's value between its quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
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
        "What the contest is doing.",
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
    page.0.push_str("# EOF\n");
    page.0
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
        "Committed transactions per second of the last tick, warm-up included; absent while nobody is under load.",
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

/// The words that say which load a sample is about.
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

/// A count over finished slices: name without `_total`, unit, what it says, and how it is taken.
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

/// A gauge of a comparison: name, what it says, and how it is taken.
type Gauge = (&'static str, &'static str, fn(&Comparison) -> Option<f64>);

const GAUGES: [Gauge; 3] = [
    (
        "dbduel_ratio",
        "Throughput, contender over baseline; never to be read without its interval.",
        |one| one.ratio.value(),
    ),
    (
        "dbduel_ratio_low",
        "Lower end of the ratio's interval, which holds at every look.",
        |one| one.ratio.interval().map(|(low, _)| low),
    ),
    (
        "dbduel_ratio_high",
        "Upper end of the ratio's interval; infinite when the blocks cannot bound it.",
        |one| one.ratio.interval().map(|(_, high)| high),
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
        "What the blocks say of a contender against the baseline by now.",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::decide_level;
    use crate::judge::synthetic::Scenario;
    use dbduel_load::order::Tick;
    use dbduel_record::Record;
    use dbduel_record::rows::ReadingRow;
    use dbduel_record::store::SliceResult;
    use std::collections::BTreeSet;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    const HOSTILE: &str = "a\\b\"} 1\n# EOF\n<script>";

    /// A board in the middle of a contest against a contender with a hostile name.
    fn board() -> Arc<Board> {
        let dir = tempfile::tempdir().unwrap();
        let mut scenario = Scenario {
            blocks: 8,
            ..Scenario::duel()
        };
        HOSTILE.clone_into(&mut scenario.sides[1].name);
        let path = dir.path().join("record");
        scenario.write(&path);
        let record = Record::open(&path).unwrap();
        let board = Arc::new(Board::default());
        board.begin(&record.plan);
        board.enter(Phase::Measuring);
        board.decision(&decide_level(&record.plan, &record.slices, 0));
        let mut result = SliceResult::default();
        result.classes.push(record.slices[0].clone());
        result.readings.push(ReadingRow {
            block: 0,
            position: 0,
            contender: HOSTILE.to_owned(),
            source: "server".to_owned(),
            metric: "cpu_user_s".to_owned(),
            value: 1.5,
        });
        board.slice(1, 0, Some(&result), 30.0);
        board.slice(1, 0, Some(&result), 60.0);
        board.slice(0, 0, None, 61.0);
        let tick = Tick {
            length_s: 0.5,
            ok: 100,
            ..Tick::default()
        };
        board.tick(1, 0, &tick, 61.5);
        board
    }

    /// Checks the text line by line as the format's grammar has it; gives the samples.
    fn read(text: &str) -> Vec<(String, f64)> {
        let body = text.strip_suffix("# EOF\n").expect("the last line");
        let (mut families, mut family, mut kind) = (BTreeSet::new(), "", "");
        let mut samples = Vec::new();
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                (family, kind) = rest.split_once(' ').unwrap();
                assert!(families.insert(family), "{family} twice");
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let (name, unit) = rest.split_once(' ').unwrap();
                assert_eq!(name, family);
                assert!(name.ends_with(&format!("_{unit}")), "{line}");
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                assert!(rest.starts_with(family), "{line}");
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let name = sample.split('{').next().unwrap();
                let suffix = name.strip_prefix(family).unwrap();
                let allowed = match kind {
                    "counter" => "_total",
                    "info" => "_info",
                    _ => "",
                };
                assert_eq!(suffix, allowed, "{line}");
                let value = value.replace("+Inf", "inf").parse().unwrap();
                samples.push((sample.to_owned(), value));
            }
        }
        samples
    }

    #[test]
    fn the_text_is_whole_and_says_how_the_contest_stands() {
        let samples = read(&text(&board().standing()));
        let of = |name: &str| -> Vec<f64> {
            let named = samples
                .iter()
                .filter(|(sample, _)| sample.split('{').next() == Some(name));
            named.map(|(_, value)| *value).collect()
        };
        assert_eq!(of("dbduel_load_used_seconds"), [61.5]);
        assert_eq!(of("dbduel_tick_transactions_per_second"), [200.0]);
        assert_eq!(of("dbduel_slices_total"), [2.0]);
        assert_eq!(of("dbduel_lost_slices_total"), [1.0]);
        assert_eq!(of("dbduel_server_cpu_user_seconds_total"), [3.0]);
        assert!(of("dbduel_server_cpu_system_seconds_total").is_empty());
        assert_eq!(of("dbduel_complete_blocks"), [8.0]);
        let (ratio, low, high) = (
            of("dbduel_ratio"),
            of("dbduel_ratio_low"),
            of("dbduel_ratio_high"),
        );
        assert!(low[0] <= ratio[0] && ratio[0] <= high[0]);
        for states in ["dbduel_phase", "dbduel_verdict"] {
            assert_eq!(of(states).iter().sum::<f64>(), 1.0, "{states}");
        }
        let hostile = r#"contender="a\\b\"} 1\n# EOF\n<script>""#;
        assert!(samples.iter().any(|(sample, _)| sample.contains(hostile)));
    }

    #[test]
    fn before_a_contest_there_is_only_its_phase() {
        let samples = read(&text(&Standing::default()));
        assert_eq!(samples.len(), 1 + PHASES.len());
    }

    #[test]
    fn a_collector_gets_the_media_type_and_other_paths_nothing() {
        let address = serve(Loopback::port(0), board()).unwrap();
        let ask = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let answer = ask(PATH);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(
            head.contains(&format!("Content-Type: {KIND}\r\n")),
            "{head}"
        );
        assert!(!read(body).is_empty());
        assert!(ask("/").starts_with("HTTP/1.1 404"));
    }
}
