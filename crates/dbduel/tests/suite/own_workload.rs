//! A real application: captured, dumped, and run in a duel.

use std::path::Path;
use std::process::Command;

use dbduel_capture::import::{ImportOptions, import};
use dbduel_record::event::Event;
use dbduel_record::rows::ALL_CLASSES;

use super::bare_server::{BareServer, free_port};
use super::harness::skip_always;
use super::lab::{Lab, program, published};

/// Programs that the script needs.
const PROGRAMS: [&str; 6] = ["php", "mariadb", "mariadb-dump", "curl", "apt-get", "dpkg"];
/// Values that the application stores: none of them may be in a record.
const VALUES: [&str; 4] = ["grows in rows", "a@example.org", "Remark", "capture-admin"];

/// Requests, dump and general log of WordPress on a private server.
fn capture_wordpress(directory: &Path) {
    let server = BareServer::start("mariadb-10.11");
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/applications/wordpress.sh");
    let output = Command::new("bash")
        .arg(script)
        .arg(server.socket())
        .arg(directory)
        .arg("20")
        .env("PORT", free_port().to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let import = program()
        .args(["capture", "import"])
        .arg(directory.join("general.log"))
        .arg("-o")
        .arg(directory.join("shop.cap"))
        .output()
        .unwrap();
    assert!(import.status.success(), "{import:?}");
}

/// Files below a directory that contain one of the values.
fn files_with_values(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with_values(&path, found);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for value in VALUES {
            let has = bytes
                .windows(value.len())
                .any(|part| part == value.as_bytes());
            if has {
                found.push(format!("{}: {value}", path.display()));
            }
        }
    }
}

