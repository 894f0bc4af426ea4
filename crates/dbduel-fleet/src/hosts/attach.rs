//! Requests to the agent of a host to start work for a contest.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use dbduel_judge::IDENTITY;
use dbduel_lab::outage::{ABSENT_TIMEOUT, CUT_OFF_TIMEOUT, SILENCE_MAX};
use dbduel_machine::clock;
use dbduel_machine::random::secret;
use dbduel_record::facts::ServerHost;

use super::network::{HostLink, Network};
use super::{
    AttachReply, AttachRequest, CLOCK_TIMEOUT, Event, HostWork, PROTOCOL, Stop, answers_subject,
    attach_subject, clock_subject, orders_subject, out_of_reach, session_subject,
};

/// Time for a contest to end that holds a host and is heard.
const BUSY_TIMEOUT: Duration = Duration::from_secs(3);
/// A contest that was silent for longer than this before it is asked about may have been killed; its host is then free
/// after [`SILENCE_MAX`].
const HEARD_MAX: Duration = Duration::from_secs(1);
/// A host that is silent for longer than this is asked whether it still has its session, at this interval.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout of that question.
const CHECK_TIMEOUT: Duration = Duration::from_millis(500);
/// Questions from which the round trip to a host is taken. Busy machines answer most of them late.
const ROUND_TRIP_QUESTIONS: usize = 20;
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
pub(super) struct RemoteHost<L> {
    pub name: String,
    pub title: String,
    pub link: L,
    pub facts: ServerHost,
    /// The shortest round trip to its agent, when it was attached.
    pub round_trip: Duration,
    session: String,
    session_subject: String,
    /// When its session was asked for last.
    checked: Option<Instant>,
    /// The longest silence since it was taken last.
    pub longest_silence: Duration,
}

impl<L: HostLink> RemoteHost<L> {
    /// The present silence.
    pub(super) fn note_silence(&mut self) -> Duration {
        let silent = self.link.silent_for();
        self.longest_silence = self.longest_silence.max(silent);
        silent
    }

    /// Stops the link when the host is lost: it is silent for too long, its agent has ended the session, or lines were
    /// lost.
    pub(super) fn check(&mut self, network: &impl Network) -> Result<(), Stop> {
        let silent = self.note_silence();
        if silent > SILENCE_MAX {
            return Err(out_of_reach(network, &self.title, silent));
        }
        if self.link.is_broken() {
            let why = format!("{} does not acknowledge its orders", self.title);
            return Err(Stop::Unreachable(why));
        }
        let is_due = |checked: Instant| clock::since(checked) >= CHECK_INTERVAL;
        if silent > CHECK_INTERVAL && self.checked.is_none_or(is_due) {
            let subjects = std::slice::from_ref(&self.session_subject);
            let answers = network.ask_each(subjects, 1, CHECK_TIMEOUT);
            self.checked = Some(clock::now());
            let is_other = |answer: &[u8]| answer != self.session.as_bytes();
            if answers.iter().flatten().any(|one| is_other(&one.answer)) {
                return Err(Stop::Unreachable(format!(
                    "{} has ended its session: its agent was restarted, or was out of reach for more than {} s",
                    self.title,
                    SILENCE_MAX.as_secs()
                )));
            }
        }
        Ok(())
    }
}

/// Asks one agent, whose lines are those of host `number`, until it accepts. Orders that arrive meanwhile go to the
/// backlog.
pub(super) fn attach<N: Network, O: Send + 'static>(
    network: &N,
    asker: &Asker,
    (name, number): (&str, usize),
    work: HostWork,
    (inbox, sender): (&Receiver<Event<O>>, &Sender<Event<O>>),
    backlog: &mut VecDeque<O>,
) -> Result<RemoteHost<N::Link>, Stop> {
    let title = work.title(name);
    let failed = |why: String| Stop::Unreachable(format!("{title}: {why}"));
    let session = secret(8).map_err(|error| failed(error.to_string()))?;
    let lines = sender.clone();
    // Before the request, so that no answer is missed.
    let link = network
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
    let session_subject = session_subject(work.word(), name);
    let request = AttachRequest {
        protocol: PROTOCOL,
        dbduel: IDENTITY.to_owned(),
        orchestrator: asker.orchestrator.clone(),
        contest: asker.contest.clone(),
        session: session.clone(),
        work,
    };
    let request = serde_json::to_vec(&request).map_err(|error| failed(error.to_string()))?;
    let began = clock::now();
    loop {
        let (why, timeout) = match network.ask(&subject, request.clone()) {
            Ok(exchange) => match serde_json::from_slice(&exchange.answer) {
                Ok(AttachReply::Attached { host: facts }) => {
                    return Ok(RemoteHost {
                        name: name.to_owned(),
                        title,
                        link,
                        facts: *facts,
                        round_trip: round_trip(network, name),
                        session,
                        session_subject,
                        checked: None,
                        longest_silence: Duration::ZERO,
                    });
                }
                Ok(AttachReply::Busy { contest, silent_s }) => (
                    format!("it {verb} for another contest ({contest})"),
                    match silent_s > HEARD_MAX.as_secs_f64() {
                        true => SILENCE_MAX + BUSY_TIMEOUT,
                        false => BUSY_TIMEOUT,
                    },
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
                    network.url()
                ),
                ABSENT_TIMEOUT,
            ),
            Err(error) => (error.to_string(), CUT_OFF_TIMEOUT),
        };
        if clock::since(began) >= timeout {
            return Err(failed(why));
        }
        match network.next(inbox, PAUSE) {
            Ok(Event::Order(order)) => backlog.push_back(order),
            Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return Err(Stop::End),
            // No order was given yet that an answer could be about.
            Ok(Event::Line { .. }) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The shortest of several round trips to an agent; zero when it does not answer.
fn round_trip(network: &impl Network, host: &str) -> Duration {
    let subject = clock_subject(host);
    let subjects = std::slice::from_ref(&subject);
    let answers = network.ask_each(subjects, ROUND_TRIP_QUESTIONS, CLOCK_TIMEOUT);
    let round_trips = answers.iter().flatten().map(|answer| answer.round_trip);
    round_trips.min().unwrap_or_default()
}
