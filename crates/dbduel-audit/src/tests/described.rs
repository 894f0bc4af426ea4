//! Servers of which only an option file is known: what their defaults may say, and what a fix makes of them.

use super::*;

const NOWHERE: Machine = Machine {
    cpus: None,
    memory_bytes: None,
    files: None,
};

/// A server of which an option file is known, with these settings in it.
fn described(name: &str, server: &str, settings: &[(&str, &str)]) -> ServerEvidence {
    on(NOWHERE, name, server, settings)
}

fn on(machine: Machine, name: &str, server: &str, settings: &[(&str, &str)]) -> ServerEvidence {
    let (product, version) = server.split_once(' ').unwrap();
    let product = Product::named(product).unwrap();
    let version = Version::parse(version).unwrap();
    with(expected(name, product, version, machine).unwrap(), settings)
}

fn pair(a: &str, b: &str, settings: &[(&str, &str)]) -> Case {
    Case::of(vec![
        described("a", a, settings),
        described("b", b, settings),
    ])
}

const LARGE: &[(&str, &str)] = &[("innodb_buffer_pool_size", "80G")];

#[test]
fn one_option_file_for_mysql_8_4_and_9_7_is_not_unfair() {
    for settings in [[].as_slice(), LARGE] {
        for machine in [
            NOWHERE,
            Machine {
                cpus: Some(64),
                memory_bytes: Some(256 << 30),
                files: None,
            },
        ] {
            let audit = audit(&Case::of(vec![
                on(machine, "a", "mysql 8.4.3", settings),
                on(machine, "b", "mysql 9.7.4", settings),
            ]));
            assert_eq!(heavy(&audit), Vec::<&str>::new());
            assert_eq!(audit.grade, Grade::Fair);
            // The manual alone says `none` of 8.4: the servers recorded before and after it show `all`.
            let found = finding(&audit, "change_buffer.kinds");
            assert_eq!(found.severity, Severity::Note);
            assert!(
                found.claim.contains("`a` none (inferred)"),
                "{}",
                found.claim
            );
        }
    }
}

#[test]
fn documented_changes_of_defaults_are_differences() {
    let audit = audit(&pair("mysql 8.0.33", "mysql 8.4.3", &[]));
    for fact in ["data.cache", "io.capacity", "ahi.on", "redo.buffer"] {
        assert_eq!(finding(&audit, fact).severity, Severity::Doubt, "{fact}");
    }
    let audit = super::audit(&pair("mysql 5.6.24", "mysql 5.7", &[("log_bin", "b")]));
    assert_eq!(
        finding(&audit, "binlog.sync").severity,
        Severity::Void,
        "sync_binlog is 1 since 5.7.7"
    );
}

#[test]
fn what_rests_on_an_inferred_default_is_at_most_a_note() {
    // The defaults of a series after the last recorded one are inferred.
    let future = pair("mysql 9.7.4", "mysql 10.3", &[("innodb_doublewrite", "0")]);
    let mut case = future.clone();
    predict(&mut case.contenders[1], "innodb_adaptive_hash_index", "1");
    case.contenders[0].asked.remove("innodb_doublewrite");
    case.contenders[0]
        .variables
        .insert("innodb_io_capacity".to_owned(), "100".to_owned());
    let audit = audit(&case);
    let capacity = finding(&audit, "io.capacity");
    assert_eq!(capacity.severity, Severity::Note);
    assert!(capacity.claim.contains("(inferred)"), "{}", capacity.claim);
    assert_eq!(
        finding(&audit, "ahi.on").severity,
        Severity::Doubt,
        "what is set is no default"
    );
    // A rule that rests on it, too.
    let mut case = pair("mysql 9.7.4", "mysql 10.3", &[]);
    case.contenders[1]
        .variables
        .insert("innodb_thread_concurrency".to_owned(), "32".to_owned());
    assert_eq!(finding(&super::audit(&case), "R5").severity, Severity::Note);
}

#[test]
fn nothing_is_said_of_a_build_that_is_not_described() {
    let mixed = Case::of(vec![
        described("a", "mysql 5.6.21", &[]),
        described("b", "mysql 5.6.24", &[]),
    ]);
    let audit = audit(&mixed);
    assert_eq!(heavy(&audit), Vec::<&str>::new());
    for rule in [
        "R18",
        "build.bits",
        "version_compile_machine",
        "memory.allocator",
    ] {
        assert!(!says(&audit, rule), "{rule}");
    }
}

