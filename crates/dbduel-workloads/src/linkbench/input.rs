//! Input of the next operation: drawn before anything is sent, kept when it is retried.

use std::time::{SystemTime, UNIX_EPOCH};

use dbduel_client::random::Random;
use dbduel_client::tally::Class;

use super::history::{History, Tail};
use super::mix::{
    ADD_LINK, ADD_NODE, DELETE_LINK, DELETE_NODE, GET_LINKS_HISTORY, GET_NODE, MULTIGET_LINK,
    UPDATE_LINK, UPDATE_NODE,
};
use super::operations::LinkKey;
use super::payload::{PayloadRule, Payloads};
use super::settings::{LINK_TYPE, Settings};
use super::targets::Member;

/// Probability that a link to add, multi-read, or write and hide was loaded.
const ADDED_LOADED: f64 = 0.05;
const READ_LOADED: f64 = 0.5;
const WRITTEN_LOADED: f64 = 0.9;

/// The inputs of one client.
pub(super) struct Input {
    pub key: LinkKey,
    /// Number of the link type, from 0.
    pub kind: u64,
    /// Targets of a multiget.
    pub ids: Vec<u64>,
    pub node: u64,
    pub payload: Vec<u8>,
    pub tail: Option<Tail>,
    pub now_ms: u64,
    previous: Previous,
    payloads: ByUse,
}

/// The last ids of the round-robin distributions.
#[derive(Default)]
struct Previous {
    read: u64,
    write: u64,
    node_read: u64,
    node_update: u64,
    node_delete: u64,
}

struct ByUse {
    link_add: Payloads,
    link_update: Payloads,
    node_add: Payloads,
    node_update: Payloads,
}

impl Input {
    /// Inputs whose payload motifs follow from `random` and stay the same.
    pub(super) fn new(settings: &Settings, random: &mut Random) -> Self {
        let mut payloads = |rule: PayloadRule| {
            let mut payloads = Payloads::new(rule);
            payloads.choose_motif(random);
            payloads
        };
        Input {
            key: LinkKey::default(),
            kind: 0,
            ids: Vec::new(),
            node: 0,
            payload: Vec::new(),
            tail: None,
            now_ms: 0,
            previous: Previous::default(),
            payloads: ByUse {
                link_add: payloads(settings.link_add),
                link_update: payloads(settings.link_update),
                node_add: payloads(settings.node_add),
                node_update: payloads(settings.node_update_payload),
            },
        }
    }

    /// Draws the input of an operation of this class.
    pub(super) fn draw(
        &mut self,
        class: Class,
        settings: &Settings,
        member: Member,
        history: &History,
        random: &mut Random,
    ) {
        let Input {
            previous,
            payloads,
            payload,
            ..
        } = self;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.now_ms = now.as_millis() as u64;
        match class {
            ADD_LINK | UPDATE_LINK | DELETE_LINK => {
                let id1 = settings.write.draw(random, &mut previous.write);
                self.kind = random.below(settings.link_types);
                let loaded = settings.graph.loaded(id1, self.kind);
                let probability = if class == ADD_LINK {
                    ADDED_LOADED
                } else {
                    WRITTEN_LOADED
                };
                self.key = LinkKey {
                    id1,
                    id2: settings
                        .targets
                        .draw(id1, loaded, probability, member, random),
                    link_type: LINK_TYPE + self.kind,
                };
                match class {
                    ADD_LINK => payloads.link_add.draw(random, payload),
                    UPDATE_LINK => payloads.link_update.draw(random, payload),
                    _ => {}
                }
            }
            GET_LINKS_HISTORY => self.tail = history.pick(random),
            ADD_NODE => payloads.node_add.draw(random, payload),
            UPDATE_NODE => {
                self.node = settings.node_update.draw(random, &mut previous.node_update);
                payloads.node_update.draw(random, payload);
            }
            DELETE_NODE => self.node = settings.node_delete.draw(random, &mut previous.node_delete),
            GET_NODE => self.node = settings.node_read.draw(random, &mut previous.node_read),
            // A count, a list, or a multiget.
            _ => {
                self.key.id1 = settings.read.draw(random, &mut previous.read);
                self.kind = random.below(settings.link_types);
                self.key.link_type = LINK_TYPE + self.kind;
                if class == MULTIGET_LINK {
                    let loaded = settings.graph.loaded(self.key.id1, self.kind);
                    let count = settings.multiget.draw(random);
                    settings.targets.draw_several(
                        self.key.id1,
                        loaded,
                        READ_LOADED,
                        count,
                        random,
                        &mut self.ids,
                    );
                }
            }
        }
    }
}
