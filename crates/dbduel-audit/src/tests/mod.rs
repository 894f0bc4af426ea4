//! Contests as evidence: what the audit as a whole must and must not say. What is said of facts and rules one by
//! one is tested beside them, with the servers that are made here.

use dbduel_record::event::Severity;

use super::*;

mod chance;
mod contest_a;
mod described;
mod objections;
mod postgresql;
mod sqlite;

/// A server as its package sets it, read from the server itself.
pub(crate) fn server(name: &str, recorded: &str) -> ServerEvidence {
    let mut server = Defaults::of(recorded).unwrap().evidence(name).unwrap();
    server.is_predicted = false;
    server
}

/// The server with settings made, each with what follows from it.
pub(crate) fn with(mut server: ServerEvidence, settings: &[(&str, &str)]) -> ServerEvidence {
    for (name, value) in settings {
        predict(&mut server, name, value);
    }
    server
}

/// Two servers of one build, each with settings of its own.
pub(crate) fn two(recorded: &str, one: &[(&str, &str)], two: &[(&str, &str)]) -> Case {
    Case::of(vec![
        with(server("a", recorded), one),
        with(server("b", recorded), two),
    ])
}

/// Counters as SHOW GLOBAL STATUS has them.
pub(crate) fn counters(pairs: &[(&str, &str)]) -> Texts {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// True when the rule or fact says something.
pub(crate) fn says(audit: &Audit, rule: &str) -> bool {
    audit.findings.iter().any(|finding| finding.rule == rule)
}

/// What the rule or fact says; it is an error when it says nothing.
pub(crate) fn finding<'a>(audit: &'a Audit, rule: &str) -> &'a Finding {
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

/// Claims that are more than notes.
fn heavy(audit: &Audit) -> Vec<&str> {
    let findings = audit.findings.iter();
    findings
        .filter(|finding| finding.severity > Severity::Note)
        .map(|finding| finding.claim.as_str())
        .collect()
}

#[track_caller]
fn check_nothing_above_a_note(case: &Case) {
    let audit = audit(case);
    assert_eq!(heavy(&audit), Vec::<&str>::new());
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
        .filter(|(_, product, _)| product.has_innodb())
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
                .find(|finding| finding.kind == FindingKind::Unknown);
            assert!(
                unknown.is_none(),
                "{one} and {other}: {}",
                unknown.map_or("", |finding| &finding.claim)
            );
        }
    }
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
            .listed()
            .claim
            .ends_with(" Waived: the device writes pages whole.")
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
fn without_any_variables_there_is_one_finding_and_no_flood() {
    let nothing = ServerEvidence::new("a", Product::MySql, Version::parse("5.6.24").unwrap());
    let audit = audit(&Case::of(vec![nothing, server("b", "mysql-5.6.24")]));
    assert_eq!(finding(&audit, "variables").severity, Severity::Doubt);
    assert!(audit.comparisons.is_empty());
}
