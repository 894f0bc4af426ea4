//! The statement of a single-statement workload, and its values.

use dbduel_client::distributions::Distribution;
use dbduel_client::random::Random;
use dbduel_driver::{Protocol, Value};
use dbduel_record::plan::Parameters;

use crate::parameters::Resolved;
use crate::sbtest::Sbtest;

/// Kind of the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Select,
    UpdateInlist,
}

/// How a statement selects rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Those of an IN list.
    Points,
    /// Those between two values.
    Range,
    /// None, after reading all rows.
    Scan,
}

pub(super) const ACCESS: &str = "access";
pub(super) const HOT_POINTS: &str = "hot_points";

/// State common to all clients.
#[derive(Clone)]
pub(in crate::oltp) struct Options {
    pub(super) action: Action,
    pub(super) access: Access,
    pub(super) sbtest: Sbtest,
    pub(super) tables: u64,
    /// The column that is searched.
    key: &'static str,
    columns: &'static str,
    /// Values in the IN list.
    pub(super) points: i64,
    pub(super) has_hot_points: bool,
    range_size: i64,
}

impl Options {
    pub(super) fn new(action: Action, parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        let is_select = action == Action::Select;
        let choice = |name| if is_select { resolved.text(name) } else { "" };
        let access = match choice(ACCESS) {
            "range" => Access::Range,
            "scan" => Access::Scan,
            _ => Access::Points,
        };
        let key = match choice("key") {
            "secondary" => "k",
            _ => "id",
        };
        let columns = match (choice("columns"), key) {
            ("key", key) => key,
            ("key-and-c", "k") => "k, c",
            ("key-and-c", _) => "id, c",
            ("count", _) => "COUNT(c)",
            _ => "c",
        };
        Options {
            action,
            access,
            sbtest: Sbtest::new(parameters),
            tables: resolved.count("tables"),
            key,
            columns,
            points: resolved.integer("random_points"),
            has_hot_points: resolved.switch(HOT_POINTS),
            range_size: if is_select {
                resolved.integer("range_size")
            } else {
                0
            },
        }
    }

    /// The statement; `#` stands for the number of the table.
    pub(super) fn sql(&self) -> String {
        let Options { key, columns, .. } = self;
        let condition = match self.access {
            Access::Points => {
                let list = vec!["?"; self.points as usize].join(", ");
                format!("{key} IN ({list})")
            }
            Access::Range => format!("{key} BETWEEN ? AND ?"),
            // No optimiser can tell from statistics or an index that no row qualifies.
            Access::Scan => "LENGTH(c) < 0".to_owned(),
        };
        match self.action {
            Action::Select => format!("SELECT {columns} FROM sbtest# WHERE {condition}"),
            Action::UpdateInlist => format!("UPDATE sbtest# SET c=? WHERE {condition}"),
        }
    }

    /// Scans are sent as text, as in the published benchmarks.
    pub(super) fn protocol(&self) -> Protocol {
        match self.access {
            Access::Scan => Protocol::Text,
            Access::Points | Access::Range => self.sbtest.protocol,
        }
    }

    /// The hot value with that number, from 1.
    pub(super) fn hot_point(&self, number: i64) -> i64 {
        self.sbtest.table_size / 2 + number
    }

    /// Appends the values of the condition.
    pub(super) fn draw_key(
        &self,
        ids: &Distribution,
        random: &mut Random,
        bound: &mut Vec<Value<'_>>,
    ) {
        match self.access {
            Access::Points if self.has_hot_points => {
                bound.extend((1..=self.points).map(|number| Value::Signed(self.hot_point(number))));
            }
            Access::Points => {
                bound.extend((0..self.points).map(|_| Value::Signed(ids.draw(random))));
            }
            Access::Range => {
                let first = ids.draw(random);
                bound.extend([first, first + self.range_size - 1].map(Value::Signed));
            }
            Access::Scan => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SingleStatement;
    use super::*;
    use crate::Workload as _;

    fn options(workload: &SingleStatement, given: &[(&str, &str)]) -> Options {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()));
        let resolved = workload.resolve(&given.collect()).unwrap();
        Options::new(workload.action, &resolved)
    }

    fn select(given: &[(&str, &str)]) -> String {
        options(&SingleStatement::SELECT, given).sql()
    }

