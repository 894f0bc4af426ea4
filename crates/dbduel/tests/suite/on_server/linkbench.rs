//! The workload on a real server: filled, checked, run, checked again, in every form of table and statement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use dbduel_driver::{Connection, Dialect};
use dbduel_load::order::Answer;
use dbduel_workloads::{Moment, VerifyError};

use super::server::{ALL, Server};
use super::workload::{Lab, WorkloadServer};

/// A few thousand nodes, a hottest one that is not most of the graph, and lists that are long enough to go
/// on with.
pub fn small(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let small = [
        ("maxid1", Value::from(3_001)),
        ("nlinks_max", 25_000.into()),
    ];
    [&small, more].concat()
}

fn number(connection: &mut Connection, sql: &str) -> u64 {
    connection
        .query(sql)
        .unwrap()
        .text(0, 0)
        .unwrap()
        .parse()
        .unwrap()
}

#[test(on = ALL, lab)]
fn counts_are_in_step_after_filling_and_after_a_run(server: &Server) {
    check_run(server);
}

#[test(on = ALL, lab)]
fn every_form_of_table_and_statement_keeps_the_counts_in_step(server: &Server) {
    check_forms(server);
}

#[test(on = ALL, lab)]
fn a_lock_that_is_not_had_in_time_costs_no_count(server: &Server) {
    check_lock_timeouts(server);
}

#[test(on = ALL, lab)]
fn a_count_out_of_step_is_noticed(server: &Server) {
    check_violations(server);
}

pub fn check_run(server: &impl WorkloadServer) {
    let lab = Lab::new(server, "linkbench", "dbduel_linkbench", &small(&[]));
    lab.fill().unwrap();
    let fresh = lab.verify_all(Moment::Fresh, 2);
    assert_eq!(fresh.counts[1], ("hidden-links", 0));
    assert_eq!(fresh.counts[2], ("nodes", 3_000));
    let slice = lab.run(8, 4.0);
    let ok: u64 = slice.classes.iter().map(|class| class.counts.ok).sum();
    for (class, percent) in slice.classes.iter().zip([
        8.989, 2.991, 8.012, 4.886, 0.526, 50.712, 2.573, 7.366, 1.012, 12.933,
    ]) {
        assert_eq!(
            class.counts.failed, 0,
            "{}: {:?}",
            class.class, slice.errors
        );
        let (share, expected) = (100.0 * class.counts.ok as f64 / ok as f64, percent);
        // Six standard deviations, and what ended just outside of the measured part.
        let tolerance = 6.0 * 100.0 * (expected / 100.0 / ok as f64).sqrt() + 0.1;
        assert!(
            (share - expected).abs() < tolerance,
            "{}: {share} instead of {expected}",
            class.class
        );
    }
    let after = lab.verify_all(Moment::AfterLoad, 1);
    assert!(
        after.counts[1].1 > 0,
        "links were hidden: {:?}",
        after.counts
    );
    assert!(after.counts[0].1 > fresh.counts[0].1, "links were added");

    // Payloads arrive byte for byte: what clients wrote has the alphabets of the generators.
    let mut connection = lab.connect(Some(&lab.database));
    let (bytes, differs) = match server.dialect() {
        Dialect::MySql => ("HEX(data)", "NOT REGEXP"),
        Dialect::Sqlite => panic!("LinkBench has no statements for SQLite"),
        Dialect::PostgreSql => ("upper(encode(data, 'hex'))", "!~"),
    };
    for (table, alphabet) in [
        ("linktable", "^([2-5][0-9A-F]|6[0-4])*$"),
        ("nodetable", "^(3[2-9A-F]|[4-9A-C][0-9A-F]|D[0-9A-C])*$"),
    ] {
        let strange = format!("SELECT COUNT(*) FROM {table} WHERE {bytes} {differs} '{alphabet}'");
        assert_eq!(number(&mut connection, &strange), 0);
    }
    assert!(
        number(
            &mut connection,
            "SELECT COUNT(*) FROM nodetable WHERE version = 2"
        ) > 0
    );
    assert!(
        number(
            &mut connection,
            "SELECT COUNT(*) FROM nodetable WHERE id > 3000"
        ) > 0
    );
}

pub fn check_forms(server: &impl WorkloadServer) {
    for (name, given) in [
        (
            "prepared",
            vec![
                ("protocol", Value::from("prepared")),
                ("getlinklist_history", 90.into()),
            ],
        ),
        (
            "history",
            vec![
                ("getlinklist_history", 90.into()),
                ("read_uncorr_blend", 0.into()),
            ],
        ),
        (
            "unpartitioned",
            vec![("partitions", 1.into()), ("index", "before".into())],
        ),
        (
            "apart",
            vec![("id2gen_config", 1.into()), ("original_bugs", "all".into())],
        ),
        (
            "random_targets",
            vec![
                ("randomid2max", 100_000.into()),
                ("nlinks_func", "FITTED".into()),
            ],
        ),
    ] {
        let lab = Lab::new(
            server,
            "linkbench",
            &format!("dbduel_linkbench_{name}"),
            &small(&given),
        );
        lab.fill().unwrap();
        lab.verify_all(Moment::Fresh, 2);
        let slice = lab.run(8, 1.0);
        assert!(
            slice.classes.iter().all(|class| class.counts.failed == 0),
            "{name}: {:?}",
            slice.errors
        );
        let history = slice.classes.last().unwrap();
        assert_eq!(
            (
                history.class.as_str(),
                lab.workload.classes(&lab.parameters).len()
            ),
            ("get-links-history", 11)
        );
        if name == "history" {
            assert!(history.counts.ok > 0, "{slice:?}");
        }
        lab.verify_all(Moment::AfterLoad, 1);
    }
}

