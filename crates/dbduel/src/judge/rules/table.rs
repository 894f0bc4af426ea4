//! Every rule, in the order in which a report lists equal weights.

use super::run::{carry_over, contenders, journal, lab, load, observe, steady, verdict};
use super::servers::{
    client, compared, contest, device, disclosure, engine, general, memory, option_file, taken,
    work,
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
    servers("variables", "I", "What is not shown cannot be called equal.", compared::without_variables),
    servers("one-sided", "I", "What was not compared is not equal.", compared::one_sided),
    servers("not-looked-at", "I", "What was not compared is not equal.", compared::not_seen),
    servers("unknown", "I", "A setting that nobody has classified may be the cause of a result.", compared::unclassified),
    servers("about", "I", "A question about a setting needs contenders that differ in it.", subject::without_difference),
    server("R1", "P4", Performance, "A redo log that is soon full forces checkpoints, and throughput saws.", engine::redo_too_small),
    server("R2", "P1", Performance, "A server that waits for free pages waits for its own flushing.", engine::waits_for_free_pages),
    servers("R2b", "P1", "A contest between data in memory and data on disk is not about the servers.", contest::data_against_pool),
    server("R3", "P5", Performance, "The scan depth is per instance: the product is what the server walks through each second.", engine::scan_budget),
    server("R4", "P15", Performance, "Tables that are closed to open others cost every statement that needs them.", general::table_cache),
    server("R5", "P8", Performance, "A limit of threads inside the engine queues clients.", engine::admission),
    server("R6", "P10", Performance, "The software checksum is much slower than crc32, which the server has.", engine::software_checksum),
    server("R7", "P7", Performance, "Flushing neighbours wastes writes on devices that do not seek.", device::neighbours),
    server("R8", "P22", Performance, "Clients that cannot connect do no work.", general::connections),
    server("R9", "P15", Performance, "Without enough file handles caches shrink by themselves.", general::open_files),
    server("R10", "P3", Performance, "Fewer page cleaners than instances leave instances waiting.", engine::starved_flushers),
    server("R11", "P6", Performance, "The default I/O capacity is that of one rotating disk.", device::io_capacity),
    server("R12", "P6", Performance, "Adaptive flushing and a hand-set I/O capacity both pace writes.", engine::adaptive_flushing),
    server("R13", "P14", Performance, "A query cache answers without doing the work.", general::query_cache),
    facts("R14", "D4", "A binary log on one side is durable work that the other does not do."),
    facts("R15", "D3", "Doublewrite, checksums and syncs cost time and buy safety."),
    server("R16", "D1", Durability, "Commits that claim a sync and show none are not durable.", engine::syncs_missing),
    server("R17", "I", Performance, "A setting that did not take was not tested.", taken::rule),
    server("R18", "P26", Performance, "A debug or 32-bit build is another server.", general::build),
    facts("R19", "P13", "Instrumentation costs time on the side that has it."),
    server("R20", "P9", Performance, "A pool of another size than the machine is a limit of its own.", general::pool_size),
    server("R21", "P22", Performance, "Creating a thread per connection costs more than most statements.", general::thread_cache),
    servers("R22", "P21", "Temporary tables on disk on one side are other work.", contest::temporary_tables),
    facts("R23", "P22", "TLS on one side encrypts every packet there."),
    facts("R24", "P23", "Prepared statements on one side skip parsing there."),
    servers("R25", "S6", "Transactions that fail are not work done.", contest::rollbacks),
    server("R26", "P6", Performance, "Writes put off until after the run are borrowed throughput.", engine::debt),
    server("R30", "S4", Performance, "Compression that was asked for and did not happen was not tested.", engine::compression_missing),
    server("R31", "P7", Performance, "A virtual disk that claims to rotate keeps neighbour flushing alive.", device::claims_to_rotate),
    server("R32", "D3", Durability, "On a device without atomic writes this setting removes torn-page protection.", device::atomic_writes),
    server("R33", "P18", Performance, "A server that lost its asynchronous I/O reads and writes with a few threads.", device::lost_aio),
    server("R34", "P24", Performance, "Huge pages bloat the memory of these allocators.", memory::huge_pages),
    server("R35", "P1", Performance, "A value far outside the usual is often a wrong unit.", memory::envelope),
    servers("R36", "P29", "A result holds for the storage that it was measured on.", contest::one_platform),
    servers("R37", "I", "A difference without a cause is benchmarketing.", work::unexplained),
    servers("R38", "I", "When several things differ at once nobody knows which made the difference.", contest::confounded),
    server("R39", "I", Performance, "A setting that changed during the run makes two runs of one.", general::changed),
    servers("R40", "I", "What a server really ran with, and what it did, must be shown.", disclosure::missing_dumps),
    servers("R41", "P25", "Processors, threads and storage decide what a limit or a thread count means.", disclosure::missing_host),
    server("R45", "I", Performance, "Counters begin anew with a server; what was not read before it ended is lost.", general::counters_lost),
    server("R43", "P13", Performance, "An audit plugin writes or counts every statement.", general::watching_plugins),
    server("R44", "D3", Durability, "Switching it off without atomic writes is for tests only.", device::no_doublewrite),
    servers(REFUSED_OPTION_FILE, "I", "A server that does not start with its option file did not run with it.", option_file::refused),
    servers("R47", "I", "What an option file includes may set anything.", option_file::incomplete),
    servers("R42", "P23", "Whether statements were prepared can move point reads by a fifth.", client::protocol_unknown),
];

