//! Requests to the agent of a host to start work for a contest.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use dbduel_judge::IDENTITY;
use dbduel_machine::random::secret;
use dbduel_nats::{Link, Nats};
use dbduel_record::facts::ServerHost;

use super::{
    AttachReply, AttachRequest, Event, HostWork, PROTOCOL, Stop, answers_subject, attach_subject,
    orders_subject,
};

/// Time for an agent that lost its connection to NATS to come back.
const ABSENT_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for a machine that is cut off to come back.
const SILENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Time until the hosts of a killed orchestrator are free.
const BUSY_TIMEOUT: Duration = Duration::from_secs(12);
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(200);

/// The contest that asks hosts for work.
#[derive(Debug)]
pub struct Asker {
    /// Name of the contest in messages.
    pub contest: String,
    /// Identity of the orchestrator.
    pub orchestrator: String,
}

/// A host as a link sees it.
pub(super) struct RemoteHost {
    pub name: String,
    pub link: Link,
    pub facts: ServerHost,
}

/// Asks one agent, whose lines are those of host `number`, until it accepts. Orders that arrive meanwhile go to the
/// backlog.
pub(super) fn attach<O: Send + 'static>(
    nats: &Nats,
    asker: &Asker,
    (name, number): (&str, usize),
    work: HostWork,
    (inbox, sender): (&Receiver<Event<O>>, &Sender<Event<O>>),
    backlog: &mut VecDeque<O>,
) -> Result<RemoteHost, Stop> {
    let title = work.title(name);
    let failed = |why: String| Stop::Unreachable(format!("{title}: {why}"));
    let session = secret(8).map_err(|error| failed(error.to_string()))?;
    let lines = sender.clone();
    // Before the request, so that no answer is missed.
    let link = nats
        .link(
            &orders_subject(work.word(), name, &session),
            &answers_subject(work.word(), name, &session),
            move |line| {
                let host = number;
                let _ = lines.send(Event::Line { host, line });
            },
        )
        .map_err(|error| failed(error.to_string()))?;
    let subject = attach_subject(work.word(), name);
    let (verb, start) = (work.verb(), work.agent(name));
    let request = AttachRequest {
        protocol: PROTOCOL,
        dbduel: IDENTITY.to_owned(),
        orchestrator: asker.orchestrator.clone(),
        contest: asker.contest.clone(),
        session,
        work,
    };
    let request = serde_json::to_vec(&request).map_err(|error| failed(error.to_string()))?;
    let began = Instant::now();
    loop {
        let (why, timeout) = match nats.ask(&subject, request.clone()) {
            Ok(exchange) => match serde_json::from_slice(&exchange.answer) {
                Ok(AttachReply::Attached { host: facts }) => {
                    return Ok(RemoteHost {
                        name: name.to_owned(),
                        link,
                        facts: *facts,
                    });
                }
                Ok(AttachReply::Busy { contest }) => (
                    format!("it {verb} for another contest ({contest})"),
                    BUSY_TIMEOUT,
                ),
                Ok(AttachReply::Refused { why }) => (why, Duration::ZERO),
                Err(error) => (
                    format!("its agent sent an answer that is not understood: {error}"),
                    Duration::ZERO,
                ),
            },
            Err(error) if error.has_no_listener() => (
                format!(
                    "no such agent answers at {}; start `{start}` there",
                    nats.url()
                ),
                ABSENT_TIMEOUT,
            ),
            Err(error) => (error.to_string(), SILENT_TIMEOUT),
        };
        if began.elapsed() >= timeout {
            return Err(failed(why));
        }
        match inbox.recv_timeout(PAUSE) {
            Ok(Event::Order(order)) => backlog.push_back(order),
            Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return Err(Stop::End),
            // No order was given yet that an answer could be about.
            Ok(Event::Line { .. }) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
