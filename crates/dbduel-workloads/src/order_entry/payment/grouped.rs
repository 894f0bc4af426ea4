//! Payment in two round trips, or three when the customer has bad credit.

use dbduel_driver::{ClientConnection, Skip, StatementError};

use super::super::home::middle;
use super::{Booked, CUSTOMER_DATA_MAX, Customer, Payment, write_entry};
use crate::rows::{Money, add, each_of, present};

/// Positions in the first group.
const WAREHOUSE: usize = 1;
const DISTRICT: usize = 3;

impl Payment {
    /// Books the payment in groups of statements. The rows, their values and the order of the locks are those of the
    /// version with single statements.
    pub(super) async fn in_groups(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let Some(input) = &self.input else {
            return Ok(());
        };
        let (home, customer_home, cents) = (input.home, input.customer_home, input.cents);
        let amount = Money::new(conn.dialect(), cents);
        let [warehouse, district] = home.values();
        let group = &mut self.group;
        group.clear();
        add(group, &self.begin, &[])?;
        add(group, &self.lock_warehouse, &[warehouse])?;
        add(group, &self.update_warehouse, &[amount.value(), warehouse])?;
        add(group, &self.lock_district, &[warehouse, district])?;
        let values = [amount.value(), warehouse, district];
        add(group, &self.update_district, &values)?;
        self.lock_customer
            .add_to(group, customer_home, &input.customer)?;

        self.history.clear();
        self.matches.clear();
        let (history, matches) = (&mut self.history, &mut self.matches);
        let mut found = [false; 2];
        each_of(conn, group, |statement, fields| {
            match statement {
                WAREHOUSE => {
                    found[0] = true;
                    history.extend_from_slice(fields.text()?);
                    history.extend_from_slice(b"    ");
                }
                DISTRICT => {
                    found[1] = true;
                    history.extend_from_slice(fields.text()?);
                }
                _ => matches.push(Customer::read(fields)?),
            }
            Some(())
        })
        .await?;
        present(found[0].then_some(()), "warehouse")?;
        present(found[1].then_some(()), "district")?;
        let customer = middle(matches)?;
        let booked = Booked::new(conn.dialect(), &customer, customer_home, cents);
        if customer.bad_credit {
            write_entry(&mut self.data, &customer, customer_home, home, &amount);
            let data = &mut self.data;
            group.clear();
            add(group, &self.customer_data, &booked.key)?;
            each_of(conn, group, |_, fields| {
                data.extend_from_slice(fields.text()?);
                Some(())
            })
            .await?;
            data.truncate(CUSTOMER_DATA_MAX);
        }
        group.clear();
        if customer.bad_credit {
            let values = booked.values_with(&self.data);
            add(group, &self.update_bad_customer, &values)?;
        } else {
            add(group, &self.update_customer, &booked.values())?;
        }
        let values = booked.history_values(home, &amount, &self.history);
        add(group, &self.insert_history, &values)?;
        add(group, &self.commit, &[])?;
        conn.execute_group(group, &mut Skip).await?;
        Ok(())
    }
}
