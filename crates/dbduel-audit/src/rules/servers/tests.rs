//! What each rule must and must not say of servers that are alike but for what it looks at.

use dbduel_record::event::Severity;
use dbduel_record::facts::{Host, ServerHost};

use super::*;
use crate::tests::{counters, finding, says, server, two, with};
use crate::{Case, Stage, audit};

/// One side of a pair of equal servers has these counters after the run, the other none that rose.
#[track_caller]
fn check_rule(recorded: &str, after: &[(&str, &str)], rule: &str) -> Finding {
    let mut case = two(recorded, &[], &[]);
    let zero: Vec<(&str, &str)> = after.iter().map(|(name, _)| (*name, "0")).collect();
    for contender in &mut case.contenders {
        contender.status_before = counters(&zero);
        contender.status_after = counters(&zero);
    }
    case.contenders[1].status_after = counters(after);
    case.clients = Some(8);
    let audit = audit(&case);
    let found = finding(&audit, rule).clone();
    assert!(found.severity >= Severity::Doubt, "{rule}: {}", found.claim);
    assert_eq!(found.about, ["b"]);
    found
}

#[test]
fn what_the_run_showed_raises_the_rules() {
    let redo = check_rule(
        "mariadb-10.11.5",
        &[("innodb_lsn_current", "100000000000"), ("uptime", "1000")],
        "R1",
    );
    assert!(redo.claim.contains("less than 300 s"), "{}", redo.claim);
    check_rule("mysql-8.0.33", &[("innodb_log_waits", "1700")], "R1");
    check_rule(
        "mysql-8.0.33",
        &[("innodb_buffer_pool_wait_free", "1700")],
        "R2",
    );
    check_rule(
        "mysql-8.0.33",
        &[("table_open_cache_overflows", "949")],
        "R4",
    );
    check_rule(
        "mysql-8.0.33",
        &[
            ("table_open_cache_hits", "10000"),
            ("table_open_cache_misses", "5000"),
        ],
        "R4",
    );
    check_rule("mariadb-10.1.8", &[("opened_tables", "13411")], "R4");
    check_rule(
        "mysql-8.0.33",
        &[("connection_errors_max_connections", "3")],
        "R8",
    );
    check_rule("mariadb-10.1.8", &[("qcache_hits", "3")], "R13");
    check_rule(
        "mysql-5.6.24",
        &[("connections", "5000"), ("threads_created", "5000")],
        "R21",
    );
    check_rule(
        "mysql-8.0.33",
        &[
            ("innodb_buffer_pool_bytes_dirty", "60000000"),
            ("innodb_data_written", "100000000"),
        ],
        "R26",
    );
    let syncs = check_rule(
        "mysql-8.0.33",
        &[
            ("com_commit", "10000"),
            ("com_update", "10000"),
            ("innodb_data_fsyncs", "3"),
        ],
        "R16",
    );
    assert_eq!(syncs.severity, Severity::Void);
}

#[test]
fn commits_are_held_against_the_syncs_of_the_tables_own_engine() {
    let mut case = two("mariadb-10.11.5", &[], &[]);
    case.clients = Some(1);
    let mut syncs_are_missing = |engine: &str, level: &str, innodb: &str, rocksdb: &str| {
        let after = [
            ("com_commit", "10000"),
            ("com_update", "10000"),
            ("innodb_data_fsyncs", innodb),
            ("rocksdb_wal_synced", rocksdb),
        ];
        for contender in &mut case.contenders {
            contender.schema = Some(format!("CREATE TABLE `t` (`id` int) ENGINE={engine};"));
            contender.variables.insert(
                "rocksdb_flush_log_at_trx_commit".to_owned(),
                level.to_owned(),
            );
            contender.status_before = counters(&after.map(|(name, _)| (name, "0")));
            contender.status_after = counters(&after);
        }
        says(&audit(&case), "R16")
    };
    assert!(!syncs_are_missing("ROCKSDB", "1", "3", "10000"));
    assert!(syncs_are_missing("ROCKSDB", "1", "10000", "3"));
    assert!(!syncs_are_missing("ROCKSDB", "2", "3", "3"));
    assert!(syncs_are_missing("InnoDB", "1", "3", "10000"));
    assert!(
        !syncs_are_missing("Aria", "1", "3", "3"),
        "which does not count its syncs"
    );
}

