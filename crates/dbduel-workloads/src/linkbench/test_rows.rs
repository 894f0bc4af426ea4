//! Resolved parameters, and the rows of small graphs as their tables would be filled with them, for tests.

use std::collections::BTreeMap;

use dbduel_client::random::Random;
use dbduel_driver::Dialect;
use dbduel_record::plan::Parameters;
use serde_json::Value;

use crate::find;
use crate::parameters::{ParameterError, resolve};

/// Every parameter, with these values given.
pub(super) fn resolved(given: &[(&str, Value)]) -> Result<Parameters, ParameterError> {
    let given = given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    resolve(find("linkbench").unwrap(), &given.collect())
}

/// Rows as lists of SQL literals, by table.
pub(super) type Rows = BTreeMap<String, Vec<Vec<String>>>;

/// All rows of all tables.
pub(super) fn filled(given: &[(&str, Value)]) -> Rows {
    let workload = find("linkbench").unwrap();
    let mut tables = workload.tables(Dialect::MySql, &resolved(given).unwrap());
    let mut rows = Rows::new();
    for table in &mut tables {
        table.content.seed(42);
        let (mut random, mut sql) = (Random::new(7), String::new());
        let mut write = table.content.writer(1);
        let of_table = rows.entry(table.name.clone()).or_default();
        for _ in 0..table.rows {
            sql.clear();
            write(&mut random, &mut sql);
            of_table.push(literals(&sql));
        }
    }
    rows
}

/// The literals of a parenthesised row.
fn literals(row: &str) -> Vec<String> {
    let inner = row
        .strip_prefix('(')
        .and_then(|row| row.strip_suffix(')'))
        .unwrap();
    let (mut values, mut quoted) = (vec![String::new()], false);
    for letter in inner.chars() {
        quoted ^= letter == '\'';
        match letter {
            ',' if !quoted => values.push(String::new()),
            letter => values.last_mut().unwrap().push(letter),
        }
    }
    values
}

/// A link.
#[derive(Debug)]
pub(super) struct Link {
    pub id1: u64,
    pub id2: u64,
    pub link_type: u64,
    pub time: u64,
    pub data: Vec<u8>,
}

/// The rows of the table of links.
pub(super) fn links(rows: &Rows) -> impl Iterator<Item = Link> + '_ {
    rows["linktable"].iter().map(|row| {
        let number = |column: usize| row[column].parse().unwrap();
        assert_eq!(number(3), 1, "loaded links are visible");
        Link {
            id1: number(0),
            id2: number(1),
            link_type: number(2),
            time: number(5),
            data: payload(&row[4]),
        }
    })
}

/// The bytes of a literal.
pub(super) fn payload(literal: &str) -> Vec<u8> {
    match literal.strip_prefix('x') {
        None => literal.trim_matches('\'').as_bytes().to_vec(),
        Some(hex) => {
            let digits = hex.trim_matches('\'').as_bytes();
            let byte =
                |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            digits.chunks(2).map(byte).collect()
        }
    }
}
