//! The consistency conditions of TPC-C 3.3.2, and the numbers of rows that no transaction changes, as queries that
//! return their violations.
//!
//! Each query covers a few warehouses and reads their rows by primary key where there is one. Where two sides must
//! agree they are united and summed, so that a missing side is found as well. Conditions 7, 10 and 12 join orders with
//! their lines and condition 2 looks up two maxima for each district, all by primary key. Sums are exact: all money is
//! DECIMAL.

use std::ops::RangeInclusive;

use dbduel_driver::{Connection, Dialect, QueryError};

use super::recognise::recognise;
use super::schema::SKIPS;
use super::settings::Settings;
use crate::sql::join_in_order;
use crate::verification::{Moment, Verification, VerifyError, check_condition, on_one_state};

/// Warehouses per query: few enough for temporary tables that fit into memory, and enough that the history, which has
/// no index, is not read too often.
const WAREHOUSES_PER_QUERY: u64 = 5;

/// A condition. `{join}` joins two tables in the order in which they are written, `{first}` and `{last}` stand for a range of warehouses; a query without them runs once. `{delivered}`
/// stands for the orders of a district that were delivered when the tables were filled, `{warehouses}`, `{items}` and
/// `{customers}` (of a district) for numbers of rows.
struct Query {
    name: &'static str,
    about: &'static str,
    /// Whether transactions make it false.
    fresh_only: bool,
    sql: &'static str,
}

