//! New-Order (TPC-C 2.4): a customer orders five to fifteen items.

mod grouped;
mod input;

use dbduel_client::Trace;
use dbduel_client::commit_log::Commitment;
use dbduel_client::random::Random;
use dbduel_driver::{ClientConnection, Group, Protocol, Statement, StatementError, Value};

use super::home::Home;
use super::row_writer::ORIGINAL;
use super::settings::Settings;
use crate::rows::{Fields, Money, maybe, one, text, unusable};
use crate::sql::{nth_column, statement};
use grouped::LineRead;
use input::{Input, Line};

/// The columns of stock with a line's district information, by district.
const DISTRICT_INFOS: [&str; 10] = [
    "s_dist_01",
    "s_dist_02",
    "s_dist_03",
    "s_dist_04",
    "s_dist_05",
    "s_dist_06",
    "s_dist_07",
    "s_dist_08",
    "s_dist_09",
    "s_dist_10",
];
/// Length of that information, bytes.
const DISTRICT_INFO: usize = 24;

/// The terminal's output. It is not displayed, but making it is part of the transaction.
#[derive(Debug, Default)]
struct Output {
    order: u64,
    /// Total price after discount and taxes, hundredths.
    total: i64,
    /// Lines whose item and stock are both original.
    brands: u64,
    /// "Item number is not valid."
    invalid: bool,
}

/// The transaction: its statements and its next input.
pub(super) struct NewOrder {
    input: Input,
    trace: Trace,
    group: Group,
    lines_read: Vec<LineRead>,
    is_grouped: bool,
    begin: Statement,
    commit: Statement,
    rollback: Statement,
    lock_district: Statement,
    advance_district: Statement,
    warehouse: Statement,
    customer: Statement,
    insert_order: Statement,
    insert_new_order: Statement,
    item: Statement,
    lock_stock: Statement,
    update_stock: Statement,
    insert_line: Statement,
}

impl NewOrder {
    pub(super) async fn prepare(
        conn: &mut ClientConnection,
        settings: &Settings,
    ) -> Result<Self, StatementError> {
        let protocol = settings.protocol;
        let info = nth_column(conn.dialect(), &DISTRICT_INFOS);
        let dialect = conn.dialect();
        let mut prepare = async |sql: &str| conn.prepare(&statement(dialect, sql), protocol).await;
        Ok(NewOrder {
            input: Input::default(),
            trace: Trace::Plain,
            group: Group::default(),
            lines_read: Vec::new(),
            is_grouped: protocol == Protocol::Grouped,
            begin: prepare(dialect.begin(true)).await?,
            commit: prepare("COMMIT").await?,
            rollback: prepare("ROLLBACK").await?,
            lock_district: prepare("SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE")
                .await?,
            advance_district: prepare("UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?").await?,
            warehouse: prepare("SELECT w_tax FROM warehouse WHERE w_id = ?").await?,
            customer: prepare(
                "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )
            .await?,
            insert_order: prepare(
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, NOW(), ?, ?)",
            )
            .await?,
            insert_new_order: prepare("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)").await?,
            item: prepare("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?").await?,
            lock_stock: prepare(&format!(
                "SELECT s_quantity, {info}, s_data FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"
            ))
            .await?,
            update_stock: prepare(
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
            )
            .await?,
            insert_line: prepare(
                "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                 ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .await?,
        })
    }

    /// Draws the next input.
    pub(super) fn draw(&mut self, home: Home, random: &mut Random, settings: &Settings) {
        self.input.draw(home, random, settings);
    }

    /// Enters the order. One with an invalid item is rolled back, which counts as completed too.
    pub(super) async fn new_order(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        if self.is_grouped {
            self.in_groups(conn).await
        } else {
            self.one_by_one(conn).await
        }
    }

    /// Enters the order statement by statement.
    async fn one_by_one(&mut self, conn: &mut ClientConnection) -> Result<(), StatementError> {
        let NewOrder { input, .. } = self;
        let Input {
            home,
            customer,
            invalid,
            ..
        } = *input;
        let [warehouse, district] = home.values();
        conn.execute(&mut self.begin, &[]).await?;
        // The locking read comes first: plain reads see the state of the first one among them, and where
        // the server compares (MariaDB's innodb_snapshot_isolation) a row that changed between that and its
        // lock ends the transaction.
        let (district_tax, order) = one(
            conn,
            &mut self.lock_district,
            &[warehouse, district],
            "district",
            |fields| Some((fields.decimal(4)?, fields.integer()?)),
        )
        .await?;
        conn.execute(
            &mut self.advance_district,
            &[Value::Unsigned(order + 1), warehouse, district],
        )
        .await?;
        let warehouse_tax = one(
            conn,
            &mut self.warehouse,
            &[warehouse],
            "warehouse",
            |fields| fields.decimal(4),
        )
        .await?;
        let key = [warehouse, district, Value::Unsigned(customer)];
        let discount = one(conn, &mut self.customer, &key, "customer", |fields| {
            fields.decimal(4)
        })
        .await?;

        let id = Value::Unsigned(order);
        let head = head_values(order, input);
        conn.execute(&mut self.insert_order, &head).await?;
        conn.execute(&mut self.insert_new_order, &[id, district, warehouse])
            .await?;

        let mut output = Output {
            order,
            ..Output::default()
        };
        let mut amounts = 0;
        for index in 0..self.input.lines.len() {
            let line = self.input.lines[index];
            match self.line(conn, order, home, line).await? {
                Some((amount, original)) => {
                    amounts += amount;
                    output.brands += u64::from(original);
                }
                None if invalid => {
                    output.invalid = true;
                    conn.execute(&mut self.rollback, &[]).await?;
                    self.end(&output);
                    return Ok(());
                }
                None => return Err(unusable("a row of table `item` is missing")),
            }
        }
        output.total = total(amounts, discount, warehouse_tax + district_tax);
        conn.execute(&mut self.commit, &[]).await?;
        self.end(&output);
        Ok(())
    }

    /// Ends the order, entered or rolled back on purpose.
    fn end(&mut self, output: &Output) {
        let home = self.input.home;
        self.trace = match output.invalid {
            true => Trace::RolledBack,
            false => Trace::Committed(Commitment {
                series: [home.warehouse as u32, home.district as u32],
                number: output.order,
            }),
        };
        std::hint::black_box(output);
    }

    /// The durability trace of the last order entered; returned once.
    pub(super) fn trace(&mut self) -> Trace {
        std::mem::take(&mut self.trace)
    }

    /// One line of the order: its amount in hundredths and whether it is original; `None` when there is no such item.
    async fn line(
        &mut self,
        conn: &mut ClientConnection,
        order: u64,
        home: Home,
        line: Line,
    ) -> Result<Option<(i64, bool)>, StatementError> {
        let item = Value::Unsigned(line.item);
        let found = maybe(conn, &mut self.item, &[item], read_item).await?;
        let Some((price, item_original)) = found else {
            return Ok(None);
        };

        let supply = Value::Unsigned(line.supply);
        let key = [Value::Unsigned(home.district), supply, item];
        let stock = one(conn, &mut self.lock_stock, &key, "stock", Stock::read).await?;
        let left = stock_after(stock.quantity, line.quantity);
        let values = stock_values(&line, left, home);
        conn.execute(&mut self.update_stock, &values).await?;

        let amount = line.quantity as i64 * price;
        let money = Money::new(conn.dialect(), amount);
        let values = line_values(order, home, &line, &money, stock.info());
        conn.execute(&mut self.insert_line, &values).await?;
        Ok(Some((amount, item_original && stock.is_original)))
    }
}

/// Price of an item, and whether it is original.
fn read_item(fields: &mut Fields<'_>) -> Option<(i64, bool)> {
    let price = fields.decimal(2)?;
    let _name = fields.text()?;
    Some((price, is_original(fields.text()?)))
}

/// Columns read from a row of stock.
#[derive(Debug, Clone, Copy)]
struct Stock {
    quantity: u64,
    is_original: bool,
    info: [u8; DISTRICT_INFO],
    info_length: usize,
}

impl Stock {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let quantity = fields.integer()?;
        let text = fields.text()?;
        let info_length = text.len().min(DISTRICT_INFO);
        let mut info = [0; DISTRICT_INFO];
        info[..info_length].copy_from_slice(&text[..info_length]);
        Some(Stock {
            quantity,
            is_original: is_original(fields.text()?),
            info,
            info_length,
        })
    }

