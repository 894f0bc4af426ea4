//! Every rule about runs, in the order in which a report lists equal weights.

use dbduel_audit::Finding;

use super::Rule;
use super::run::several_differences::several_differences;
use super::run::{
    RunEvidence, answers, carry_over, contenders, continuity, journal, lab, load, observe,
    statements, steady, verdict,
};
use crate::workloads::WORKLOADS;

/// The rules about runs, those of single workloads among them.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let of_workloads = WORKLOADS.iter().flat_map(|workload| workload.rules);
    RUN.iter().chain(of_workloads).chain(DIFFERENCES)
}

/// A rule about the record of a run.
pub(crate) const fn run(
    id: &'static str,
    why: &'static str,
    check: fn(&RunEvidence<'_>) -> Vec<Finding>,
) -> Rule {
    Rule { id, why, check }
}

/// Rules about the run and its load.
#[rustfmt::skip]
const RUN: &[Rule] = &[
    run("lab.injected", "An injected handicap validates the lab and says nothing about the servers.", lab::injected),
    run("lab.identical-contenders", "A difference between identical servers measures chance and lab error.", verdict::identical),
    run("load.nothing-committed", "Without committed transactions there is no throughput to compare.", load::nothing_committed),
    run("load.silent-slices", "A slice without commits is a standstill; factor effects count it by convention.", load::silent_slices),
    run("data.digest", "Contenders that hold different data do different work.", contenders::digests),
    run("answers.setting-refused", "A server that refuses a setting of a session runs its transactions in another state or not at all.", answers::refused),
    run("answers.errors", "A statement that one server refuses is work that it does not do.", answers::errors),
    run("answers.differ", "Servers that answer otherwise on equal data do different work.", answers::differ),
    run("answers.explained", "Answers may differ where a statement leaves open what they are.", answers::explained),
    run("answers.not-compared", "Answers that were not compared may differ.", answers::not_compared),
    run("plan.changed", "A server that runs a statement with a different plan does different work.", statements::changed),
    run("plan.not-explained", "Unknown plans may differ.", statements::not_explained),
    run("load.failures", "Failed transactions are work not done; a server that refuses work looks fast.", load::failures),
    run("load.retries", "Retries are load that throughput does not show.", load::retries),
    run("load.skipped", "Skipped arrivals make an overloaded server look better than it is.", load::skipped),
    run("load.outlasted", "Servers that are stopped in the middle of long transactions may behave differently than under continuous load.", load::outlasted),
    run("load.unfinished", "A transaction that never ends has no latency, and its client does no other work.", load::unfinished),
    run("load.saturated", "A saturated load process limits the measured throughput.", load::saturated),
    run("lab.starved", "Other processes on the load's processors add noise, and bias when they affect one side more.", lab::starved),
    run("lab.outlying-slices", "A few outlying slices may determine a result; they are listed and never dropped.", lab::outlying),
    run("lab.carry-over", "Recovery after a switch that outlasts the guard lowers slices, more on the side that recovers slower.", carry_over::carried_over),
    run("load.lag", "Latencies include the delay of transactions that the load process sends late.", load::lag),
    run("load.left-out", "Nothing is sent while no load thread runs; that time says nothing about the server.", load::left_out),
    run("load.stalled", "While the load process stalls, the server is idle and looks slow.", load::stalled),
    run("warm-up.not-steady", "Results of a server that is still warming up do not describe its steady state.", journal::not_steady),
    run("steady.never-settled", "Results of a cell whose throughput still changes do not describe its steady state.", steady::never_settled),
    run("steady.settled-late", "Slices before the steady state are part of the figures.", steady::settled_late),
    run("steady.level-entered", "Caches and logs left by another load level affect the next slice.", steady::level_entered),
    run("server.unmanaged", "A server that cannot be frozen works in the background while others are measured.", contenders::unmanaged),
    run("server.died", "A crash is a result, and a restarted server is another instance.", journal::server_died),
    run("run.lost-slices", "Lost slices bias the result when their cause favours one side.", journal::lost_slices),
    run("run.resumed", "A restart alone can change throughput by a percent.", journal::resumed),
    run("run.extended", "Extending a run after seeing its result needs an error probability reserved for that.", journal::extended),
    run("run.unfinished", "A run that stopped early has fewer blocks than planned.", journal::unfinished),
    run("observe.window", "A counter read over an interval other than the slice is exact only at a constant rate.", observe::window),
    run("lab.idle-memory", "Memory of a frozen server is idle, and the operating system may reclaim it.", observe::idle_memory),
    run("observe.waits-one-sided", "Waits that only one side counts explain nothing and slow that side.", observe::waits_one_sided),
    run("observe.statistics-lag", "A counter that is reported after its turn is missing from that turn.", observe::statistics_lag),
    run("record.complaints", "Unreadable parts of the record are left out.", journal::complaints),
    run("verdict.short-horizon", "Stalls rarer than the measured time cannot be detected.", verdict::short_horizon),
    run("turns.contradiction", "A verdict from turns is about servers that are stopped and resumed all the time.", continuity::contradiction),
    run("turns.departure", "Absolute figures from turns may differ from those under continuous load.", continuity::departure),
    run("turns.quantile", "A switch can delay the transactions next to it, which a high quantile shows first.", continuity::quantile),
    run("verdict.few-stalls", "The long-run cost of rare stalls is only as certain as their number.", verdict::few_stalls),
    run("verdict.skewed-blocks", "When robust and plain estimates disagree, a few blocks determine the result.", verdict::skewed),
    run("verdict.ratio-changed", "A ratio that changes during the run has no single value.", verdict::ratio_changed),
    run("verdict.several-differences", "A duel compares two contenders as they are, with all that differs between them.", several_differences),
    run("verdict.uneven-stalls", "Stalls are part of a server's performance; the rate of a few is uncertain.", verdict::uneven_stalls),
];

/// Rules about differences between the contenders that were not asked for.
#[rustfmt::skip]
const DIFFERENCES: &[Rule] = &[
    run("server.builds-differ", "Different products or versions differ in more than the configured settings.", contenders::builds_differ),
    run("server.settings-differ", "An unintended difference may be the cause of the result.", contenders::settings_differ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use dbduel_audit::codes;

    use super::*;

    #[test]
    fn every_rule_has_a_unique_name_and_a_reason() {
        let mut seen = BTreeSet::new();
        for Rule { id, why, .. } in rules() {
            assert!(seen.insert(id), "`{id}` stands twice");
            assert!(why.ends_with('.'), "{id}: the reason is a sentence");
            assert!(id.contains('.'), "`{id}`: a name is `subject.what`");
        }
    }

    /// What stands around the table of objections in `docs/fairness.md`.
    const BEGIN: &str =
        "<!-- Objections to duels across products; a test finds every name in the last column. -->";
    const END: &str = "<!-- End of the objections across products. -->";

    #[test]
    fn every_answer_to_an_objection_across_products_exists() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fairness.md");
        let page = fs::read_to_string(path).unwrap();
        let (_, rest) = page.split_once(BEGIN).unwrap();
        let (table, _) = rest.split_once(END).unwrap();
        let rows: Vec<&str> = table
            .lines()
            .filter(|line| line.starts_with("| "))
            .collect();
        assert!(rows.len() > 15);
        let codes = codes::codes();
        for row in &rows[2..] {
            let answers = row.trim_end_matches('|').rsplit('|').next().unwrap();
            for name in answers.split(',').map(|name| name.trim().trim_matches('`')) {
                let is_rule = || rules().any(|rule| rule.id == name);
                assert!(
                    codes.iter().any(|code| code.name == name) || is_rule(),
                    "`{name}` in {row}"
                );
            }
        }
    }
}
