//! Order-Status (TPC-C 2.6): a customer asks about the last order.

use dbduel_client::random::Random;
use dbduel_driver::{ClientConnection, Group, Protocol, Skip, Statement, StatementError, Value};

use super::home::{FindCustomer, Home, Pick, any_district, middle};
use super::settings::Settings;
use crate::rows::{add, each_of, one, unusable};
use crate::sql::statement;

/// The transaction: its statements and its next input.
pub(super) struct OrderStatus {
    input: Option<(Home, Pick)>,
    matches: Vec<u64>,
    group: Group,
    is_grouped: bool,
    begin: Statement,
    commit: Statement,
    customer: FindCustomer,
    last_order: Statement,
    lines: Statement,
}

impl OrderStatus {
    pub(super) async fn prepare(
        conn: &mut ClientConnection,
        settings: &Settings,
    ) -> Result<Self, StatementError> {
        let customer = FindCustomer::prepare(
            conn,
            "c_id, c_balance, c_first, c_middle, c_last",
            "",
            settings,
        )
        .await?;
        let protocol = settings.protocol;
        let dialect = conn.dialect();
        let mut prepare = async |sql: &str| conn.prepare(&statement(dialect, sql), protocol).await;
        Ok(OrderStatus {
            input: None,
            matches: Vec::new(),
            group: Group::default(),
            is_grouped: protocol == Protocol::Grouped,
            begin: prepare(dialect.begin(false)).await?,
            commit: prepare("COMMIT").await?,
            customer,
            last_order: prepare(
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
                 ORDER BY o_id DESC LIMIT 1",
            )
            .await?,
            lines: prepare(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            )
            .await?,
        })
    }

    /// Draws the next input.
    pub(super) fn draw(&mut self, home: Home, random: &mut Random, settings: &Settings) {
        self.input = Some((
            Home {
                district: any_district(random),
                ..home
            },
            Pick::draw(random, settings),
        ));
    }

    /// Looks up the customer, the last order and its lines.
    pub(super) async fn order_status(
        &mut self,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let Some((home, pick)) = &self.input else {
            return Ok(());
        };
        let [warehouse, district] = home.values();
        let customer = if self.is_grouped {
            let (group, matches) = (&mut self.group, &mut self.matches);
            group.clear();
            matches.clear();
            add(group, &self.begin, &[])?;
            self.customer.add_to(group, *home, pick)?;
            each_of(conn, group, |_, fields| {
                matches.push(fields.integer()?);
                Some(())
            })
            .await?;
            middle(matches)?
        } else {
            conn.execute(&mut self.begin, &[]).await?;
            self.customer
                .find(conn, *home, pick, &mut self.matches, |fields| {
                    fields.integer()
                })
                .await?
        };
        let key = [warehouse, district, Value::Unsigned(customer)];
        let order = one(conn, &mut self.last_order, &key, "orders", |fields| {
            fields.integer()
        })
        .await?;
        let key = [warehouse, district, Value::Unsigned(order)];
        let lines = if self.is_grouped {
            let group = &mut self.group;
            group.clear();
            add(group, &self.lines, &key)?;
            add(group, &self.commit, &[])?;
            conn.execute_group(group, &mut Skip).await?.rows
        } else {
            let lines = conn.execute(&mut self.lines, &key).await?.rows;
            conn.execute(&mut self.commit, &[]).await?;
            lines
        };
        match lines {
            0 => Err(unusable("an order has no lines")),
            _ => Ok(()),
        }
    }
}