#[test]
fn updates_that_change_no_row_need_no_sync() {
    let mut case = two("mysql-8.0.33", &[], &[]);
    case.clients = Some(1);
    let mut syncs_are_missing = |updated: &str| {
        let after = [
            ("com_update", "10000"),
            ("innodb_data_fsyncs", "900"),
            ("innodb_rows_inserted", "0"),
            ("innodb_rows_updated", updated),
            ("innodb_rows_deleted", "0"),
        ];
        for contender in &mut case.contenders {
            contender.schema = Some("CREATE TABLE `t` (`id` int) ENGINE=InnoDB;".to_owned());
            contender.status_before = counters(&after.map(|(name, _)| (name, "0")));
            contender.status_after = counters(&after);
        }
        says(&audit(&case), "R16")
    };
    assert!(!syncs_are_missing("1000"));
    assert!(syncs_are_missing("10000"));
}

#[test]
fn a_few_waits_on_one_side_are_told_and_no_bias() {
    let mut case = two("mysql-8.0.33", &[], &[]);
    for (contender, waits) in case.contenders.iter_mut().zip(["0", "7"]) {
        contender.status_before = counters(&[("innodb_buffer_pool_wait_free", "0")]);
        contender.status_after = counters(&[("innodb_buffer_pool_wait_free", waits)]);
    }
    let audit = audit(&case);
    let waits = finding(&audit, "R2");
    assert_eq!(
        (waits.severity, waits.about.as_slice()),
        (Severity::Note, &["b".to_owned()][..])
    );
}

#[test]
fn commits_of_a_group_need_fewer_syncs_and_write_through_needs_none() {
    let mut case = two("mysql-8.0.33", &[], &[]);
    let after = [
        ("com_commit", "10000"),
        ("com_update", "10000"),
        ("innodb_data_fsyncs", "1300"),
    ];
    for contender in &mut case.contenders {
        contender.status_before = counters(&after.map(|(name, _)| (name, "0")));
        contender.status_after = counters(&after);
    }
    case.clients = Some(8);
    assert!(!says(&audit(&case), "R16"));
    case.clients = Some(1);
    assert_eq!(
        finding(&audit(&case), "R16").severity,
        Severity::Doubt,
        "no bias, but neither side keeps its word"
    );
    for contender in &mut case.contenders {
        contender
            .variables
            .insert("innodb_flush_method".to_owned(), "O_DSYNC".to_owned());
    }
    assert!(!says(&audit(&case), "R16"));
}

#[test]
fn settings_that_did_not_take_are_told() {
    let mariadb = with(
        server("a", "mariadb-10.11.5"),
        &[
            ("innodb_page_cleaners", "8"),
            ("innodb_thread_concurrency", "32"),
        ],
    );
    let audit = audit(&Case::of(vec![mariadb, server("b", "mariadb-10.11.5")]));
    assert!(
        finding(&audit, "R17")
            .claim
            .contains("innodb_page_cleaners = 8 does not exist")
    );
    assert!(
        finding(&audit, "R5")
            .claim
            .contains("ignores innodb_thread_concurrency = 32")
    );
}

#[test]
fn a_setting_that_changes_during_the_run_is_told() {
    let mut case = two("mysql-8.0.33", &[], &[]);
    for contender in &mut case.contenders {
        contender.variables_after = contender.variables.clone();
    }
    assert!(!says(&audit(&case), "R39"));
    case.contenders[1]
        .variables_after
        .insert("innodb_io_capacity".to_owned(), "9000".to_owned());
    assert_eq!(finding(&audit(&case), "R39").severity, Severity::Doubt);
}

#[test]
fn a_plugin_that_watches_one_side_is_told() {
    let mut case = two("mariadb-10.11.5", &[], &[]);
    case.contenders[1].plugins = vec!["SERVER_AUDIT".to_owned(), "InnoDB".to_owned()];
    assert_eq!(finding(&audit(&case), "R43").about, ["b"]);
}