/// Ends the loop of another thread when it is dropped, so that a test that fails does not wait for that thread for ever.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub fn check_lock_timeouts(server: &impl WorkloadServer) {
    // Only writes to a few nodes. Another session holds the counts for a while, so that transactions give up
    // waiting for them after they have written their link: what they did must be undone before they are tried
    // again, or a link would stay that nobody counts.
    let mut given = vec![
        ("maxid1", Value::from(21)),
        ("nlinks_max", 30.into()),
        ("getlinklist", 0.into()),
    ];
    for name in [
        "countlink",
        "getlink",
        "addnode",
        "updatenode",
        "deletenode",
        "getnode",
    ] {
        given.push((name, 0.into()));
    }
    given.extend([
        ("addlink", 40.into()),
        ("deletelink", 30.into()),
        ("updatelink", 30.into()),
    ]);
    let lab = Lab::new(server, "linkbench", "dbduel_linkbench_conflicts", &given);
    lab.fill().unwrap();
    let mut holder = lab.connect(Some(&lab.database));
    let (shorten, restore, code) = match server.dialect() {
        Dialect::MySql => {
            let before = number(&mut holder, "SELECT @@global.innodb_lock_wait_timeout");
            let set = |seconds| format!("SET GLOBAL innodb_lock_wait_timeout = {seconds}");
            (set(1), set(before), 1205)
        }
        Dialect::Sqlite => panic!("LinkBench has no statements for SQLite"),
        Dialect::PostgreSql => {
            let alter = |end| format!("ALTER DATABASE {} {end}", lab.database);
            let code = u32::from_str_radix("55P03", 36).unwrap();
            (
                alter("SET lock_timeout = 1000"),
                alter("RESET lock_timeout"),
                code,
            )
        }
    };
    holder.execute(&shorten).unwrap();
    let is_over = AtomicBool::new(false);
    let slice = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                holder.execute("BEGIN").unwrap();
                // It may meet a deadlock with the clients, or not get its locks in time itself.
                if holder
                    .execute("SELECT * FROM counttable FOR UPDATE")
                    .is_ok()
                {
                    std::thread::sleep(Duration::from_millis(2_500));
                }
                holder.execute("ROLLBACK").unwrap();
            }
            holder.execute(&restore).unwrap();
        });
        let _holder = Ended(&is_over);
        lab.run_until(8, 3.0, "retry after a lock wait", |slice| {
            let retries: u64 = slice.classes.iter().map(|class| class.counts.retries).sum();
            retries > 0 && slice.errors.iter().any(|error| error.code == code)
        })
    });
    assert!(
        slice.classes.iter().all(|class| class.counts.failed == 0),
        "{:?}",
        slice.errors
    );
    lab.verify_all(Moment::AfterLoad, 1);
}

pub fn check_violations(server: &impl WorkloadServer) {
    let lab = Lab::new(server, "linkbench", "dbduel_linkbench_broken", &small(&[]));
    lab.fill().unwrap();
    let one_of = |table: &str, key: &str| {
        format!(
            "WHERE ({key}) IN (SELECT * FROM (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1) AS one)"
        )
    };
    let one_link = one_of("linktable", "link_type, id1, id2");
    let one_count = one_of("counttable", "id, link_type");
    for (change, back) in [
        (
            &*format!("UPDATE counttable SET count = count + 1 {one_count}"),
            &*format!("UPDATE counttable SET count = count - 1 {one_count}"),
        ),
        (
            &format!("UPDATE linktable SET visibility = 0 {one_link}"),
            "UPDATE linktable SET visibility = 1 WHERE visibility = 0",
        ),
        (
            "INSERT INTO counttable (id, link_type, count) VALUES (99999, 123456789, 1)",
            "DELETE FROM counttable WHERE id = 99999",
        ),
        (
            "INSERT INTO linktable (id1, id2, link_type, visibility) VALUES (99999, 1, 123456789, 1)",
            "DELETE FROM linktable WHERE id1 = 99999",
        ),
    ] {
        lab.query(change);
        let verification = lab.verify(Moment::AfterLoad).unwrap();
        assert_eq!(
            verification.conditions[0].violations, 1,
            "{change}: {verification:?}"
        );
        assert!(verification.conditions[0].example.is_some());
        lab.query(back);
        lab.verify_all(Moment::AfterLoad, 1);
    }
    lab.query(&format!("DELETE FROM linktable {one_link}"));
    assert!(!lab.verify(Moment::Fresh).unwrap().conditions[1].holds());
}

#[test(on = ALL, lab)]
fn tables_that_do_not_fit_are_refused_with_the_reason(server: &Server) {
    let mut lab = Lab::new(server, "linkbench", "dbduel_linkbench_refused", &small(&[]));
    lab.fill().unwrap();
    let mut check = |name: &str, value: Value, part: &str| {
        let before = lab.parameters.insert(name.to_owned(), value).unwrap();
        match lab.verify(Moment::AfterLoad) {
            Err(VerifyError::Unusable(why)) => assert!(why.to_string().contains(part), "{why}"),
            other => panic!("{other:?}"),
        }
        match lab.slice(1, 0.5) {
            Answer::Refused { why } | Answer::Lost { why, .. } => {
                assert!(why.contains(part), "{why}");
            }
            other => panic!("{other:?}"),
        }
        lab.parameters.insert(name.to_owned(), before);
    };
    check("maxid1", 30_001.into(), "smaller `maxid1`");
    check("page_compression", "zlib".into(), "not page-compressed");
}
