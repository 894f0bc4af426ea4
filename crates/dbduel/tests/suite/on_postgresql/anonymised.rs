//! A dump and a capture of PostgreSQL with other values: the server loads the one, runs the other, finds the same rows and chooses the same
//! plans.

use std::collections::BTreeMap;

use dbduel_driver::Connection;
use dbduel_record::plan::Parameters;
use dbduel_replay::answers::{Questions, plans_of};

use super::captured::stderr_log_of;
use super::cluster::{options, shared};
use super::dumps::{dumped, place};
use crate::suite::on_server::anonymised::with_other_values;
use crate::suite::on_server::captured::{drive, imported};
use crate::suite::on_server::dumps::{filled, rows};
use crate::suite::on_server::plans::explained;

/// A shop of 400 customers.
const SHOP: [&str; 3] = [
    "CREATE TABLE customer (id int PRIMARY KEY, mail text UNIQUE, joined date, total numeric(10,2), note text)",
    "CREATE INDEX customer_joined ON customer (joined)",
    "INSERT INTO customer SELECT 5000 + n, 'ann.' || n || '@shop.example', date '2020-01-01' + n, 1200 + n + 0.25, \
     E'It''s\\nfor ' || n FROM generate_series(1, 400) n",
];
/// Statements of the shop: one of each class.
const STATEMENTS: [&str; 5] = [
    "SELECT mail, joined FROM customer WHERE id = 5123",
    "SELECT id FROM customer WHERE mail = 'ann.77@shop.example'",
    "SELECT count(*) FROM customer WHERE joined BETWEEN '2020-03-01' AND '2020-03-31'",
    "SELECT id FROM customer WHERE mail LIKE 'ann.7%' ORDER BY id LIMIT 3",
    "UPDATE customer SET note = 'Dear ann.9' WHERE id = 5009",
];
/// A prepared statement with its values.
const PREPARED: [&str; 2] = [
    "LOG:  execute <unnamed>: SELECT total FROM customer WHERE mail = $1 AND id > $2",
    "DETAIL:  parameters: $1 = 'ann.300@shop.example', $2 = '5200'",
];

/// The plans of a capture's statements on a database, by class, without values.
fn plans(
    parameters: &Parameters,
    connect: &mut dyn FnMut() -> Result<Connection, String>,
) -> BTreeMap<String, Vec<Vec<Option<String>>>> {
    let questions = Questions::of(parameters).unwrap();
    let kept = plans_of(&questions, &[explained(&questions, connect)]);
    let statements = kept[0].clone();
    let plans = statements.into_iter().map(|own| {
        assert_eq!(own.because, None, "{:?}", own.example);
        (own.example.class, own.rows)
    });
    plans.collect()
}

#[test]
fn other_values_find_the_same_rows_by_the_same_plans() {
    let Some(cluster) = shared() else { return };
    cluster.create_database("shown");
    cluster.create_database("hidden");
    let mut shown = cluster.connect("shown").unwrap();
    for sql in SHOP {
        shown.execute(sql).unwrap();
    }
    shown.execute("ANALYZE").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("shop.sql");
    if !dumped(&cluster, "shown", &["-Fp", "--no-owner"], &dump) {
        return;
    }
    let statements = STATEMENTS.map(|sql| format!("LOG:  statement: {sql}"));
    let messages: Vec<(usize, &str)> = statements
        .iter()
        .map(String::as_str)
        .chain(PREPARED)
        .map(|message| (1, message))
        .collect();
    let original = imported(dir.path(), &stderr_log_of(&messages), Some("%m [%p] %c "));
    let (capture, hidden_dump, parameters) =
        with_other_values(dir.path(), &dump, &["a command of a client"]);
    assert_eq!(capture.statements(), STATEMENTS.len() + 1);
    let (address, credentials) = (cluster.address(), cluster.credentials());
    let place = place(&address, &credentials, "hidden");
    assert_eq!(filled(&hidden_dump, &place).unwrap().rows, 400);
    let mut hidden = cluster.connect("hidden").unwrap();
    hidden.execute("ANALYZE").unwrap();
    for (index, sql) in STATEMENTS.iter().enumerate() {
        let replaced = String::from_utf8(capture.text(index).unwrap().to_vec()).unwrap();
        assert_ne!(&replaced, sql);
        if sql.starts_with("SELECT") {
            let (one, other) = (rows(&mut shown, sql), rows(&mut hidden, &replaced));
            assert_eq!(one.len(), other.len(), "{sql}: {replaced}");
            assert!(!one.is_empty(), "{sql}");
        }
        if sql.contains("count") {
            assert_eq!(
                rows(&mut shown, sql),
                rows(&mut hidden, &replaced),
                "{replaced}"
            );
        }
    }
    let values: Vec<Option<&[u8]>> = capture.parameters(STATEMENTS.len()).collect();
    let values: Vec<String> = values
        .into_iter()
        .map(|value| String::from_utf8(value.unwrap().to_vec()).unwrap())
        .collect();
    assert!(
        values[0] != "ann.300@shop.example" && values[0].len() == 20,
        "{values:?}"
    );
    let found = format!(
        "SELECT total FROM customer WHERE mail = '{}' AND id > {}",
        values[0], values[1]
    );
    assert_eq!(rows(&mut hidden, &found).len(), 1, "{found}");
    let connect = |name: &'static str| {
        let (address, credentials) = (cluster.address(), cluster.credentials());
        move || {
            Connection::connect(&address, &credentials, &options(name))
                .map_err(|error| error.to_string())
        }
    };
    assert_eq!(
        plans(&original, &mut connect("shown")),
        plans(&parameters, &mut connect("hidden"))
    );
    drop(hidden);
    let slice = drive(&place, &parameters);
    assert!(slice.errors.is_empty(), "{:?}", slice.errors);
}
