//! The nine tables of the specification, and two of dbduel: facts about the data, and skipped deliveries.
//!
//! Columns and keys; the rows come from [`super::population`].

use dbduel_driver::Dialect;
use dbduel_record::plan::Parameters;

use super::population::{Content, Filler};
use super::settings::{DISTRICTS, Settings};
use crate::Table;
use crate::parameters::Resolved;
use crate::sql::{self, Partitions};

/// Facts that a run needs about the data: a name and a number per row.
pub(super) const FACTS: &str = "order_entry_facts";
/// Deliveries that found a district without an undelivered order, by terminal.
pub(super) const SKIPS: &str = "order_entry_skips";
/// The fact that is inserted after everything else is in place.
pub(super) const COMPLETE: &str = "complete";

/// A table's definition.
struct Definition {
    name: &'static str,
    content: Content,
    /// Columns and primary key.
    body: &'static str,
    /// The partitioning column.
    warehouse: Option<&'static str>,
    columns: &'static str,
    /// The secondary index that all implementations have.
    index: Option<&'static str>,
}

const DEFINITIONS: &[Definition] = &[
    Definition {
        name: FACTS,
        content: Content::Facts,
        body: "name VARCHAR(32) NOT NULL, value BIGINT NOT NULL, PRIMARY KEY (name)",
        warehouse: None,
        columns: "name, value",
        index: None,
    },
    Definition {
        name: SKIPS,
        content: Content::Skips,
        body: "terminal INT UNSIGNED NOT NULL, deliveries BIGINT NOT NULL, districts BIGINT NOT NULL, \
               PRIMARY KEY (terminal)",
        warehouse: None,
        columns: "terminal, deliveries, districts",
        index: None,
    },
    Definition {
        name: "warehouse",
        content: Content::Warehouse,
        body: "w_id SMALLINT UNSIGNED NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL, \
               w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL, \
               w_zip CHAR(9) NOT NULL, w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(12,2) NOT NULL, \
               PRIMARY KEY (w_id)",
        warehouse: Some("w_id"),
        columns: "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd",
        index: None,
    },
    Definition {
        name: "district",
        content: Content::District,
        body: "d_id TINYINT UNSIGNED NOT NULL, d_w_id SMALLINT UNSIGNED NOT NULL, d_name VARCHAR(10) NOT NULL, \
               d_street_1 VARCHAR(20) NOT NULL, d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL, \
               d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL, d_tax DECIMAL(4,4) NOT NULL, \
               d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INT UNSIGNED NOT NULL, PRIMARY KEY (d_w_id, d_id)",
        warehouse: Some("d_w_id"),
        columns: "d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, d_next_o_id",
        index: None,
    },
    Definition {
        name: "customer",
        content: Content::Customer,
        body: "c_id INT UNSIGNED NOT NULL, c_d_id TINYINT UNSIGNED NOT NULL, c_w_id SMALLINT UNSIGNED NOT NULL, \
               c_first VARCHAR(16) NOT NULL, c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, \
               c_street_1 VARCHAR(20) NOT NULL, c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL, \
               c_state CHAR(2) NOT NULL, c_zip CHAR(9) NOT NULL, c_phone CHAR(16) NOT NULL, \
               c_since DATETIME NOT NULL, c_credit CHAR(2) NOT NULL, c_credit_lim DECIMAL(12,2) NOT NULL, \
               c_discount DECIMAL(4,4) NOT NULL, c_balance DECIMAL(12,2) NOT NULL, \
               c_ytd_payment DECIMAL(12,2) NOT NULL, c_payment_cnt INT UNSIGNED NOT NULL, \
               c_delivery_cnt INT UNSIGNED NOT NULL, c_data VARCHAR(500) NOT NULL, \
               PRIMARY KEY (c_w_id, c_d_id, c_id)",
        warehouse: Some("c_w_id"),
        columns: "c_id, c_d_id, c_w_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
                  c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt, \
                  c_delivery_cnt, c_data",
        index: Some("CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)"),
    },
    Definition {
        name: "history",
        content: Content::History,
        body: "h_c_id INT UNSIGNED NOT NULL, h_c_d_id TINYINT UNSIGNED NOT NULL, h_c_w_id SMALLINT UNSIGNED NOT NULL, \
               h_d_id TINYINT UNSIGNED NOT NULL, h_w_id SMALLINT UNSIGNED NOT NULL, h_date DATETIME NOT NULL, \
               h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL",
        warehouse: Some("h_w_id"),
        columns: "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data",
        index: None,
    },
    Definition {
        name: "new_order",
        content: Content::NewOrder,
        body: "no_o_id INT UNSIGNED NOT NULL, no_d_id TINYINT UNSIGNED NOT NULL, no_w_id SMALLINT UNSIGNED NOT NULL, \
               PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
        warehouse: Some("no_w_id"),
        columns: "no_o_id, no_d_id, no_w_id",
        index: None,
    },
    Definition {
        name: "orders",
        content: Content::Orders,
        body: "o_id INT UNSIGNED NOT NULL, o_d_id TINYINT UNSIGNED NOT NULL, o_w_id SMALLINT UNSIGNED NOT NULL, \
               o_c_id INT UNSIGNED NOT NULL, o_entry_d DATETIME NOT NULL, o_carrier_id TINYINT UNSIGNED, \
               o_ol_cnt TINYINT UNSIGNED NOT NULL, o_all_local TINYINT UNSIGNED NOT NULL, \
               PRIMARY KEY (o_w_id, o_d_id, o_id)",
        warehouse: Some("o_w_id"),
        columns: "o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local",
        index: Some("CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)"),
    },
    Definition {
        name: "order_line",
        content: Content::OrderLine,
        body: "ol_o_id INT UNSIGNED NOT NULL, ol_d_id TINYINT UNSIGNED NOT NULL, ol_w_id SMALLINT UNSIGNED NOT NULL, \
               ol_number TINYINT UNSIGNED NOT NULL, ol_i_id INT UNSIGNED NOT NULL, \
               ol_supply_w_id SMALLINT UNSIGNED NOT NULL, ol_delivery_d DATETIME, \
               ol_quantity TINYINT UNSIGNED NOT NULL, ol_amount DECIMAL(6,2) NOT NULL, \
               ol_dist_info CHAR(24) NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
        warehouse: Some("ol_w_id"),
        columns: "ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, \
                  ol_amount, ol_dist_info",
        index: None,
    },
    Definition {
        name: "item",
        content: Content::Item,
        body: "i_id INT UNSIGNED NOT NULL, i_im_id INT UNSIGNED NOT NULL, i_name VARCHAR(24) NOT NULL, \
               i_price DECIMAL(5,2) NOT NULL, i_data VARCHAR(50) NOT NULL, PRIMARY KEY (i_id)",
        warehouse: None,
        columns: "i_id, i_im_id, i_name, i_price, i_data",
        index: None,
    },
    Definition {
        name: "stock",
        content: Content::Stock,
        body: "s_i_id INT UNSIGNED NOT NULL, s_w_id SMALLINT UNSIGNED NOT NULL, s_quantity SMALLINT NOT NULL, \
               s_dist_01 CHAR(24) NOT NULL, s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, \
               s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL, s_dist_06 CHAR(24) NOT NULL, \
               s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL, \
               s_dist_10 CHAR(24) NOT NULL, s_ytd INT UNSIGNED NOT NULL, s_order_cnt INT UNSIGNED NOT NULL, \
               s_remote_cnt INT UNSIGNED NOT NULL, s_data VARCHAR(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id)",
        warehouse: Some("s_w_id"),
        columns: "s_i_id, s_w_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
                  s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt, s_data",
        index: None,
    },
];

