//! One terminal: it draws transactions and their inputs, and runs them.

use dbduel_client::random::Random;
use dbduel_client::tally::Class;
use dbduel_client::{Begin, Client, ClientContext, Readiness, Trace};
use dbduel_driver::{ClientConnection, StatementError};

use super::delivery::Delivery;
use super::home::Home;
use super::mix::{Mix, first_wait, keying, think};
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::recognise::Facts;
use super::schema::FACTS;
use super::settings::Settings;
use super::stock_level::StockLevel;
use crate::rows::{each, unusable};
use crate::sql::set_isolation;

/// The stream of transactions of one terminal.
pub(super) struct Terminal {
    settings: Settings,
    client: u32,
    random: Random,
    mix: Mix,
    /// The transaction whose input is typed while the terminal waits.
    next: Option<Class>,
    /// The transaction after which the user thinks.
    previous: Option<Class>,
    new_order: NewOrder,
    payment: Payment,
    order_status: OrderStatus,
    delivery: Delivery,
    stock_level: StockLevel,
}

impl Client for Terminal {
    type Options = Settings;

    async fn open(
        conn: &mut ClientConnection,
        settings: &Settings,
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let client = context.client;
        if let Some(most) = settings
            .clients_max()
            .filter(|most| u64::from(client) >= *most)
        {
            let why = format!(
                "terminals are bound, so with `warehouses = {}` there is work for {most} clients; use fewer clients, \
                 more warehouses, or `terminals = \"roaming\"`",
                settings.warehouses
            );
            return Err(unusable(&why));
        }
        // Locking reads protect what is read and then written; the isolation the rest.
        let dialect = conn.dialect();
        let isolation = set_isolation(dialect, settings.isolation.level(dialect));
        conn.query(isolation.as_bytes()).await?;
        check_facts(conn, settings).await?;
        Ok(Terminal {
            random: Random::new(0),
            mix: Mix::new(settings.mix),
            next: None,
            previous: None,
            new_order: NewOrder::prepare(conn, settings).await?,
            payment: Payment::prepare(conn, settings).await?,
            order_status: OrderStatus::prepare(conn, settings).await?,
            delivery: Delivery::prepare(conn, settings, u64::from(client)).await?,
            stock_level: StockLevel::prepare(conn, settings).await?,
            settings: *settings,
            client,
        })
    }

    fn begin(&mut self, begin: Begin) {
        self.random = Random::new(begin.seed);
        self.mix.restart();
        self.next = None;
        self.previous = None;
    }

    fn readiness(&mut self) -> Readiness {
        if !self.settings.paced {
            return Readiness::READY;
        }
        let next = self.mix.draw(&mut self.random);
        self.next = Some(next);
        Readiness::After(match self.previous {
            Some(previous) => think(previous, &mut self.random) + keying(next),
            None => first_wait(&mut self.random),
        })
    }

    fn draw(&mut self) -> Class {
        let class = self
            .next
            .take()
            .unwrap_or_else(|| self.mix.draw(&mut self.random));
        self.previous = Some(class);
        let Terminal {
            settings, random, ..
        } = self;
        let home = if settings.bound {
            Home::of_terminal(u64::from(self.client), settings.warehouses)
        } else {
            Home::draw(random, settings.warehouses)
        };
        match class.0 {
            0 => self.new_order.draw(home, random, settings),
            1 => self.payment.draw(home, random, settings),
            2 => self.order_status.draw(home, random, settings),
            3 => self.delivery.draw(home, random),
            _ => self.stock_level.draw(home, random),
        }
        class
    }

    /// The input is kept when an attempt is repeated, so that conflicts do not change the mix of inputs.
    async fn transaction(
        &mut self,
        class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        match class.0 {
            0 => self.new_order.new_order(conn).await,
            1 => self.payment.payment(conn).await,
            2 => self.order_status.order_status(conn).await,
            3 => self.delivery.delivery(conn).await,
            _ => self.stock_level.stock_level(conn).await,
        }
    }

    fn trace(&mut self) -> Trace {
        self.new_order.trace()
    }
}

/// Refuses data that do not fit the settings.
async fn check_facts(
    conn: &mut ClientConnection,
    settings: &Settings,
) -> Result<(), StatementError> {
    let sql = format!("SELECT name, value FROM {FACTS}");
    let mut statement = conn.prepare(&sql, settings.protocol).await?;
    let (mut facts, mut known) = (Facts::default(), false);
    let rows = each(conn, &mut statement, &[], |fields| {
        let name = fields.text()?;
        known |= facts.note(&String::from_utf8_lossy(name), fields.integer()?);
        Some(())
    })
    .await?;
    // The null server answers every query with a row, but knows no facts.
    if rows > 0 && !known {
        return Ok(());
    }
    facts
        .check(settings)
        .map_err(|error| unusable(&error.to_string()))
}