#[test(lab, needs = &["mariadb-10.11", "mariadb-11.8"])]
fn wordpress_is_captured_and_its_transactions_run_in_a_duel() {
    let on_path = |name: &&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    if let Some(missing) = PROGRAMS.iter().find(|name| !on_path(name)) {
        return skip_always(&format!("there is no program `{missing}` on this machine"));
    }
    let work = tempfile::tempdir().unwrap();
    capture_wordpress(work.path());
    let lab = Lab::new(&format!(
        "budget = \"20 s\"\nhorizon = \"25 %\"\n\
         [contenders.old]\nserver = \"mariadb-10.11\"\n\
         settings = {{ innodb_buffer_pool_size = \"64M\", character_set_server = \"utf8mb4\" }}\n\
         [contenders.new]\nserver = \"mariadb-11.8\"\n\
         settings = {{ innodb_buffer_pool_size = \"64M\", collation_server = \"utf8mb4_general_ci\", innodb_snapshot_isolation = 0 }}\n\
         [workload]\nname = \"captured\"\ncapture = \"{0}/shop.cap\"\n[data]\ndump = \"{0}/shop.sql\"\n\
         [load]\nclients = 4\n[schedule]\nslice = \"500 ms\"\nwarm_up = \"1 s\"\n",
        work.path().display()
    ));
    lab.run_to_the_end();
    let report = published(&lab.record_dir());
    let figures = &report["summary"]["duels"][0]["contenders"];
    for contender in figures.as_array().unwrap() {
        assert!(
            contender["outcomes"]["ok"].as_u64().unwrap() > 100,
            "{contender}"
        );
    }
    let classes = report["summary"]["answers"]["classes"].as_array().unwrap();
    assert!(classes.len() > 30, "{}", classes.len());
    for class in classes {
        assert_ne!(class["contenders"][0]["compared"], 0, "{class}");
    }
    let mut found = Vec::new();
    files_with_values(&lab.record_dir(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}

const SERVER: &str = "mariadb-10.11";

/// A capture of two sessions that are open at once, each with so many transactions, and the dump of their table. A second pass without
/// restored tables would insert rows that exist.
fn capture_inserts(directory: &Path, transactions: u32) {
    let mut log = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time                 Id Command    Argument\n"
        .to_owned();
    for number in 0..transactions {
        for session in [7, 8] {
            let micros = number * 20 + session;
            let mut line = |command: &str, argument: &str| {
                log += &format!(
                    "2026-11-28T00:00:01.{micros:06}Z\t{session:5} {command}\t{argument}\n"
                );
            };
            if number == 0 {
                line("Connect", "app@localhost on shop using Socket");
            }
            let id = number * 10 + session;
            line(
                "Query",
                &format!("INSERT INTO t (id, a) VALUES ({id}, {number})"),
            );
        }
    }
    let path = directory.join("general.log");
    std::fs::write(&path, log).unwrap();
    let options = ImportOptions {
        logs: vec![path],
        target: directory.join("shop.cap"),
        ..ImportOptions::default()
    };
    import(&options, &mut |_| Ok(())).unwrap();
    let dump = "-- MySQL dump 10.13  Distrib 8.0.33, for Linux (x86_64)\n\
        CREATE TABLE `t` (`id` int NOT NULL, `a` int NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB;\n\
        INSERT INTO `t` VALUES (1,1),(2,2);\n-- Dump completed on 2026-11-28 12:00:00\n";
    std::fs::write(directory.join("shop.sql"), dump).unwrap();
}

/// A duel of a server with itself on that capture as a trace, with these further lines of `[workload]`.
fn trace_duel(directory: &Path, workload: &str) -> String {
    format!(
        "budget = \"120 s\"\nhorizon = \"1 %\"\n\
         [contenders.one]\nserver = \"{SERVER}\"\nsettings = {{ innodb_buffer_pool_size = \"64M\" }}\n\
         [contenders.two]\nlike = \"one\"\n\
         [workload]\nname = \"captured\"\nmode = \"trace\"\ncapture = \"{0}/shop.cap\"\ntransactions_per_slice = 20\n{workload}\
         [data]\ndump = \"{0}/shop.sql\"\n[load]\n[schedule]\nslice = \"3 s\"\nwarm_up = \"3 s\"\n",
        directory.display()
    )
}

#[test(lab, needs = &[SERVER])]
fn a_trace_begins_again_on_restored_tables_at_its_end() {
    let work = tempfile::tempdir().unwrap();
    capture_inserts(work.path(), 60);
    let lab = Lab::new(&trace_duel(work.path(), ""));
    lab.run_to_the_end();
    let record = lab.record();
    assert_eq!(record.plan.levels[0].clients, 2, "sessions open at once");
    let mut passes = Vec::new();
    for event in &record.events {
        match &event.what {
            Event::Started { .. } | Event::EpochStarted { .. } => passes.push(Vec::new()),
            Event::SliceStarted {
                contender, quantum, ..
            } => {
                let pass = passes.last_mut().unwrap();
                pass.push((contender.clone(), quantum.unwrap()));
            }
            _ => {}
        }
    }
    assert!(passes.len() >= 2, "{passes:?}");
    for pass in &passes {
        for name in ["one", "two"] {
            let own = pass.iter().filter(|(contender, _)| contender == name);
            let quanta: Vec<u32> = own.map(|(_, quantum)| *quantum).collect();
            let expected: Vec<u32> = (1..=quanta.len() as u32).collect();
            assert_eq!(quanta, expected, "after a warm-up with the first, {name}");
            assert!(quanta.len() <= 5);
        }
    }
    for row in record.slices.iter().filter(|row| row.class == ALL_CLASSES) {
        assert_eq!((row.ok, row.failed), (20, 0), "{row:?}");
    }
    let report = published(&lab.record_dir());
    let findings = report["findings"].as_array().unwrap();
    let has = |rule: &str| findings.iter().any(|finding| finding["rule"] == rule);
    assert!(has("server.equal-rows-after"), "{findings:?}");
    assert!(has("captured.quanta"), "{findings:?}");
}

#[test(lab, needs = &[SERVER])]
fn a_mix_gets_restored_tables_when_all_was_drawn() {
    let work = tempfile::tempdir().unwrap();
    capture_inserts(work.path(), 12_000);
    let lab = Lab::new(&format!(
        "budget = \"60 s\"\nhorizon = \"1 %\"\n\
         [contenders.one]\nserver = \"{SERVER}\"\n\
         settings = {{ innodb_buffer_pool_size = \"64M\", innodb_flush_log_at_trx_commit = 0 }}\n\
         [contenders.two]\nlike = \"one\"\n\
         [workload]\nname = \"captured\"\ncapture = \"{0}/shop.cap\"\n[data]\ndump = \"{0}/shop.sql\"\n\
         [load]\nclients = 2\n[schedule]\nslice = \"500 ms\"\nwarm_up = \"1 s\"\n",
        work.path().display()
    ));
    lab.run_to_the_end();
    let record = lab.record();
    let events = record.events.iter().map(|event| &event.what);
    let epochs = events.filter(|event| matches!(event, Event::EpochStarted { .. }));
    assert!(epochs.count() >= 1);
    for row in record.slices.iter().filter(|row| row.class == ALL_CLASSES) {
        assert!(row.ok > 0 && row.failed == 0, "{row:?}");
    }
    let report = published(&lab.record_dir());
    let findings = report["findings"].as_array().unwrap();
    let has = |rule: &str| findings.iter().any(|finding| finding["rule"] == rule);
    assert!(has("load.capture-drawn"), "{findings:?}");
}

#[test]
fn a_trace_has_its_own_order_and_times() {
    let work = tempfile::tempdir().unwrap();
    capture_inserts(work.path(), 60);
    let refused = |workload: &str, old: &str, new: &str, line: &str, part: &str| {
        let text = trace_duel(work.path(), workload).replacen(old, new, 1);
        let number = text.lines().position(|one| one == line).unwrap() + 1;
        let output = Lab::new(&text).run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("duel.toml:{number}:")), "{said}");
        assert!(said.contains(part), "{said}");
    };
    let draw = "draw = \"sessions\"";
    refused(
        &format!("{draw}\n"),
        "",
        "",
        draw,
        "draws none; remove `draw`",
    );
    let speed = "speed = 2.0";
    refused(
        &format!("{speed}\n"),
        "",
        "",
        speed,
        "is for `pace = \"open\"`",
    );
    let rate = "rate = [100]";
    let load = format!("[load]\narrival = \"constant\"\n{rate}\n");
    refused("", "[load]\n", &load, rate, "their own order and times");
    let clients = "clients = 3";
    refused(
        "",
        "[load]\n",
        &format!("[load]\n{clients}\n"),
        clients,
        "has work for at most 2",
    );
    let few = "transactions_per_slice = 50";
    refused(
        "",
        "transactions_per_slice = 20",
        few,
        few,
        "set 40 at most",
    );
    let slow = "pace = \"open\"\nspeed = 0.001\n";
    let slice = "slice = \"60 ms\"";
    refused(
        slow,
        "slice = \"3 s\"",
        slice,
        slice,
        "at this pace the longest quantum takes",
    );
    let epochs = "epochs = 4";
    refused(
        "",
        "[schedule]\n",
        &format!("[schedule]\n{epochs}\n"),
        epochs,
        "cannot have `epochs`",
    );
    let mix = "mode = \"mix\"";
    let per_slice = "transactions_per_slice = 20";
    refused(
        "",
        "mode = \"trace\"",
        mix,
        per_slice,
        "is for `mode = \"trace\"`",
    );
}
