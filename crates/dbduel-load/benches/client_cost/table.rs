//! The table of ratios and how they compare with the targets.

use std::fmt::Write as _;

use dbduel_driver::Dialect;

use super::counters::Run;
use super::peer::{SYSBENCH, Server, Spread};
use super::{Options, POINTS, READ_WRITE};

/// What is claimed of one load level, as ratios to sysbench.
struct Target {
    cpu_max: f64,
    user_max: Option<f64>,
    throughput_min: Option<f64>,
}

fn target(dialect: Dialect, workload: &str, clients: u32, as_scripts: bool) -> Option<Target> {
    let (cpu_max, user_max, throughput_min) = match (dialect, workload, clients) {
        (Dialect::MySql, POINTS | READ_WRITE, 64) if as_scripts => (0.8, None, Some(1.0)),
        _ if as_scripts => return None,
        (Dialect::MySql, POINTS, 1) => (0.8, Some(0.5), Some(1.0)),
        (Dialect::MySql, POINTS, 16) => (0.6, Some(0.25), Some(1.10)),
        (Dialect::MySql, POINTS, 64) => (0.5, Some(0.2), Some(1.15)),
        (Dialect::MySql, POINTS, 256 | 1024) => (0.4, Some(0.15), Some(1.5)),
        (Dialect::PostgreSql, POINTS, 1) => (0.95, None, Some(1.0)),
        (Dialect::PostgreSql, POINTS, 16) => (0.6, None, Some(1.1)),
        (Dialect::PostgreSql, POINTS, 64 | 256) => (0.4, None, Some(1.3)),
        (Dialect::MySql | Dialect::PostgreSql, READ_WRITE, 64) => (0.5, None, None),
        _ => return None,
    };
    Some(Target {
        cpu_max,
        user_max,
        throughput_min,
    })
}

/// What is claimed on a machine whose processors others take a third of.
fn contended_target(workload: &str, clients: u32) -> Option<Target> {
    let is_claimed = workload == POINTS && (16..=256).contains(&clients);
    is_claimed.then_some(Target {
        cpu_max: 1.0,
        user_max: None,
        throughput_min: Some(0.95),
    })
}

/// The rounds of one load level: ours and theirs.
pub struct Level {
    pub workload: &'static str,
    pub clients: u32,
    pub rounds: Vec<(Run, Run)>,
}

/// The table of one transport.
pub fn table(
    options: &Options,
    server: &Server,
    contended: Option<f64>,
    levels: &[Level],
) -> String {
    let rounds = levels.first().map_or(0, |level| level.rounds.len());
    let (seconds, tables) = (options.seconds, options.tables);
    let disturbed = contended.map_or_else(String::new, |share| {
        format!(
            "; other work takes {:.0} % of every processor",
            100.0 * share
        )
    });
    let ours = match options.as_scripts {
        true => "Ours with sysbench's scripts",
        false => "Ours",
    };
    let mut text = format!(
        "{ours} as a ratio to {SYSBENCH} over {}: median (smallest to largest) of {rounds} rounds of {seconds} s, \
         both in turns, tables: {tables}{disturbed}; in brackets the target and whether the median meets it\n\n\
         | workload | clients | client CPU per query | of which user | throughput | others' share of the processors |\n\
         | --- | --- | --- | --- | --- | --- |\n",
        server.transport()
    );
    for level in levels {
        let target = match contended {
            None => {
                let dialect = server.address.dialect;
                target(dialect, level.workload, level.clients, options.as_scripts)
            }
            Some(_) => contended_target(level.workload, level.clients),
        };
        let ratio = |figure: fn(&Run) -> f64| {
            let ratios = level
                .rounds
                .iter()
                .map(|(ours, theirs)| figure(ours) / figure(theirs));
            Spread::of(ratios.collect())
        };
        let target = target.as_ref();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            level.workload,
            level.clients,
            at_most(&ratio(|run| run.cpu_us), target.map(|t| t.cpu_max)),
            at_most(&ratio(|run| run.user_us), target.and_then(|t| t.user_max)),
            at_least(
                &ratio(|run| run.queries_per_s),
                target.and_then(|t| t.throughput_min)
            ),
            others(level),
        );
    }
    text
}

/// Other programs' work, which the ratios suffer from.
fn others(level: &Level) -> String {
    let all = level
        .rounds
        .iter()
        .flat_map(|(ours, theirs)| [ours, theirs]);
    let shares: Vec<f64> = all.filter_map(|run| run.others).collect();
    if shares.is_empty() {
        return "unknown".to_owned();
    }
    let Spread {
        median, largest, ..
    } = Spread::of(shares);
    format!("{:.0} % (at most {:.0} %)", median * 100.0, largest * 100.0)
}

fn at_most(ratio: &Spread, limit: Option<f64>) -> String {
    judged(ratio, limit, "≤", |median, limit| median <= limit)
}

fn at_least(ratio: &Spread, limit: Option<f64>) -> String {
    judged(ratio, limit, "≥", |median, limit| median >= limit)
}

fn judged(ratio: &Spread, limit: Option<f64>, sign: &str, meets: fn(f64, f64) -> bool) -> String {
    let Spread {
        median,
        smallest,
        largest,
    } = ratio;
    let mut text = format!("{median:.2} ({smallest:.2} to {largest:.2})");
    if let Some(limit) = limit {
        let verdict = if meets(*median, limit) {
            "met"
        } else {
            "missed"
        };
        let _ = write!(text, " [{sign} {limit:.2}: {verdict}]");
    }
    text
}