#[test]
fn rules_about_the_machine_need_the_machine() {
    let flash = Host {
        rotational: Some(false),
        block_device: Some("/dev/nvme0n1".to_owned()),
        ..Host::default()
    };
    let mut case = Case::of(vec![
        server("a", "mysql-5.6.24"),
        server("b", "mysql-8.0.33"),
    ]);
    assert!(!says(&audit(&case), "R7"));
    case.host = Some(flash);
    let found = audit(&case);
    assert_eq!(finding(&found, "R7").about, ["a"]);
    assert_eq!(
        finding(&found, "R7").remedy_settings[0].name,
        "innodb_flush_neighbors"
    );
    assert_eq!(
        finding(&found, "R11").severity,
        Severity::Note,
        "both sides have 200"
    );

    case.host = Some(Host {
        rotational: Some(true),
        virtualisation: Some("KVM".to_owned()),
        ..Host::default()
    });
    case.contenders[1] = server("b", "mariadb-10.11.5");
    assert_eq!(finding(&audit(&case), "R31").about, ["b"]);
}

#[test]
fn atomic_writes_on_a_device_without_them_stop_the_contest() {
    let mariadb = with(
        server("a", "mariadb-10.1.8"),
        &[("innodb_use_atomic_writes", "1")],
    );
    let mut case = Case::of(vec![mariadb, server("b", "mariadb-10.1.8")]);
    case.host = Some(Host {
        block_device: Some("/dev/vda".to_owned()),
        ..Host::default()
    });
    assert_eq!(finding(&audit(&case), "R32").severity, Severity::Void);
    case.host = Some(Host {
        block_device: Some("/dev/fioa".to_owned()),
        ..Host::default()
    });
    assert!(!says(&audit(&case), "R32"));
}

#[test]
fn one_machine_and_device_are_said_of_one_server_host_and_not_of_two() {
    let mut case = two("mariadb-10.11.5", &[], &[]);
    case.stage = Stage::Results;
    let host = |name: &str, device: &str| ServerHost {
        name: name.to_owned(),
        facts: Host {
            block_device: Some(device.to_owned()),
            ..Host::default()
        },
        ..ServerHost::default()
    };
    case.host = Some(Host::of_server_hosts(vec![host("db1", "/dev/nvme0n1")]));
    let found = audit(&case);
    let claim = &finding(&found, "R36").claim;
    assert!(
        claim.contains("one storage device (/dev/nvme0n1)"),
        "{claim}"
    );
    for other in ["/dev/nvme0n1", "/dev/sda"] {
        let hosts = vec![host("db1", "/dev/nvme0n1"), host("db2", other)];
        case.host = Some(Host::of_server_hosts(hosts));
        let found = audit(&case);
        assert!(!says(&found, "R36"));
        // Devices that differ are known all the same.
        let claim = &finding(&found, "R41").claim;
        assert!(!claim.contains("storage device"), "{claim}");
    }
}

/// The finding about servers on two machines that differ in processors and kernel, or on equal ones.
fn on_two_machines(servers: [&str; 2], are_equal: bool, about: &[&str]) -> Finding {
    let [first, second] = servers;
    let mut case = Case::of(vec![server("a", first), server("b", second)]);
    let host = |name: &str, cpus, kernel: &str| ServerHost {
        name: name.to_owned(),
        facts: Host {
            cpu_model: Some("Model".to_owned()),
            cpus: Some(cpus),
            memory_bytes: Some(8 << 30),
            kernel: Some(kernel.to_owned()),
            ..Host::default()
        },
        ..ServerHost::default()
    };
    let mut other = host("db2", 32, "6.9");
    other.facts.memory_bytes = None;
    if are_equal {
        other = host("db2", 2, "6.1");
    }
    case.host = Some(Host::of_server_hosts(vec![host("db1", 2, "6.1"), other]));
    case.about = about.iter().map(|&name| name.to_owned()).collect();
    assert!(!says(&audit(&case), "R51"), "no contender has a host");
    for contender in &mut case.contenders {
        contender.host = Some("db1".to_owned());
    }
    assert!(!says(&audit(&case), "R51"), "both have the same");
    case.contenders[1].host = Some("db2".to_owned());
    finding(&audit(&case), "R51").clone()
}