/// Rules about the run and its load.
#[rustfmt::skip]
const RUN: &[Rule] = &[
    run("lab.injected", "A handicap that the lab gave proves the lab and says nothing about the servers.", lab::injected),
    run("lab.identical-contenders", "A server that differs from itself shows what chance and the lab add to every other difference.", verdict::identical),
    run("load.nothing-committed", "Without committed transactions there is no throughput to compare.", load::nothing_committed),
    run("load.silent-slices", "A slice without a commit has no logarithm and is counted by convention.", load::silent_slices),
    run("data.digest", "Contenders that hold different data do different work.", contenders::digests),
    run("load.failures", "A transaction that was given up is work not done; a server that refuses work looks fast.", load::failures),
    run("load.retries", "Repeated attempts are load that throughput does not show.", load::retries),
    run("load.skipped", "Arrivals that were never sent make an overloaded server look better than it is.", load::skipped),
    run("load.saturated", "A load process without processor time to spare measures itself.", load::saturated),
    run("lab.starved", "Slices in which foreign processes took the load's processors are noise that costs time, and a bias when they prefer one side.", lab::starved),
    run("lab.outlying-slices", "A few slices far from all others may carry a result; they are told and never dropped.", lab::outlying),
    run("lab.carry-over", "A switch that costs more than the guard is charged to slices, and to one side more when it recovers slower.", carry_over::carried_over),
    run("load.lag", "Transactions that the load process sends late add its own delay to every latency.", load::lag),
    run("load.stalled", "While the load process stalls a server has nothing to do, which looks as if it were slow.", load::stalled),
    run("warm-up.not-steady", "A server that still warms up is compared at a moment, not in its steady state.", journal::not_steady),
    run("steady.never-settled", "A cell that changes until its end is compared on its way, not in its steady state.", steady::never_settled),
    run("steady.settled-late", "Slices of a cell that still settles are part of its figures.", steady::settled_late),
    run("steady.level-entered", "Caches and logs that another load level filled take part in a slice's result.", steady::level_entered),
    run("server.unmanaged", "A server that cannot be frozen works in the background while others are measured.", contenders::unmanaged),
    run("server.died", "A crash is a result, and a restarted server is another instance.", journal::server_died),
    run("run.lost-slices", "What is missing may be missing for a reason that favours one side.", journal::lost_slices),
    run("run.resumed", "A restart alone can move a server by a percent.", journal::resumed),
    run("run.extended", "Whoever may go on until the answer pleases needs an error probability that allows it.", journal::extended),
    run("run.unfinished", "A run that was cut short did not take the time that it was given.", journal::unfinished),
    run("observe.window", "A counter that was read over another time than the slice says of the slice only what is even over time.", observe::window),
    run("observe.waits-one-sided", "Waits that only one side counts explain nothing, and counting them costs that side time.", observe::waits_one_sided),
    run("record.complaints", "What could not be read does not count.", journal::complaints),
    run("verdict.short-horizon", "Stalls rarer than the measured time are invisible, whatever the statistics.", verdict::short_horizon),
    run("verdict.skewed-blocks", "When robust and plain estimates part, a few blocks carry the result.", verdict::skewed),
    run("verdict.ratio-changed", "A ratio that changes during the run has no single value.", verdict::ratio_changed),
    run("verdict.uneven-stalls", "Stalls belong to a server's performance, but few of them are luck.", verdict::uneven_stalls),
];

/// What differs between the contenders although it was not asked for.
#[rustfmt::skip]
const DIFFERENCES: &[Rule] = &[
    run("server.builds-differ", "Different products or versions differ in more than the settings asked for.", contenders::builds_differ),
    run("server.settings-differ", "A difference that nobody asked for may be the cause of the result.", contenders::settings_differ),
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
