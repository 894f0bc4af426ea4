//! One client: it draws operations and their inputs, and runs them.

use std::sync::Arc;

use dbduel_client::random::Random;
use dbduel_client::tally::Class;
use dbduel_client::{Begin, Client, ClientContext};
use dbduel_driver::{ClientConnection, Dialect, StatementError};
use dbduel_record::seed::named_seed;

use super::history::{History, Tail};
use super::input::Input;
use super::mix::{
    ADD_LINK, ADD_NODE, COUNT_LINK, DELETE_LINK, DELETE_NODE, GET_LINKS_HISTORY, GET_LINKS_LIST,
    MULTIGET_LINK, UPDATE_LINK, UPDATE_NODE,
};
use super::operations::nodes::Nodes;
use super::operations::read_links::ReadLinks;
use super::operations::write_links::WriteLinks;
use super::recognise::{ask, questions};
use super::settings::{LINK_TYPE, Settings};
use super::targets::Member;

/// Seed of the clients' motifs. A client keeps its motifs from slice to slice, so they do not follow from the seed of
/// a slice.
const MOTIF_SEED: u64 = 1;

/// The stream of operations of one client.
pub(super) struct Requester {
    settings: Arc<Settings>,
    member: Member,
    random: Random,
    input: Input,
    /// Ends of long lists; kept from slice to slice, since they are not drawn.
    history: History,
    write_links: WriteLinks,
    read_links: ReadLinks,
    nodes: Nodes,
}

impl Client for Requester {
    type Options = Arc<Settings>;

    async fn open(
        conn: &mut ClientConnection,
        settings: &Arc<Settings>,
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        if conn.dialect() == Dialect::MySql {
            // Payloads are bytes and the columns latin1: nothing is to be converted.
            conn.query(b"SET NAMES latin1").await?;
        }
        ask(conn, &questions(&context.config.parameters, settings)).await?;
        let stream = format!("linkbench/motifs/{}", context.client);
        let mut motifs = Random::new(named_seed(MOTIF_SEED, &stream));
        let protocol = settings.protocol;
        Ok(Requester {
            member: Member::default(),
            random: Random::new(0),
            input: Input::new(settings, &mut motifs),
            history: History::default(),
            write_links: WriteLinks::prepare(conn, protocol).await?,
            read_links: ReadLinks::prepare(conn, protocol).await?,
            nodes: Nodes::prepare(conn, protocol).await?,
            settings: Arc::clone(settings),
        })
    }

    fn begin(&mut self, begin: Begin) {
        self.random = Random::new(begin.seed);
        self.member = Member {
            client: u64::from(begin.client),
            clients: u64::from(begin.clients),
        };
    }

    fn draw(&mut self) -> Class {
        let Requester {
            settings,
            member,
            random,
            input,
            history,
            ..
        } = self;
        let class = settings.mix.draw(random, !history.is_empty());
        input.draw(class, settings, *member, history, random);
        class
    }

    /// The input is kept when an attempt is repeated, so that conflicts do not change the mix of inputs.
    async fn transaction(
        &mut self,
        class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let Input {
            key,
            kind,
            ids,
            node,
            payload,
            tail,
            now_ms,
            ..
        } = &self.input;
        let now_s = now_ms / 1_000;
        match class {
            ADD_LINK | UPDATE_LINK => self.write_links.add(conn, *key, payload, *now_ms).await,
            DELETE_LINK => self.write_links.delete(conn, *key, *now_ms).await,
            COUNT_LINK => self.read_links.count(conn, key.id1, key.link_type).await,
            MULTIGET_LINK => {
                self.read_links
                    .multiget(conn, key.id1, key.link_type, ids)
                    .await
            }
            GET_LINKS_LIST => {
                if let Some(time) = self.read_links.list(conn, key.id1, key.link_type).await? {
                    let (id1, kind) = (key.id1, *kind);
                    self.history
                        .remember(Tail { id1, kind, time }, &mut self.random);
                }
                Ok(())
            }
            GET_LINKS_HISTORY => {
                let Some(known) = *tail else { return Ok(()) };
                let link_type = LINK_TYPE + known.kind;
                match self
                    .read_links
                    .list_on(conn, known.id1, link_type, known.time)
                    .await?
                {
                    Some(time) => self
                        .history
                        .remember(Tail { time, ..known }, &mut self.random),
                    None => self.history.forget(known),
                }
                Ok(())
            }
            ADD_NODE => self.nodes.add(conn, payload, now_s).await,
            UPDATE_NODE => self.nodes.update(conn, *node, payload, now_s).await,
            DELETE_NODE => self.nodes.delete(conn, *node).await,
            _ => self.nodes.get(conn, *node).await,
        }
    }
}
