//! PostgreSQL against itself and against MariaDB, as recorded; and the page's objections to such duels.

use super::*;
use crate::judge::audit::codes::codes;

/// What stands around the table in the page.
const BEGIN: &str =
    "<!-- Objections to duels across products; a test finds every name in the last column. -->";
const END: &str = "<!-- End of the objections across products. -->";

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

#[test]
fn every_answer_to_an_objection_across_products_exists() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fairness.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once(BEGIN).unwrap();
    let (table, _) = rest.split_once(END).unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    assert!(rows.len() > 15);
    let codes = codes();
    for row in &rows[2..] {
        let answers = row.trim_end_matches('|').rsplit('|').next().unwrap();
        for name in answers.split(',').map(|name| name.trim().trim_matches('`')) {
            assert!(
                codes.iter().any(|code| code.name == name),
                "`{name}` in {row}"
            );
        }
    }
}
