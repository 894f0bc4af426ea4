//! What a workload promises of its tables, broken behind its back: no verdict may rest on such tables.

use std::process::Output;

use dbduel_record::event::{Event, Severity};
use serde_json::Value;

use super::bare_server::BareServer;
use super::lab::{Lab, SHORT_SCHEDULE, program};

/// Two running servers, which only the lab and this test look after; over in about ten seconds.
fn experiment(servers: &[BareServer; 2], workload: &str) -> String {
    let [first, second] = servers.each_ref().map(BareServer::socket);
    format!(
        "budget = \"8 s\"\nhorizon = \"25 %\"\nseed = 7\n\
         [contenders.whole]\nserver = \"unix:{}\"\n[contenders.damaged]\nserver = \"unix:{}\"\n\
         [workload]\n{workload}\n[load]\nclients = 4\n[schedule]\n{SHORT_SCHEDULE}",
        first.display(),
        second.display()
    )
}

/// Changes tables of the second server while a duel runs; the condition that this breaks must void it.
#[track_caller]
fn voided(servers: &[BareServer; 2], workload: &str, damage: &str, condition: &str) {
    let lab = Lab::new(&experiment(servers, workload));
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 2);
    servers[1].query(damage);
    let status = run.wait().unwrap();
    assert_eq!(status.code(), Some(4), "{}", lab.said());
    let record = lab.record();
    let notices: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            Event::Noticed { notice } if notice.rule == "data.condition-violated" => Some(notice),
            _ => None,
        })
        .collect();
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert_eq!(notice.severity, Severity::Void);
    assert_eq!(notice.about, ["damaged"]);
    assert!(
        notice
            .claim
            .contains(&format!("{condition} (1 violations)")),
        "{notice:?}"
    );
    assert!(lab.said().contains(condition), "{}", lab.said());
    let html = std::fs::read_to_string(lab.record_dir().join("report.html")).unwrap();
    assert!(html.contains(condition) && html.contains("void"));
}

fn two_servers() -> [BareServer; 2] {
    [(); 2].map(|()| BareServer::start("mariadb-10.11"))
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_link_that_nobody_counts_voids_the_verdict() {
    voided(
        &two_servers(),
        "name = \"linkbench\"\nmaxid1 = 1_001\nnlinks_max = 500",
        "UPDATE dbduel.counttable SET count = count + 1 ORDER BY id DESC LIMIT 1",
        "link-counts",
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn money_that_nobody_paid_voids_the_verdict() {
    voided(
        &two_servers(),
        "name = \"order-entry\"\nscale = 0.01",
        "UPDATE dbduel.warehouse SET w_ytd = w_ytd + 1",
        "condition-1",
    );
}

/// What `dbduel check` says of tables, and whether they hold.
fn check(server: &BareServer, words: &[&str]) -> (String, bool) {
    let output = on(server, "check", words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        matches!(output.status.code(), Some(0 | 4)),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (said, output.status.success())
}

fn on(server: &BareServer, verb: &str, words: &[&str]) -> Output {
    program()
        .arg(verb)
        .args(["--server", &format!("unix:{}", server.socket().display())])
        .args(["--database", "sbtest", "--workload"])
        .args(words)
        .output()
        .unwrap()
}

#[test(lab, needs = &["mariadb-10.11"])]
fn missing_rows_of_constant_tables_are_found() {
    let server = BareServer::start("mariadb-10.11");
    let workload = ["order-entry", "--set", "scale=0.01"];
    let short = ["--prepare", "--duration", "100 ms", "--warm-up", "0 s"];
    let filled = on(&server, "load", &[&workload[..], &short].concat());
    assert!(filled.status.success(), "{filled:?}");
    let (said, holds) = check(&server, &workload);
    assert!(holds, "{said}");
    for (damage, condition) in [
        ("DELETE FROM sbtest.stock LIMIT 1", "rows-of-stock"),
        ("DELETE FROM sbtest.item", "rows-of-item"),
    ] {
        server.query(damage);
        let (said, holds) = check(&server, &workload);
        assert!(!holds && said.contains(condition), "{damage}: {said}");
    }
}

#[test(lab, needs = &["mariadb-10.11", "mysql-8.0.33"])]
fn text_statements_run_where_backslashes_escape_nothing() {
    for name in ["mariadb-10.11", "mysql-8.0.33"] {
        let options = ["--skip-networking", "--sql-mode=NO_BACKSLASH_ESCAPES"];
        let server = BareServer::start_with(name, &options.map(str::to_owned));
        let workload = ["linkbench", "--set", "maxid1=3001", "nlinks_max=25000"];
        let text = ["protocol=text", "--prepare", "--json"];
        let short = ["--clients", "4", "--duration", "2 s", "--warm-up", "0 s"];
        let output = on(&server, "load", &[&workload[..], &text, &short].concat());
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(document["errors"], serde_json::json!([]), "{name}");
        assert!(document["total"]["ok"].as_u64() > Some(0), "{name}");
        let (said, holds) = check(&server, &workload);
        assert!(holds, "{name}: {said}");
    }
}
