use std::sync::LazyLock;

use dbduel_audit::Finding;
use dbduel_record::Verdict;
use dbduel_record::answers::{Refusal, RefusedSetting, TypeClass};
use dbduel_record::event::Severity;
use dbduel_testkit::synthetic::Scenario;

use super::*;
use crate::summarise;

/// Two rows.
fn rows() -> Rows {
    Rows {
        columns: vec![TypeClass::Integer, TypeClass::Float],
        rows: 2,
        set: "a".to_owned(),
        set_without_floats: "b".to_owned(),
        sequence: "c".to_owned(),
        keys: Some("d".to_owned()),
        ..Rows::default()
    }
}

fn done(rows: Rows) -> Answer {
    Answer::Done(Box::new(rows))
}

fn refusal(name: &str) -> Refusal {
    Refusal {
        name: name.to_owned(),
    }
}

/// A statement that two contenders answered, each as given the first and the second time.
fn asked(baseline: [Answer; 2], own: [Answer; 2]) -> AskedStatement {
    let [first, again] = baseline;
    let [other, other_again] = own;
    AskedStatement {
        position: "shop.log:7".to_owned(),
        bytes: 20,
        answers: vec![first, again, other, other_again],
        first: vec![0, 2],
        second: vec![Some(1), Some(3)],
    }
}

fn steady(baseline: Answer, own: Answer) -> AskedStatement {
    asked([baseline.clone(), baseline], [own.clone(), own])
}

fn class(examples: Vec<AskedStatement>) -> AskedClass {
    AskedClass {
        id: "3f9a01c2".to_owned(),
        text: "select a from t where b = ?".to_owned(),
        statements: 40,
        unsettled: None,
        is_ordered: true,
        is_limited: true,
        examples,
    }
}

fn answers(classes: Vec<AskedClass>) -> Answers {
    Answers {
        statements: 100,
        transactions: 50,
        classes,
        ..Answers::default()
    }
}

/// A record with these answers, judged.
fn judged(answers: Answers) -> (crate::Summary, Vec<Finding>) {
    let mut record = RECORD.clone();
    record.answers = Some(answers);
    summarise(&record)
}

/// A record without answers.
static RECORD: LazyLock<Record> = LazyLock::new(|| Scenario::duel().record());

/// What a class is found to differ in.
fn found(class: AskedClass) -> Option<AnswerDifference> {
    let record = Record {
        answers: Some(answers(vec![class])),
        ..RECORD.clone()
    };
    let mut classes = summary(&record).unwrap().classes;
    let [own] = classes.remove(0).contenders.try_into().unwrap();
    own.difference
}

#[test]
fn each_difference_has_its_kind() {
    let with = |change: &dyn Fn(&mut Rows)| {
        let mut own = rows();
        change(&mut own);
        done(own)
    };
    let set = |rows: &mut Rows| {
        rows.set = "x".to_owned();
        rows.set_without_floats = "y".to_owned();
    };
    let other = Some("other".to_owned());
    for (own, expected) in [
        (
            Answer::Refused(refusal("1064 (42000)")),
            DifferenceKind::Error,
        ),
        (
            with(&|rows| rows.columns.truncate(1)),
            DifferenceKind::Columns,
        ),
        (with(&|rows| rows.rows = 3), DifferenceKind::Rows),
        (
            with(&|rows| {
                set(rows);
                rows.keys.clone_from(&other);
            }),
            DifferenceKind::Values,
        ),
        (with(&|rows| set(rows)), DifferenceKind::LimitTies),
        (
            with(&|rows| rows.set = "x".to_owned()),
            DifferenceKind::Floats,
        ),
        (
            with(&|rows| rows.sequence = "x".to_owned()),
            DifferenceKind::Ties,
        ),
        (
            with(&|rows| {
                rows.sequence = "x".to_owned();
                rows.keys.clone_from(&other);
            }),
            DifferenceKind::Order,
        ),
        (
            with(&|rows| {
                rows.sequence = "x".to_owned();
                rows.keys = None;
            }),
            DifferenceKind::UnknownOrder,
        ),
        (with(&|rows| rows.affected = 1), DifferenceKind::Affected),
        (
            with(&|rows| rows.columns[0] = TypeClass::Decimal),
            DifferenceKind::Types,
        ),
        (with(&|rows| rows.warnings = 1), DifferenceKind::Warnings),
    ] {
        let difference = found(class(vec![steady(done(rows()), own)])).unwrap();
        assert_eq!(difference.kind, expected);
        assert_eq!(difference.weighs(), expected <= DifferenceKind::Affected);
    }
    assert_eq!(found(class(vec![steady(done(rows()), done(rows()))])), None);
    let refused = || Answer::Refused(refusal("1064 (42000)"));
    assert_eq!(found(class(vec![steady(refused(), refused())])), None);
    // Without an order every order is right.
    let unordered = AskedClass {
        is_ordered: false,
        ..class(vec![steady(
            done(rows()),
            with(&|rows| rows.sequence = "x".to_owned()),
        )])
    };
    assert_eq!(found(unordered), None);
}

