//! The tables of the Insert Benchmark and their secondary indexes.

use dbduel_driver::Dialect;
use dbduel_record::plan::Parameters;

use super::row::Rows;
use super::settings::Settings;
use crate::Table;
use crate::parameters::Resolved;
use crate::sql::{columns, continue_numbers};

/// All columns except the key.
pub(super) const VALUES: &str = "dateandtime, cashregisterid, customerid, productid, price, data";

const DEFINITIONS: &str = "transactionid BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, dateandtime DATETIME, \
     cashregisterid INT NOT NULL, customerid INT NOT NULL, productid INT NOT NULL, price INT NOT NULL, \
     data VARCHAR(4000), PRIMARY KEY (transactionid)";

/// Numbers that a session of PostgreSQL reserves from the sequence at once.
const SEQUENCE_CACHE: u64 = 1_000;

/// A secondary index.
pub(super) struct Index {
    name: &'static str,
    pub columns: &'static str,
}

/// The secondary indexes of each table.
pub(super) const INDEXES: [Index; 3] = [
    Index {
        name: "marketsegment",
        columns: "productid, customerid, price",
    },
    Index {
        name: "registersegment",
        columns: "cashregisterid, customerid, price",
    },
    Index {
        name: "pdc",
        columns: "price, dateandtime, customerid",
    },
];

impl Index {
    /// Its name in the database; includes the table where index names must be unique.
    pub(super) fn name_in(&self, table: &str) -> String {
        format!("{table}_{}", self.name)
    }
}

/// The name of a table, counted from 1.
pub(super) fn table_name(number: u64) -> String {
    format!("pi{number}")
}

/// Statements that create the secondary indexes of a table: with MySQL one, so that it scans the rows once.
pub(super) fn create_indexes(dialect: Dialect, table: &str) -> Vec<String> {
    match dialect {
        Dialect::MySql => {
            let parts = INDEXES
                .map(|index| format!("ADD INDEX {} ({})", index.name_in(table), index.columns));
            vec![format!("ALTER TABLE {table} {}", parts.join(", "))]
        }
        Dialect::PostgreSql | Dialect::Sqlite => INDEXES
            .map(|index| {
                let (name, columns) = (index.name_in(table), index.columns);
                format!("CREATE INDEX {name} ON {table} ({columns})")
            })
            .to_vec(),
    }
}

/// Statements that drop the secondary indexes of a table.
pub(super) fn drop_indexes(dialect: Dialect, table: &str) -> Vec<String> {
    match dialect {
        Dialect::MySql => {
            let parts = INDEXES.map(|index| format!("DROP INDEX {}", index.name_in(table)));
            vec![format!("ALTER TABLE {table} {}", parts.join(", "))]
        }
        Dialect::PostgreSql | Dialect::Sqlite => INDEXES
            .map(|index| format!("DROP INDEX {}", index.name_in(table)))
            .to_vec(),
    }
}

pub(super) fn tables(dialect: Dialect, parameters: &Parameters) -> Vec<Table> {
    let settings = Settings::new(parameters);
    let resolved = Resolved(parameters);
    let engine = match dialect {
        Dialect::MySql => format!("ENGINE = {} ", resolved.text("engine")),
        Dialect::PostgreSql | Dialect::Sqlite => String::new(),
    };
    let options = resolved.text("create_table_options");
    let table = |number| {
        let name = table_name(number);
        let mut finish = match settings.step.is_indexed() {
            true => create_indexes(dialect, &name),
            false => Vec::new(),
        };
        if dialect == Dialect::PostgreSql {
            finish.push(format!(
                "ALTER SEQUENCE {name}_transactionid_seq CACHE {SEQUENCE_CACHE}"
            ));
            finish.push(continue_numbers(&name, "transactionid"));
        }
        Table {
            create: format!(
                "CREATE TABLE {name} ({}) {engine}{options}",
                columns(dialect, DEFINITIONS)
            ),
            columns: "transactionid, dateandtime, cashregisterid, customerid, productid, price, data",
            rows: settings.rows,
            content: Box::new(Rows::new(settings.seed, number)),
            finish,
            // Keys may have gaps that depend on the server.
            digest_columns: VALUES,
            scaled: Vec::new(),
            name,
        }
    };
    (1..=settings.tables).map(table).collect()
}
