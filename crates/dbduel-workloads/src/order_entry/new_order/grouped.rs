//! New-Order in two round trips: all reads, then all writes.
//!
//! All reads have keys from the input, all writes need the results of the reads. The rows and their values are those
//! of the version with single statements, and so is the order in which they are locked.

use dbduel_driver::{ClientConnection, Dialect, Skip, StatementError, Value};

use super::{
    NewOrder, Output, Stock, head_values, line_values, read_item, stock_after, stock_values, total,
};
use crate::rows::{Money, add, each_of, present, unusable};

/// Statements of the first group before the lines'.
const HEAD: usize = 4;

/// Results of the transaction's reads.
#[derive(Debug, Default)]
struct Read {
    /// Tax, and number of the order.
    district: Option<(i64, u64)>,
    warehouse_tax: Option<i64>,
    discount: Option<i64>,
}

/// Results of the reads for a line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LineRead {
    /// Price, and whether the item is original; `None` when there is no such item.
    item: Option<(i64, bool)>,
    stock: Option<Stock>,
}

impl NewOrder {
    /// Enters the order in two round trips.
    pub(super) async fn in_groups(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        self.put_reads()?;
        let read = self.read_all(conn).await?;
        let (district_tax, order) = present(read.district, "district")?;
        let warehouse_tax = present(read.warehouse_tax, "warehouse")?;
        let discount = present(read.discount, "customer")?;
        let mut output = Output {
            order,
            ..Output::default()
        };
        let amounts = self.put_writes(conn.dialect(), order, &mut output)?;
        output.total = total(amounts, discount, warehouse_tax + district_tax);
        let end = if output.invalid {
            &self.rollback
        } else {
            &self.commit
        };
        add(&mut self.group, end, &[])?;
        conn.execute_group(&self.group, &mut Skip).await?;
        self.end(&output);
        Ok(())
    }

    /// Puts together the first group: all reads with keys from the input.
    fn put_reads(&mut self) -> Result<(), StatementError> {
        let (home, group) = (self.input.home, &mut self.group);
        let [warehouse, district] = home.values();
        group.clear();
        add(group, &self.begin, &[])?;
        add(group, &self.lock_district, &[warehouse, district])?;
        add(group, &self.warehouse, &[warehouse])?;
        let customer = Value::Unsigned(self.input.customer);
        add(group, &self.customer, &[warehouse, district, customer])?;
        for line in &self.input.lines {
            let item = Value::Unsigned(line.item);
            add(group, &self.item, &[item])?;
            let key = [district, Value::Unsigned(line.supply), item];
            add(group, &self.lock_stock, &key)?;
        }
        Ok(())
    }

    async fn read_all(&mut self, conn: &mut ClientConnection) -> Result<Read, StatementError> {
        let lines = &mut self.lines_read;
        lines.clear();
        lines.resize(self.input.lines.len(), LineRead::default());
        let mut read = Read::default();
        each_of(conn, &self.group, |statement, fields| {
            match statement {
                1 => read.district = Some((fields.decimal(4)?, fields.integer()?)),
                2 => read.warehouse_tax = Some(fields.decimal(4)?),
                3 => read.discount = Some(fields.decimal(4)?),
                _ => {
                    let position = statement.checked_sub(HEAD)?;
                    let line = lines.get_mut(position / 2)?;
                    match position.is_multiple_of(2) {
                        true => line.item = Some(read_item(fields)?),
                        false => line.stock = Some(Stock::read(fields)?),
                    }
                }
            }
            Some(())
        })
        .await?;
        Ok(read)
    }

    /// Puts together the second group except its end; returns the sum of the lines' amounts, hundredths.
    fn put_writes(
        &mut self,
        dialect: Dialect,
        order: u64,
        output: &mut Output,
    ) -> Result<i64, StatementError> {
        let NewOrder {
            input,
            group,
            lines_read,
            ..
        } = self;
        let home = input.home;
        let ([warehouse, district], id) = (home.values(), Value::Unsigned(order));
        group.clear();
        let next = Value::Unsigned(order + 1);
        add(group, &self.advance_district, &[next, warehouse, district])?;
        add(group, &self.insert_order, &head_values(order, input))?;
        add(group, &self.insert_new_order, &[id, district, warehouse])?;
        let mut amounts = 0;
        // An order may have an item twice, in neighbouring lines; the second finds what the first has left.
        let mut before: Option<(u64, u64, u64)> = None;
        for (line, read) in input.lines.iter().zip(lines_read.iter()) {
            let Some((price, item_original)) = read.item else {
                if input.invalid {
                    output.invalid = true;
                    continue;
                }
                return Err(unusable("a row of table `item` is missing"));
            };
            let stock = present(read.stock, "stock")?;
            let in_stock = match before {
                Some((supply, item, left)) if (supply, item) == (line.supply, line.item) => left,
                _ => stock.quantity,
            };
            let left = stock_after(in_stock, line.quantity);
            before = Some((line.supply, line.item, left));
            add(group, &self.update_stock, &stock_values(line, left, home))?;
            let amount = line.quantity as i64 * price;
            amounts += amount;
            output.brands += u64::from(item_original && stock.is_original);
            let money = Money::new(dialect, amount);
            let values = line_values(order, home, line, &money, stock.info());
            add(group, &self.insert_line, &values)?;
        }
        Ok(amounts)
    }
}
