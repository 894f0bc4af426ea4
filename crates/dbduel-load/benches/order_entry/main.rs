//! What the order-entry workload costs: filling, checking, and client CPU per transaction.
//!
//! `DBDUEL_BENCH_SOCKET=/path cargo bench -p dbduel-load --bench order_entry` against a server whose account
//! is `DBDUEL_BENCH_USER` (root) with password `DBDUEL_BENCH_PASSWORD` (none). `DBDUEL_BENCH_WAREHOUSES` (4),
//! `DBDUEL_BENCH_CLIENTS` (16) and `DBDUEL_BENCH_SECONDS` (30) change the size, `DBDUEL_BENCH_PARAMETERS`
//! (`protocol=text foreign_keys=on`) any other parameter of the workload. The program works in a
//! database of its own. Results are unaudited and not comparable with published TPC-C
//! results.
//!
//! `DBDUEL_BENCH_TPCC_MYSQL` (the directory with tpcc_load and tpcc_start) and `DBDUEL_BENCH_GO_TPC` (the
//! program) name others to compare with. Then everybody goes over TCP, loads in turn and drives in turn,
//! `DBDUEL_BENCH_ROUNDS` (3) times; the account needs an empty password, since theirs are command lines.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "../common/mod.rs"]
mod common;
mod peers;

use common::{Bench, number};
use dbduel_driver::address::Address;
use dbduel_load::order::SliceAnswer;
use dbduel_workloads::Moment;
use peers::{Access, Peer};

/// Connections that fill the tables.
const LOADERS: u32 = 4;

fn main() {
    let warehouses = number("DBDUEL_BENCH_WAREHOUSES", 4);
    let Some(bench) = Bench::new("order-entry", &[("warehouses", warehouses)]) else {
        return;
    };
    let filled = bench.fill(LOADERS);
    bench.verify(Moment::Fresh);
    println!(
        "NOPM {:.0} (derived from TPC-C, unaudited, not comparable with published TPC-C results)",
        new_orders_per_minute(&bench.run())
    );
    let found = peers::found();
    if !found.is_empty() {
        compare(&bench, warehouses, filled.seconds, &found);
    }
    bench.verify(Moment::AfterLoad);
}

fn new_orders_per_minute(slice: &SliceAnswer) -> f64 {
    slice.classes[0].counts.ok as f64 * 60.0 / slice.measured_s
}

/// Everybody in turn: loading once, driving several times.
fn compare(bench: &Bench, warehouses: u32, filled_s: f64, found: &[Peer]) {
    assert!(
        bench.password().is_empty(),
        "other programs take passwords in the command line only; use an account without"
    );
    let mut server = bench.connect(None);
    let port = server.query("SELECT @@port").unwrap().text(0, 0).unwrap();
    let access = Access {
        port: port.parse().unwrap(),
        user: bench.user().to_owned(),
        warehouses,
        clients: common::clients(),
        seconds: common::seconds(),
    };
    for peer in found {
        let seconds = peer.load(&access, &mut server);
        println!(
            "{}: loaded in {seconds:.1} s, {:.1} times ours",
            peer.name(),
            seconds / filled_s
        );
    }
    let over_tcp: Address = format!("tcp://127.0.0.1:{}", access.port).parse().unwrap();
    for round in 1..=number("DBDUEL_BENCH_ROUNDS", 3) {
        let ours = bench.drive(&over_tcp);
        let ended: u64 = ours.classes.iter().map(|class| class.counts.ok).sum();
        let own_us = 1e6 * (ours.cpu_user_s + ours.cpu_system_s) / ended as f64;
        println!(
            "round {round}: dbduel {own_us:.0} µs of client CPU per transaction, NOPM {:.0}",
            new_orders_per_minute(&ours)
        );
        for peer in found {
            let drive = peer.drive(&access);
            let us = 1e6 * drive.cpu_s / drive.transactions as f64;
            println!(
                "round {round}: {} {us:.0} µs, NOPM {:.0}; ours is {:.2} of it",
                peer.name(),
                drive.new_orders_per_minute,
                own_us / us
            );
        }
    }
    for peer in found {
        server
            .execute(&format!("DROP DATABASE {}", peer.database()))
            .unwrap();
    }
}
