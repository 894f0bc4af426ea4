//! What the order-entry workload costs: filling, checking, and client CPU per transaction.
//!
//! `DBDUEL_TEST_SOCKET=/path cargo bench -p dbduel-load --bench order_entry` against a server whose account
//! is `DBDUEL_TEST_USER` (root) with password `DBDUEL_TEST_PASSWORD` (none). `DBDUEL_BENCH_WAREHOUSES` (4),
//! `DBDUEL_BENCH_CLIENTS` (16) and `DBDUEL_BENCH_SECONDS` (30) change the size, `DBDUEL_BENCH_PARAMETERS`
//! (`protocol=text foreign_keys=on`) any other parameter of the workload. The program works in a
//! database of its own. Results are unaudited and not comparable with published TPC-C
//! results.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

mod common;

use common::{Bench, number};
use dbduel_load::workloads::Moment;

/// Connections that fill the tables.
const LOADERS: u32 = 4;

fn main() {
    let warehouses = number("DBDUEL_BENCH_WAREHOUSES", 4);
    let Some(bench) = Bench::new("order-entry", &[("warehouses", warehouses)]) else {
        return;
    };
    bench.fill(LOADERS);
    bench.verify(Moment::Fresh);
    let slice = bench.run();
    println!(
        "NOPM {:.0} (derived from TPC-C, unaudited, not comparable with published TPC-C results)",
        slice.classes[0].ok as f64 * 60.0 / slice.measured_s
    );
    bench.verify(Moment::AfterLoad);
}