const QUERIES: &[Query] = &[
    Query {
        name: "rows-of-warehouse",
        about: "The number of warehouses is the number loaded.",
        fresh_only: false,
        sql: "SELECT COUNT(*) AS found, {warehouses} AS expected FROM warehouse HAVING COUNT(*) <> {warehouses}",
    },
    Query {
        name: "rows-of-item",
        about: "The number of items is the number loaded.",
        fresh_only: false,
        sql: "SELECT COUNT(*) AS found, {items} AS expected FROM item HAVING COUNT(*) <> {items}",
    },
    Query {
        name: "rows-of-stock",
        about: "A warehouse has stock of every item.",
        fresh_only: false,
        sql: "SELECT w, SUM(n) AS found, {items} AS expected FROM (\
              SELECT w_id AS w, 0 AS n FROM warehouse WHERE w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT s_w_id, COUNT(*) FROM stock WHERE s_w_id BETWEEN {first} AND {last} GROUP BY s_w_id\
              ) AS sides GROUP BY w HAVING SUM(n) <> {items}",
    },
    Query {
        name: "rows-of-district",
        about: "A warehouse has ten districts.",
        fresh_only: false,
        sql: "SELECT w, SUM(n) AS found, 10 AS expected FROM (\
              SELECT w_id AS w, 0 AS n FROM warehouse WHERE w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT d_w_id, COUNT(*) FROM district WHERE d_w_id BETWEEN {first} AND {last} GROUP BY d_w_id\
              ) AS sides GROUP BY w HAVING SUM(n) <> 10",
    },
    Query {
        name: "rows-of-customer",
        about: "The number of customers of a district is the number loaded.",
        fresh_only: false,
        sql: "SELECT w, d, SUM(n) AS found, {customers} AS expected FROM (\
              SELECT d_w_id AS w, d_id AS d, 0 AS n FROM district WHERE d_w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT c_w_id, c_d_id, COUNT(*) FROM customer WHERE c_w_id BETWEEN {first} AND {last} \
              GROUP BY c_w_id, c_d_id\
              ) AS sides GROUP BY w, d HAVING SUM(n) <> {customers}",
    },
    Query {
        name: "condition-1",
        about: "The year-to-date amount of a warehouse is the sum of its districts'.",
        fresh_only: false,
        sql: "SELECT w, SUM(l) AS w_ytd, SUM(r) AS districts FROM (\
              SELECT w_id AS w, w_ytd AS l, 0 AS r FROM warehouse WHERE w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT d_w_id, 0, d_ytd FROM district WHERE d_w_id BETWEEN {first} AND {last}\
              ) AS sides GROUP BY w HAVING SUM(l) <> SUM(r)",
    },
    Query {
        name: "condition-2",
        about: "A district's next order number follows its newest order and its newest undelivered order.",
        fresh_only: false,
        sql: "SELECT w, d, next_order, newest, newest_open FROM (\
              SELECT d_w_id AS w, d_id AS d, d_next_o_id AS next_order, \
              (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS newest, \
              (SELECT MAX(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id) AS newest_open \
              FROM district WHERE d_w_id BETWEEN {first} AND {last}\
              ) AS sides WHERE newest IS NULL OR newest + 1 <> next_order OR newest_open + 1 <> next_order",
    },
    Query {
        name: "condition-3",
        about: "The undelivered orders of a district have consecutive numbers.",
        fresh_only: false,
        sql: "SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1 AS span, COUNT(*) AS found FROM new_order \
              WHERE no_w_id BETWEEN {first} AND {last} GROUP BY no_w_id, no_d_id \
              HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    },
    Query {
        name: "condition-4",
        about: "The number of lines of a district is the sum of its orders' line counts.",
        fresh_only: false,
        sql: "SELECT w, d, SUM(l) AS said, SUM(r) AS found FROM (\
              SELECT o_w_id AS w, o_d_id AS d, SUM(o_ol_cnt) AS l, 0 AS r FROM orders \
              WHERE o_w_id BETWEEN {first} AND {last} GROUP BY o_w_id, o_d_id \
              UNION ALL SELECT ol_w_id, ol_d_id, 0, COUNT(*) FROM order_line \
              WHERE ol_w_id BETWEEN {first} AND {last} GROUP BY ol_w_id, ol_d_id\
              ) AS sides GROUP BY w, d HAVING SUM(l) <> SUM(r)",
    },
    Query {
        name: "condition-5",
        about: "An order has no carrier exactly when it is among the undelivered ones.",
        fresh_only: false,
        sql: "SELECT w, d, o, SUM(l) AS without_carrier, SUM(r) AS undelivered FROM (\
              SELECT o_w_id AS w, o_d_id AS d, o_id AS o, \
              CASE WHEN o_carrier_id IS NULL THEN 1 ELSE 0 END AS l, 0 AS r FROM orders \
              WHERE o_w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT no_w_id, no_d_id, no_o_id, 0, 1 FROM new_order \
              WHERE no_w_id BETWEEN {first} AND {last}\
              ) AS sides GROUP BY w, d, o HAVING SUM(l) <> SUM(r)",
    },
    Query {
        name: "condition-6",
        about: "The number of lines of an order is its line count.",
        fresh_only: false,
        sql: "SELECT w, d, o, SUM(l) AS said, SUM(r) AS found FROM (\
              SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_ol_cnt AS l, 0 AS r FROM orders \
              WHERE o_w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT ol_w_id, ol_d_id, ol_o_id, 0, COUNT(*) FROM order_line \
              WHERE ol_w_id BETWEEN {first} AND {last} GROUP BY ol_w_id, ol_d_id, ol_o_id\
              ) AS sides GROUP BY w, d, o HAVING SUM(l) <> SUM(r)",
    },
    Query {
        name: "condition-7",
        about: "A line has a delivery date exactly when its order has a carrier.",
        fresh_only: false,
        sql: "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id \
              FROM orders {join} order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
              WHERE o_w_id BETWEEN {first} AND {last} AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    },
    Query {
        name: "condition-8",
        about: "The year-to-date amount of a warehouse is the sum of its payments in the history.",
        fresh_only: false,
        sql: "SELECT w, SUM(l) AS w_ytd, SUM(r) AS paid FROM (\
              SELECT w_id AS w, w_ytd AS l, 0 AS r FROM warehouse WHERE w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT h_w_id, 0, SUM(h_amount) FROM history \
              WHERE h_w_id BETWEEN {first} AND {last} GROUP BY h_w_id\
              ) AS sides GROUP BY w HAVING SUM(l) <> SUM(r)",
    },
    Query {
        name: "condition-9",
        about: "The year-to-date amount of a district is the sum of its payments in the history.",
        fresh_only: false,
        sql: "SELECT w, d, SUM(l) AS d_ytd, SUM(r) AS paid FROM (\
              SELECT d_w_id AS w, d_id AS d, d_ytd AS l, 0 AS r FROM district \
              WHERE d_w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT h_w_id, h_d_id, 0, SUM(h_amount) FROM history \
              WHERE h_w_id BETWEEN {first} AND {last} GROUP BY h_w_id, h_d_id\
              ) AS sides GROUP BY w, d HAVING SUM(l) <> SUM(r)",
    },
    Query {
        name: "condition-10",
        about: "A customer's balance is the amount delivered minus the amount paid.",
        fresh_only: false,
        sql: "SELECT w, d, c, SUM(l) AS c_balance, SUM(r) AS delivered_less_paid FROM (\
              SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance AS l, 0 AS r FROM customer \
              WHERE c_w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT o_w_id, o_d_id, o_c_id, 0, SUM(ol_amount) \
              FROM orders {join} order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
              WHERE o_w_id BETWEEN {first} AND {last} AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id \
              UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, 0, -SUM(h_amount) FROM history \
              WHERE h_c_w_id BETWEEN {first} AND {last} GROUP BY h_c_w_id, h_c_d_id, h_c_id\
              ) AS sides GROUP BY w, d, c HAVING SUM(l) <> SUM(r)",
    },
    Query {
        name: "condition-11",
        about: "All orders but the undelivered ones of a fresh district are delivered.",
        fresh_only: true,
        sql: "SELECT w, d, SUM(l) AS found, SUM(r) AS undelivered FROM (\
              SELECT o_w_id AS w, o_d_id AS d, COUNT(*) AS l, 0 AS r FROM orders \
              WHERE o_w_id BETWEEN {first} AND {last} GROUP BY o_w_id, o_d_id \
              UNION ALL SELECT no_w_id, no_d_id, 0, COUNT(*) FROM new_order \
              WHERE no_w_id BETWEEN {first} AND {last} GROUP BY no_w_id, no_d_id\
              ) AS sides GROUP BY w, d HAVING SUM(l) - SUM(r) <> {delivered}",
    },
    Query {
        name: "condition-12",
        about: "A customer's balance plus payments is the amount delivered.",
        fresh_only: false,
        sql: "SELECT w, d, c, SUM(l) AS owed_and_paid, SUM(r) AS delivered FROM (\
              SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance + c_ytd_payment AS l, 0 AS r FROM customer \
              WHERE c_w_id BETWEEN {first} AND {last} \
              UNION ALL SELECT o_w_id, o_d_id, o_c_id, 0, SUM(ol_amount) \
              FROM orders {join} order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
              WHERE o_w_id BETWEEN {first} AND {last} AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id\
              ) AS sides GROUP BY w, d, c HAVING SUM(l) <> SUM(r)",
    },
];

