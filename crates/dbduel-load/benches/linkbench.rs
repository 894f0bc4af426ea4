//! What the LinkBench workload costs, beside what the original program was measured to cost on a machine of
//! the same kind: links loaded per second with four loaders, and client CPU per operation at 16 clients.
//!
//! `DBDUEL_BENCH_SOCKET=/path cargo bench -p dbduel-load --bench linkbench` against a server whose account is
//! `DBDUEL_BENCH_USER` (root) with password `DBDUEL_BENCH_PASSWORD` (none). `DBDUEL_BENCH_NODES` (1 000 000),
//! `DBDUEL_BENCH_CLIENTS` (16) and `DBDUEL_BENCH_SECONDS` (30) change the size, `DBDUEL_BENCH_PARAMETERS`
//! (`protocol=prepared index=before`) any other parameter of the workload.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

mod common;

use common::{Bench, number};
use dbduel_workloads::Moment;

/// Connections that fill the tables, as many as the original had loaders when it was measured.
const LOADERS: u32 = 4;
/// The original with as many loaders, links per second.
const ORIGINAL_LINKS_PER_S: f64 = 118_000.0;
/// The original at 16 requesters, client CPU per operation, microseconds.
const ORIGINAL_CPU_US: f64 = 62.0;

fn main() {
    let nodes = number("DBDUEL_BENCH_NODES", 1_000_000);
    let Some(bench) = Bench::new("linkbench", &[("maxid1", nodes + 1)]) else {
        return;
    };
    let report = bench.fill(LOADERS);
    let links = bench.count("linktable") as f64;
    let links_per_s = links / report.rows_s;
    println!(
        "{links} links and all counts and nodes: {links_per_s:.0} links/s with {LOADERS} loaders ({:.2} of the original's \
         {ORIGINAL_LINKS_PER_S}), with the index {:.0} links/s; the filling side used {:.2} of a processor",
        links_per_s / ORIGINAL_LINKS_PER_S,
        links / report.seconds,
        report.cpu_s / report.rows_s
    );
    bench.verify(Moment::Fresh);
    let slice = bench.run();
    let ended: u64 = slice
        .classes
        .iter()
        .map(|class| class.counts.ok + class.counts.failed)
        .sum();
    let cpu_us = 1e6 * (slice.cpu_user_s + slice.cpu_system_s) / ended as f64;
    println!(
        "{:.0} operations/s; client CPU {cpu_us:.1} µs per operation ({:.2} of the original's {ORIGINAL_CPU_US} µs)",
        ended as f64 / slice.measured_s,
        cpu_us / ORIGINAL_CPU_US
    );
    bench.verify(Moment::AfterLoad);
}
