//! Answers and plans of captured statements on PostgreSQL, and the equality of tables, in schemas that a session's search_path names.

use dbduel_driver::Connection;
use dbduel_record::answers::Answer;
use dbduel_record::plan::Parameters;
use dbduel_replay::answers::{Questions, plans_of, together};
use dbduel_workloads::fill::{FillWatch, digest};
use dbduel_workloads::find;

use super::captured::stderr_log_of;
use super::cluster::{Cluster, options, shared};
use super::dumps::place;
use crate::suite::on_server::answers::{asked, differing, unstable};
use crate::suite::on_server::captured::imported;
use crate::suite::on_server::plans::{explained, steps};

/// What an application with a schema of its own asks. The planner is to use an index wherever there is one.
const MESSAGES: [(usize, &str); 8] = [
    (1, "LOG:  statement: SET search_path = stock, public"),
    (1, "LOG:  statement: SET enable_seqscan = off"),
    (1, "LOG:  statement: SELECT made FROM item WHERE id = 2"),
    (
        1,
        "LOG:  execute <unnamed>: SELECT id FROM item WHERE name = $1 AND id <> $2",
    ),
    (
        1,
        "DETAIL:  parameters: $1 = 'ada@example.org', $2 = '47110815'",
    ),
    (
        1,
        "LOG:  statement: SELECT id FROM item ORDER BY name DESC LIMIT 2",
    ),
    (
        1,
        "LOG:  statement: UPDATE item SET name = 'x' WHERE id < 3",
    ),
    (
        2,
        "LOG:  statement: SELECT made FROM stock.item WHERE id = 1 AND name <> 'ada@example.org'",
    ),
];

/// A database with the application's table.
fn with_items(cluster: &Cluster, name: &str) -> Connection {
    cluster.create_database(name);
    let mut connection = cluster.connect(name).unwrap();
    for sql in [
        "CREATE SCHEMA stock",
        "CREATE TABLE stock.item (id int PRIMARY KEY, name text, made date, picture bytea)",
        "CREATE INDEX item_name ON stock.item (name)",
        r"INSERT INTO stock.item SELECT n, 'item ' || n, date '2026-11-01' + n, '\x00ff' FROM generate_series(1, 20) n",
    ] {
        connection.execute(sql).unwrap();
    }
    connection
}

#[test]
fn a_planted_difference_of_answers_is_found_in_another_schema() {
    let Some(cluster) = shared() else { return };
    let mut connection = with_items(&cluster, "answers");
    let before = crate::suite::on_server::dumps::rows(&mut connection, "SELECT * FROM stock.item");
    let dir = tempfile::tempdir().unwrap();
    let parameters = imported(dir.path(), &stderr_log_of(&MESSAGES), Some("%m [%p] %c "));
    let questions = Questions::of(&parameters).unwrap();
    let (address, credentials) = (cluster.address(), cluster.credentials());
    let place = place(&address, &credentials, "answers");
    let own = |setting| asked(&place, &questions, setting);
    let control = together(&questions, vec![own("SELECT 1"), own("SELECT 1")]);
    assert_eq!(differing(&control), [""; 0]);
    assert_eq!(unstable(&control), [""; 0]);
    assert!(control.refused.is_empty(), "{:?}", control.refused);
    for class in &control.classes {
        let first = class.examples[0].of(0);
        assert!(matches!(first, Some(Answer::Done(_))), "{class:?}");
    }
    let planted = own("SET DateStyle = 'German'");
    let planted = together(&questions, vec![own("SELECT 1"), planted]);
    let found = differing(&planted);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.iter().all(|text| text.contains("select made")),
        "{found:?}"
    );
    let text = serde_json::to_string(&planted).unwrap();
    assert!(!text.contains("ada@") && !text.contains("4711"), "{text}");
    let after = crate::suite::on_server::dumps::rows(&mut connection, "SELECT * FROM stock.item");
    assert_eq!(after, before);
}

#[test]
fn an_index_that_is_missing_on_one_side_shows_in_the_plans() {
    let Some(cluster) = shared() else { return };
    let names = ["plans_indexed", "plans_scanned"];
    let mut connections = names.map(|name| with_items(&cluster, name));
    connections[1]
        .execute("DROP INDEX stock.item_name")
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let parameters = imported(dir.path(), &stderr_log_of(&MESSAGES), Some("%m [%p] %c "));
    let questions = Questions::of(&parameters).unwrap();
    let plans = names.map(|name| {
        explained(&questions, &mut || {
            Connection::connect(&cluster.address(), &cluster.credentials(), &options(name))
                .map_err(|error| error.to_string())
        })
    });
    let kept = plans_of(&questions, &plans);
    let [with, without] = steps(&kept, "where name = ?").try_into().unwrap();
    assert!(
        with.contains("item_name") && !without.contains("item_name"),
        "{with} {without}"
    );
    let [one, other] = steps(&kept, "made from item where id = ?")
        .try_into()
        .unwrap();
    assert_eq!(one, other);
    let text = serde_json::to_string(&kept).unwrap();
    assert!(text.contains("name = ?::text"), "{text}");
    for value in ["ada@", "4711", "'x'"] {
        assert!(!text.contains(value), "{value}: {text}");
    }
}

#[test]
fn tables_outside_of_the_usual_schema_are_compared() {
    let Some(cluster) = shared() else { return };
    let (address, credentials) = (cluster.address(), cluster.credentials());
    let mut connections = ["equal_one", "equal_other"].map(|name| with_items(&cluster, name));
    let of = |name: &str| {
        let place = place(&address, &credentials, name);
        let workload = find("captured").unwrap();
        digest(workload, &Parameters::new(), &place, &FillWatch::default()).unwrap()
    };
    let (one, other) = (of("equal_one"), of("equal_other"));
    assert_eq!((one.rows, &one.hex), (20, &other.hex));
    connections[1]
        .execute(r"UPDATE stock.item SET picture = '\x00fe' WHERE id = 7")
        .unwrap();
    assert_ne!(of("equal_other").hex, one.hex);
}
