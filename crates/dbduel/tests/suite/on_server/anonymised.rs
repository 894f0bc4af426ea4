//! A dump and a capture with other values: the server loads the one, runs the other, finds the same rows and chooses the same plans.

use std::fmt::Write as _;
use std::path::Path;

use dbduel_capture::anonymise::{Destination, KEY_BYTES, Replacer, anonymise};
use dbduel_capture::store::Capture;
use dbduel_driver::Connection;
use dbduel_dump::anonymise::{anonymise as anonymise_dump, learn};
use dbduel_record::plan::Parameters;
use dbduel_workloads::{find, parameters};

use super::captured::{drive, imported};
use super::database::Database;
use super::dumps::{filled, rows};
use super::server::{ALL, Server};
use crate::suite::lab::program;

/// Customers of the shop, each with three orders.
const CUSTOMERS: u64 = 400;
/// Columns of EXPLAIN that are estimates from samples of pages.
const ESTIMATES: [&str; 2] = ["rows", "filtered"];

fn mail(customer: u64) -> String {
    const NAMES: [&str; 8] = ["ann", "bob", "carl", "dana", "eve", "fred", "gina", "hugo"];
    let name = NAMES[customer as usize % NAMES.len()];
    format!("{name}.{customer}@shop{}.example", customer % 7)
}

/// A dump of a small shop, as mysqldump writes it.
fn dump() -> String {
    let mut dump = "-- MySQL dump 10.13\n/*!50503 SET NAMES utf8mb4 */;\n\
         CREATE TABLE `customer` (`id` int NOT NULL, `mail` varchar(60) NOT NULL, `code` char(32) DEFAULT NULL, `joined` date NOT NULL,\n\
         `state` enum('active','closed') NOT NULL, PRIMARY KEY (`id`), UNIQUE KEY `mail` (`mail`), KEY `joined` (`joined`)) ENGINE=InnoDB;\n\
         CREATE TABLE `orders` (`id` int NOT NULL AUTO_INCREMENT, `customer` int NOT NULL, `total` decimal(10,2) NOT NULL, `placed` datetime NOT NULL,\n\
         `note` text, PRIMARY KEY (`id`), KEY `customer` (`customer`), KEY `placed` (`placed`)) ENGINE=InnoDB AUTO_INCREMENT=90000;\n"
        .to_owned();
    let mut customers = Vec::new();
    let mut orders = Vec::new();
    for customer in 0..CUSTOMERS {
        let id = 5000 + customer;
        let state = if customer.is_multiple_of(9) {
            "closed"
        } else {
            "active"
        };
        let joined = format!(
            "20{:02}-{:02}-{:02}",
            10 + customer % 14,
            1 + customer % 12,
            1 + customer % 28
        );
        customers.push(format!(
            "({id},'{}','{:032x}','{joined}','{state}')",
            mail(customer),
            u128::from(customer) << 70
        ));
        for order in 0..3 {
            let number = 60_000 + 3 * customer + order;
            let placed = format!(
                "2026-{:02}-{:02} 12:00:00",
                1 + number % 12,
                1 + number % 28
            );
            orders.push(format!(
                "({number},{id},{}.{:02},'{placed}','It\\'s for {}')",
                1200 + number % 700,
                number % 100,
                mail(customer)
            ));
        }
    }
    writeln!(
        dump,
        "INSERT INTO `customer` VALUES {};",
        customers.join(",")
    )
    .unwrap();
    writeln!(dump, "INSERT INTO `orders` VALUES {};", orders.join(",")).unwrap();
    dump
}

/// Statements of the shop: one of each class.
fn statements() -> Vec<String> {
    vec![
        "SELECT mail, state FROM customer WHERE id = 5123".to_owned(),
        format!("SELECT id FROM customer WHERE mail = '{}'", mail(77)),
        "SELECT id FROM customer WHERE mail LIKE 'gina%'".to_owned(),
        "SELECT COUNT(*) FROM customer WHERE joined BETWEEN '2015-01-01' AND '2015-06-30'".to_owned(),
        "SELECT id, total FROM orders WHERE customer = '5011' ORDER BY placed DESC LIMIT 2".to_owned(),
        "SELECT COUNT(*) FROM orders WHERE id > 60100 AND id <= 60150".to_owned(),
        "SELECT SUM(total) FROM orders WHERE placed >= '2026-03-05 12:00:00' AND placed < '2026-03-09'".to_owned(),
        "SELECT c.mail, o.total FROM customer c JOIN orders o ON o.customer = c.id WHERE c.id IN (5003, 5004, 5399)".to_owned(),
        "SELECT state, COUNT(*) FROM customer WHERE state = 'closed' GROUP BY state".to_owned(),
        "SELECT id FROM customer WHERE code = '00000000000000400000000000000000'".to_owned(),
        "SELECT id FROM orders WHERE note LIKE 'It\\'s for ann%' AND customer > 5300".to_owned(),
        "UPDATE orders SET note = 'Dear bob.7' WHERE id = 60042".to_owned(),
    ]
}

fn general_log() -> String {
    let mut log = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time                 Id Command    Argument\n2026-11-28T00:00:01.000000Z\t    7 Connect\tapp@localhost on shop using Socket\n"
        .to_owned();
    for statement in statements() {
        writeln!(log, "2026-11-28T00:00:01.000100Z\t    7 Query\t{statement}").unwrap();
    }
    log
}

