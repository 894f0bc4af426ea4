//! Delivery in three round trips per district: find the oldest order, read its customer and amount, write.

use dbduel_driver::{ClientConnection, Skip, StatementError, Value};

use super::{Delivery, Progress};
use crate::rows::{Money, add, each_of, present};

/// Positions in the second group.
const CUSTOMER: usize = 1;
const SUM: usize = 4;

impl Delivery {
    /// Delivers the oldest order of the next district; false when there is none.
    pub(super) async fn district_in_groups(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<bool, StatementError> {
        let Progress {
            warehouse,
            carrier,
            district,
            ..
        } = self.progress;
        let (warehouse, district) = (Value::Unsigned(warehouse), Value::Unsigned(district));
        let group = &mut self.group;
        group.clear();
        add(group, &self.begin, &[])?;
        add(group, &self.oldest, &[warehouse, district])?;
        let mut oldest = None;
        each_of(conn, group, |_, fields| {
            oldest = Some(fields.integer()?);
            Some(())
        })
        .await?;
        let Some(order) = oldest else {
            conn.execute(&mut self.commit, &[]).await?;
            return Ok(false);
        };
        let key = [warehouse, district, Value::Unsigned(order)];
        group.clear();
        // Its row is locked since it was read, so it is there to be deleted.
        add(group, &self.delete, &key)?;
        add(group, &self.lock_order, &key)?;
        let carrier = [Value::Unsigned(carrier), key[0], key[1], key[2]];
        add(group, &self.update_order, &carrier)?;
        add(group, &self.update_lines, &key)?;
        add(group, &self.sum_lines, &key)?;
        let (mut customer, mut sum) = (None, None);
        each_of(conn, group, |statement, fields| {
            match statement {
                CUSTOMER => customer = Some(fields.integer()?),
                SUM => sum = Some(fields.decimal(2)?),
                _ => return None,
            }
            Some(())
        })
        .await?;
        let customer = Value::Unsigned(present(customer, "orders")?);
        let amount = Money::new(conn.dialect(), present(sum, "order_line")?);
        group.clear();
        let values = [amount.value(), warehouse, district, customer];
        add(group, &self.update_customer, &values)?;
        add(group, &self.commit, &[])?;
        conn.execute_group(group, &mut Skip).await?;
        Ok(true)
    }
}
