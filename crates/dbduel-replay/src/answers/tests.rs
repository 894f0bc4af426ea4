use dbduel_sql::Syntax;
use dbduel_sql::answers::ordering;

use dbduel_testkit::captures::{CONNECT, Imported};

use super::digest::{OrderColumns, with_order_columns};
use super::*;
use crate::tests::resolved;

fn names(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

#[test]
fn some_statements_of_each_class_are_asked_in_the_state_of_their_session() {
    let mut log = vec![
        (7, "Connect", CONNECT),
        (7, "Query", "SET NAMES utf8mb4"),
        (7, "Query", "SELECT NOW()"),
        (7, "Query", "BEGIN"),
        (7, "Query", "UPDATE t SET a = 2 WHERE id = 3"),
        (7, "Query", "COMMIT"),
        (7, "Quit", ""),
        (8, "Connect", CONNECT),
    ];
    let reads: Vec<String> = (0..100)
        .map(|id| format!("SELECT a FROM t WHERE id = {} ORDER BY b LIMIT 2", id / 2))
        .collect();
    log.extend(reads.iter().map(|text| (8, "Query", text.as_str())));
    log.push((8, "Quit", ""));
    let questions = Questions::of(&resolved(&Imported::general(&log), "transactions")).unwrap();
    assert_eq!((questions.statements, questions.transactions), (102, 102));
    let [reads, others @ ..] = questions.classes.as_slice() else {
        panic!("{questions:?}");
    };
    assert_eq!(reads.statements, 100);
    assert_eq!(reads.unsettled, None);
    assert!(reads.ordering.has_limit && !reads.text.contains("= 1"));
    // Different ones, from the first to the last part of the log.
    assert_eq!(reads.examples.len(), EXAMPLES_MAX);
    assert!(reads.examples[0].position.ends_with("log:12"), "{reads:?}");
    let last = reads.examples.last().unwrap();
    assert!(
        last.statement > reads.examples[0].statement + 60,
        "{reads:?}"
    );
    let states: Vec<u32> = others.iter().map(|class| class.examples[0].state).collect();
    assert_eq!(states.len(), 2);
    assert!(states.iter().all(|state| *state != reads.examples[0].state));
    let clock = others.iter().find(|class| class.text.contains("now"));
    assert_eq!(clock.unwrap().unsettled.as_deref(), Some("time (`NOW`)"));
    assert_eq!(questions.states[0].1, 100);
}

#[test]
fn columns_are_added_for_what_the_answer_does_not_show_of_its_order() {
    let text = "SELECT id, n FROM t ORDER BY n DESC, t.d, 1 LIMIT 3";
    let order = ordering(text.as_bytes(), Syntax::MYSQL);
    let elements = &order.elements;
    let own = names(&["id", "n"]);
    assert_eq!(OrderColumns::Named(elements).places(&own), None);
    let longer = with_order_columns(text.as_bytes(), elements, order.columns_end, &own).unwrap();
    assert_eq!(
        String::from_utf8(longer).unwrap(),
        "SELECT id, n , t.d FROM t ORDER BY n DESC, t.d, 1 LIMIT 3"
    );
    let added = OrderColumns::Added(elements, 2);
    assert_eq!(added.places(&names(&["id", "n", "d"])), Some(vec![1, 2, 0]));
    // All are there, and nothing can be added.
    let d = names(&["d"]);
    for text in [
        "SELECT d FROM t ORDER BY d",
        "SELECT DISTINCT a FROM t ORDER BY b",
    ] {
        let order = ordering(text.as_bytes(), Syntax::MYSQL);
        let longer = with_order_columns(text.as_bytes(), &order.elements, order.columns_end, &d);
        assert_eq!(longer, None, "{text}");
    }
    assert_eq!(OrderColumns::Named(&[]).places(&d), None);
}

#[test]
fn equal_answers_are_kept_once_and_what_was_not_asked_is_late() {
    let log = [
        (7, "Connect", CONNECT),
        (7, "Query", "SELECT a FROM t"),
        (7, "Quit", ""),
    ];
    let questions = Questions::of(&resolved(&Imported::general(&log), "transactions")).unwrap();
    let missing = || Answer::Missing("x".to_owned());
    let own = || ContenderAnswers {
        first: vec![vec![missing()]],
        second: vec![vec![missing()]],
        refused: Vec::new(),
    };
    let late = ContenderAnswers::default();
    let answers = together(&questions, vec![own(), own(), late]);
    let asked = &answers.classes[0].examples[0];
    assert_eq!(
        asked.answers,
        [missing(), Answer::Missing(ask::LATE.to_owned())]
    );
    assert_eq!(asked.first, [0, 0, 1]);
    assert_eq!(asked.second, [Some(0), Some(0), None]);
    assert!(asked.position.ends_with("log:5"), "{asked:?}");
}
