//! What captured statements cost the machine that drives them, with the latency of each measured: client CPU per statement of a capture of
//! point selects, relative to that of the native point select as text, in turns on the same tables.
//!
//! `DBDUEL_BENCH_SOCKET=/path cargo bench -p dbduel-load --bench captured` against a MySQL or MariaDB whose account is
//! `DBDUEL_BENCH_USER` (root) with password `DBDUEL_BENCH_PASSWORD` (none). `DBDUEL_BENCH_CLIENTS` (16), `DBDUEL_BENCH_SECONDS` (30, of
//! each turn) and `DBDUEL_BENCH_ROUNDS` (3) change the size.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[allow(
    dead_code,
    reason = "not every bench prints, or drives its own workload"
)]
mod common;

use std::fmt::Write as _;
use std::path::Path;

use common::{Bench, number};
use dbduel_capture::import::{ImportOptions, import};
use dbduel_client::random::Random;
use dbduel_load::order::SliceAnswer;
use dbduel_record::plan::Parameters;
use dbduel_workloads::{find, parameters::resolve};

/// Rows of the table.
const ROWS: u32 = 10_000;
/// Statements of the capture.
const STATEMENTS: u32 = 10_000;
/// Largest cost relative to the native one that is aimed at.
const GOAL: f64 = 1.2;

fn main() {
    let Some(bench) = Bench::new("oltp-point-select", &[("tables", 1), ("table_size", ROWS)])
    else {
        return;
    };
    bench.fill(1);
    let native = find("oltp-point-select").unwrap();
    let given = |protocol: &str| {
        Parameters::from([
            ("tables".to_owned(), 1.into()),
            ("table_size".to_owned(), ROWS.into()),
            ("protocol".to_owned(), protocol.into()),
        ])
    };
    let text = resolve(native, &given("text")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let captured = captured(folder.path());
    let mut ratios = Vec::new();
    for round in 0..number("DBDUEL_BENCH_ROUNDS", 3) {
        let native_us = cpu_us(&bench.drive_on_tables(native.name(), &text));
        let slice = bench.drive_on_tables("captured", &captured);
        let captured_us = cpu_us(&slice);
        let measured: u64 = slice.statements.iter().map(|one| one.counts.ok).sum();
        println!(
            "round {round}: client CPU per statement: native {native_us:.2} µs, captured {captured_us:.2} µs ({:.2}); {measured} \
             statements measured, one by one",
            captured_us / native_us
        );
        ratios.push(captured_us / native_us);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!("median of {}: {median:.2}, goal {GOAL}", ratios.len());
}

/// Client CPU per statement, microseconds.
fn cpu_us(slice: &SliceAnswer) -> f64 {
    let statements: u64 = slice
        .classes
        .iter()
        .map(|class| class.counts.statements)
        .sum();
    1e6 * (slice.cpu_user_s + slice.cpu_system_s) / statements as f64
}

/// Parameters of a replay of point selects.
fn captured(folder: &Path) -> Parameters {
    let mut log = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time                 Id Command    Argument\n\
         2026-11-28T00:00:00.000000Z\t    7 Connect\tapp@localhost on shop using Socket\n"
        .to_owned();
    let mut random = Random::new(1);
    for number in 0..STATEMENTS {
        let id = 1 + random.below(u64::from(ROWS));
        writeln!(
            log,
            "2026-11-28T00:00:01.{number:06}Z\t    7 Query\tSELECT c FROM sbtest1 WHERE id={id}"
        )
        .unwrap();
    }
    let path = folder.join("log");
    std::fs::write(&path, log).unwrap();
    let options = ImportOptions {
        logs: vec![path],
        target: folder.join("points.cap"),
        ..ImportOptions::default()
    };
    import(&options, &mut |_| Ok(())).unwrap();
    let capture = options.target.display().to_string();
    let given = Parameters::from([("capture".to_owned(), capture.into())]);
    resolve(find("captured").unwrap(), &given).unwrap()
}
