//! The contest of 2014 that the project began with, as evidence: MariaDB 10.1 with multi-threaded
//! flushing against MySQL on a flash device with atomic writes. Every objection of its comment thread
//! that a program can see must be raised, each with its evidence.

use super::*;

/// What both sides were given.
const COMMON: &[(&str, &str)] = &[
    ("innodb_buffer_pool_size", "50G"),
    ("innodb_buffer_pool_instances", "16"),
    ("innodb_flush_log_at_trx_commit", "1"),
    ("innodb_flush_method", "O_DIRECT"),
    ("innodb_use_native_aio", "1"),
    ("innodb_doublewrite", "0"),
    ("innodb_file_per_table", "1"),
    ("innodb_thread_concurrency", "32"),
    ("innodb_read_io_threads", "32"),
    ("innodb_write_io_threads", "32"),
    ("innodb_lru_scan_depth", "25000"),
    ("innodb_io_capacity", "25000"),
    ("innodb_io_capacity_max", "35000"),
    ("innodb_flush_neighbors", "0"),
    ("innodb_adaptive_flushing", "1"),
    ("innodb_log_buffer_size", "256M"),
    ("innodb_log_file_size", "8G"),
    ("innodb_log_files_in_group", "2"),
];

/// What MariaDB was given besides.
const MARIADB: &[(&str, &str)] = &[
    ("innodb_use_fallocate", "1"),
    ("innodb_use_atomic_writes", "1"),
    ("innodb_use_trim", "1"),
    ("innodb_use_mtflush", "1"),
    ("innodb_mtflush_threads", "16"),
    ("innodb_compression_algorithm", "lz4"),
];

pub(super) fn contest(mysql: &str) -> Case {
    let mut mariadb = with(with(server("mariadb", "mariadb-10.1.8"), COMMON), MARIADB);
    // That build had no Performance Schema.
    mariadb
        .variables
        .retain(|name, _| !name.starts_with("performance_schema"));
    let mut mysql = server("mysql", mysql);
    // Newer substitutes have a binary log by default; the contest had none.
    predict(&mut mysql, "skip-log-bin", "");
    // The contest's server had one page cleaner; its substitutes have one, or several by default.
    if mysql.variables.contains_key("innodb_page_cleaners") {
        predict(&mut mysql, "innodb_page_cleaners", "1");
    }
    let mysql = with(mysql, COMMON);
    let mut case = Case::of(vec![mysql, mariadb]);
    case.stage = Stage::Results;
    case
}

#[track_caller]
fn shown(audit: &Audit, fact: &str) -> [String; 2] {
    let comparison = audit
        .comparisons
        .iter()
        .find(|comparison| comparison.fact == fact)
        .unwrap();
    [0, 1].map(|side| comparison.sides[side].value.clone())
}

/// The values that a finding rests on, as `name=value` of all its sides.
pub(super) fn evidence(finding: &Finding) -> Vec<String> {
    finding
        .evidence
        .iter()
        .flat_map(|side| &side.from)
        .map(|read| format!("{}={}", read.name, read.value))
        .collect()
}

#[track_caller]
fn check_evidence(audit: &Audit, rule: &str, expected: &[&str]) {
    let finding = finding(audit, rule);
    let evidence = evidence(finding);
    for wanted in expected {
        assert!(
            evidence.iter().any(|shown| shown == wanted),
            "{rule}: no `{wanted}` in {evidence:?}"
        );
    }
}