#[test]
fn the_shortest_statement_of_the_heaviest_difference_is_the_example() {
    let few = done(Rows { rows: 1, ..rows() });
    let warned = done(Rows {
        warnings: 1,
        ..rows()
    });
    let long = AskedStatement {
        position: "shop.log:9".to_owned(),
        bytes: 900,
        ..steady(done(rows()), few.clone())
    };
    let difference = found(class(vec![
        steady(done(rows()), warned),
        long,
        steady(done(rows()), few),
    ]));
    let difference = difference.unwrap();
    assert_eq!(difference.kind, DifferenceKind::Rows);
    assert_eq!(
        (difference.statements, difference.position.as_str()),
        (2, "shop.log:7")
    );
    assert_eq!(difference.detail, "1 row instead of 2");
}

#[test]
fn what_differs_from_itself_or_depends_on_more_than_the_data_is_excused() {
    let few = || done(Rows { rows: 1, ..rows() });
    let unstable = asked([done(rows()), few()], [few(), few()]);
    let excuse = found(class(vec![unstable])).unwrap().excuse.unwrap();
    assert!(excuse.contains("a second time"), "{excuse}");
    let clock = AskedClass {
        unsettled: Some("time (`NOW`)".to_owned()),
        ..class(vec![steady(done(rows()), few())])
    };
    let excuse = found(clock).unwrap().excuse.unwrap();
    assert_eq!(excuse, "depends on time (`NOW`)");
    // An error does not.
    let refused = AskedClass {
        unsettled: Some("time (`NOW`)".to_owned()),
        ..class(vec![steady(
            done(rows()),
            Answer::Refused(refusal("1305 (42000)")),
        )])
    };
    assert!(found(refused).unwrap().weighs());
}

#[test]
fn answers_that_differ_are_a_doubt_and_a_class_that_one_side_refuses_is_void() {
    let rules = |findings: &[Finding]| -> Vec<(String, Severity)> {
        let own = findings
            .iter()
            .filter(|one| one.rule.starts_with("answers."));
        own.map(|one| (one.rule.clone(), one.severity)).collect()
    };
    let few = done(Rows { rows: 1, ..rows() });
    let (summary, findings) = judged(answers(vec![class(vec![steady(done(rows()), few)])]));
    assert_eq!(
        rules(&findings),
        [("answers.differ".to_owned(), Severity::Doubt)]
    );
    assert_ne!(summary.duels[0].comparisons[0].verdict, Verdict::Void);
    let failing = || Answer::Refused(refusal("3065 (HY000)"));
    let whole = class(vec![steady(done(rows()), failing())]);
    let (summary, findings) = judged(answers(vec![whole.clone()]));
    assert_eq!(
        rules(&findings),
        [("answers.errors".to_owned(), Severity::Void)]
    );
    assert_eq!(summary.duels[0].comparisons[0].verdict, Verdict::Void);
    // One of two statements, or a rare class, is none.
    let mut part = whole.clone();
    part.examples.push(steady(done(rows()), done(rows())));
    let rare = AskedClass {
        statements: 1,
        ..whole
    };
    for class in [part, rare] {
        let (_, findings) = judged(answers(vec![class]));
        assert_eq!(
            rules(&findings),
            [("answers.errors".to_owned(), Severity::Doubt)]
        );
    }
    let (_, findings) = judged(answers(vec![class(vec![steady(
        done(rows()),
        done(rows()),
    )])]));
    assert_eq!(rules(&findings), []);
}

#[test]
fn a_refused_setting_is_one_finding_whatever_depends_on_it() {
    let missing = Answer::Missing("a setting of its session was refused".to_owned());
    let dependent = || class(vec![steady(done(rows()), missing.clone())]);
    let mut all = answers(vec![dependent(), dependent(), dependent()]);
    all.refused = vec![RefusedSetting {
        contender: 1,
        id: "00c0ffee".to_owned(),
        text: "set session sql_mode = ?".to_owned(),
        position: "shop.log:3".to_owned(),
        refusal: refusal("1231 (42000)"),
        settings: 1,
        transactions: 45,
    }];
    let (summary, findings) = judged(all);
    let own: Vec<&Finding> = findings
        .iter()
        .filter(|one| one.rule.starts_with("answers."))
        .collect();
    let [refused, left] = own.as_slice() else {
        panic!("{own:?}");
    };
    assert_eq!(refused.rule, "answers.setting-refused");
    assert_eq!(refused.severity, Severity::Void);
    assert!(
        refused
            .claim
            .contains("45 transactions of the replay (90 %)"),
        "{}",
        refused.claim
    );
    assert_eq!(left.rule, "answers.not-compared");
    assert!(left.claim.contains("3 classes"), "{}", left.claim);
    assert_eq!(summary.answers.unwrap().refused[0].share, 0.9);
}

#[test]
fn the_answers_of_chosen_contenders_keep_their_places() {
    let mut all = answers(vec![class(vec![AskedStatement {
        first: vec![0, 1, 0],
        second: vec![None, Some(1), None],
        answers: vec![done(rows()), Answer::Missing("late".to_owned())],
        position: String::new(),
        bytes: 0,
    }])]);
    let setting = |contender| RefusedSetting {
        contender,
        id: String::new(),
        text: String::new(),
        position: String::new(),
        refusal: refusal("1"),
        settings: 1,
        transactions: 1,
    };
    all.refused = vec![setting(0), setting(1)];
    let own = restricted(&all, &[2, 1]);
    let asked = &own.classes[0].examples[0];
    assert_eq!(asked.first, [0, 1]);
    assert_eq!(asked.second, [None, Some(1)]);
    assert_eq!(own.refused, [setting(1)]);
}
