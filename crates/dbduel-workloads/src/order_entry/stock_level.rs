//! Stock-Level (TPC-C 2.8): number of items of the district's last twenty orders with low stock.

use dbduel_client::random::Random;
use dbduel_driver::{ClientConnection, Statement, StatementError, Value};

use super::home::Home;
use super::settings::Settings;
use super::values::between;
use crate::rows::one;

/// Number of last orders.
const ORDERS: u64 = 20;

/// The transaction: its statements and its next input.
pub(super) struct StockLevel {
    home: Home,
    threshold: u64,
    next_order: Statement,
    count: Statement,
}

impl StockLevel {
    pub(super) async fn prepare(
        conn: &mut ClientConnection,
        settings: &Settings,
    ) -> Result<Self, StatementError> {
        Ok(StockLevel {
            home: Home::default(),
            threshold: 0,
            next_order: conn
                .prepare("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", settings.protocol)
                .await?,
            count: conn
                .prepare(
                    "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
                     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id BETWEEN ? AND ? AND s_quantity < ?",
                    settings.protocol,
                )
                .await?,
        })
    }

    /// Draws the next input. The district is the terminal's own, unlike in the other transactions.
    pub(super) fn draw(&mut self, home: Home, random: &mut Random) {
        self.home = home;
        self.threshold = between(random, 10, 20);
    }

    /// Counts the items. Each of the two queries is a separate database transaction: the specification asks only for
    /// committed data that are no older than the start.
    pub(super) async fn stock_level(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let [warehouse, district] = self.home.values();
        let (first, last) = one(
            conn,
            &mut self.next_order,
            &[warehouse, district],
            "district",
            |fields| {
                let next = fields.integer()?;
                Some((next.saturating_sub(ORDERS), next.saturating_sub(1)))
            },
        )
        .await?;
        let values = [
            warehouse,
            district,
            Value::Unsigned(first),
            Value::Unsigned(last),
            Value::Unsigned(self.threshold),
        ];
        conn.execute(&mut self.count, &values).await?;
        Ok(())
    }
}