#[test]
fn machines_are_compared_by_their_facts() {
    let builds = ["mariadb-10.11.5", "mysql-8.0.33"];
    let found = on_two_machines(builds, false, &[]);
    assert_eq!(
        (found.severity, found.kind, found.class.as_str()),
        (Severity::Doubt, FindingKind::Advantage, "P29")
    );
    let expected = "`a` runs on db1 and `b` on db2, and these machines differ in processors: 2 × Model and 32 × Model; memory: \
                    8.00 GiB and not available; kernel: 6.1 and 6.9.";
    assert!(found.claim.starts_with(expected), "{}", found.claim);
    assert!(
        found.remedy.contains("about = [\"R51\"]"),
        "{}",
        found.remedy
    );
    assert_eq!(found.evidence[1].contender, "b");
    assert_eq!(found.evidence[1].value, "32 × Model, not available, 6.9");
    for about in ["R51", "P29"] {
        let found = on_two_machines(builds, false, &[about]);
        assert_eq!(
            (found.severity, found.kind),
            (Severity::Note, FindingKind::Declared)
        );
    }
    // One build on two machines is a comparison of these.
    let found = on_two_machines([builds[0]; 2], false, &[]);
    assert_eq!(
        (found.severity, found.kind),
        (Severity::Note, FindingKind::Declared)
    );
    assert!(
        found.claim.contains("compares these machines"),
        "{}",
        found.claim
    );
    let found = on_two_machines(builds, true, &[]);
    assert_eq!(found.severity, Severity::Note);
    assert!(found.claim.contains("equal facts"), "{}", found.claim);
    assert!(found.evidence.is_empty());
}

#[test]
fn a_large_margin_needs_a_cause() {
    let mut case = two(
        "mariadb-10.11.5",
        &[],
        &[("innodb_adaptive_hash_index", "1")],
    );
    case.declare_what_was_asked();
    case.stage = Stage::Results;
    case.margins = Some([("b".to_owned(), 1.3)].into());
    for contender in &mut case.contenders {
        contender.status_before = counters(&[("com_commit", "0"), ("innodb_data_fsyncs", "0")]);
        contender.status_after =
            counters(&[("com_commit", "1000"), ("innodb_data_fsyncs", "1000")]);
    }
    assert_eq!(finding(&audit(&case), "R37").severity, Severity::Doubt);
    // Of equal servers it is one of the verdicts that the confidence leaves to chance.
    let mut alike = case.clone();
    alike.subject.clear();
    let first = alike.contenders[0].clone();
    alike.contenders[1].variables = first.variables;
    alike.contenders[1].asked = first.asked;
    let found = audit(&alike);
    assert_eq!(finding(&found, "R37").severity, Severity::Note);
    assert!(finding(&found, "R37").claim.contains("may be chance"));
    case.contenders[1].status_after =
        counters(&[("com_commit", "1000"), ("innodb_data_fsyncs", "3000")]);
    let found = audit(&case);
    let explained = finding(&found, "R37");
    assert_eq!(explained.severity, Severity::Note);
    assert!(
        explained.claim.contains("syncs 1.00 and 3.00"),
        "{}",
        explained.claim
    );
}

#[test]
fn what_is_undecided_needs_no_cause() {
    let mut case = Case::of(
        ["a", "b", "c"]
            .map(|name| server(name, "mariadb-10.11.5"))
            .into(),
    );
    case.stage = Stage::Results;
    let about = |case: &Case| -> Vec<String> {
        let audit = audit(case);
        let told = audit
            .findings
            .iter()
            .filter(|finding| finding.rule == "R37");
        told.flat_map(|finding| finding.about.clone()).collect()
    };
    assert_eq!(
        about(&case),
        ["a", "b", "a", "c"],
        "nobody said what came out"
    );
    case.margins = Some([("b".to_owned(), 1.3)].into());
    assert_eq!(about(&case), ["a", "b"]);
    case.margins = Some([].into());
    assert!(about(&case).is_empty());
}

