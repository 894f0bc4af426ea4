//! Delivery (TPC-C 2.7): a carrier takes the oldest order of each district.
//!
//! In the specification the terminal continues at once and the delivery runs in the background, within 80 s. Here the
//! client runs it itself, so that the latency of the class is that of the deferred part, from queue to completion.
//! Every district is a separate database transaction, which the specification allows and which keeps locks short.

mod grouped;

use dbduel_client::random::Random;
use dbduel_driver::{ClientConnection, Dialect, Group, Protocol, Statement, StatementError, Value};

use super::home::Home;
use super::schema::SKIPS;
use super::settings::{DISTRICTS, Settings};
use super::values::between;
use crate::rows::{Money, maybe, one, unusable};
use crate::sql::{on_taken_key, statement};

/// Input of the terminal, and progress of the delivery: an attempt that the server rolled back continues where it was,
/// because earlier districts are committed.
#[derive(Debug, Default)]
struct Progress {
    warehouse: u64,
    carrier: u64,
    /// The next district.
    district: u64,
    /// Districts without an undelivered order.
    skipped: u64,
}

/// The transaction: its statements and its progress.
pub(super) struct Delivery {
    progress: Progress,
    terminal: u64,
    group: Group,
    is_grouped: bool,
    begin: Statement,
    commit: Statement,
    oldest: Statement,
    delete: Statement,
    lock_order: Statement,
    update_order: Statement,
    update_lines: Statement,
    sum_lines: Statement,
    update_customer: Statement,
    note_skips: Statement,
}

impl Delivery {
    pub(super) async fn prepare(
        conn: &mut ClientConnection,
        settings: &Settings,
        terminal: u64,
    ) -> Result<Self, StatementError> {
        let protocol = settings.protocol;
        let on_taken_key = on_taken_key(conn.dialect(), "terminal");
        // PostgreSQL locks nothing where it sums up. The lines are locked already, by their update.
        let lock = match conn.dialect() {
            Dialect::MySql => " FOR UPDATE",
            Dialect::PostgreSql | Dialect::Sqlite => "",
        };
        let dialect = conn.dialect();
        let mut prepare = async |sql: &str| conn.prepare(&statement(dialect, sql), protocol).await;
        Ok(Delivery {
            progress: Progress::default(),
            terminal,
            group: Group::default(),
            is_grouped: protocol == Protocol::Grouped,
            begin: prepare(dialect.begin(true)).await?,
            commit: prepare("COMMIT").await?,
            // Locked, or two deliveries would take the same order.
            oldest: prepare(
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE",
            )
            .await?,
            delete: prepare("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?").await?,
            lock_order: prepare(
                "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? FOR UPDATE",
            )
            .await?,
            update_order: prepare(
                "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            )
            .await?,
            update_lines: prepare(
                "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            )
            .await?,
            sum_lines: prepare(&format!(
                "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?{lock}"
            ))
            .await?,
            update_customer: prepare(
                "UPDATE customer SET c_balance = c_balance + CAST(? AS DECIMAL(12,2)), \
                 c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )
            .await?,
            note_skips: prepare(&format!(
                "INSERT INTO {SKIPS} (terminal, deliveries, districts) VALUES (?, 1, ?) \
                 {on_taken_key} deliveries = {SKIPS}.deliveries + 1, districts = {SKIPS}.districts + ?"
            ))
            .await?,
        })
    }

    /// Makes the next input.
    pub(super) fn draw(&mut self, home: Home, random: &mut Random) {
        self.progress = Progress {
            warehouse: home.warehouse,
            carrier: between(random, 1, 10),
            district: 1,
            skipped: 0,
        };
    }

    /// Delivers the oldest order of each district, and notes how many districts had none.
    pub(super) async fn delivery(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        while self.progress.district <= DISTRICTS {
            let delivered = if self.is_grouped {
                self.district_in_groups(conn).await?
            } else {
                self.district(conn).await?
            };
            self.progress.district += 1;
            self.progress.skipped += u64::from(!delivered);
        }
        if self.progress.skipped > 0 {
            let skipped = Value::Unsigned(self.progress.skipped);
            conn.execute(
                &mut self.note_skips,
                &[Value::Unsigned(self.terminal), skipped, skipped],
            )
            .await?;
        }
        Ok(())
    }

    /// Delivers the oldest order of the next district; false when there is none.
    async fn district(&mut self, conn: &mut ClientConnection) -> Result<bool, StatementError> {
        let Progress {
            warehouse,
            carrier,
            district,
            ..
        } = self.progress;
        let (warehouse, district) = (Value::Unsigned(warehouse), Value::Unsigned(district));
        conn.execute(&mut self.begin, &[]).await?;
        let oldest = maybe(conn, &mut self.oldest, &[warehouse, district], |fields| {
            fields.integer()
        })
        .await?;
        let Some(order) = oldest else {
            conn.execute(&mut self.commit, &[]).await?;
            return Ok(false);
        };
        let key = [warehouse, district, Value::Unsigned(order)];
        if conn.execute(&mut self.delete, &key).await?.affected_rows != 1 {
            return Err(unusable("an order that was locked for delivery is gone"));
        }
        let customer = one(conn, &mut self.lock_order, &key, "orders", |fields| {
            fields.integer()
        })
        .await?;
        conn.execute(
            &mut self.update_order,
            &[Value::Unsigned(carrier), key[0], key[1], key[2]],
        )
        .await?;
        conn.execute(&mut self.update_lines, &key).await?;
        let sum = one(conn, &mut self.sum_lines, &key, "order_line", |fields| {
            fields.decimal(2)
        })
        .await?;
        let amount = Money::new(conn.dialect(), sum);
        let values = [
            amount.value(),
            warehouse,
            district,
            Value::Unsigned(customer),
        ];
        conn.execute(&mut self.update_customer, &values).await?;
        conn.execute(&mut self.commit, &[]).await?;
        Ok(true)
    }
}
