//! Payment (TPC-C 2.5): a customer pays at a warehouse, which need not be the customer's own.

mod grouped;

use dbduel_client::random::Random;
use dbduel_driver::{ClientConnection, Dialect, Group, Protocol, Statement, StatementError, Value};

use super::home::{FindCustomer, Home, Pick, any_district, other_warehouse};
use super::population::CUSTOMER_DATA_MAX;
use super::settings::Settings;
use super::values::{between, percent};
use crate::rows::{Fields, Money, one, text};
use crate::sql::statement;

/// Percent of payments by customers of the terminal's own district.
const LOCAL_PERCENT: u64 = 85;

/// The terminal's input.
#[derive(Debug)]
struct Input {
    home: Home,
    customer_home: Home,
    customer: Pick,
    cents: i64,
}

impl Input {
    fn draw(home: Home, random: &mut Random, settings: &Settings) -> Self {
        let home = Home {
            district: any_district(random),
            ..home
        };
        let customer_home = if percent(random, LOCAL_PERCENT) {
            home
        } else {
            let warehouse = other_warehouse(random, home.warehouse, settings.warehouses);
            Home {
                warehouse,
                district: any_district(random),
            }
        };
        let customer = Pick::draw(random, settings);
        Input {
            home,
            customer_home,
            customer,
            cents: between(random, 100, 500_000) as i64,
        }
    }
}

/// The columns needed from a customer's row.
#[derive(Debug, Clone, Copy)]
struct Customer {
    number: u64,
    balance: i64,
    paid: i64,
    bad_credit: bool,
}

impl Customer {
    /// Reads the columns that [`Payment::prepare`] selects.
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Customer {
            number: fields.integer()?,
            balance: fields.decimal(2)?,
            paid: fields.decimal(2)?,
            bad_credit: fields.text()? == b"BC",
        })
    }
}

/// A customer's row after a payment.
struct Booked {
    /// Warehouse, district and number of the customer.
    key: [Value<'static>; 3],
    balance: Money,
    paid: Money,
}

impl Booked {
    fn new(dialect: Dialect, customer: &Customer, home: Home, cents: i64) -> Self {
        Booked {
            key: [home.warehouse, home.district, customer.number].map(Value::Unsigned),
            balance: Money::new(dialect, customer.balance - cents),
            paid: Money::new(dialect, customer.paid + cents),
        }
    }

    /// Values stored for a customer with good credit.
    fn values(&self) -> [Value<'_>; 5] {
        let [warehouse, district, number] = self.key;
        let (balance, paid) = (self.balance.value(), self.paid.value());
        [balance, paid, warehouse, district, number]
    }

    /// Values stored for a customer with bad credit.
    fn values_with<'a>(&'a self, data: &'a [u8]) -> [Value<'a>; 6] {
        let [balance, paid, warehouse, district, number] = self.values();
        [balance, paid, text(data), warehouse, district, number]
    }

    /// Values stored for the payment at `home`.
    fn history_values<'a>(
        &self,
        home: Home,
        amount: &'a Money,
        history: &'a [u8],
    ) -> [Value<'a>; 7] {
        let ([w, d, number], [warehouse, district]) = (self.key, home.values());
        let (amount, history) = (amount.value(), text(history));
        [number, d, w, district, warehouse, amount, history]
    }
}

/// The transaction: its statements and its next input.
pub(super) struct Payment {
    group: Group,
    is_grouped: bool,
    input: Option<Input>,
    matches: Vec<Customer>,
    history: Vec<u8>,
    data: Vec<u8>,
    begin: Statement,
    commit: Statement,
    lock_warehouse: Statement,
    update_warehouse: Statement,
    lock_district: Statement,
    update_district: Statement,
    lock_customer: FindCustomer,
    customer_data: Statement,
    update_customer: Statement,
    update_bad_customer: Statement,
    insert_history: Statement,
}