    /// The district information for the line.
    fn info(&self) -> &[u8] {
        &self.info[..self.info_length]
    }
}

/// Values of the statement that inserts the order.
fn head_values(order: u64, input: &Input) -> [Value<'static>; 6] {
    [
        Value::Unsigned(order),
        Value::Unsigned(input.home.district),
        Value::Unsigned(input.home.warehouse),
        Value::Unsigned(input.customer),
        Value::Unsigned(input.lines.len() as u64),
        Value::Unsigned(input.all_local.into()),
    ]
}

/// Values of the statement that takes a line out of stock.
fn stock_values(line: &Line, left: u64, home: Home) -> [Value<'static>; 5] {
    [
        Value::Unsigned(left),
        Value::Unsigned(line.quantity),
        Value::Unsigned((line.supply != home.warehouse).into()),
        Value::Unsigned(line.supply),
        Value::Unsigned(line.item),
    ]
}

/// Values of the statement that inserts a line.
fn line_values<'a>(
    order: u64,
    home: Home,
    line: &Line,
    money: &'a Money,
    info: &'a [u8],
) -> [Value<'a>; 9] {
    [
        Value::Unsigned(order),
        Value::Unsigned(home.district),
        Value::Unsigned(home.warehouse),
        Value::Unsigned(line.number),
        Value::Unsigned(line.item),
        Value::Unsigned(line.supply),
        Value::Unsigned(line.quantity),
        money.value(),
        text(info),
    ]
}

/// Price of everything, hundredths: two factors in units of 1/10000 each, rounded once.
fn total(amounts: i64, discount: i64, taxes: i64) -> i64 {
    (amounts * (10_000 - discount) * (10_000 + taxes) + 50_000_000) / 100_000_000
}

/// Stock after an order of this quantity: it is refilled by 91 before it falls below 10.
fn stock_after(quantity: u64, ordered: u64) -> u64 {
    if quantity >= ordered + 10 {
        quantity - ordered
    } else {
        quantity + 91 - ordered
    }
}

fn is_original(data: &[u8]) -> bool {
    data.windows(ORIGINAL.len())
        .any(|window| window == ORIGINAL.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up_as_the_specification_says() {
        for (quantity, ordered, after) in [
            (20, 10, 10),
            (19, 10, 100),
            (11, 1, 10),
            (10, 1, 100),
            (100, 5, 95),
        ] {
            assert_eq!(
                stock_after(quantity, ordered),
                after,
                "{quantity} - {ordered}"
            );
        }
    }
}