/// Child tables with their constraints, in an order in which the parents of each exist.
const FOREIGN_KEYS: &[(&str, &str)] = &[
    (
        "district",
        "FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)",
    ),
    (
        "customer",
        "FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)",
    ),
    (
        "history",
        "FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)",
    ),
    (
        "history",
        "FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id)",
    ),
    (
        "orders",
        "FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)",
    ),
    (
        "new_order",
        "FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
    ),
    ("stock", "FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id)"),
    ("stock", "FOREIGN KEY (s_i_id) REFERENCES item (i_id)"),
    (
        "order_line",
        "FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
    ),
    (
        "order_line",
        "FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id)",
    ),
];

/// The tables with their rows.
pub(super) fn tables(dialect: Dialect, parameters: &Parameters) -> Vec<Table> {
    let settings = Settings::new(parameters);
    DEFINITIONS
        .iter()
        .map(|definition| Table {
            name: definition.name.to_owned(),
            create: create(dialect, definition, Resolved(parameters)),
            columns: definition.columns,
            rows: rows(definition.content, &settings),
            content: Box::new(Filler::new(definition.content, settings)),
            finish: definition
                .index
                .iter()
                .map(|index| (*index).to_owned())
                .collect(),
            digest_columns: definition.columns,
            scaled: sql::scaled(dialect, definition.body),
        })
        .collect()
}

