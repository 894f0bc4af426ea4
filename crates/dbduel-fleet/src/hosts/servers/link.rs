//! The link to the agent of one server host: passes on orders and answers.

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_lab::outage::OUT_OF_REACH_MAX;
use dbduel_lab::server_host::orders::{ServerAnswer, ServerOrder};
use dbduel_nats::Nats;

use super::super::attach::{Asker, RemoteHost, attach};
use super::super::network::{HostLink, Network};
use super::super::{BYE, BYE_TIMEOUT, Event, HostWork, POLL, Stop, read, write_answer};

/// Attaches to the agent `host` and passes on the orders on `input` until it ends.
///
/// # Errors
/// When the answers cannot be written.
pub fn run(
    nats: &Nats,
    host: &str,
    asker: &Asker,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<()> {
    let (sender, inbox) = channel();
    read(input, sender.clone());
    let stop = match ServerLink::attach(nats, host, asker, (inbox, &sender), &mut output) {
        Ok(mut link) => {
            let stop = loop {
                if let Err(stop) = link.pass_event(nats, POLL, &mut output) {
                    break stop;
                }
            };
            link.end();
            stop
        }
        Err(stop) => stop,
    };
    match stop {
        Stop::End => Ok(()),
        Stop::Unreachable(why) => refuse(output, why),
        Stop::Output(error) => Err(error).context("cannot write answers"),
    }
}

/// Writes to `output` why there is no link.
///
/// # Errors
/// When `output` cannot be written.
pub fn refuse(mut output: impl Write, why: String) -> Result<()> {
    write_answer(&mut output, &ServerAnswer::Unreachable { why }).context("cannot write answers")
}

/// A link whose agent is attached.
pub(in super::super) struct ServerLink<L> {
    host: RemoteHost<L>,
    inbox: Receiver<Event<ServerOrder>>,
}

impl<L: HostLink> ServerLink<L> {
    /// Attaches to the agent `host`, says so on `output`, and passes on the orders that arrived meanwhile.
    pub fn attach<N: Network<Link = L>>(
        network: &N,
        host: &str,
        asker: &Asker,
        (inbox, sender): (Receiver<Event<ServerOrder>>, &Sender<Event<ServerOrder>>),
        output: &mut impl Write,
    ) -> Result<Self, Stop> {
        let mut backlog = VecDeque::new();
        let host = attach(
            network,
            asker,
            (host, 0),
            HostWork::Servers,
            (&inbox, sender),
            &mut backlog,
        )?;
        let link = Self { host, inbox };
        let attached = ServerAnswer::Attached {
            host: Box::new(link.host.facts.clone()),
            round_trip_s: link.host.round_trip.as_secs_f64(),
        };
        match write_answer(output, &attached) {
            Ok(()) => {
                backlog.iter().for_each(|order| link.pass(order));
                Ok(link)
            }
            Err(error) => {
                link.end();
                Err(error.into())
            }
        }
    }

    fn pass(&self, order: &ServerOrder) {
        // An order of ours is always JSON.
        let line = serde_json::to_vec(order).unwrap_or_default();
        self.host.link.send(line);
    }

    /// Passes on the next order or answer, if there is one within `limit`, and checks the host.
    pub fn pass_event(
        &mut self,
        network: &impl Network,
        limit: Duration,
        output: &mut impl Write,
    ) -> Result<(), Stop> {
        match network.next(&self.inbox, limit) {
            Ok(Event::Order(order)) => self.pass(&order),
            Ok(Event::Line { mut line, .. }) => {
                if self.host.longest_silence > OUT_OF_REACH_MAX {
                    let silent = std::mem::take(&mut self.host.longest_silence);
                    let seconds = silent.as_secs_f64();
                    write_answer(output, &ServerAnswer::WasSilent { seconds })?;
                }
                line.push(b'\n');
                output.write_all(&line)?;
                output.flush()?;
            }
            Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return Err(Stop::End),
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.host.check(network)
    }

    /// Releases the host.
    pub fn end(&self) {
        self.host.link.send(BYE.to_vec());
        self.host.link.finish(BYE_TIMEOUT);
    }
}
