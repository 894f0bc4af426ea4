//! What a fleet refuses: experiments that ask too much, other versions, names that are taken, unprotected machines, entries
//! that are none.

use serde_json::json;

use super::{Fleet, phase_of, undecided};
use crate::suite::finished;
use crate::suite::lab::{Lab, SQLITE_DUEL, program};

#[test]
fn what_agents_refuse_is_refused_at_its_place_before_anything_is_submitted() {
    for (old, new, place, part) in [
        (
            "\"sqlite\"",
            "\"path:/opt/mysql\"",
            "7:10",
            "agents run servers of",
        ),
        ("\"off\"", "\"off\", a_b = 'etc\\x'", "8:66", "may be paths"),
        ("table_size = 500", "config = \"x\"", "14:1", "no files"),
    ] {
        let lab = Lab::new(&SQLITE_DUEL.replacen(old, new, 1));
        let output = program()
            .args(["fleet", "submit", "--nats", "nats://127.0.0.1:1"])
            .arg(lab.experiment())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("duel.toml:{place}: ")), "{said}");
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn other_machines_need_tls_and_credentials_and_an_absent_server_is_named() {
    let said = |url: &str, code: i32| {
        let output = program()
            .args(["fleet", "status", "--nats", url])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };
    assert!(said("nats://192.0.2.1:4222", 2).contains("needs `tls://` and `--creds FILE`"));
    assert!(said("nats://127.0.0.1:1", 1).contains("is nats-server running there"));
}

#[test(contest)]
fn what_others_wrote_into_the_stores_is_left_out_and_named() {
    let Some(fleet) = Fleet::start(SQLITE_DUEL) else {
        return;
    };
    fleet.submit(1);
    let lab = finished::contest(SQLITE_DUEL);
    let record = lab.record_dir();
    fleet.done(&["archive", "push", record.to_str().unwrap()]);
    let described = json!({
        "name": "note", "bucket": "dbduel-records", "nuid": "1", "size": 0, "chunks": 0,
        "mtime": "2026-01-01T00:00:00Z", "digest": "",
    });
    // The last of each store is garbage, so that a reader that waits for the last valid one would wait in vain.
    for (subject, text) in [
        ("$KV.dbduel-fleet.result.x", "{}"),
        ("$KV.dbduel-fleet.cell.x", "garbage"),
        ("$O.dbduel-records.M.bm90ZQ==", &described.to_string()),
        ("$O.dbduel-records.M.eA==", "garbage"),
    ] {
        let stored = fleet.nats.request(subject, text);
        assert!(
            stored["error"].is_null() && stored["seq"].is_u64(),
            "{stored}"
        );
    }
    let said = |words: &[&str]| {
        let output = fleet.run(words);
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said:?}");
        said
    };
    let status = fleet.json(&["fleet", "status"]);
    assert_eq!(status["campaigns"][0]["cells"], 1, "{status:#}");
    let [page, _] = said(&["fleet", "status"]);
    assert!(page.contains("left out `cell.x`: "), "{page}");
    assert!(page.contains("left out `result.x`: "), "{page}");
    let [_, fetched] = said(&["fleet", "fetch"]);
    assert!(fetched.contains("left out `cell.x`: "), "{fetched}");
    let [listed, skipped] = said(&["archive", "list"]);
    assert!(
        listed.contains("What does a write-ahead log save?"),
        "{listed}"
    );
    assert!(skipped.contains("left out `note`: "), "{skipped}");
    assert!(
        skipped.contains("left out `an object of the archive`: "),
        "{skipped}"
    );
}

#[test(lab)]
fn agents_say_who_they_are_and_what_their_clocks_say_and_others_are_refused() {
    let Some(mut fleet) = Fleet::start(SQLITE_DUEL) else {
        return;
    };
    fleet.start_agent("watcher", &[]);
    fleet.wait_until("there", |status| status["agents"][0]["name"] == "watcher");
    let agents = fleet.json(&["fleet", "agents"]);
    let agent = &agents[0]["agent"];
    assert_eq!(
        (&agent["name"], &agent["works"]),
        (&json!("watcher"), &json!(false))
    );
    assert_eq!(agent["protocol"], 1);
    assert!(
        agent["cpus"].as_u64().unwrap() > 0 && agent["kernel"].is_string(),
        "{agent}"
    );
    // It is the same clock.
    let clock = &agents[0]["clock"];
    let number = |name: &str| clock[name].as_f64().unwrap();
    assert!(
        number("offset_us").abs() <= number("uncertainty_us"),
        "{clock}"
    );
    let page = fleet.done(&["fleet", "agents"]);
    assert!(page.contains("watcher") && page.contains('±'), "{page}");

    let second = fleet.run(&["agent", "--name", "watcher"]);
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("is connected already"), "{said}");

    let other = json!({ "protocol": 2, "dbduel": "9.8.7" }).to_string();
    fleet.nats.request("$KV.dbduel-fleet.protocol", &other);
    for words in [&["agent", "--name", "x"][..], &["fleet", "status"]] {
        let refused = fleet.run(words);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        let both = format!(
            "protocol 2 of dbduel 9.8.7, and this is dbduel {}",
            env!("CARGO_PKG_VERSION")
        );
        assert!(said.contains(&both), "{said}");
    }
    let (code, said) = fleet.stop("watcher");
    assert_eq!(code, Some(0), "{said}");
}

#[test(lab)]
fn an_agent_that_ends_gives_its_cell_back_and_checks_by_itself_what_it_is_given() {
    let Some(mut fleet) = Fleet::start(&undecided("20 s")) else {
        return;
    };
    fleet.submit(1);
    fleet.start_agent("w1", &["--work"]);
    fleet.wait_until("w1 at work", |status| {
        phase_of(status, "w1") == Some("running")
    });
    let (code, said) = fleet.stop("w1");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("gave duel back"), "{said}");
    let status = fleet.json(&["fleet", "status"]);
    assert_eq!(status["campaigns"][0]["waiting"], 1, "{status:#}");

    // As one who may publish and does not use `dbduel fleet submit`.
    let digest = "0".repeat(64);
    let text = SQLITE_DUEL.replacen("\"sqlite\"", "\"path:/opt/mysql\"", 1);
    let entry = json!({
        "digest": digest, "campaign": "default", "experiment": "evil", "label": "", "submitted_ms": 0,
    });
    let mut cell = entry.clone();
    cell["text"] = json!(text);
    cell["dbduel"] = json!("0");
    let key = format!("$KV.dbduel-fleet.cell.{digest}");
    fleet.nats.request(&key, &entry.to_string());
    assert_eq!(fleet.json(&["fleet", "status"])["not_queued"], 1);
    let subject = format!("dbduel.cells.{digest}");
    let queued = fleet.nats.request(&subject, &cell.to_string());
    assert!(queued["error"].is_null(), "{queued}");
    fleet.start_agent("w1", &["--work"]);
    let status = fleet.wait_until("a failure", |status| status["failures"][0]["agent"] == "w1");
    let why = status["failures"][0]["why"].as_str().unwrap();
    assert!(why.contains("agents run servers of"), "{why}");
    assert_eq!(status["failures"][0]["cell"]["experiment"], "evil");
    fleet.wait_until_done(1);
    assert_eq!(fleet.stop("w1").0, Some(0));
}
