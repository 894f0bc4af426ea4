//! Size of a fill, estimated from a sample of its rows.

use dbduel_client::random::Random;
use dbduel_driver::Dialect;
use dbduel_record::plan::Parameters;

use super::infile::append_line;
use crate::{Table, Workload};

/// Units in the sample, the first of each table: the position of others may be costly to compute.
const LOOKED_AT: u64 = 1_024;
/// Overhead of a row for a server beside its bytes, in bytes.
const ROW_WEIGHT: f64 = 100.0;

/// Estimated size of a workload's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Rows; estimated where some are inserted together, such as the lines of an order.
    pub rows: u64,
    /// Bytes on disk with all indexes, as InnoDB stores them uncompressed: within about a quarter.
    pub disk_bytes: u64,
}

impl Extent {
    /// Estimates the size of the tables that [`super::fill`] makes from resolved parameters; `None` for a workload
    /// that makes its tables itself.
    #[must_use]
    pub fn of(workload: &dyn Workload, parameters: &Parameters) -> Option<Self> {
        if workload.own_data().is_some() {
            return None;
        }
        let tables = workload.tables(Dialect::MySql, parameters);
        let (mut rows, mut bytes) = (0.0, 0.0);
        for table in &tables {
            let unit = Unit::of(table);
            rows += table.rows as f64 * unit.rows;
            bytes += table.rows as f64 * unit.bytes;
        }
        Some(Extent {
            rows: rows.round() as u64,
            disk_bytes: (bytes * workload.disk_per_value()) as u64,
        })
    }
}

/// Mean size of the units that a table is filled in.
struct Unit {
    /// Rows; more than one where rows are inserted together.
    rows: f64,
    /// Bytes of their values.
    bytes: f64,
}

impl Unit {
    fn of(table: &Table) -> Self {
        let units = LOOKED_AT.min(table.rows);
        let (mut sql, mut values) = (String::new(), Vec::new());
        let mut random = Random::new(0);
        let mut write = table.content.writer(1);
        for _ in 0..units {
            write(&mut random, &mut sql);
        }
        append_line(&sql, &mut values);
        let within = sql.matches("),(").count();
        let each = units.max(1) as f64;
        Unit {
            rows: 1.0 + within as f64 / each,
            bytes: values.len() as f64 / each,
        }
    }
}

/// Relative cost of a chunk of a table for a server.
pub(super) fn weight(table: &Table) -> u64 {
    let unit = Unit::of(table);
    (unit.bytes + ROW_WEIGHT * unit.rows) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WORKLOADS, find, parameters::resolve};
    use serde_json::Value;

    fn extent(workload: &str, given: &[(&str, Value)]) -> Extent {
        let workload = find(workload).unwrap();
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        Extent::of(workload, &resolve(workload, &given.collect()).unwrap()).unwrap()
    }

    #[test]
    fn every_workload_with_tables_has_an_extent() {
        for workload in WORKLOADS {
            let extent = extent(workload.name(), &[]);
            assert!(extent.rows > 0, "{}", workload.name());
            assert!(
                extent.disk_bytes > 10 * extent.rows,
                "{}: {extent:?}",
                workload.name()
            );
        }
    }

    #[test]
    fn rows_that_are_filled_in_together_weigh_what_they_do_together() {
        let workload = find("order-entry").unwrap();
        let parameters = resolve(workload, &Parameters::new()).unwrap();
        let tables = workload.tables(Dialect::MySql, &parameters);
        let table = |name: &str| tables.iter().find(|table| table.name == name).unwrap();
        // Ten lines of an order, in the mean.
        let lines = Unit::of(table("order_line"));
        assert!((9.0..11.0).contains(&lines.rows), "{}", lines.rows);
        assert!(weight(table("order_line")) > 5 * weight(table("orders")));
        assert!((Unit::of(table("stock")).rows - 1.0).abs() < 1e-9);
    }

    #[test]
    fn lines_of_orders_are_counted_one_by_one() {
        let extent = extent("order-entry", &[("warehouses", 4.into())]);
        // What four warehouses have by the specification, but for how many lines an order has.
        let expected = 2_096_128.0;
        assert!(
            (extent.rows as f64 / expected - 1.0).abs() < 0.02,
            "{extent:?}"
        );
    }

    #[test]
    fn the_extent_grows_with_the_rows_and_with_their_length() {
        let small = extent("linkbench", &[("maxid1", 100_001.into())]);
        let large = extent("linkbench", &[("maxid1", 1_000_001.into())]);
        assert!(large.rows > 4 * small.rows / 2, "{small:?}, {large:?}");
        assert!(large.disk_bytes > 2 * small.disk_bytes);
        let given = [
            ("maxid1", 1_000_001.into()),
            ("node_datasize", 1_280.into()),
        ];
        let wide = extent("linkbench", &given);
        assert_eq!(wide.rows, large.rows);
        // A million payloads of 2110 bytes in the mean instead of 211.
        assert!(
            wide.disk_bytes - large.disk_bytes > 1_500_000_000,
            "{wide:?}"
        );
    }
}
