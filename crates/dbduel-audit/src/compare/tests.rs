//! What differs, and what it weighs.

use dbduel_record::event::Severity;

use super::Outcome;
use crate::evidence::Connection;
use crate::finding::FindingKind;
use crate::tests::{finding, says, server, two, with};
use crate::{Case, Grade, audit};

#[test]
fn settings_of_both_products_meet_in_one_fact() {
    let mysql = with(
        server("mysql", "mysql-8.0.33"),
        &[
            ("innodb_redo_log_capacity", "2G"),
            ("innodb_checksum_algorithm", "crc32"),
        ],
    );
    let mariadb = with(
        server("mariadb", "mariadb-10.2.11"),
        &[
            ("innodb_log_file_size", "1G"),
            ("innodb_log_files_in_group", "2"),
        ],
    );
    let audit = audit(&Case::of(vec![mysql, mariadb]));
    let outcome = |fact: &str| {
        audit
            .comparisons
            .iter()
            .find(|comparison| comparison.fact == fact)
            .unwrap()
            .outcome
    };
    assert_eq!(outcome("redo.capacity"), Outcome::Equivalent);
    assert_eq!(outcome("page.checksum"), Outcome::Equivalent);
    assert_eq!(outcome("flush.threads"), Outcome::Equivalent);
    assert_eq!(outcome("binlog.on"), Outcome::Differs);
}

#[test]
fn durability_that_differs_makes_a_contest_void() {
    for (setting, value, rule) in [
        ("innodb_flush_log_at_trx_commit", "2", "commit.level"),
        ("innodb_flush_method", "O_DIRECT_NO_FSYNC", "data.synced"),
        ("innodb_flush_method", "nosync", "commit.level"),
        ("innodb_doublewrite", "OFF", "torn_page.protection"),
        ("innodb_checksum_algorithm", "none", "page.checksums_on"),
        ("unique_checks", "OFF", "check.unique"),
        ("transaction-isolation", "READ-COMMITTED", "isolation.level"),
    ] {
        let mut case = two("mysql-5.6.24", &[], &[(setting, value)]);
        // Read from a server set up by hand, not from an experiment that asks for it.
        case.contenders[1].asked.clear();
        let audit = audit(&case);
        let found = finding(&audit, rule);
        assert_eq!(
            (found.severity, found.kind),
            (Severity::Void, FindingKind::NotComparable),
            "{setting} = {value}"
        );
        assert_eq!(audit.grade, Grade::NotComparable);
        assert!(!audit.passes(false));
    }
}

#[test]
fn durability_in_which_settings_differ_is_a_doubt_until_it_is_declared() {
    let mut case = two("mariadb-10.11.5", &[], &[("innodb_doublewrite", "OFF")]);
    case.declare_what_was_asked();
    let undeclared = audit(&case);
    let found = finding(&undeclared, "torn_page.protection");
    assert_eq!(
        (found.kind, found.severity),
        (FindingKind::Declared, Severity::Doubt)
    );
    assert!(found.claim.contains("less durable"), "{}", found.claim);
    let hint = "about = [\"innodb_doublewrite\"]";
    assert!(found.remedy.contains(hint), "{}", found.remedy);
    assert_eq!(undeclared.grade, Grade::Doubtful);

    for name in ["innodb_doublewrite", "D3", "torn_page.protection"] {
        case.about = vec![name.to_owned()];
        let declared = audit(&case);
        let found = finding(&declared, "torn_page.protection");
        assert_eq!(
            (found.kind, found.severity),
            (FindingKind::Declared, Severity::Note),
            "{name}"
        );
        assert!(found.claim.contains("less durable"), "{}", found.claim);
        assert_eq!(declared.grade, Grade::Fair, "{name}");
    }
}

#[test]
fn a_difference_in_performance_that_the_settings_make_is_declared() {
    let mut case = two(
        "mariadb-10.11.5",
        &[("innodb_adaptive_hash_index", "1")],
        &[("innodb_adaptive_hash_index", "0")],
    );
    case.declare_what_was_asked();
    let audit = audit(&case);
    assert_eq!(finding(&audit, "ahi.on").kind, FindingKind::Declared);
    assert_eq!(audit.grade, Grade::Fair);
}

