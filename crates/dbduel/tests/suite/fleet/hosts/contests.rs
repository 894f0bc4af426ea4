//! Contests whose load comes from two hosts, and what is refused.

use super::machines::SERVERS;
use super::{
    BUDGET, HANDICAP, HOSTS, SERVER, experiment, hosts_experiment, hosts_section, two_hosts,
    two_secured_hosts,
};
use crate::suite::lab::{assert_verified, check_refused, with_budget};

#[test(lab, needs = &[SERVER])]
fn load_from_two_hosts_gives_the_verdict_that_load_from_here_gives() {
    let Some(machines) = two_hosts() else {
        return;
    };
    let alone = with_budget(&experiment(""), BUDGET);
    machines.write("alone.toml", &alone);
    machines.run("alone.toml", "alone");
    let said = machines.run("duel.toml", "hosts");
    assert!(
        said.contains("under load from load1, load2"),
        "the scope is not there: {said}"
    );
    for results in ["alone", "hosts"] {
        let report = machines.published(results);
        let comparison = &report["summary"]["duels"][0]["comparisons"][0];
        assert_eq!(comparison["verdict"], "slower", "{results}: {comparison:#}");
    }
    let record = machines.record("hosts");
    let names: Vec<&str> = record
        .host
        .load_hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(names, HOSTS);
    let first = &record.host.load_hosts[0];
    assert!(
        first.cpus.is_some() && first.memory_bytes.is_some() && first.kernel == record.host.kernel
    );
    let value = |metric: &str| {
        let rows = record
            .readings
            .iter()
            .filter(|row| row.source == "load" && row.metric == metric);
        let values: Vec<f64> = rows.map(|row| row.value).collect();
        assert!(!values.is_empty(), "no {metric}");
        values
    };
    let uncertainty_us = value("clock_uncertainty_us");
    assert!(
        uncertainty_us.iter().all(|us| *us > 0.0 && *us < 1e6),
        "{uncertainty_us:?}"
    );
    assert!(value("orchestration_ms").iter().all(|ms| *ms > 0.0));
    assert!(
        value("orchestration_bytes")
            .iter()
            .all(|bytes| *bytes > 1000.0)
    );
    assert_eq!(
        value("load1.lag_us_p99").len(),
        value("load2.lag_us_p99").len()
    );
    assert_verified(&machines.record_dir("hosts").unwrap());
    machines.wait_for_idle_agents();
}

/// Updates, so that what both acknowledged is compared with what they hold at the end.
pub const PRODUCTS: &str = r#"
budget = "8 s"
horizon = "25 %"
seed = 7
about = ["D5", "S1", "S2"]
[contenders.postgresql]
server = "postgresql-16"
settings = { shared_buffers = "32MB", min_wal_size = "32MB", max_wal_size = "64MB" }
[contenders.mysql]
server = "mysql-8.0.33"
settings = { innodb_buffer_pool_size = "32M", innodb_redo_log_capacity = "8M" }
[workload]
name = "oltp-update-non-index"
tables = 2
table_size = 2_000
[load]
clients = 4
[schedule]
slice = "100 ms"
guard = "10 ms"
warm_up = "300 ms"
[limits]
server_start = "60 s"
"#;

#[test(lab, needs = &[SERVER, "postgresql-16", "mysql-8.0.33"])]
fn other_products_take_load_from_two_hosts() {
    let Some(machines) = two_hosts() else {
        return;
    };
    machines.write("duel.toml", &format!("{PRODUCTS}{}", hosts_section()));
    machines.run("duel.toml", "products");
    for row in machines.finished("products") {
        assert!(row.ok > 0 && row.failed == 0, "{row:?}");
    }
    assert_verified(&machines.record_dir("products").unwrap());
}

#[test(lab, needs = &[SERVER])]
fn a_host_that_drives_load_over_tls_is_shown_and_refused_to_a_second_contest() {
    let Some(machines) = two_secured_hosts() else {
        return;
    };
    // Of equal servers, so that it lasts until a second one was refused.
    let undecided = hosts_experiment().replacen(HANDICAP, "", 1);
    machines.write("duel.toml", &undecided.replacen("25 %", "0.1 %", 1));
    let run = machines.begin("first", 1);
    let shown = machines.output(&["fleet", "agents"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("load, drives"), "{shown}");
    let stranger = machines.output_without_login(&["fleet", "agents"]);
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert_eq!(stranger.status.code(), Some(1), "{said}");
    assert!(
        said.contains("give its CA certificate with `--ca FILE`"),
        "{said}"
    );
    let second = machines.output(&["run", "duel.toml", "--results", "second"]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("drives load for another contest"), "{said}");
    machines.complete(run, "first");
}

#[test]
fn what_load_hosts_cannot_do_is_refused_at_its_place() {
    let text = hosts_experiment();
    let load = "load = [\"load1\", \"load2\"]";
    let running = "[contenders.third]\nserver = \"tcp://root@127.0.0.1:1\"\n[workload]";
    for (old, new, place, part) in [
        (load, "load = [\"load1\", \"load1\"]", "27:8", "twice"),
        (load, "load = [\"a/b\"]", "27:8", "not an agent's name"),
        (SERVERS, "db 1", "26:11", "address of this machine"),
        (SERVERS, "0.0.0.0", "26:11", "address of this machine"),
        ("clients = 4", "clients = 1", "27:8", "each needs a client"),
        (
            "oltp-point-select",
            "insert-benchmark",
            "25:1",
            "do not run workload",
        ),
        ("[workload]", running, "27:1", "is a running server"),
    ] {
        check_refused(&text, old, new, place, part);
    }
}