    fn drawn(options: &Options) -> Vec<Value<'static>> {
        let mut bound = Vec::new();
        options.draw_key(&options.sbtest.ids(), &mut Random::new(1), &mut bound);
        bound
            .iter()
            .map(|value| Value::Signed(value.as_i64().unwrap()))
            .collect()
    }

    #[test]
    fn points_and_ranges_have_these_statements() {
        let three = ("random_points", "3");
        let range = ("access", "range");
        let (covered, not_covered) = (("columns", "key"), ("columns", "key-and-c"));
        let secondary = ("key", "secondary");
        for (given, expected) in [
            (vec![three], "SELECT c FROM sbtest# WHERE id IN (?, ?, ?)"),
            (
                vec![three, covered],
                "SELECT id FROM sbtest# WHERE id IN (?, ?, ?)",
            ),
            (
                vec![three, not_covered],
                "SELECT id, c FROM sbtest# WHERE id IN (?, ?, ?)",
            ),
            (
                vec![three, covered, secondary],
                "SELECT k FROM sbtest# WHERE k IN (?, ?, ?)",
            ),
            (
                vec![three, not_covered, secondary],
                "SELECT k, c FROM sbtest# WHERE k IN (?, ?, ?)",
            ),
            (
                vec![range, covered],
                "SELECT id FROM sbtest# WHERE id BETWEEN ? AND ?",
            ),
            (
                vec![range, not_covered],
                "SELECT id, c FROM sbtest# WHERE id BETWEEN ? AND ?",
            ),
            (
                vec![range, covered, secondary],
                "SELECT k FROM sbtest# WHERE k BETWEEN ? AND ?",
            ),
            (
                vec![range, not_covered, secondary],
                "SELECT k, c FROM sbtest# WHERE k BETWEEN ? AND ?",
            ),
            (
                vec![range, ("columns", "count")],
                "SELECT COUNT(c) FROM sbtest# WHERE id BETWEEN ? AND ?",
            ),
            (
                vec![("access", "scan")],
                "SELECT c FROM sbtest# WHERE LENGTH(c) < 0",
            ),
        ] {
            assert_eq!(select(&given), expected);
        }
        assert_eq!(
            options(&SingleStatement::UPDATE_INLIST, &[("random_points", "2")]).sql(),
            "UPDATE sbtest# SET c=? WHERE id IN (?, ?)"
        );
    }

    #[test]
    fn a_statement_has_as_many_values_as_it_needs() {
        for (given, values) in [
            (vec![("random_points", "100")], 100),
            (vec![("access", "range")], 2),
            (vec![("access", "scan")], 0),
        ] {
            let options = options(&SingleStatement::SELECT, &given);
            assert_eq!(drawn(&options).len(), values);
            assert_eq!(options.sql().matches('?').count(), values);
        }
    }

    #[test]
    fn a_range_spans_as_many_ids_as_asked_for() {
        let given = [("access", "range"), ("range_size", "101")];
        let bound = drawn(&options(&SingleStatement::SELECT, &given));
        let ends = [0, 1].map(|place: usize| bound[place].as_i64().unwrap());
        assert_eq!(ends[1] - ends[0], 100);
    }

    #[test]
    fn hot_points_are_the_same_values_behind_the_middle() {
        let given = [
            ("random_points", "3"),
            ("table_size", "1000"),
            ("hot_points", "true"),
        ];
        for workload in [SingleStatement::SELECT, SingleStatement::UPDATE_INLIST] {
            let bound = drawn(&options(&workload, &given));
            assert_eq!(bound, [501, 502, 503].map(Value::Signed));
        }
    }

    #[test]
    fn hot_points_that_do_not_exist_are_refused() {
        for given in [
            [("hot_points", "true"), ("access", "range")],
            [("hot_points", "true"), ("table_size", "18")],
        ] {
            let given = given.map(|(name, value)| (name.to_owned(), value.into()));
            let error = SingleStatement::SELECT.resolve(&given.into()).unwrap_err();
            assert_eq!(error.parameter, "hot_points");
        }
        let given = [("hot_points", "true"), ("table_size", "20")];
        assert_eq!(options(&SingleStatement::SELECT, &given).hot_point(10), 20);
    }
}
