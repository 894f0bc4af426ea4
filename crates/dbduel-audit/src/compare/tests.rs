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
fn a_declared_variable_excuses_no_difference_that_another_variable_makes() {
    let audit_of = |recorded: &str, one: &[(&str, &str)], two_: &[(&str, &str)], about: &[&str]| {
        let mut case = two(recorded, one, two_);
        for contender in &mut case.contenders {
            contender.asked.clear();
        }
        case.about = about.iter().map(|name| (*name).to_owned()).collect();
        let forth = audit(&case);
        case.contenders.reverse();
        let back = audit(&case);
        assert_eq!(forth.grade, back.grade, "{one:?} {two_:?}");
        forth
    };
    let (sqlite, mariadb, postgresql) = ("sqlite-3.54.1", "mariadb-10.11.5", "postgresql-17.11");
    let rollback = [("journal_mode", "DELETE"), ("synchronous", "FULL")];
    let wal = [("journal_mode", "WAL"), ("synchronous", "NORMAL")];
    let flush = "innodb_flush_log_at_trx_commit";
    let synced: [(&str, &str); 2] = [(flush, "1"), ("innodb_flush_method", "O_DIRECT")];
    let weak = [(flush, "0"), ("innodb_flush_method", "nosync")];
    let unlogged = [("skip_log_bin", "ON"), ("sync_binlog", "1")];
    let logged = [("log_bin", "binlog"), ("sync_binlog", "0")];
    let safe = [("synchronous_commit", "on"), ("fsync", "on")];
    let unsafe_ = [("synchronous_commit", "off"), ("fsync", "off")];
    // Server, settings of both, what is declared, the fact that is not excused by it, and all that must be declared.
    for (recorded, one, other, about, fact, all) in [
        (
            sqlite,
            &rollback,
            &wal,
            "journal_mode",
            "commit.level",
            ["journal_mode", "synchronous"],
        ),
        (
            mariadb,
            &synced,
            &weak,
            flush,
            "commit.level",
            [flush, "innodb_flush_method"],
        ),
        (
            mariadb,
            &unlogged,
            &logged,
            "log_bin",
            "binlog.sync",
            ["log_bin", "sync_binlog"],
        ),
        (
            postgresql,
            &safe,
            &unsafe_,
            "synchronous_commit",
            "commit.level",
            ["synchronous_commit", "fsync"],
        ),
    ] {
        let audit = audit_of(recorded, one, other, &[about]);
        let found = finding(&audit, fact);
        assert_eq!(
            found.severity,
            Severity::Void,
            "{recorded}: {}",
            found.claim
        );
        let hint = format!("`{about}`, which the contest is about, does not account for all of it");
        assert!(found.claim.contains(&hint), "{}", found.claim);
        assert_eq!(found.subject_names(), all, "{recorded}");
        let audit = audit_of(recorded, one, other, &all);
        assert_eq!(finding(&audit, fact).severity, Severity::Note, "{recorded}");
        assert_ne!(audit.grade, Grade::NotComparable, "{recorded}");
        // One of the two alone is excused by its own name.
        let mut alone = *one;
        alone[0] = other[0];
        if says(&audit_of(recorded, one, &alone, &[]), fact) {
            let audit = audit_of(recorded, one, &alone, &[about]);
            assert_eq!(finding(&audit, fact).severity, Severity::Note, "{recorded}");
        }
    }
}

#[test]
fn an_experiment_whose_settings_are_all_declared_has_no_difference_that_is_not() {
    // The server lowers the number of its cleaners to that of the pool's instances.
    let instances = |number| {
        [
            ("innodb_buffer_pool_size", "8G"),
            ("innodb_buffer_pool_instances", number),
        ]
    };
    let mut case = two("mysql-8.0.33", &instances("1"), &instances("8"));
    for (contender, cleaners) in case.contenders.iter_mut().zip(["1", "4"]) {
        contender
            .variables
            .insert("innodb_page_cleaners".to_owned(), cleaners.to_owned());
    }
    case.declare_what_was_asked();
    case.about = vec!["innodb_buffer_pool_instances".to_owned()];
    assert_eq!(
        finding(&audit(&case), "flush.threads").kind,
        FindingKind::Declared
    );
    for contender in &mut case.contenders {
        contender.asked.clear();
    }
    case.subject.clear();
    assert_eq!(
        finding(&audit(&case), "flush.threads").kind,
        FindingKind::Advantage
    );
}

#[test]
fn settings_of_two_products_are_declared_by_the_names_of_both() {
    let mariadb = with(
        server("mariadb", "mariadb-10.11.5"),
        &[("innodb_flush_log_at_trx_commit", "2")],
    );
    let weak = [("synchronous_commit", "off"), ("fsync", "off")];
    let judged = |settings: &[(&str, &str)], about: &[&str]| {
        let mut case = Case::of(vec![
            mariadb.clone(),
            with(server("pg", "postgresql-17.11"), settings),
        ]);
        case.about = about.iter().map(|name| (*name).to_owned()).collect();
        finding(&audit(&case), "commit.level").severity
    };
    let both = ["innodb_flush_log_at_trx_commit", "synchronous_commit"];
    assert_eq!(judged(&weak[..1], &both), Severity::Note);
    assert_eq!(judged(&weak[..1], &both[1..]), Severity::Void);
    assert_eq!(judged(&weak, &both), Severity::Void);
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
