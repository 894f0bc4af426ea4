//! Contests of PostgreSQL servers, with each other and with a MariaDB.

use dbduel_record::event::{Event, Severity};

use super::super::lab::{Lab, follows_the_plan, program, published, servers_left, with_servers};

/// Durable against relaxed commits: a difference of far more than a tenth.
const RELAXED: &str = r#"
budget = "90 s"
seed = 7
[contenders.durable]
server = "postgresql-16"
settings = { shared_buffers = "32MB" }
[contenders.relaxed]
like = "durable"
settings = { synchronous_commit = "off" }
[workload]
name = "oltp-update-non-index"
tables = 2
table_size = 2_000
[load]
clients = 4
"#;

#[test]
fn a_large_difference_between_two_postgresql_servers_is_decided_and_explained() {
    let Some(_turn) = with_servers("a duel of PostgreSQL", &["postgresql-16"]) else {
        return;
    };
    let lab = Lab::new(RELAXED);
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(servers_left(), []);
    let record = lab.record();
    assert!(follows_the_plan(&record, &record.plan));
    let reading = |metric: &str, contender: &str| -> f64 {
        let rows = record.readings.iter();
        let of = rows.filter(|row| row.metric == metric && row.contender == contender);
        of.map(|row| row.value).sum()
    };
    // A frozen server logs nothing, and one that does not wait for its log syncs it seldom.
    let syncs = |contender| reading("redo_syncs_count", contender);
    assert!(reading("redo_written_bytes", "relaxed") > 0.0);
    assert!(syncs("durable") > 10.0 * syncs("relaxed"));
    for one in &record.contenders {
        let files = one.size.unwrap().after_files.unwrap();
        assert!(files.data.bytes > 1 << 20, "{files:?}");
        assert!(files.redo.bytes >= 16 << 20, "{files:?}");
    }
    let schema = lab.record_dir().join("contenders/durable/schema.sql");
    let schema = std::fs::read_to_string(schema).unwrap();
    assert!(schema.contains("CREATE INDEX k_2 ON"), "{schema}");
    let report = published(&lab.record_dir());
    let rules = report["findings"].as_array().unwrap().iter();
    let missing = rules.filter(|finding| {
        let claim = finding["claim"].as_str().unwrap_or_default();
        claim.contains("unreadable") || claim.starts_with("Missing from")
    });
    assert_eq!(
        missing.collect::<Vec<_>>(),
        Vec::<&serde_json::Value>::new()
    );
    let verified = program()
        .arg("verify")
        .arg(lab.record_dir())
        .output()
        .unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn postgresql_and_mariadb_contend_on_the_same_rows_when_they_promise_the_same() {
    let names = ["postgresql-16", "mariadb-10.11"];
    let Some(_turn) = with_servers("a duel across products", &names) else {
        return;
    };
    let other = "\n[contenders.mariadb]\nserver = \"mariadb-10.11\"\nsettings = { innodb_buffer_pool_size = \"32M\" }\n";
    let first = RELAXED.find("[contenders.relaxed]").unwrap();
    let rest = RELAXED.find("[workload]").unwrap();
    let as_they_come = format!("{}{other}{}", &RELAXED[..first], &RELAXED[rest..])
        .replace("oltp-update-non-index", "oltp-read-write")
        .replace("90 s", "30 s");
    let refused = Lab::new(&as_they_come).run();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    for promise in ["data_checksums", "isolation", "wal_level", "character_set"] {
        assert!(said.contains(promise), "{promise}: {said}");
    }

    let equal = as_they_come
        .replace(
            "\"32MB\"",
            "\"32MB\", wal_level = \"minimal\", max_wal_senders = 0, data_checksums = \"on\"",
        )
        .replace(
            "\"32M\"",
            "\"32M\", transaction_isolation = \"READ-COMMITTED\", character_set_server = \"utf8mb4\", collation_server = \"utf8mb4_bin\"",
        );
    let lab = Lab::new(&equal);
    lab.run_to_the_end();
    assert_eq!(servers_left(), []);
    let record = lab.record();
    let digests: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            Event::DatasetReady { digest, .. } => Some(digest),
            _ => None,
        })
        .collect();
    assert_eq!(digests.len(), 2);
    assert_eq!(digests[0], digests[1], "both hold the same rows");
    assert!(record.slices.iter().all(|row| row.failed == 0));
    let void = record.events.iter().any(|event| {
        matches!(&event.what, Event::Noticed { finding } if finding.severity == Severity::Void)
    });
    assert!(!void);
}