/// Names of the tables, without those of dbduel.
pub(super) fn specified() -> impl Iterator<Item = &'static str> {
    DEFINITIONS
        .iter()
        .map(|definition| definition.name)
        .filter(|&name| name != FACTS && name != SKIPS)
}

/// The statement that creates a table.
fn create(dialect: Dialect, definition: &Definition, parameters: Resolved<'_>) -> String {
    let partitions = definition.warehouse.map(|column| Partitions {
        mysql_method: "HASH",
        column,
        count: parameters.count("partitions"),
    });
    let body = sql::columns(dialect, definition.body);
    let options = match dialect {
        Dialect::MySql => mysql_options(parameters),
        Dialect::PostgreSql | Dialect::Sqlite => parameters.text("create_table_options").to_owned(),
    };
    sql::create_table(
        dialect,
        definition.name,
        &body,
        &options,
        partitions.as_ref(),
    )
}

/// Options after the closing parenthesis of MySQL's CREATE TABLE.
fn mysql_options(parameters: Resolved<'_>) -> String {
    let mut options = format!(
        "ENGINE = {} DEFAULT CHARACTER SET {}",
        parameters.text("engine"),
        parameters.text("character_set")
    );
    if !parameters.text("collation").is_empty() {
        options += &format!(" COLLATE {}", parameters.text("collation"));
    }
    if parameters.text("row_format") != "default" {
        options += &format!(" ROW_FORMAT = {}", parameters.text("row_format"));
    }
    options + " " + parameters.text("create_table_options")
}

/// Units that a table is filled in: rows, except that all lines of an order are one.
fn rows(content: Content, settings: &Settings) -> u64 {
    let Settings {
        warehouses,
        population,
        ..
    } = settings;
    match content {
        Content::Facts => super::population::FACT_NAMES.len() as u64,
        Content::Skips => 0,
        Content::Warehouse => *warehouses,
        Content::District => warehouses * DISTRICTS,
        Content::Customer | Content::History | Content::Orders | Content::OrderLine => {
            warehouses * DISTRICTS * population.customers
        }
        Content::NewOrder => warehouses * DISTRICTS * population.open_orders,
        Content::Item => population.items,
        Content::Stock => warehouses * population.items,
    }
}

/// Statements after all rows and indexes: foreign keys, then the mark of completeness.
pub(super) fn post_load_sql(dialect: Dialect, parameters: &Parameters) -> Vec<String> {
    let mut statements = Vec::new();
    if Resolved(parameters).switch("foreign_keys") {
        // Generated rows cannot violate the constraints, and the consistency conditions are checked
        // afterwards; with the check on, MySQL copies every table to add its keys.
        let check = |on: u8| match dialect {
            Dialect::MySql => Some(format!("SET SESSION foreign_key_checks = {on}")),
            Dialect::PostgreSql | Dialect::Sqlite => None,
        };
        statements.extend(check(0));
        // With a name of its own, a key that is there already is refused and not added again.
        let add = |(number, (table, key)): (usize, &(&str, &str))| {
            format!("ALTER TABLE {table} ADD CONSTRAINT {table}_fk{number} {key}")
        };
        statements.extend((1..).zip(FOREIGN_KEYS).map(add));
        statements.extend(check(1));
    }
    statements.push(format!(
        "INSERT INTO {FACTS} (name, value) VALUES ('{COMPLETE}', 1)"
    ));
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filled_column_is_defined_once() {
        for definition in DEFINITIONS {
            for column in definition.columns.split(", ") {
                let defined = definition
                    .body
                    .split(", ")
                    .filter(|piece| piece.starts_with(&format!("{column} ")))
                    .count();
                assert_eq!(defined, 1, "{}.{column}", definition.name);
            }
        }
    }

    #[test]
    fn every_foreign_key_has_tables_that_exist() {
        let names: Vec<&str> = specified().collect();
        assert_eq!(names.len(), 9);
        assert_eq!(FOREIGN_KEYS.len(), 10);
        for (child, key) in FOREIGN_KEYS {
            let parent = key
                .split("REFERENCES ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next())
                .unwrap();
            assert!(
                names.contains(child) && names.contains(&parent),
                "{child}: {key}"
            );
        }
    }
}
