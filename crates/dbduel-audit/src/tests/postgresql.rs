//! PostgreSQL against itself and against MariaDB, as recorded.

use super::*;
use crate::session;

fn heavy_rules(audit: &Audit) -> Vec<(&str, Severity)> {
    let findings = audit.findings.iter();
    let heavy = findings.filter(|finding| finding.severity > Severity::Note);
    heavy
        .map(|finding| (finding.rule.as_str(), finding.severity))
        .collect()
}

#[track_caller]
fn check_heavy(audit: &Audit, expected: &[(&str, Severity)]) {
    for one in expected {
        assert!(
            heavy_rules(audit).contains(one),
            "no {one:?} in {:#?}",
            heavy_rules(audit)
        );
    }
}

#[test]
fn two_majors_differ_in_what_their_defaults_changed() {
    let case = Case::of(vec![
        server("old", "postgresql-12.22"),
        server("new", "postgresql-18.6"),
    ]);
    let audit = audit(&case);
    check_heavy(
        &audit,
        &[
            ("page.checksums_on", Severity::Void),
            ("checkpoint_completion_target", Severity::Doubt),
        ],
    );
    assert_eq!(finding(&audit, "io.asynchronous").severity, Severity::Note);
}

#[test]
fn mariadb_and_postgresql_differ_in_durability_and_what_cannot_be_equal_is_a_note() {
    let case = Case::of(vec![
        server("mariadb", "mariadb-11.8.6"),
        server("postgresql", "postgresql-17.11"),
    ]);
    let audit = audit(&case);
    check_heavy(
        &audit,
        &[
            ("binlog.on", Severity::Void),
            ("page.checksums_on", Severity::Void),
            ("isolation.level", Severity::Void),
            ("redo.capacity", Severity::Doubt),
            ("statement.jit", Severity::Doubt),
            ("statement.workers", Severity::Doubt),
        ],
    );
    for rule in [
        "page.size",
        "session.unit",
        "row.versions",
        "data.cache",
        "isolation.gap_locks",
    ] {
        assert_eq!(finding(&audit, rule).severity, Severity::Note, "{rule}");
    }
    let of = |fact: &str| {
        audit
            .comparisons
            .iter()
            .find(|one| one.fact == fact)
            .unwrap()
    };
    assert_eq!(of("commit.level").outcome, Outcome::Equivalent);
    let torn = of("torn_page.protection");
    assert_eq!(torn.outcome, Outcome::Equivalent);
    assert_eq!(torn.sides[1].value, "full-page images in the WAL");
}

#[test]
fn a_fix_sets_each_product_in_its_own_words() {
    let case = Case::of(vec![
        server("mariadb", "mariadb-11.8.6"),
        server("postgresql", "postgresql-17.11"),
    ]);
    let fix = super::super::fix(&case);
    let set = |contender: &str, name: &str| {
        let mut settings = fix.settings.iter();
        let found = settings.find(|one| one.contender == contender && one.name == name);
        found.map(|one| one.value.as_str())
    };
    assert_eq!(
        set("mariadb", "transaction_isolation"),
        Some("read-committed")
    );
    assert_eq!(set("postgresql", "wal_level"), Some("minimal"));
    assert_eq!(set("postgresql", "max_wal_senders"), Some("0"));
    assert_eq!(set("postgresql", "data_checksums"), Some("on"));
    assert_eq!(set("postgresql", "jit"), Some("off"));
    assert_eq!(set("mariadb", "innodb_page_size"), None);
    assert_eq!(set("postgresql", "work_mem"), Some("256kB"));
}

#[test]
fn what_clients_set_themselves_counts_and_is_corrected_by_their_parameter() {
    let case_of = |isolation: &str| {
        let parameters = [("isolation".to_owned(), isolation.into())].into();
        let mut case = Case::of(vec![
            server("mariadb", "mariadb-11.8.6"),
            server("postgresql", "postgresql-17.11"),
        ]);
        for contender in &mut case.contenders {
            contender.set_by_clients =
                session::session("order-entry", &parameters, contender.product);
        }
        case
    };
    let apart = case_of("product");
    let audit_of_both = audit(&apart);
    let found = finding(&audit_of_both, "isolation.level");
    assert_eq!(found.severity, Severity::Void);
    assert!(
        found.remedy.contains("`isolation` under [workload]") && found.remedy_settings.is_empty(),
        "{}",
        found.remedy
    );
    let fix = super::super::fix(&apart);
    let mut settings = fix.settings.iter();
    assert!(!settings.any(|setting| setting.name.contains("isolation")));
    // The server's default is repeatable read, and no session uses it.
    let audit = audit(&case_of("read-committed"));
    let mut comparisons = audit.comparisons.iter();
    let level = comparisons.find(|one| one.fact == "isolation.level");
    assert_eq!(level.unwrap().outcome, Outcome::Equivalent);
}

