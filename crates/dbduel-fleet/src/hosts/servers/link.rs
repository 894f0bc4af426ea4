//! The link to the agent of one server host: passes on orders and answers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_lab::outage::OUT_OF_REACH_MAX;
use dbduel_lab::server_host::orders::{ServerAnswer, ServerOrder};
use dbduel_nats::{Link, Nats};

use super::super::attach::{Asker, RemoteHost, attach};
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
    read::<ServerOrder>(input, sender.clone());
    let mut backlog = VecDeque::new();
    let place = (host, 0);
    let attached = attach(
        nats,
        asker,
        place,
        HostWork::Servers,
        (&inbox, &sender),
        &mut backlog,
    );
    let ended = attached.and_then(|mut host| {
        let ended = serve(nats, &mut host, &inbox, &backlog, &mut output);
        host.link.send(BYE.to_vec());
        host.link.finish(BYE_TIMEOUT);
        ended
    });
    match ended {
        Ok(never) => match never {},
        Err(Stop::End) => Ok(()),
        Err(Stop::Unreachable(why)) => refuse(output, why),
        Err(Stop::Output(error)) => Err(error).context("cannot write answers"),
    }
}

/// Writes to `output` why there is no link.
///
/// # Errors
/// When `output` cannot be written.
pub fn refuse(mut output: impl Write, why: String) -> Result<()> {
    write_answer(&mut output, &ServerAnswer::Unreachable { why }).context("cannot write answers")
}

fn serve(
    nats: &Nats,
    host: &mut RemoteHost<Link>,
    inbox: &Receiver<Event<ServerOrder>>,
    backlog: &VecDeque<ServerOrder>,
    output: &mut impl Write,
) -> Result<Infallible, Stop> {
    let facts = Box::new(host.facts.clone());
    let attached = ServerAnswer::Attached {
        host: facts,
        round_trip_s: host.round_trip.as_secs_f64(),
    };
    write_answer(output, &attached)?;
    let pass = |host: &RemoteHost<Link>, order: &ServerOrder| {
        // An order of ours is always JSON.
        host.link
            .send(serde_json::to_vec(order).unwrap_or_default());
    };
    backlog.iter().for_each(|order| pass(host, order));
    let mut longest_silence = Duration::ZERO;
    loop {
        match inbox.recv_timeout(POLL) {
            Ok(Event::Order(order)) => pass(host, &order),
            Ok(Event::Line { mut line, .. }) => {
                if longest_silence > OUT_OF_REACH_MAX {
                    let seconds = longest_silence.as_secs_f64();
                    write_answer(output, &ServerAnswer::WasSilent { seconds })?;
                    longest_silence = Duration::ZERO;
                }
                line.push(b'\n');
                output.write_all(&line)?;
                output.flush()?;
            }
            Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return Err(Stop::End),
            Err(RecvTimeoutError::Timeout) => {}
        }
        longest_silence = longest_silence.max(host.link.silent_for());
        host.check(nats)?;
    }
}