#[test]
fn values_of_the_recording_machine_are_computed_or_open() {
    let facts = |machine: Machine| {
        let case = Case::of(vec![
            on(machine, "a", "mysql 9.7.4", LARGE),
            on(machine, "b", "mysql 8.0.33", LARGE),
        ]);
        let audit = audit(&case);
        ["pool.instances", "flush.threads", "purge.threads"].map(|fact| {
            let comparison = audit.comparisons.iter().find(|one| one.fact == fact);
            let sides = &comparison.unwrap().sides;
            (sides[0].value.clone(), sides[1].value.clone())
        })
    };
    let expected = |values: [(&str, &str); 3]| values.map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(
        facts(NOWHERE),
        expected([
            ("no evidence", "8"),
            ("no evidence", "4 threads"),
            ("no evidence", "4 threads")
        ])
    );
    let machine = Machine {
        cpus: Some(48),
        ..NOWHERE
    };
    assert_eq!(
        facts(machine),
        expected([
            ("12", "8"),
            ("12 threads", "4 threads"),
            ("4 threads", "4 threads")
        ])
    );
}

#[test]
fn a_low_water_mark_of_zero_is_the_share_where_flushing_begins() {
    let zero = [
        ("innodb_max_dirty_pages_pct", "75"),
        ("innodb_max_dirty_pages_pct_lwm", "0"),
    ];
    let explicit = [
        ("innodb_max_dirty_pages_pct", "75"),
        ("innodb_max_dirty_pages_pct_lwm", "75"),
    ];
    for server in ["mariadb 10.11.19", "mysql 8.0.33"] {
        let case = Case::of(vec![
            described("a", server, &zero),
            described("b", server, &explicit),
        ]);
        assert!(!says(&audit(&case), "flush.dirty_low"), "{server}");
    }
    let eager = [
        ("innodb_max_dirty_pages_pct", "75"),
        ("innodb_max_dirty_pages_pct_lwm", "0.001"),
    ];
    let case = Case::of(vec![
        described("a", "mariadb 10.11.19", &zero),
        described("b", "mariadb 10.11.19", &eager),
    ]);
    let audit = audit(&case);
    let found = finding(&audit, "flush.dirty_low");
    assert_eq!(found.severity, Severity::Doubt);
    assert!(
        found.claim.contains("`a` 75 %, `b` 0.001 %"),
        "{}",
        found.claim
    );
}

#[test]
fn storage_of_which_nothing_is_known_does_not_rotate() {
    let case = Case::of(vec![
        described("a", "mariadb 10.11.19", &[]),
        described("b", "mysql 8.0.33", &[]),
    ]);
    assert!(!says(&audit(&case), "flush.neighbours"));
}

#[test]
fn what_can_be_set_is_never_said_to_be_out_of_reach() {
    let asked = |size: &'static str, count: &'static str| {
        [
            ("tmp_table_size", size),
            ("max_heap_table_size", size),
            ("innodb_purge_batch_size", count),
            ("thread_cache_size", count),
        ]
    };
    let case = Case::of(vec![
        described("a", "mariadb 10.11.19", &asked("65536", "64")),
        described("b", "mysql 8.0.33", &asked("131072", "128")),
    ]);
    let audit = audit(&case);
    for (name, value) in asked("65536", "64") {
        let found = finding(&audit, name);
        assert_eq!(found.severity, Severity::Doubt, "{name}");
        let set = format!("{name} = {value} on `b`");
        assert!(found.remedy.contains(&set), "{}", found.remedy);
    }
    // Of any two recorded servers only what is built in is out of reach, and what later releases of a series ignore.
    let built_in = |rule: &str| {
        rule.starts_with("version_")
            || [
                "innodb_version",
                "have_ssl",
                "aria_used_for_temp_tables",
                "innodb_lru_flush_size",
            ]
            .contains(&rule)
    };
    let servers: Vec<&str> = Defaults::servers()
        .filter(|(_, product, _)| product.has_innodb())
        .map(|(server, ..)| server)
        .collect();
    for one in &servers {
        for other in &servers {
            let audit = super::audit(&Case::of(vec![server("a", one), server("b", other)]));
            let by_setting = |found: &&Finding| found.kind != FindingKind::Architecture;
            for found in audit.findings.iter().filter(by_setting) {
                assert!(
                    !found.remedy.starts_with("No setting") || built_in(&found.rule),
                    "{one} and {other}: {}",
                    found.claim
                );
            }
        }
    }
}

fn set<'f>(fix: &'f Fix, contender: &str, name: &str) -> Option<&'f str> {
    let mut settings = fix.settings.iter();
    settings
        .find(|setting| setting.contender == contender && setting.name == name)
        .map(|setting| setting.value.as_str())
}

