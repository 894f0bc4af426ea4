//! Every rule, in the order in which a report lists equal weights.

use super::run::several_differences::several_differences;
use super::run::{
    carry_over, contenders, continuity, journal, lab, load, observe, statements, steady, verdict,
};
use super::servers::{
    compared, contest, debt, device, disclosure, engine, general, memory, option_file, power_cut,
    taken, torn_pages, work,
};
use super::{Check, REFUSED_OPTION_FILE, Rule};
use crate::judge::audit::classes::Weight::{self, Durability, Performance};
use crate::judge::audit::{Case, subject};
use crate::judge::finding::Finding;
use crate::judge::rules::run::RunEvidence;
use crate::judge::rules::servers::{Contender, Hit};
use crate::judge::workloads::WORKLOADS;

/// The rules about servers and about runs, those of single workloads among them.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let of_workloads = WORKLOADS.iter().flat_map(|workload| workload.rules);
    SERVERS
        .iter()
        .chain(RUN)
        .chain(of_workloads)
        .chain(DIFFERENCES)
}

/// A rule about each server for itself; what it weighs when it hits one side only.
const fn server(
    id: &'static str,
    class: &'static str,
    weight: Weight,
    why: &'static str,
    check: fn(&Contender<'_>) -> Option<Hit>,
) -> Rule {
    let check = Check::Server(check);
    Rule {
        id,
        class,
        weight,
        why,
        check,
    }
}

/// A rule about all servers together.
const fn servers(
    id: &'static str,
    class: &'static str,
    why: &'static str,
    check: fn(&Case) -> Vec<Finding>,
) -> Rule {
    let (weight, check) = (Performance, Check::Servers(check));
    Rule {
        id,
        class,
        weight,
        why,
        check,
    }
}

/// A rule that the comparison of its class's facts checks.
const fn facts(id: &'static str, class: &'static str, why: &'static str) -> Rule {
    let (weight, check) = (Performance, Check::Facts);
    Rule {
        id,
        class,
        weight,
        why,
        check,
    }
}

/// A rule about the record of a run.
pub const fn run(
    id: &'static str,
    why: &'static str,
    check: fn(&RunEvidence<'_>) -> Vec<Finding>,
) -> Rule {
    let (class, weight, check) = ("", Performance, Check::Run(check));
    Rule {
        id,
        class,
        weight,
        why,
        check,
    }
}

/// Rules about the servers' settings and counters: the audit's.
#[rustfmt::skip]
const SERVERS: &[Rule] = &[
    servers("variables", "I", "Without variables nothing can be compared.", compared::without_variables),
    servers("one-sided", "I", "Facts that were not compared may differ.", compared::one_sided),
    servers("not-looked-at", "I", "Facts that were not compared may differ.", compared::not_seen),
    servers("unknown", "I", "An unclassified setting may be the cause of a result.", compared::unclassified),
    servers("about", "I", "A comparison of a setting needs contenders that differ in it.", subject::without_difference),
    server("R1", "P4", Performance, "A redo log that fills quickly forces checkpoints; throughput then oscillates.", engine::redo_too_small),
    server("R2", "P1", Performance, "A server that waits for free pages waits for its own flushing.", engine::waits_for_free_pages),
    servers("R2b", "P1", "Data in memory on one side and on disk on the other compares storage, not servers.", contest::data_against_pool),
    server("R3", "P5", Performance, "The scan depth is per instance: the server scans depth times instances each second.", engine::scan_budget),
    server("R4", "P15", Performance, "Reopening evicted tables slows every statement that uses them.", general::table_cache),
    server("R5", "P8", Performance, "A limit on threads inside the engine queues clients.", engine::admission),
    server("R6", "P10", Performance, "The software checksum is much slower than crc32, which the server has.", engine::software_checksum),
    server("R7", "P7", Performance, "Flushing neighbours wastes writes on devices that do not seek.", device::neighbours),
    server("R8", "P22", Performance, "Refused clients do no work.", general::connections),
    server("R9", "P15", Performance, "With too few file handles the server shrinks its caches.", general::open_files),
    server("R10", "P3", Performance, "With fewer page cleaners than buffer pool instances, instances wait to be flushed.", engine::starved_flushers),
    server("R11", "P6", Performance, "The default I/O capacity is that of one rotating disk.", device::io_capacity),
    server("R12", "P6", Performance, "Adaptive flushing and a hand-set I/O capacity both pace writes.", engine::adaptive_flushing),
    server("R13", "P14", Performance, "A query cache answers without doing the work.", general::query_cache),
    facts("R14", "D4", "A binary log on one side is durable work that the other side saves."),
    facts("R15", "D3", "Doublewrite, checksums and syncs cost time and buy safety."),
    server("R16", "D1", Durability, "Commits that claim a sync and show none are not durable.", engine::syncs_missing),
    server("R17", "I", Performance, "A setting without effect was not tested.", taken::rule),
    server("R18", "P26", Performance, "A debug or 32-bit build performs differently from a 64-bit release build.", general::build),
    facts("R19", "P13", "Instrumentation costs time on the side that has it."),
    server("R20", "P9", Performance, "A thread pool smaller or larger than the number of processors limits throughput by itself.", general::pool_size),
    server("R21", "P22", Performance, "Creating a thread per connection costs more than most statements.", general::thread_cache),
    servers("R22", "P21", "Temporary tables on disk on one side are additional work.", contest::temporary_tables),
    facts("R23", "P22", "TLS on one side encrypts every packet there."),
    facts("R24", "P23", "Prepared statements on one side skip parsing there."),
    servers("R25", "S6", "Failed transactions are not throughput.", contest::rollbacks),
    server("R26", "P6", Performance, "Writes deferred until after the run inflate throughput.", debt::dirty_pages),
    server("R48", "P20", Performance, "Dead rows that vacuum did not remove are work put off until after the run.", debt::dead_rows),
    server("R50", "P6", Performance, "Work that comes once in minutes is missing from a shorter measurement.", debt::periodic_work),
    server("R30", "S4", Performance, "Compression without effect was not tested.", engine::compression_missing),
    server("R31", "P7", Performance, "A virtual disk that reports itself as rotational keeps neighbour flushing on.", device::claims_to_rotate),
    server("R32", "D3", Durability, "On a device without atomic writes this setting removes torn-page protection.", torn_pages::atomic_writes),
    server("R33", "P18", Performance, "Without asynchronous I/O a few threads do all reads and writes.", device::lost_aio),
    server("R34", "P24", Performance, "Huge pages increase the memory use of these allocators.", memory::huge_pages),
    server("R35", "P1", Performance, "A value far outside the usual is often a wrong unit.", memory::envelope),
    servers("R36", "P29", "A result holds only for the storage of the measurement.", contest::one_platform),
    servers("R37", "I", "A difference without a known cause may be an artefact.", work::unexplained),
    servers("R38", "I", "With several differences at once the cause of the result is unknown.", contest::confounded),
    server("R39", "I", Performance, "A setting changed during the run mixes two configurations in one result.", general::changed),
    servers("R40", "I", "Results need the effective settings and counters of each server.", disclosure::missing_dumps),
    servers("R41", "P25", "Processors, threads and storage decide what a limit or a thread count means.", disclosure::missing_host),
    server("R45", "I", Performance, "Counters restart at zero with the server; unread ones are lost.", general::counters_lost),
    server("R43", "P13", Performance, "An audit plugin writes or counts every statement.", general::watching_plugins),
    server("R44", "D3", Durability, "Without doublewrite and atomic writes a power cut can tear pages.", torn_pages::no_doublewrite),
    server("R49", "D1", Durability, "A commit that a power cut takes was not durable.", power_cut::disproved),
    servers(REFUSED_OPTION_FILE, "I", "A server cannot have run with an option file that it refuses.", option_file::refused),
    servers("R47", "I", "An included file may change any setting.", option_file::incomplete),
    servers("R42", "P23", "Prepared statements change point-read throughput by up to a fifth.", disclosure::protocol_unknown),
];

/// Rules about the run and its load.
#[rustfmt::skip]
const RUN: &[Rule] = &[
    run("lab.injected", "An injected handicap validates the lab and says nothing about the servers.", lab::injected),
    run("lab.identical-contenders", "A difference between identical servers measures chance and lab error.", verdict::identical),
    run("load.nothing-committed", "Without committed transactions there is no throughput to compare.", load::nothing_committed),
    run("load.silent-slices", "A server that commits nothing for a whole slice stands still, and in effects is counted by convention.", load::silent_slices),
    run("data.digest", "Contenders that hold different data do different work.", contenders::digests),
    run("plan.changed", "A server that runs a statement in another way does other work.", statements::changed),
    run("plan.not-explained", "Plans that are not known may differ.", statements::not_explained),
    run("load.failures", "Failed transactions are work not done; a server that refuses work looks fast.", load::failures),
    run("load.retries", "Retries are load that throughput does not show.", load::retries),
    run("load.skipped", "Skipped arrivals make an overloaded server look better than it is.", load::skipped),
    run("load.outlasted", "Servers that are stopped in the middle of long transactions may behave otherwise than under continuous load.", load::outlasted),
    run("load.unfinished", "A transaction that never ends has no latency, and its client does no other work.", load::unfinished),
    run("load.saturated", "A saturated load process limits the measured throughput.", load::saturated),
    run("lab.starved", "Other processes on the load's processors add noise, and bias when they affect one side more.", lab::starved),
    run("lab.outlying-slices", "A few outlying slices may determine a result; they are listed and never dropped.", lab::outlying),
    run("lab.carry-over", "Recovery after a switch that outlasts the guard lowers slices, more on the side that recovers slower.", carry_over::carried_over),
    run("load.lag", "Latencies include the delay of transactions that the load process sends late.", load::lag),
    run("load.left-out", "While no load thread runs nothing is sent, which says nothing of the server.", load::left_out),
    run("load.stalled", "While the load process stalls the server is idle and looks slow.", load::stalled),
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
    run("observe.window", "A counter read over another interval than the slice is exact only at a constant rate.", observe::window),
    run("lab.idle-memory", "Memory of a frozen server is idle, and the system may take it.", observe::idle_memory),
    run("observe.waits-one-sided", "Waits counted on one side only explain nothing and slow that side.", observe::waits_one_sided),
    run("observe.statistics-lag", "A counter that is reported after its turn is missing from it.", observe::statistics_lag),
    run("record.complaints", "Unreadable parts of the record are left out.", journal::complaints),
    run("verdict.short-horizon", "Stalls rarer than the measured time cannot be detected.", verdict::short_horizon),
    run("turns.contradiction", "A verdict in turns is about servers that are stopped and continued all the time.", continuity::contradiction),
    run("turns.departure", "Absolute figures in turns need not be those of continuous load.", continuity::departure),
    run("turns.quantile", "A switch can delay the transactions next to it, which a high quantile shows first.", continuity::quantile),
    run("verdict.few-stalls", "What rare stalls cost in the long run is known as well as their number is.", verdict::few_stalls),
    run("verdict.skewed-blocks", "When robust and plain estimates disagree, a few blocks determine the result.", verdict::skewed),
    run("verdict.ratio-changed", "A ratio that changes during the run has no single value.", verdict::ratio_changed),
    run("verdict.several-differences", "A duel compares two contenders as they are, with all that differs between them.", several_differences),
    run("verdict.uneven-stalls", "Stalls are part of a server's performance; the rate of a few is uncertain.", verdict::uneven_stalls),
];

/// What differs between the contenders although it was not asked for.
#[rustfmt::skip]
const DIFFERENCES: &[Rule] = &[
    run("server.builds-differ", "Different products or versions differ in more than the configured settings.", contenders::builds_differ),
    run("server.settings-differ", "An unintended difference may be the cause of the result.", contenders::settings_differ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::judge::audit::classes::class;
    use crate::judge::audit::table::table;

    #[test]
    fn every_rule_has_a_unique_name_and_a_reason_and_a_class_if_it_is_the_audits() {
        let mut seen = BTreeSet::new();
        for rule in rules() {
            let Rule { id, why, .. } = rule;
            assert!(seen.insert(id), "`{id}` stands twice");
            assert!(why.ends_with('.'), "{id}: the reason is a sentence");
            match rule.check {
                Check::Run(_) => assert!(id.contains('.'), "`{id}`: a name is `subject.what`"),
                _ => assert!(
                    class(rule.class).is_some(),
                    "{id}: no class `{}`",
                    rule.class
                ),
            }
            if matches!(rule.check, Check::Facts) {
                let mut facts = table().facts.iter();
                assert!(
                    facts.any(|fact| fact.class.id == rule.class),
                    "{id}: no facts"
                );
            }
        }
    }
}