#[test]
fn tables_outside_the_wal_and_rows_that_vacuum_left_are_found() {
    let mut case = Case::of(vec![
        server("logged", "postgresql-17.11"),
        server("unlogged", "postgresql-17.11"),
    ]);
    let schema = |kind: &str| Some(format!("CREATE {kind}TABLE t (id integer);\n"));
    case.contenders[0].schema = schema("");
    case.contenders[1].schema = schema("UNLOGGED ");
    for (contender, dead) in case.contenders.iter_mut().zip(["900000", "20000"]) {
        contender.status_after = counters(&[
            ("pg_stat_user_tables.n_live_tup", "1000000"),
            ("pg_stat_user_tables.n_dead_tup", dead),
        ]);
    }
    let audit = audit(&case);
    let found = finding(&audit, "table.unlogged");
    assert_eq!(found.severity, Severity::Void);
    assert_eq!(found.favours.as_deref(), Some("unlogged"));
    let dead = finding(&audit, "R48");
    assert_eq!(dead.about, ["logged"]);
    assert!(
        dead.claim.contains("900,000 dead rows at the end, 47.4 %"),
        "{}",
        dead.claim
    );
}

#[test]
fn periodic_work_that_did_not_come_is_said_with_its_period_in_own_load() {
    let mut case = Case::of(vec![
        server("a", "postgresql-17.11"),
        server("b", "postgresql-17.11"),
    ]);
    let counted = |wal: &str, checkpoints: &str, vacuums: &str| {
        counters(&[
            ("pg_current_wal_insert_lsn", wal),
            ("pg_stat_checkpointer.num_timed", checkpoints),
            ("pg_stat_checkpointer.num_requested", "2"),
            ("pg_stat_user_tables.n_dead_tup", "5000"),
            ("pg_stat_user_tables.autovacuum_count", vacuums),
        ])
    };
    for contender in &mut case.contenders {
        let stretched = [("checkpoint_timeout", "600"), ("autovacuum_naptime", "120")];
        let stretched = stretched.map(|(name, value)| (name.to_owned(), value.to_owned()));
        contender.variables.extend(stretched);
        contender.status_before = counted("1000000", "0", "0");
        contender.status_after = counted("90000000", "0", "0");
    }
    let found = finding(&audit(&case), "R50").clone();
    assert_eq!(found.severity, Severity::Doubt);
    assert!(
        found
            .claim
            .contains("no checkpoint (every 300 s of its load")
            && found
                .claim
                .contains("no autovacuum (checked every 60 s of its load)"),
        "{}",
        found.claim
    );
    for contender in &mut case.contenders {
        contender.status_after = counted("90000000", "1", "3");
    }
    assert!(!audit(&case).findings.iter().any(|one| one.rule == "R50"));
    for contender in &mut case.contenders {
        contender.status_after = counted("1000100", "0", "0");
    }
    assert!(!audit(&case).findings.iter().any(|one| one.rule == "R50"));
}

/// Where a setting decides, a fix makes PostgreSQL equal to any other recorded server.
#[test]
fn a_fix_leaves_no_doubt_between_postgresql_and_other_servers() {
    // What a build decides, or no setting reaches.
    let is_out_of_reach = |rule: &str| {
        matches!(
            rule,
            "memory.allocator" | "build.optimisation" | "collation.server" | "charset.server"
        )
    };
    let mut left = std::collections::BTreeSet::new();
    for (one, product, _) in Defaults::servers() {
        if product != Product::PostgreSql {
            continue;
        }
        for (other, _, _) in Defaults::servers() {
            if other == one || other == "mysql-5.6.21" {
                continue;
            }
            let case = Case::of(vec![server("a", one), server("b", other)]);
            let fix = super::super::fix(&case);
            let heavy = fix.after.findings.iter();
            let heavy = heavy.filter(|found| found.severity > Severity::Note);
            for found in heavy.filter(|found| !is_out_of_reach(&found.rule)) {
                left.insert(format!("{one} and {other}: {} {}", found.rule, found.claim));
            }
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn the_product_is_recognised_and_units_are_resolved() {
    let shown = counters(&[
        ("server_version", "17.11 (Debian 17.11-1)"),
        ("shared_buffers", "1GB"),
        ("checkpoint_timeout", "15min"),
        ("cflags", "-g -O2"),
    ]);
    let server = ServerEvidence::of_variables("a", shown).unwrap();
    assert_eq!(server.product, Product::PostgreSql);
    assert_eq!(server.version.to_string(), "17.11.0");
    assert_eq!(server.variables["shared_buffers"], "1073741824");
    assert_eq!(server.variables["checkpoint_timeout"], "900");
    assert_eq!(server.probe["cflags"], "-g -O2");
}