#[test]
fn a_fix_never_gives_a_large_pool_fewer_instances_or_cleaners() {
    let case = Case::of(vec![
        described("a", "mysql 8.0.33", LARGE),
        described("b", "mariadb 10.11.19", LARGE),
    ]);
    let found = fix(&case);
    assert_eq!(set(&found, "a", "innodb_buffer_pool_instances"), None);
    assert_eq!(set(&found, "a", "innodb_page_cleaners"), None);
    assert_eq!(found.after.grade, Grade::Unfair, "cleaners remain apart");
    let case = Case::of(vec![
        described("a", "mysql 8.0.33", LARGE),
        described(
            "b",
            "mysql 8.0.33",
            &[LARGE[0], ("innodb_buffer_pool_instances", "16")],
        ),
    ]);
    let found = fix(&case);
    assert_eq!(set(&found, "a", "innodb_buffer_pool_instances"), Some("16"));
    assert_eq!(found.after.grade, Grade::Fair);
}

#[test]
fn a_fix_keeps_the_binary_log_and_gives_it_to_the_other_side() {
    let log = [("log_bin", "/var/log/mysql/bin"), ("server_id", "7")];
    let case = Case::of(vec![
        described("a", "mysql 8.0.33", &log),
        described("b", "mariadb 10.11.19", &[]),
    ]);
    let found = fix(&case);
    assert!(found.kept.iter().any(|kept| kept.name == "log_bin"));
    assert!(found.kept.iter().any(|kept| kept.name == "server_id"));
    assert_eq!(set(&found, "a", "skip_log_bin"), None);
    assert_eq!(set(&found, "b", "log_bin"), Some("binlog"));
    assert_eq!(set(&found, "b", "sync_binlog"), Some("1"));
    assert_eq!(set(&found, "b", "binlog_format"), Some("row"));
    // MySQL 5.7 does not start with a log and without a number.
    let case = pair("mysql 8.0.33", "mysql 5.7.44", &[]);
    assert_eq!(set(&fix(&case), "b", "server_id"), Some("1"));
    // A dump shows OFF; as a setting that would be the name of a log.
    let mut off = server("a", "mysql-8.0.33");
    off.variables.insert("log_bin".to_owned(), "OFF".to_owned());
    let found = fix(&Case::of(vec![
        off.clone(),
        ServerEvidence {
            name: "b".to_owned(),
            ..off
        },
    ]));
    let kept: Vec<&str> = found.kept.iter().map(|kept| kept.name.as_str()).collect();
    assert!(
        kept.contains(&"skip_log_bin") && !kept.contains(&"log_bin"),
        "{kept:?}"
    );
}

/// What is in no finding stays, although it may differ on a machine that is not described.
#[test]
fn a_fix_sets_nothing_for_what_is_not_known_and_names_it() {
    let found = fix(&pair("mysql 8.4.3", "mysql 9.7.4", &[]));
    for contender in ["a", "b"] {
        assert_eq!(
            set(&found, contender, "innodb_change_buffering"),
            Some("none"),
            "{contender}: a note says that it differs, as far as defaults can be inferred"
        );
        assert_eq!(
            set(&found, contender, "innodb_purge_threads"),
            None,
            "{contender}: it follows from the processors, and no finding names it"
        );
        let unknown = format!("innodb_read_io_threads of `{contender}`");
        assert!(found.unknown.contains(&unknown), "{:?}", found.unknown);
    }
    assert_eq!(found.after.grade, Grade::Fair);
    let found = fix(&pair("mysql 8.0.33", "mariadb 10.11.19", &[]));
    assert_eq!(set(&found, "b", "innodb_flush_neighbors"), None);
}

#[test]
fn a_fix_writes_collations_that_the_server_knows() {
    let found = fix(&pair("mysql 8.0.33", "mariadb 10.11.19", &[]));
    assert_eq!(set(&found, "b", "character_set_server"), Some("utf8mb4"));
    assert_eq!(
        set(&found, "a", "collation_server"),
        Some("utf8mb4_general_ci")
    );
    assert_eq!(
        set(&found, "b", "collation_server"),
        None,
        "the set brings it"
    );
}

#[test]
fn what_a_server_does_not_take_is_listed() {
    let case = Case::of(vec![
        described("a", "mysql 8.0.33", &[("query_cache_type", "0")]),
        described("b", "mysql 8.0.33", &[]),
    ]);
    let refused = fix(&case).refused;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].name, "query_cache_type");
}
