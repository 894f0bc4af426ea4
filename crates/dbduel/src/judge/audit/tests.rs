//! Contests as evidence: what the audit must and must not say.

use std::collections::BTreeSet;

use dbduel_record::event::Severity;
use dbduel_record::facts::Host;

use super::evidence::Connection;
use super::*;

mod chance;
mod compression;
mod contest_a;
mod objections;

fn server(name: &str, recorded: &str) -> ServerEvidence {
    let mut server = Defaults::of(recorded).unwrap().evidence(name).unwrap();
    server.is_predicted = false;
    server
}

fn with(mut server: ServerEvidence, settings: &[(&str, &str)]) -> ServerEvidence {
    for (name, value) in settings {
        predict(&mut server, name, value);
    }
    server
}

fn two(recorded: &str, one: &[(&str, &str)], two: &[(&str, &str)]) -> Case {
    Case::of(vec![
        with(server("a", recorded), one),
        with(server("b", recorded), two),
    ])
}

fn finding<'a>(audit: &'a Audit, rule: &str) -> &'a AuditFinding {
    let named = || {
        audit
            .findings
            .iter()
            .map(|finding| format!("{} {}", finding.rule, finding.claim))
            .collect::<Vec<_>>()
    };
    audit
        .findings
        .iter()
        .find(|finding| finding.rule == rule)
        .unwrap_or_else(|| panic!("no `{rule}` in {:#?}", named()))
}

#[track_caller]
fn check_nothing_above_a_note(case: &Case) {
    let audit = audit(case);
    let heavy: Vec<&str> = audit
        .findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note)
        .map(|one| one.claim.as_str())
        .collect();
    assert!(heavy.is_empty(), "{heavy:#?}");
    assert_eq!(audit.grade, Grade::Fair);
    assert!(audit.passes(true));
}

#[test]
fn equal_servers_raise_nothing_above_a_note() {
    for (recorded, _, _) in
        Defaults::servers().filter(|(recorded, _, _)| *recorded != "mysql-5.6.21")
    {
        check_nothing_above_a_note(&two(recorded, &[], &[]));
    }
}

#[test]
fn a_32_bit_build_is_told_even_on_both_sides() {
    let audit = audit(&two("mysql-5.6.21", &[], &[]));
    assert_eq!(finding(&audit, "R18").severity, Severity::Note);
    let mixed = Case::of(vec![
        server("a", "mysql-5.6.21"),
        server("b", "mysql-5.6.24"),
    ]);
    let audit = super::audit(&mixed);
    assert_eq!(finding(&audit, "R18").severity, Severity::Doubt);
    assert_eq!(finding(&audit, "build.bits").favours.as_deref(), Some("b"));
}

/// Facts of the classes that make a contest unequal, for any two recorded servers.
#[test]
fn every_pair_of_recorded_servers_is_read_without_gaps() {
    let servers: Vec<&str> = Defaults::servers()
        .map(|(recorded, _, _)| recorded)
        .collect();
    for one in &servers {
        for other in &servers {
            let audit = audit(&Case::of(vec![server("a", one), server("b", other)]));
            let gaps: Vec<&str> = audit
                .comparisons
                .iter()
                .filter(|comparison| comparison.outcome == Outcome::Unreadable)
                .map(|comparison| comparison.fact.as_str())
                .collect();
            assert!(gaps.is_empty(), "{one} and {other}: {gaps:?}");
            let unknown = audit
                .findings
                .iter()
                .find(|finding| finding.kind == Kind::Unknown);
            assert!(
                unknown.is_none(),
                "{one} and {other}: {}",
                unknown.map_or("", |finding| &finding.claim)
            );
        }
    }
}

