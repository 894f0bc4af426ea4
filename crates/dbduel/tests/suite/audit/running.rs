//! Running servers, named by address: how the audit gets in, and what it says when it does not.

use serde_json::Value;

use super::super::bare_server::BareServer;
use super::{audit, check_error, data, json, rules, text};

/// MySQL makes a certificate with its data.
#[test(needs = &["mysql-9.7"])]
fn a_server_whose_account_demands_tls_is_audited_with_tls() {
    let server = BareServer::start("mysql-9.7");
    server.query("CREATE USER auditor@localhost REQUIRE SSL");
    let address = format!("unix://auditor@{}", server.socket().display());
    let pair = [address.as_str(), &address];

    check_error(&pair, &["1045", "--password-file-a", "see --tls"]);
    let report = json(&[&pair[..], &["--tls", "required"]].concat(), 0);
    check_encrypted(&report, "equal", ["on", "on"]);
    // No connection to the server of a dump was seen, so that the audit's own says nothing against it.
    let dump = data("mysql-5.6.24.vertical.txt");
    let report = json(&[&address, text(&dump), "--tls", "required"], 4);
    check_encrypted(&report, "not-seen", ["on", "no evidence"]);
}

/// What the audit makes of the encryption of two connections, which is no finding.
#[track_caller]
fn check_encrypted(report: &Value, outcome: &str, sides: [&str; 2]) {
    assert!(!rules(report).contains(&"connection.tls"), "{report:#}");
    let facts = report["audit"]["comparisons"].as_array().unwrap();
    let fact = facts.iter().find(|fact| fact["fact"] == "connection.tls");
    let fact = fact.unwrap();
    assert_eq!(fact["outcome"], outcome, "{fact:#}");
    for (side, shown) in fact["sides"].as_array().unwrap().iter().zip(sides) {
        assert_eq!(side["value"], shown, "{fact:#}");
    }
}

#[test]
fn an_unreachable_server_is_no_matter_of_passwords() {
    let empty = tempfile::tempdir().unwrap();
    let address = format!("unix:{}/s.sock", empty.path().display());
    let output = audit(&[&address, text(&data("mariadb-10.1.8.tsv"))]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is the server running"), "{said}");
    assert!(!said.to_lowercase().contains("password"), "{said}");
}

#[test]
fn tls_without_an_address_is_refused() {
    let dump = data("mariadb-10.1.8.tsv");
    let tls = ["--tls", "required"];
    check_error(
        &[&[text(&dump), text(&dump)][..], &tls].concat(),
        &["--tls applies to addresses of running servers"],
    );
    let address = "unix:/nowhere/s.sock";
    check_error(
        &[address, address, "--tls", "verify-ca"],
        &["required", "--tls-ca"],
    );
}