#[test]
fn the_factor_under_test_is_no_doubt() {
    let differing = |setting: &str, values: [&str; 2]| {
        let mut case = two(
            "mariadb-10.11.5",
            &[(setting, values[0])],
            &[(setting, values[1])],
        );
        for contender in &mut case.contenders {
            contender.data_bytes = Some(1 << 30);
        }
        case.host = Some(Host {
            rotational: Some(false),
            ..Host::default()
        });
        case
    };
    // The size of the pool decides whether the data are in memory.
    let mut pool = differing("innodb_buffer_pool_size", ["2G", "256M"]);
    assert_eq!(finding(&audit(&pool), "R2b").severity, Severity::Doubt);
    pool.declare_what_was_asked();
    assert!(!says(&audit(&pool), "R2b"));
    // Tables that are stored in another way take another share of one pool.
    let mut stored = differing("innodb_file_per_table", ["1", "1"]);
    stored.contenders[1].data_bytes = Some(1 << 26);
    assert!(says(&audit(&stored), "R2b"));
    stored.subject.push("table.compression".to_owned());
    stored.contenders[0].schema = Some("CREATE TABLE a (b int)".to_owned());
    stored.contenders[1].schema = Some("CREATE TABLE a (b int) `PAGE_COMPRESSED`=1".to_owned());
    assert!(!says(&audit(&stored), "R2b"));
    // A limit that one level of the factor breaks.
    let mut capacity = differing("innodb_io_capacity", ["200", "4000"]);
    assert_eq!(finding(&audit(&capacity), "R11").severity, Severity::Doubt);
    capacity.about.push("innodb_io_capacity".to_owned());
    let audit = audit(&capacity);
    let found = finding(&audit, "R11");
    assert_eq!(
        (found.kind, found.severity),
        (FindingKind::Declared, Severity::Note)
    );
    assert!(
        found.claim.ends_with("The contest is about this."),
        "{}",
        found.claim
    );
}

/// Both servers write pages and compress none of them; `b` has this algorithm.
fn compression_is_missing(algorithm: &str) -> bool {
    let asked = ("innodb_compression_default", "ON");
    let mut case = two(
        "mariadb-10.11.5",
        &[asked, ("innodb_compression_algorithm", "none")],
        &[asked, ("innodb_compression_algorithm", algorithm)],
    );
    case.stage = Stage::Results;
    for contender in &mut case.contenders {
        let status = |pages: &str| {
            counters(&[
                ("innodb_pages_written", pages),
                ("innodb_num_pages_page_compressed", "0"),
            ])
        };
        contender.status_before = status("0");
        contender.status_after = status("5000");
    }
    audit(&case)
        .findings
        .iter()
        .any(|finding| finding.rule == "R30")
}

#[test]
fn missing_compression_is_found_unless_the_algorithm_is_none() {
    assert!(compression_is_missing("zlib"));
    assert!(!compression_is_missing("none"));
}

#[test]
fn a_scan_depth_is_recommended_as_a_whole_number() {
    let pools = |instances| ("innodb_buffer_pool_instances", instances);
    let depth = "innodb_lru_scan_depth";
    let case = two(
        "mysql-8.0.33",
        &[pools("16"), (depth, "25000")],
        &[pools("7"), (depth, "1024")],
    );
    let audit = audit(&case);
    let set = audit.findings.iter().flat_map(|one| &one.remedy_settings);
    let depths: Vec<&String> = set
        .filter(|set| set.name == depth)
        .map(|set| &set.value)
        .collect();
    let is_whole = |value: &&String| value.parse::<u32>().is_ok();
    assert!(
        !depths.is_empty() && depths.iter().all(is_whole),
        "{depths:?}"
    );
}

#[test]
fn what_protects_pages_is_named_for_each_product() {
    for (recorded, setting, remedy) in [
        (
            "mariadb-10.11.5",
            ("innodb_doublewrite", "0"),
            "Switch the doublewrite buffer on,",
        ),
        (
            "postgresql-17.11",
            ("full_page_writes", "off"),
            "Set full_page_writes = on,",
        ),
        (
            "sqlite-3.54.1",
            ("journal_mode", "MEMORY"),
            "Keep the journal on disk (journal_mode = DELETE or WAL),",
        ),
    ] {
        let audit = audit(&two(recorded, &[setting], &[setting]));
        let found = finding(&audit, "R44");
        assert!(found.remedy.starts_with(remedy), "{}", found.remedy);
        let read = &found.evidence[0].from[0].name;
        assert_eq!(read, setting.0, "{recorded}");
        assert!(found.why.contains("full-page image"), "{}", found.why);
    }
}

#[test]
fn a_rare_flush_is_reported_only_where_commits_are_not_synced() {
    let rare = ("innodb_flush_log_at_timeout", "30");
    let says_it = |level: &str| {
        let level = ("innodb_flush_log_at_trx_commit", level);
        says(&audit(&two("mysql-8.0.33", &[], &[rare, level])), "R35")
    };
    assert_eq!([says_it("1"), says_it("2")], [false, true]);
}