/// Variables that can move a result or what it means; a fact follows from every one of them.
const RELEVANT: &str = "
aria_pagecache_buffer_size autocommit back_log binlog_cache_size binlog_checksum binlog_commit_wait_count
binlog_commit_wait_usec binlog_format binlog_group_commit_sync_delay binlog_order_commits binlog_row_image
binlog_transaction_compression character_set_server collation_server default_storage_engine
default_table_encryption eq_range_index_dive_limit explicit_defaults_for_timestamp foreign_key_checks
general_log host_cache_size innodb_adaptive_flushing innodb_adaptive_flushing_lwm innodb_adaptive_hash_index
innodb_adaptive_max_sleep_delay innodb_autoinc_lock_mode innodb_buffer_pool_instances
innodb_buffer_pool_size innodb_change_buffer_max_size innodb_change_buffering innodb_checksum_algorithm
innodb_checksums innodb_cleaner_lsn_age_factor innodb_commit_concurrency innodb_concurrency_tickets
innodb_deadlock_detect innodb_doublewrite innodb_empty_free_list_algorithm innodb_encryption_threads
innodb_fake_changes innodb_file_per_table innodb_flush_log_at_timeout innodb_flush_log_at_trx_commit
innodb_flush_method innodb_flush_neighbors innodb_flush_sync innodb_flushing_avg_loops innodb_force_recovery
innodb_foreground_preflush innodb_idle_flush_pct innodb_instrument_semaphores innodb_io_capacity
innodb_io_capacity_max innodb_linux_aio innodb_lock_wait_timeout innodb_locks_unsafe_for_binlog
innodb_log_block_size innodb_log_buffer_size innodb_log_checksum_algorithm innodb_log_checksums
innodb_log_compressed_pages innodb_log_file_buffering innodb_log_file_mmap innodb_log_spin_wait_delay
innodb_log_write_ahead_size innodb_log_writer_threads innodb_lru_flush_size innodb_lru_scan_depth
innodb_max_dirty_pages_pct innodb_monitor_enable innodb_mtflush_threads innodb_numa_interleave
innodb_open_files innodb_page_cleaners innodb_page_size innodb_print_all_deadlocks innodb_purge_batch_size
innodb_purge_threads innodb_random_read_ahead innodb_read_ahead_threshold innodb_read_io_threads
innodb_read_only innodb_replication_delay innodb_rollback_on_timeout innodb_snapshot_isolation
innodb_spin_wait_delay innodb_spin_wait_pause_multiplier innodb_stats_persistent_sample_pages
innodb_strict_mode innodb_support_xa innodb_sync_array_size innodb_sync_spin_loops innodb_thread_concurrency
innodb_thread_sleep_delay innodb_use_atomic_writes innodb_use_fdatasync innodb_use_mtflush
innodb_use_native_aio innodb_write_io_threads join_buffer_size join_cache_level key_buffer_size large_pages
log_bin log_bin_compress log_queries_not_using_indexes long_query_time max_allowed_packet max_connections
max_heap_table_size metadata_locks_hash_instances open_files_limit optimizer_prune_level optimizer_switch
performance_schema profiling query_cache_size query_cache_type read_only skip_name_resolve slow_query_log
sort_buffer_size sql_mode sync_binlog table_definition_cache table_open_cache table_open_cache_instances
thread_cache_size thread_handling thread_pool_size thread_stack tmp_table_size transaction_isolation
tx_isolation unique_checks use_stat_tables userstat version_malloc_library
";

#[test]
fn a_fact_follows_from_every_variable_that_can_move_a_result() {
    let table = table::table();
    let unmapped: Vec<&str> = RELEVANT
        .split_ascii_whitespace()
        .filter(|name| !table.is_mapped(name))
        .collect();
    assert_eq!(unmapped, Vec::<&str>::new());
}

#[test]
fn every_variable_of_every_recorded_server_is_mapped_or_ignored_for_a_reason() {
    let table = table::table();
    for (recorded, _, _) in Defaults::servers() {
        for name in Defaults::of(recorded).unwrap().variables.keys() {
            assert!(
                table.is_mapped(name) || table.why_ignored(name).is_some(),
                "{recorded}: {name}"
            );
        }
    }
}

/// What no setting can make equal between any two of the recorded servers.
#[test]
fn a_fix_leaves_no_doubt_between_any_two_recorded_servers() {
    let servers: Vec<&str> = Defaults::servers()
        .map(|(recorded, _, _)| recorded)
        .filter(|recorded| *recorded != "mysql-5.6.21")
        .collect();
    let mut left = BTreeSet::new();
    for (index, one) in servers.iter().enumerate() {
        for other in &servers[index + 1..] {
            let fix = fix(&Case::of(vec![server("a", one), server("b", other)]));
            let heavy = fix
                .after
                .findings
                .iter()
                .filter(|finding| finding.severity > Severity::Note);
            // Which library allocates memory is decided when a server is built or started, not by a setting.
            for finding in heavy.filter(|finding| finding.rule != "memory.allocator") {
                left.insert(format!("{one} and {other}: {}", finding.claim));
            }
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}

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
        // Read from a server that somebody set up, not from an experiment that asks for it.
        case.contenders[1].asked.clear();
        let audit = audit(&case);
        let found = finding(&audit, rule);
        assert_eq!(
            (found.severity, found.kind),
            (Severity::Void, Kind::NotComparable),
            "{setting} = {value}"
        );
        assert_eq!(audit.grade, Grade::NotComparable);
        assert!(!audit.passes(false));
    }
}