/// Servers that run already were asked for nothing, so only a declaration tells what the contest is about.
#[test]
fn running_servers_may_differ_in_the_durability_that_is_declared_and_in_no_other() {
    let mut case = two(
        "mariadb-10.11.5",
        &[],
        &[("innodb_flush_log_at_trx_commit", "2")],
    );
    case.contenders[1].asked.clear();
    assert_eq!(audit(&case).grade, Grade::NotComparable);
    case.about = vec!["D1".to_owned()];
    assert_eq!(audit(&case).grade, Grade::Fair);
    case.about = vec!["D3".to_owned()];
    let audit = audit(&case);
    assert_eq!(audit.grade, Grade::NotComparable);
    let unmoved = finding(&audit, "about");
    assert_eq!(unmoved.severity, Severity::Note);
    assert!(unmoved.claim.contains("`D3`"), "{}", unmoved.claim);
}

#[test]
fn places_and_ports_are_not_what_a_contest_is_about() {
    let mut case = two(
        "mariadb-10.11.5",
        &[("port", "3306"), ("socket", "/a.sock"), ("datadir", "/a")],
        &[("port", "3307"), ("socket", "/b.sock"), ("datadir", "/b")],
    );
    case.declare_what_was_asked();
    assert!(case.subject.is_empty(), "{:?}", case.subject);
}

#[test]
fn between_products_settings_declare_nothing() {
    let mariadb = with(
        server("mariadb", "mariadb-10.1.8"),
        &[
            ("innodb_use_mtflush", "1"),
            ("innodb_mtflush_threads", "16"),
        ],
    );
    let mut case = Case::of(vec![mariadb, server("mysql", "mysql-5.6.24")]);
    assert_eq!(
        finding(&audit(&case), "flush.threads").kind,
        FindingKind::Advantage
    );
    case.about.push("P3".to_owned());
    assert_eq!(
        finding(&audit(&case), "flush.threads").kind,
        FindingKind::Declared
    );
}

#[test]
fn what_cannot_be_read_is_never_equal() {
    let mut case = two("mysql-8.0.33", &[], &[]);
    for contender in &mut case.contenders {
        contender.variables.remove("innodb_flush_log_at_trx_commit");
        contender.variables.remove("innodb_io_capacity");
    }
    let audit = audit(&case);
    assert_eq!(
        finding(&audit, "commit.level").severity,
        Severity::Doubt,
        "durability: one step below void"
    );
    assert_eq!(
        finding(&audit, "io.capacity").severity,
        Severity::Note,
        "performance: one step below doubt"
    );
}

#[test]
fn the_load_s_connections_are_compared_where_they_were_seen() {
    let mut case = two("mysql-8.0.33", &[], &[]);
    for (contender, tls) in case.contenders.iter_mut().zip([false, true]) {
        contender.connection = Connection {
            tls: Some(tls),
            transport: Some("tcp".to_owned()),
            compression: Some(false),
            prepared: Some(true),
        };
    }
    let audit = audit(&case);
    let found = finding(&audit, "connection.tls");
    assert_eq!(
        (found.kind, found.favours.as_deref()),
        (FindingKind::ClientSide, Some("a"))
    );
}

/// Of any product, and beside one whose loss no time bounds.
#[test]
fn no_time_between_flushes_is_compared_with_a_server_that_syncs_every_commit() {
    let weak = [
        ("mysql-8.0.33", ("innodb_flush_log_at_trx_commit", "2")),
        ("mariadb-10.11.5", ("innodb_flush_log_at_trx_commit", "0")),
        ("postgresql-17.11", ("synchronous_commit", "off")),
        ("sqlite-3.54.1", ("synchronous", "OFF")),
    ];
    for (recorded, _) in weak {
        let synced = server("on", recorded);
        for (other, setting) in weak {
            let lazy = with(server("off", other), &[setting]);
            let audit = audit(&Case::of(vec![synced.clone(), lazy]));
            let case = format!("{recorded} and {other}");
            assert!(says(&audit, "commit.level"), "{case}");
            assert!(!says(&audit, "commit.loss_window"), "{case}");
        }
    }
    // Both lose commits, for other times.
    let [one, two] = ["1", "5"].map(|seconds| {
        let weak = ("innodb_flush_log_at_trx_commit", "2");
        with(
            server(seconds, "mysql-8.0.33"),
            &[weak, ("innodb_flush_log_at_timeout", seconds)],
        )
    });
    let audit = audit(&Case::of(vec![one, two]));
    let found = finding(&audit, "commit.loss_window");
    assert!(found.claim.contains("`1` 1 s, `5` 5 s"), "{}", found.claim);
}
