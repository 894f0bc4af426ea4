//! SQLite against itself and against servers, as recorded.

use super::*;

fn outcome(audit: &Audit, fact: &str) -> Outcome {
    let mut comparisons = audit.comparisons.iter();
    comparisons.find(|one| one.fact == fact).unwrap().outcome
}

fn duel(one: &[(&str, &str)], two: &[(&str, &str)]) -> Audit {
    let mut case = super::two("sqlite-3.54.1", one, two);
    case.declare_what_was_asked();
    audit(&case)
}

#[test]
fn a_rollback_journal_and_a_wal_promise_the_same_when_both_sync_each_commit() {
    let mut case = super::two(
        "sqlite-3.54.1",
        &[("journal_mode", "DELETE"), ("synchronous", "FULL")],
        &[("journal_mode", "WAL"), ("synchronous", "FULL")],
    );
    case.about = vec!["journal_mode".to_owned()];
    let audit = audit(&case);
    assert_eq!(heavy(&audit), Vec::<&str>::new());
    for fact in ["commit.level", "torn_page.protection"] {
        assert_eq!(outcome(&audit, fact), Outcome::Equivalent, "{fact}");
    }
    let directory = finding(&audit, "commit.directory_synced");
    assert_eq!(directory.severity, Severity::Note);
    assert_eq!(finding(&audit, "journal_mode").kind, FindingKind::Declared);
}

#[test]
fn commits_that_are_not_synced_are_void_against_those_that_are() {
    let audit_of = |weak: &[(&str, &str)]| {
        let mut case = super::two("sqlite-3.54.1", &[("journal_mode", "WAL")], weak);
        case.about = vec!["P19".to_owned()];
        audit(&case)
    };
    for weak in [
        [("journal_mode", "WAL"), ("synchronous", "NORMAL")],
        [("journal_mode", "DELETE"), ("synchronous", "OFF")],
        [("journal_mode", "MEMORY"), ("synchronous", "FULL")],
    ] {
        let found = finding(&audit_of(&weak), "commit.level").clone();
        assert_eq!(found.severity, Severity::Void, "{weak:?}");
        assert_eq!(found.favours.as_deref(), Some("b"), "{weak:?}");
    }
    let normal = [("journal_mode", "DELETE"), ("synchronous", "NORMAL")];
    let audit = audit_of(&normal);
    assert_eq!(outcome(&audit, "commit.level"), Outcome::Equivalent);
    // Declared, it is disclosed and still doubted.
    let audit = duel(
        &[("journal_mode", "WAL"), ("synchronous", "FULL")],
        &[("journal_mode", "WAL"), ("synchronous", "NORMAL")],
    );
    assert_eq!(finding(&audit, "commit.level").severity, Severity::Doubt);
}

#[test]
fn caches_and_waiting_of_two_sqlites_are_compared_and_can_be_equalised() {
    let case = Case::of(vec![
        with(server("a", "sqlite-3.54.1"), &[("cache_size", "-65536")]),
        with(
            server("b", "sqlite-3.54.1"),
            &[("busy_timeout", "5000"), ("mmap_size", "268435456")],
        ),
    ]);
    let audit = audit(&case);
    for fact in ["pool.bytes", "busy_timeout", "mmap_size"] {
        assert_eq!(finding(&audit, fact).severity, Severity::Doubt, "{fact}");
    }
    let fix = super::super::fix(&case);
    let heavy = heavy(&fix.after);
    assert_eq!(heavy, Vec::<&str>::new());
    let pool = fix.settings.iter().find(|one| one.name == "cache_size");
    assert_eq!(
        pool.map(|one| (one.contender.as_str(), one.value.as_str())),
        Some(("b", "-65536"))
    );
}

#[test]
fn what_sqlite_has_by_design_is_a_note_beside_a_server() {
    for recorded in ["postgresql-17.11", "mariadb-11.8.6", "mysql-9.7.4"] {
        let case = Case::of(vec![
            server("server", recorded),
            server("file", "sqlite-3.54.1"),
        ]);
        let audit = audit(&case);
        for rule in [
            "session.unit",
            "writers.at_once",
            "row.versions",
            "pool.bytes",
            "redo.capacity",
            "isolation.level",
            "flush.threads",
        ] {
            let found = finding(&audit, rule);
            assert_eq!(found.severity, Severity::Note, "{recorded} {rule}");
            assert_eq!(found.kind, FindingKind::Architecture, "{recorded} {rule}");
        }
        let gaps = audit.comparisons.iter();
        let gaps: Vec<&str> = gaps
            .filter(|one| one.outcome == Outcome::Unreadable)
            .map(|one| one.fact.as_str())
            .collect();
        assert_eq!(gaps, Vec::<&str>::new(), "{recorded}");
    }
}

#[test]
fn a_server_and_sqlite_can_be_made_comparable() {
    for recorded in ["postgresql-17.11", "mariadb-11.8.6", "mysql-9.7.4"] {
        let case = Case::of(vec![
            server("server", recorded),
            with(
                server("file", "sqlite-3.54.1"),
                &[("journal_mode", "WAL"), ("synchronous", "NORMAL")],
            ),
        ]);
        let before = audit(&case);
        assert_eq!(finding(&before, "commit.level").severity, Severity::Void);
        let fix = super::super::fix(&case);
        let void: Vec<&str> = fix
            .after
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Void)
            .map(|finding| finding.claim.as_str())
            .collect();
        // MariaDB has pages with checksums only since 10.6.
        let left: &[&str] = match recorded {
            "mariadb-11.8.6" => {
                &["Pages carry checksums: `server` on, `file` off, in favour of `file`."]
            }
            _ => &[],
        };
        assert_eq!(void, left, "{recorded}");
        let set = |name: &str| {
            let mut settings = fix.settings.iter();
            let found = settings.find(|one| one.contender == "file" && one.name == name);
            found.map(|one| one.value.as_str())
        };
        assert_eq!(set("synchronous"), Some("FULL"), "{recorded}");
    }
}

#[test]
fn the_product_is_recognised_by_its_version_and_words_are_resolved() {
    let shown = counters(&[
        ("sqlite_version", "3.50.2"),
        ("journal_mode", "WAL"),
        ("synchronous", "NORMAL"),
        ("compile_options", "ENABLE_MEMORY_MANAGEMENT,THREADSAFE=1"),
    ]);
    let one = ServerEvidence::of_variables("a", shown.clone()).unwrap();
    assert_eq!(one.product, Product::Sqlite);
    assert_eq!(one.variables["synchronous"], "1");
    assert_eq!(one.variables["journal_mode"], "wal");
    let mut two = ServerEvidence::of_variables("b", shown).unwrap();
    two.probe
        .insert("compile_options".to_owned(), "THREADSAFE=1".to_owned());
    let audit = audit(&Case::of(vec![one, two]));
    let found = finding(&audit, "cache.shared_lock");
    assert_eq!(found.severity, Severity::Doubt);
    assert_eq!(found.favours.as_deref(), Some("b"));
}