#[test]
fn a_difference_that_the_experiment_is_about_is_declared_and_durability_still_a_doubt() {
    let mut about_doublewrite = two("mariadb-10.11.5", &[], &[("innodb_doublewrite", "OFF")]);
    about_doublewrite.declare_what_was_asked();
    let audit_of_doublewrite = audit(&about_doublewrite);
    let found = finding(&audit_of_doublewrite, "torn_page.protection");
    assert_eq!(
        (found.kind, found.severity),
        (Kind::Declared, Severity::Doubt)
    );
    assert!(found.claim.contains("promises less"), "{}", found.claim);
    assert_eq!(audit_of_doublewrite.grade, Grade::Doubtful);

    let mut about_the_hash_index = two(
        "mariadb-10.11.5",
        &[("innodb_adaptive_hash_index", "1")],
        &[("innodb_adaptive_hash_index", "0")],
    );
    about_the_hash_index.declare_what_was_asked();
    let audit = audit(&about_the_hash_index);
    assert_eq!(finding(&audit, "ahi.on").kind, Kind::Declared);
    assert_eq!(audit.grade, Grade::Fair);
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
        Kind::Advantage
    );
    case.subject.push("P3".to_owned());
    assert_eq!(finding(&audit(&case), "flush.threads").kind, Kind::Declared);
}

#[test]
fn a_waiver_is_applied_printed_and_missed_when_nothing_needs_it() {
    let mut case = two("mysql-5.6.24", &[], &[("innodb_doublewrite", "0")]);
    case.contenders[1].asked.clear();
    let waiver = |of: &str| Waiver {
        of: of.to_owned(),
        reason: "the device writes pages whole".to_owned(),
    };
    case.waivers = vec![waiver("d3"), waiver("P7")];
    let audit = audit(&case);
    let found = finding(&audit, "torn_page.protection");
    assert_eq!(
        found.severity,
        Severity::Doubt,
        "a waiver does not make durability equal"
    );
    assert!(
        found
            .to_finding()
            .claim
            .ends_with("Waived: the device writes pages whole")
    );
    assert_eq!(audit.unused_waivers, [waiver("P7")]);
    assert!(audit.passes(false) && !audit.passes(true));
}

#[test]
fn contests_of_servers_as_they_come_list_performance_and_still_gate_durability() {
    let mut case = Case::of(vec![
        server("old", "mysql-5.6.24"),
        server("new", "mysql-8.0.33"),
    ]);
    case.contest = Contest::OutOfTheBox;
    let audit = audit(&case);
    assert_eq!(finding(&audit, "flush.dirty_max").severity, Severity::Note);
    assert_eq!(finding(&audit, "binlog.on").severity, Severity::Void);
}

#[test]
fn variables_that_nobody_mapped_are_listed() {
    let mut case = two("mysql-5.6.24", &[], &[]);
    for (contender, value) in case.contenders.iter_mut().zip(["1", "2"]) {
        contender
            .variables
            .insert("innodb_warp_factor".to_owned(), value.to_owned());
    }
    let audit = audit(&case);
    let found = finding(&audit, "unknown");
    assert!(found.claim.contains("innodb_warp_factor"));
    assert_eq!(found.evidence[1].from[0].value, "2");
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
fn without_any_variables_there_is_one_finding_and_no_flood() {
    let nothing = ServerEvidence::new("a", Product::MySql, Version::parse("5.6.24").unwrap());
    let audit = audit(&Case::of(vec![nothing, server("b", "mysql-5.6.24")]));
    assert_eq!(finding(&audit, "variables").severity, Severity::Doubt);
    assert!(audit.comparisons.is_empty());
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
        (Kind::ClientSide, Some("a"))
    );
}

fn counters(pairs: &[(&str, &str)]) -> Texts {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// One side of a pair of equal servers has these counters after the run, the other none that rose.
#[track_caller]
fn check_rule(recorded: &str, after: &[(&str, &str)], rule: &str) -> AuditFinding {
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
fn a_counter_that_a_restart_set_back_has_no_rise() {
    let mut server = server("a", "mysql-8.0.33");
    server.status_before = counters(&[("uptime", "100"), ("com_commit", "5")]);
    server.status_after = counters(&[("uptime", "20"), ("com_commit", "500")]);
    assert_eq!(server.delta("com_commit"), None);
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
    assert!(
        audit(&case)
            .findings
            .iter()
            .all(|finding| finding.rule != "R16")
    );
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
    assert!(
        audit(&case)
            .findings
            .iter()
            .all(|finding| finding.rule != "R16")
    );
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
            .contains("innodb_page_cleaners = 8 does not exist there")
    );
    assert!(finding(&audit, "R5").claim.contains("ignores it"));
}

#[test]
fn a_setting_that_changes_during_the_run_is_told() {
    let mut case = two("mysql-8.0.33", &[], &[]);
    for contender in &mut case.contenders {
        contender.variables_after = contender.variables.clone();
    }
    assert!(
        audit(&case)
            .findings
            .iter()
            .all(|finding| finding.rule != "R39")
    );
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
    assert!(
        audit(&case)
            .findings
            .iter()
            .all(|finding| finding.rule != "R7")
    );
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
    assert!(
        audit(&case)
            .findings
            .iter()
            .all(|finding| finding.rule != "R32")
    );
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
    case.margin = Some(1.3);
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
