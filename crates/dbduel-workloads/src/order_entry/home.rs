//! A terminal's warehouse and district, and its choice of customers.

use dbduel_client::random::Random;
use dbduel_driver::{ClientConnection, Group, Statement, StatementError, Value};

use super::settings::{DISTRICTS, Settings};
use super::values::{LastName, between, percent};
use crate::rows::{Fields, add, each, unusable};
use crate::sql::statement;

/// Percent of customers that are found by name instead of number.
const BY_NAME_PERCENT: u64 = 60;

/// A terminal's warehouse and district, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Home {
    pub warehouse: u64,
    pub district: u64,
}

impl Home {
    /// The home of a terminal: warehouse by warehouse, so that few terminals use many warehouses.
    pub(super) fn of_terminal(terminal: u64, warehouses: u64) -> Self {
        Home {
            warehouse: terminal % warehouses + 1,
            district: terminal / warehouses % DISTRICTS + 1,
        }
    }

    /// A random warehouse and district.
    pub(super) fn draw(random: &mut Random, warehouses: u64) -> Self {
        Home {
            warehouse: between(random, 1, warehouses),
            district: any_district(random),
        }
    }

    /// Warehouse and district as values of statements.
    pub(super) fn values(self) -> [Value<'static>; 2] {
        [self.warehouse, self.district].map(Value::Unsigned)
    }
}

/// A random one of the ten districts.
pub(super) fn any_district(random: &mut Random) -> u64 {
    between(random, 1, DISTRICTS)
}

/// A warehouse other than `home`, or `home` when it is the only one.
pub(super) fn other_warehouse(random: &mut Random, home: u64, warehouses: u64) -> u64 {
    if warehouses == 1 {
        return home;
    }
    let other = between(random, 1, warehouses - 1);
    if other < home { other } else { other + 1 }
}

/// How a customer is identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    Number(u64),
    Name(LastName),
}

impl Pick {
    pub(super) fn draw(random: &mut Random, settings: &Settings) -> Self {
        if percent(random, BY_NAME_PERCENT) {
            Pick::Name(LastName::new(settings.last_name.draw(random)))
        } else {
            Pick::Number(settings.customer.draw(random))
        }
    }
}

/// Finds a customer by number or by name, with the same columns.
pub(super) struct FindCustomer {
    by_number: Statement,
    by_name: Statement,
}

impl FindCustomer {
    /// Prepares the statements; `tail` is `" FOR UPDATE"` or empty.
    pub(super) async fn prepare(
        conn: &mut ClientConnection,
        columns: &str,
        tail: &str,
        settings: &Settings,
    ) -> Result<Self, StatementError> {
        let by_number = format!(
            "SELECT {columns} FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?{tail}"
        );
        let by_name = format!(
            "SELECT {columns} FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first{tail}"
        );
        let dialect = conn.dialect();
        Ok(FindCustomer {
            by_number: conn
                .prepare(&statement(dialect, &by_number), settings.protocol)
                .await?,
            by_name: conn
                .prepare(&statement(dialect, &by_name), settings.protocol)
                .await?,
        })
    }

    /// Adds the statement that finds the customer to a group.
    pub(super) fn add_to(
        &self,
        group: &mut Group,
        home: Home,
        pick: &Pick,
    ) -> Result<(), StatementError> {
        let (statement, key) = match pick {
            Pick::Number(number) => (&self.by_number, Value::Unsigned(*number)),
            Pick::Name(name) => (&self.by_name, Value::Text(name.as_str())),
        };
        let [warehouse, district] = home.values();
        add(group, statement, &[warehouse, district, key])
    }

    /// The customer: of several with the same name the middle one, position ceil(n/2). `matches` is
    /// scratch space.
    pub(super) async fn find<T: Copy>(
        &mut self,
        conn: &mut ClientConnection,
        home: Home,
        pick: &Pick,
        matches: &mut Vec<T>,
        mut read: impl FnMut(&mut Fields<'_>) -> Option<T>,
    ) -> Result<T, StatementError> {
        let (statement, key) = match pick {
            Pick::Number(number) => (&mut self.by_number, Value::Unsigned(*number)),
            Pick::Name(name) => (&mut self.by_name, Value::Text(name.as_str())),
        };
        let values = [
            Value::Unsigned(home.warehouse),
            Value::Unsigned(home.district),
            key,
        ];
        matches.clear();
        each(conn, statement, &values, |fields| {
            matches.push(read(fields)?);
            Some(())
        })
        .await?;
        middle(matches)
    }
}

/// Of several customers with one name the middle one, position ceil(n/2).
pub(super) fn middle<T: Copy>(matches: &[T]) -> Result<T, StatementError> {
    let middle = matches.len().saturating_sub(1) / 2;
    matches
        .get(middle)
        .copied()
        .ok_or_else(|| unusable("no customer has the number or last name that was drawn"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ten_terminals_per_warehouse_have_a_district_each() {
        let homes: BTreeSet<_> = (0..40)
            .map(|terminal| {
                let Home {
                    warehouse,
                    district,
                } = Home::of_terminal(terminal, 4);
                (warehouse, district)
            })
            .collect();
        let expected: BTreeSet<_> = (1..=4)
            .flat_map(|w| (1..=10).map(move |d| (w, d)))
            .collect();
        assert_eq!(homes, expected);
        let first_four: BTreeSet<_> = (0..4)
            .map(|terminal| Home::of_terminal(terminal, 4).warehouse)
            .collect();
        assert_eq!(first_four.len(), 4);
    }

    #[test]
    fn the_other_warehouse_is_any_but_the_own_one() {
        let mut random = Random::new(1);
        for home in 1..=3 {
            let others: BTreeSet<_> = (0..100)
                .map(|_| other_warehouse(&mut random, home, 3))
                .collect();
            assert_eq!(others, (1..=3).filter(|&other| other != home).collect());
        }
        assert_eq!(other_warehouse(&mut random, 1, 1), 1);
    }
}