/// Queries for counts, by name, each returning one number.
fn count_queries() -> [(&'static str, String); 3] {
    [
        (
            "deliveries-with-skips",
            format!("SELECT COALESCE(SUM(deliveries), 0) FROM {SKIPS}"),
        ),
        (
            "skipped-districts",
            format!("SELECT COALESCE(SUM(districts), 0) FROM {SKIPS}"),
        ),
        (
            "delivered-orders",
            "SELECT COALESCE(SUM(c_delivery_cnt), 0) FROM customer".to_owned(),
        ),
    ]
}

/// Checks all conditions that must hold at this moment, on one snapshot of the data even if others change them.
pub(super) fn verify(
    connection: &mut Connection,
    settings: &Settings,
    moment: Moment,
) -> Result<Verification, VerifyError> {
    let warehouses = recognise(connection, settings)?.warehouses;
    on_one_state(connection, |connection| {
        check_all(connection, settings, warehouses, moment)
    })
}

fn check_all(
    connection: &mut Connection,
    settings: &Settings,
    warehouses: u64,
    moment: Moment,
) -> Result<Verification, QueryError> {
    let mut verification = Verification::default();
    let dialect = connection.dialect();
    for query in QUERIES
        .iter()
        .filter(|query| moment == Moment::Fresh || !query.fresh_only)
    {
        let step = if query.sql.contains("{first}") {
            WAREHOUSES_PER_QUERY
        } else {
            warehouses.max(1)
        };
        let statements = (1..=warehouses.max(1)).step_by(step as usize).map(|first| {
            let last = (first + step - 1).min(warehouses);
            statement(dialect, query, settings, warehouses, first..=last)
        });
        verification.conditions.push(check_condition(
            connection,
            query.name,
            query.about,
            statements,
        )?);
    }
    for (name, sql) in count_queries() {
        let count = connection
            .query(&sql)?
            .text(0, 0)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        verification.counts.push((name, count));
    }
    Ok(verification)
}

/// The query for a range of warehouses.
fn statement(
    dialect: Dialect,
    query: &Query,
    settings: &Settings,
    warehouses: u64,
    range: RangeInclusive<u64>,
) -> String {
    let population = &settings.population;
    let joined = query.sql.replace("{join}", join_in_order(dialect));
    [
        ("{first}", *range.start()),
        ("{last}", *range.end()),
        ("{warehouses}", warehouses),
        ("{items}", population.items),
        ("{customers}", population.customers),
        ("{delivered}", population.customers - population.open_orders),
    ]
    .iter()
    .fold(joined, |sql, (name, value)| {
        sql.replace(name, &value.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_twelve_conditions_are_there_and_only_the_eleventh_needs_a_fresh_database() {
        let names: Vec<String> = (1..=12)
            .map(|number| format!("condition-{number}"))
            .collect();
        let conditions = QUERIES.iter().map(|query| query.name);
        let conditions: Vec<_> = conditions
            .filter(|name| name.starts_with("condition-"))
            .collect();
        assert_eq!(conditions, names);
        let fresh: Vec<_> = QUERIES
            .iter()
            .filter(|query| query.fresh_only)
            .map(|query| query.name)
            .collect();
        assert_eq!(fresh, ["condition-11"]);
    }

    #[test]
    fn every_part_of_a_query_is_limited_to_the_warehouses() {
        for query in QUERIES.iter().filter(|query| query.sql.contains("{first}")) {
            let parts = query.sql.matches("SELECT").count() - query.sql.matches("(SELECT").count();
            let nested = usize::from(query.sql.contains(") AS sides"));
            let ranges = query.sql.matches("BETWEEN {first} AND {last}").count();
            assert_eq!(
                ranges + nested,
                parts.max(1) + query.sql.matches("FROM (SELECT").count(),
                "{}",
                query.name
            );
        }
    }
}