#[test]
fn every_objection_is_raised_with_its_evidence() {
    for stand_in in ["mysql-5.6.24", "mysql-8.0.33"] {
        let audit = audit(&contest(stand_in));
        // 1. Redo log size: here it is known, and printed for both.
        assert_eq!(
            shown(&audit, "redo.capacity"),
            ["16 GiB", "16 GiB"],
            "{stand_in}"
        );
        // 2. Cores, sockets and hyper-threading.
        assert!(finding(&audit, "R41").claim.contains("hyper-threading"));
        // 3. innodb_thread_concurrency = 32.
        check_evidence(&audit, "R5", &["innodb_thread_concurrency=32"]);
        // 4. Adaptive flushing beside an I/O capacity set by hand.
        check_evidence(
            &audit,
            "R12",
            &["innodb_adaptive_flushing=ON", "innodb_io_capacity=25000"],
        );
        // 5. Flushing of neighbours: off on both sides, and said so.
        assert_eq!(shown(&audit, "flush.neighbours"), ["0", "0"]);
        // 6. Sixteen buffer pool instances in effect on both.
        assert_eq!(shown(&audit, "pool.instances"), ["16", "16"]);
        // 7. The old checksum.
        check_evidence(&audit, "R6", &["innodb_checksum_algorithm=INNODB"]);
        // 8. Table cache instances.
        let instances = if stand_in == "mysql-5.6.24" {
            ["1", "1"]
        } else {
            ["16", "1"]
        };
        assert_eq!(shown(&audit, "table_cache.instances"), instances);
        // 9. No counters and no status of the engine.
        let undisclosed = &finding(&audit, "R40").claim;
        assert!(
            undisclosed.contains("SHOW GLOBAL STATUS")
                && undisclosed.contains("SHOW ENGINE INNODB STATUS")
        );
        // 10. Prepared statements.
        assert_eq!(finding(&audit, "R42").about, ["mysql", "mariadb"]);
        // 11. Sixteen flushing threads against one.
        let flushing = finding(&audit, "flush.threads");
        assert_eq!(shown(&audit, "flush.threads"), ["1 thread", "17 threads"]);
        assert_eq!(
            (flushing.severity, flushing.favours.as_deref()),
            (Severity::Doubt, Some("mariadb"))
        );
        check_evidence(
            &audit,
            "flush.threads",
            &["innodb_mtflush_threads=16", "innodb_use_mtflush=ON"],
        );
        assert!(
            flushing.remedy.contains("innodb_use_mtflush = 0"),
            "{}",
            flushing.remedy
        );
        // 12. The scan depth is per instance.
        let scan = finding(&audit, "R3");
        assert!(
            scan.claim
                .contains("25000 × 16 instances = 400000 LRU pages/s (6.1 GiB/s)"),
            "{}",
            scan.claim
        );
        // 13. Performance Schema compiled into one and not into the other.
        assert_eq!(shown(&audit, "instrumentation.pfs_compiled"), ["on", "off"]);
        assert_eq!(
            finding(&audit, "instrumentation.pfs").favours.as_deref(),
            Some("mariadb")
        );
        // 14. One kind of storage.
        assert!(
            finding(&audit, "R36")
                .claim
                .contains("the device affects the result")
        );
        // 15. No explanation.
        assert!(finding(&audit, "R37").claim.contains("Cause unknown"));
        // 16. Several differences at once.
        assert!(finding(&audit, "R38").claim.contains("flush.threads"));
    }
}

#[test]
fn page_cleaners_left_at_one_are_told_where_they_could_be_set() {
    let audit = audit(&contest("mysql-8.0.33"));
    check_evidence(
        &audit,
        "R10",
        &["innodb_page_cleaners=1", "innodb_buffer_pool_instances=16"],
    );
    let flushing = finding(&audit, "flush.threads");
    assert!(
        flushing
            .remedy
            .contains("innodb_page_cleaners = 16 on `mysql`"),
        "{}",
        flushing.remedy
    );
}

#[test]
fn without_a_word_about_torn_pages_it_is_not_comparable_and_with_one_it_is_unfair() {
    let mut case = contest("mysql-5.6.24");
    let found = audit(&case);
    assert_eq!(found.grade, Grade::NotComparable);
    assert_eq!(
        finding(&found, "torn_page.protection").severity,
        Severity::Void
    );

    let reason = "NVMFS on ioDrive2 writes 16 KiB atomically, for both servers".to_owned();
    case.waivers.push(Waiver {
        of: "D3".to_owned(),
        reason,
    });
    let found = audit(&case);
    assert_eq!(found.grade, Grade::Unfair);
    assert!(
        found.favours("mariadb") >= 2,
        "flush threads and instrumentation"
    );
}

#[test]
fn published_settings_alone_leave_the_redo_size_unknown() {
    let mut case = contest("mysql-5.6.24");
    for contender in &mut case.contenders {
        contender.variables.remove("innodb_log_file_size");
        contender.is_predicted = true;
    }
    let audit = audit(&case);
    assert_eq!(
        finding(&audit, "redo.capacity").kind,
        FindingKind::Unreadable
    );
    assert!(
        finding(&audit, "R40").claim.contains("redo log size")
            || finding(&audit, "R40").claim.contains("option file")
    );
}

#[test]
fn a_fix_ends_every_doubt_that_settings_can_end() {
    let mut case = contest("mysql-5.6.24");
    case.stage = Stage::Configuration;
    let fix = fix(&case);
    assert_eq!(heavy(&fix.after), Vec::<&str>::new());
    let set = |contender: &str, name: &str| {
        fix.settings
            .iter()
            .find(|setting| setting.contender == contender && setting.name == name)
            .map(|setting| setting.value.as_str())
    };
    assert_eq!(set("mariadb", "innodb_use_mtflush"), Some("0"));
    assert_eq!(set("mysql", "innodb_doublewrite"), Some("1"));
}
