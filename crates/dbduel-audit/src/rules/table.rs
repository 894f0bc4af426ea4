//! Every rule about servers, in the order in which a report lists equal weights.

use super::servers::{Contender, Hit};
use super::servers::{
    compared, contest, debt, device, disclosure, engine, general, machines, memory, option_file,
    power_cut, taken, torn_pages, work,
};
use super::{Check, REFUSED_OPTION_FILE, Rule};
use crate::classes::Weight::{self, Durability, Performance};
use crate::finding::Finding;
use crate::{Case, subject};

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

/// Rules about the servers' settings and counters.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    servers("variables", "I", "Without variables nothing can be compared.", compared::without_variables),
    servers("one-sided", "I", "Facts that were not compared may differ.", compared::one_sided),
    servers("not-looked-at", "I", "Facts that were not compared may differ.", compared::not_seen),
    servers("unknown", "I", "An unclassified setting may be the cause of a result.", compared::unclassified),
    servers("about", "I", "A comparison of a setting needs contenders that differ in this setting.", subject::without_difference),
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
    server("R35", "P1", Performance, "A value far outside the usual range is often a wrong unit.", memory::envelope),
    servers("R36", "P29", "A result holds only for the storage of the measurement.", contest::one_platform),
    servers("R51", "P29", "Machines that differ, and the networks to them, are part of a ratio between their servers.", machines::several),
    servers("R37", "I", "A difference without a known cause may be an artefact.", work::unexplained),
    servers("R38", "I", "With several differences at once the cause of the result is unknown.", contest::confounded),
    server("R39", "I", Performance, "A setting changed during the run mixes two configurations in one result.", general::changed),
    servers("R40", "I", "Results need the effective settings and counters of each server.", disclosure::missing_dumps),
    servers("R41", "P25", "Processors, threads and storage decide what a limit or a thread count means.", disclosure::missing_host),
    server("R45", "I", Performance, "Counters restart at zero with the server; unread ones are lost.", general::counters_lost),
    server("R43", "P13", Performance, "An audit plugin writes or counts every statement.", general::watching_plugins),
    server("R44", "D3", Durability, "A torn page is repaired from a copy only: doublewrite buffer, full-page image or journal.", torn_pages::unprotected),
    server("R49", "D1", Durability, "A commit that is lost in a power cut was not durable.", power_cut::disproved),
    servers(REFUSED_OPTION_FILE, "I", "A server cannot have run with an option file that it refuses.", option_file::refused),
    servers("R47", "I", "An included file may change any setting.", option_file::incomplete),
    servers("R42", "P23", "Prepared statements change point-read throughput by up to a fifth.", disclosure::protocol_unknown),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::classes::class;
    use crate::table::table;

    #[test]
    fn every_rule_has_a_unique_name_a_reason_and_a_class() {
        let mut seen = BTreeSet::new();
        for rule in RULES {
            let Rule { id, why, .. } = rule;
            assert!(seen.insert(id), "`{id}` stands twice");
            assert!(why.ends_with('.'), "{id}: the reason is a sentence");
            let class_of = rule.class;
            assert!(class(class_of).is_some(), "{id}: no class `{class_of}`");
            if matches!(rule.check, Check::Facts) {
                let mut facts = table().facts.iter();
                assert!(
                    facts.any(|fact| fact.class.id == class_of),
                    "{id}: no facts"
                );
            }
        }
    }
}
