//! Session settings of clients, which override those of their server.

use dbduel_record::plan::Parameters;
use serde_json::Value;

use crate::Product;

/// A setting of a session that clients make themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetByClients {
    /// The session's variable.
    pub variable: &'static str,
    /// As the server shows it.
    pub value: &'static str,
    /// The workload's parameter that decides it.
    pub parameter: &'static str,
}

/// Session settings of the clients of a workload; empty where they set nothing.
#[must_use]
pub(crate) fn session(
    workload: &str,
    parameters: &Parameters,
    product: Product,
) -> Vec<SetByClients> {
    match workload {
        "order-entry" => order_entry(parameters, product),
        _ => Vec::new(),
    }
}

/// The isolation of transactions, which clients set by the parameter of that name. Plans of versions before it set nothing here.
fn order_entry(parameters: &Parameters, product: Product) -> Vec<SetByClients> {
    let parameter = "isolation";
    let asked = parameters.get(parameter).and_then(Value::as_str);
    let (variable, read_committed, repeatable_read) = match product {
        Product::MySql | Product::MariaDb | Product::Percona => {
            ("transaction_isolation", "READ-COMMITTED", "REPEATABLE-READ")
        }
        Product::PostgreSql => (
            "default_transaction_isolation",
            "read committed",
            "repeatable read",
        ),
        // There is one isolation.
        Product::Sqlite => return Vec::new(),
    };
    let value = match asked {
        Some("read-committed") => read_committed,
        Some("repeatable-read") => repeatable_read,
        Some("product") if product.has_innodb() => repeatable_read,
        Some("product") => read_committed,
        _ => return Vec::new(),
    };
    vec![SetByClients {
        variable,
        value,
        parameter,
    }]
}