/// The capture below `dir` and its dump with other values: the directory, and the dump's file. Statements are dropped for these reasons only.
pub fn with_other_values(
    dir: &Path,
    dump: &Path,
    dropped: &[&str],
) -> (Capture, std::path::PathBuf, Parameters) {
    let capture = Capture::open(&dir.join("a.cap")).unwrap();
    let mut replacer = Replacer::new(&[9; KEY_BYTES]);
    learn(dump, &mut replacer, &mut |_| Ok(())).unwrap();
    let path = dir.join("hidden.sql.gz");
    let found = anonymise_dump(dump, &path, &mut replacer, &mut |_| Ok(())).unwrap();
    let reasons = found.dropped.keys().copied();
    assert_eq!(reasons.collect::<Vec<&str>>(), dropped, "{found:?}");
    let target = dir.join("b.cap");
    let destination = Destination {
        target: &target,
        check: &mut |_| Ok(()),
    };
    anonymise(&capture, &mut replacer, destination).unwrap();
    let given = Parameters::from([("capture".to_owned(), target.display().to_string().into())]);
    let parameters = parameters::resolve(find("captured").unwrap(), &given).unwrap();
    (Capture::open(&target).unwrap(), path, parameters)
}

/// The plan of a statement, without estimates and without the name of the database.
fn plan(connection: &mut Connection, sql: &str, database: &str) -> Vec<Vec<Option<String>>> {
    let set = connection
        .query(&format!("EXPLAIN FORMAT=TRADITIONAL {sql}"))
        .unwrap();
    let columns: Vec<usize> = (0..set.columns.len())
        .filter(|column| !ESTIMATES.contains(&set.columns[*column].as_str()))
        .collect();
    let text = |row, column| {
        set.text(row, column)
            .map(|text| text.replace(database, "shop"))
    };
    let row = |row: usize| columns.iter().map(|column| text(row, *column)).collect();
    (0..set.rows.len()).map(row).collect()
}

/// A connection to a database whose tables' statistics are up to date.
fn connected(database: &Database) -> Connection {
    let mut connection = database.connect();
    connection
        .execute(&format!("USE {}", database.name))
        .unwrap();
    rows(&mut connection, "ANALYZE TABLE customer, orders");
    connection
}

#[test(on = ALL)]
fn other_values_find_the_same_rows_by_the_same_plans(server: &Server) {
    let dir = tempfile::tempdir().unwrap();
    let dump_path = dir.path().join("shop.sql");
    std::fs::write(&dump_path, dump()).unwrap();
    imported(dir.path(), &general_log(), None);
    let (capture, hidden_dump, parameters) = with_other_values(dir.path(), &dump_path, &[]);
    assert_eq!(capture.statements(), statements().len());
    assert_eq!(capture.classes().len(), statements().len());
    let (shown, hidden) = (
        Database::create(server, "shown"),
        Database::create(server, "hidden"),
    );
    let (before, after) = (shown.place(1), hidden.place(1));
    assert_eq!(filled(&dump_path, &before).unwrap().rows, 4 * CUSTOMERS);
    assert_eq!(filled(&hidden_dump, &after).unwrap().rows, 4 * CUSTOMERS);
    // The account that owns a dump's database owns one at a time.
    let (mut one, mut other) = (connected(&shown), connected(&hidden));
    for (index, sql) in statements().iter().enumerate() {
        let hidden = String::from_utf8(capture.text(index).unwrap().to_vec()).unwrap();
        // What an ENUM lists stays.
        assert_eq!(&hidden == sql, sql.contains("'closed'"), "{hidden}");
        let plans = (
            plan(&mut one, sql, before.database),
            plan(&mut other, &hidden, after.database),
        );
        assert_eq!(plans.0, plans.1, "{sql}: {hidden}");
        if sql.starts_with("SELECT") {
            let found = rows(&mut one, sql).len();
            assert_eq!(rows(&mut other, &hidden).len(), found, "{sql}: {hidden}");
            assert!(found > 0, "{sql}");
        }
        if sql.contains("COUNT") {
            let counts = (rows(&mut one, sql), rows(&mut other, &hidden));
            assert_eq!(counts.0, counts.1, "{sql}: {hidden}");
        }
    }
    drop((one, other));
    let slice = drive(&after, &parameters);
    assert!(slice.errors.is_empty(), "{:?}", slice.errors);
}

#[test]
fn rows_that_a_dump_loses_are_said_with_an_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    imported(dir.path(), &general_log(), None);
    let at = |name: &str| dir.path().join(name);
    let run = |dump: &str, output: &str| {
        std::fs::write(at("shop.sql"), dump).unwrap();
        let output = program()
            .args(["capture", "anonymise"])
            .arg(at("a.cap"))
            .arg("--dump")
            .arg(at("shop.sql"))
            .arg("--key-file")
            .arg(at("key"))
            .arg("-o")
            .arg(at(output))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (code, said) = run(&dump(), "whole");
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("dropped"), "{said}");
    let with_control = dump() + "INSERT INTO `orders` VALUES (\u{1});\n";
    let (code, said) = run(&with_control, "less");
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("dropped 1 statement with rows (bytes that are no SQL: 1)"),
        "{said}"
    );
    assert!(at("less").join("dump.sql.gz").is_file());
}
