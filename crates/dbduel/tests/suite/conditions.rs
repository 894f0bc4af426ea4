//! What a workload promises of its tables, broken behind its back: no verdict may rest on such tables.

use dbduel_record::event::{Event, Severity};

use super::bare_server::BareServer;
use super::lab::{Lab, with_servers};

/// Two running servers, which nobody but the lab and this test looks after; over in less than half a minute.
fn experiment(servers: &[BareServer; 2], workload: &str) -> String {
    let [first, second] = servers.each_ref().map(BareServer::socket);
    format!(
        "budget = \"20 s\"\nhorizon = \"25 %\"\nseed = 7\n\
         [contenders.whole]\nserver = \"unix:{}\"\n[contenders.damaged]\nserver = \"unix:{}\"\n\
         [workload]\n{workload}\n[load]\nclients = 4\n\
         [schedule]\nslice = \"500 ms\"\nguard = \"50 ms\"\nwarm_up = \"500 ms\"\n",
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
    let findings: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            Event::Noticed { finding } if finding.rule == "data.condition-violated" => {
                Some(finding)
            }
            _ => None,
        })
        .collect();
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}");
    };
    assert_eq!(finding.severity, Severity::Void);
    assert_eq!(finding.about, ["damaged"]);
    assert!(
        finding
            .claim
            .contains(&format!("{condition} (1 violations)")),
        "{finding:?}"
    );
    assert!(lab.said().contains(condition), "{}", lab.said());
    let html = std::fs::read_to_string(lab.record_dir().join("report.html")).unwrap();
    assert!(html.contains(condition) && html.contains("void"));
}

fn two_servers() -> [BareServer; 2] {
    [(); 2].map(|()| BareServer::start("mariadb-10.11"))
}

#[test]
fn a_link_that_nobody_counts_voids_the_verdict() {
    let test = "a_link_that_nobody_counts_voids_the_verdict";
    let Some(_turn) = with_servers(test, &["mariadb-10.11"]) else {
        return;
    };
    voided(
        &two_servers(),
        "name = \"linkbench\"\nmaxid1 = 1_001\nnlinks_max = 500",
        "UPDATE dbduel.counttable SET count = count + 1 ORDER BY id DESC LIMIT 1",
        "link-counts",
    );
}

#[test]
fn money_that_nobody_paid_voids_the_verdict() {
    let test = "money_that_nobody_paid_voids_the_verdict";
    let Some(_turn) = with_servers(test, &["mariadb-10.11"]) else {
        return;
    };
    voided(
        &two_servers(),
        "name = \"order-entry\"\nscale = 0.01",
        "UPDATE dbduel.warehouse SET w_ytd = w_ytd + 1",
        "condition-1",
    );
}