impl Payment {
    pub(super) async fn prepare(
        conn: &mut ClientConnection,
        settings: &Settings,
    ) -> Result<Self, StatementError> {
        let lock_customer = FindCustomer::prepare(
            conn,
            "c_id, c_balance, c_ytd_payment, c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, \
             c_state, c_zip, c_phone, c_since, c_credit_lim, c_discount",
            " FOR UPDATE",
            settings,
        )
        .await?;
        let protocol = settings.protocol;
        let dialect = conn.dialect();
        let mut prepare = async |sql: &str| conn.prepare(&statement(dialect, sql), protocol).await;
        Ok(Payment {
            group: Group::default(),
            is_grouped: protocol == Protocol::Grouped,
            input: None,
            matches: Vec::new(),
            history: Vec::new(),
            data: Vec::new(),
            begin: prepare(dialect.begin(true)).await?,
            commit: prepare("COMMIT").await?,
            lock_warehouse: prepare(
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ? FOR UPDATE",
            )
            .await?,
            // Without the cast the server would add the text as a binary floating-point number.
            update_warehouse: prepare(
                "UPDATE warehouse SET w_ytd = w_ytd + CAST(? AS DECIMAL(12,2)) WHERE w_id = ?",
            )
            .await?,
            lock_district: prepare(
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
                 WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
            )
            .await?,
            update_district: prepare(
                "UPDATE district SET d_ytd = d_ytd + CAST(? AS DECIMAL(12,2)) WHERE d_w_id = ? AND d_id = ?",
            )
            .await?,
            lock_customer,
            customer_data: prepare(
                "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
            )
            .await?,
            update_customer: prepare(
                "UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = c_payment_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )
            .await?,
            update_bad_customer: prepare(
                "UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = c_payment_cnt + 1, c_data = ? \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )
            .await?,
            insert_history: prepare(
                "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
            )
            .await?,
        })
    }

    /// Draws the next input.
    pub(super) fn draw(&mut self, home: Home, random: &mut Random, settings: &Settings) {
        self.input = Some(Input::draw(home, random, settings));
    }

    /// Books the payment.
    pub(super) async fn payment(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        if self.is_grouped {
            self.in_groups(conn).await
        } else {
            self.one_by_one(conn).await
        }
    }

    /// Books the payment statement by statement.
    async fn one_by_one(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        let Some(Input {
            home,
            customer_home,
            customer: pick,
            cents,
        }) = &self.input
        else {
            return Ok(());
        };
        let dialect = conn.dialect();
        let amount = Money::new(dialect, *cents);
        let [warehouse, district] = home.values();
        conn.execute(&mut self.begin, &[]).await?;

        self.history.clear();
        let history = &mut self.history;
        one(
            conn,
            &mut self.lock_warehouse,
            &[warehouse],
            "warehouse",
            |fields| {
                history.extend_from_slice(fields.text()?);
                Some(())
            },
        )
        .await?;
        conn.execute(&mut self.update_warehouse, &[amount.value(), warehouse])
            .await?;
        history.extend_from_slice(b"    ");
        one(
            conn,
            &mut self.lock_district,
            &[warehouse, district],
            "district",
            |fields| {
                history.extend_from_slice(fields.text()?);
                Some(())
            },
        )
        .await?;
        conn.execute(
            &mut self.update_district,
            &[amount.value(), warehouse, district],
        )
        .await?;

        let customer = self
            .lock_customer
            .find(
                conn,
                *customer_home,
                pick,
                &mut self.matches,
                Customer::read,
            )
            .await?;
        let booked = Booked::new(dialect, &customer, *customer_home, *cents);
        if customer.bad_credit {
            write_entry(&mut self.data, &customer, *customer_home, *home, &amount);
            let data = &mut self.data;
            one(
                conn,
                &mut self.customer_data,
                &booked.key,
                "customer",
                |fields| {
                    data.extend_from_slice(fields.text()?);
                    Some(())
                },
            )
            .await?;
            self.data.truncate(CUSTOMER_DATA_MAX);
            let values = booked.values_with(&self.data);
            conn.execute(&mut self.update_bad_customer, &values).await?;
        } else {
            conn.execute(&mut self.update_customer, &booked.values())
                .await?;
        }

        let values = booked.history_values(*home, &amount, &self.history);
        conn.execute(&mut self.insert_history, &values).await?;
        conn.execute(&mut self.commit, &[]).await?;
        Ok(())
    }
}

/// Starts new data of a customer with bad credit with the numbers of this payment at `home`.
fn write_entry(
    data: &mut Vec<u8>,
    customer: &Customer,
    customer_home: Home,
    home: Home,
    amount: &Money,
) {
    use std::io::Write as _;
    data.clear();
    for number in [
        customer.number,
        customer_home.district,
        customer_home.warehouse,
        home.district,
        home.warehouse,
    ] {
        // Writing to memory does not fail.
        let _ = write!(data, "{number} ");
    }
    data.extend_from_slice(amount.text());
    data.push(b' ');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, parameters::resolve};
    use dbduel_record::plan::Parameters;

    #[test]
    fn the_input_varies_within_the_specified_tolerances() {
        let given = Parameters::from([("warehouses".to_owned(), 4.into())]);
        let settings = Settings::new(&resolve(find("order-entry").unwrap(), &given).unwrap());
        let mut random = Random::new(7);
        let home = Home {
            warehouse: 2,
            district: 9,
        };
        let (payments, mut remote, mut by_name) = (100_000, 0, 0);
        for _ in 0..payments {
            let input = Input::draw(home, &mut random, &settings);
            assert_eq!(input.home.warehouse, 2);
            assert!((100..=500_000).contains(&input.cents));
            remote += u32::from(input.customer_home.warehouse != 2);
            by_name += u32::from(matches!(input.customer, Pick::Name(_)));
        }
        let share = |count: u32| 100.0 * f64::from(count) / f64::from(payments);
        assert!((14.0..=16.0).contains(&share(remote)));
        assert!((57.0..=63.0).contains(&share(by_name)));
    }

    #[test]
    fn the_entry_of_a_bad_customer_begins_with_the_numbers_of_the_payment() {
        let mut data = b"old".to_vec();
        let customer = Customer {
            number: 7,
            balance: 0,
            paid: 0,
            bad_credit: true,
        };
        let (district, warehouse) = (2, 1);
        let customer_home = Home {
            warehouse,
            district,
        };
        let home = Home {
            warehouse,
            district: 3,
        };
        let amount = Money::new(Dialect::Sqlite, 1_234);
        write_entry(&mut data, &customer, customer_home, home, &amount);
        assert_eq!(data, b"7 2 1 3 1 12.34 ");
    }
}
