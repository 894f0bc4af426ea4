//! The link to load hosts: a load process for the contest, whose threads are on other machines.
//!
//! It takes orders on standard input and answers on standard output as a load process does. Each order goes to the
//! agents of all load hosts, and the answer is the sum of theirs. A host that is out of reach ends the link with an
//! error that names it.

pub(super) mod permitted;
mod slice;

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_driver::session::Session;
use dbduel_load::order::{Answer, OpenOrder, Order};
use dbduel_machine::clock;
use dbduel_nats::Nats;
use dbduel_record::facts::LoadHost;

use super::attach::{Asker, RemoteHost, attach};
use super::network::{HostLink as _, Network};
use super::{BYE, BYE_TIMEOUT, HostWork, POLL, Stop, out_of_reach, read, write_answer};

/// Time for an answer beyond what its order allows the load process, and beyond the silence of its host.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// An event in the link's inbox.
type Event = super::Event<Order>;

/// The hosts, and the options of their load processes.
#[derive(Debug)]
pub struct LinkConfig {
    /// Names of agents, in the order of the plan.
    pub hosts: Vec<String>,
    /// Who asks the agents.
    pub asker: Asker,
    /// Threads of each load process.
    pub threads: u32,
    /// Time that a waiting thread polls before it sleeps, microseconds.
    pub busy_poll_us: u32,
}

/// Attaches to all hosts and passes on the orders on `input` until it ends.
///
/// # Errors
/// When the answers cannot be written.
pub fn run(
    nats: &Nats,
    config: &LinkConfig,
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> Result<()> {
    let (sender, inbox) = channel();
    read(input, sender.clone());
    serve(nats, config, (inbox, &sender), output)
}

/// Attaches to all hosts and passes on the orders in the inbox until their end.
pub(super) fn serve<N: Network>(
    network: &N,
    config: &LinkConfig,
    (inbox, sender): (Receiver<Event>, &Sender<Event>),
    output: impl Write,
) -> Result<()> {
    let mut backlog = VecDeque::new();
    let attached = attach_all(network, config, (&inbox, sender), &mut backlog);
    let mut link = LoadLink {
        network,
        hosts: Vec::new(),
        inbox,
        backlog,
        output,
        lead: slice::LEAD_MIN,
    };
    let ended = attached.and_then(|hosts| {
        link.hosts = hosts;
        link.serve()
    });
    match ended {
        Ok(never) => match never {},
        Err(Stop::End) => {}
        Err(Stop::Unreachable(why)) => {
            let said = link.answer(&Answer::Unreachable { why });
            link.end();
            said.context("cannot write answers")?;
            return Ok(());
        }
        Err(Stop::Output(error)) => return Err(error).context("cannot write answers"),
    }
    link.end();
    Ok(())
}

/// Writes to `output` why there is no link.
///
/// # Errors
/// When `output` cannot be written.
pub fn refuse(mut output: impl Write, why: String) -> Result<()> {
    write_answer(&mut output, &Answer::Unreachable { why }).context("cannot write answers")
}

/// Attaches to all hosts, in the order of their names, so that one of two orchestrators gets them all.
fn attach_all<N: Network>(
    network: &N,
    config: &LinkConfig,
    events: (&Receiver<Event>, &Sender<Event>),
    backlog: &mut VecDeque<Order>,
) -> Result<Vec<RemoteHost<N::Link>>, Stop> {
    let mut numbers: Vec<usize> = (0..config.hosts.len()).collect();
    numbers.sort_by_key(|&number| &config.hosts[number]);
    let mut attached = Vec::new();
    for number in numbers {
        let work = HostWork::Load {
            host: number as u32,
            hosts: config.hosts.len() as u32,
            threads: config.threads,
            busy_poll_us: config.busy_poll_us,
        };
        let host = (config.hosts[number].as_str(), number);
        let host = attach(network, &config.asker, host, work, events, backlog)?;
        attached.push((number, host));
    }
    attached.sort_by_key(|(number, _)| *number);
    Ok(attached.into_iter().map(|(_, host)| host).collect())
}

struct LoadLink<'n, N: Network, O> {
    network: &'n N,
    hosts: Vec<RemoteHost<N::Link>>,
    inbox: Receiver<Event>,
    backlog: VecDeque<Order>,
    output: O,
    /// From the order of a slice until it begins, beside the time that messages take.
    lead: Duration,
}

impl<N: Network, O: Write> LoadLink<'_, N, O> {
    fn serve(&mut self) -> Result<std::convert::Infallible, Stop> {
        let hosts = self.hosts.iter().map(|host| LoadHost::from(&host.facts));
        let hosts = hosts.collect();
        let round_trips = self.hosts.iter().map(|host| host.round_trip);
        self.answer(&Answer::Attached {
            hosts,
            round_trip_s: round_trips.max().unwrap_or_default().as_secs_f64(),
        })?;
        loop {
            let answer = match self.next_order()? {
                Order::Open(order) => self.open(order)?,
                Order::Slice(order) => self.slice(&order)?,
                Order::Close { contender } => self.close(contender)?,
                order @ (Order::ReportCommitTimes
                | Order::KeepExamples
                | Order::BeginAt { .. }
                | Order::Halt) => {
                    self.send_all(&order);
                    continue;
                }
                // The slice ended before the order arrived, and has been answered.
                Order::Stop => continue,
            };
            self.answer(&answer)?;
        }
    }

    fn next_order(&mut self) -> Result<Order, Stop> {
        loop {
            if let Some(order) = self.backlog.pop_front() {
                return Ok(order);
            }
            match self.next_event()? {
                Some(Event::Order(order)) => return Ok(order),
                // Between orders a host says something when its load process has ended.
                Some(Event::Line { host, line }) => drop(self.understood(host, &line)?),
                Some(Event::End) | None => {}
            }
        }
    }

    /// The next event, when there is one soon.
    fn next_event(&mut self) -> Result<Option<Event>, Stop> {
        let event = match self.network.next(&self.inbox, POLL) {
            Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return Err(Stop::End),
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
        };
        for host in &mut self.hosts {
            host.check(self.network)?;
        }
        Ok(event)
    }

    /// The stop for a silent host, or for all hosts when the connection to NATS is lost.
    fn out_of_reach(&self, host: &str, silent: Duration) -> Stop {
        out_of_reach(self.network, &format!("load host `{host}`"), silent)
    }

    /// An answer of a host.
    fn understood(&self, host: usize, line: &[u8]) -> Result<Answer, Stop> {
        let name = &self.hosts[host].name;
        match serde_json::from_slice(line) {
            // The agent names its host.
            Ok(Answer::Unreachable { why }) => Err(Stop::Unreachable(why)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(Stop::Unreachable(format!(
                "load host `{name}` sent an answer that is not understood: {error}"
            ))),
        }
    }

    fn answer(&mut self, answer: &Answer) -> std::io::Result<()> {
        write_answer(&mut self.output, answer)
    }

    fn send(&self, host: usize, order: &Order) {
        // An order of ours is always JSON.
        let line = serde_json::to_vec(order).unwrap_or_default();
        self.hosts[host].link.send(line);
    }

    fn send_all(&self, order: &Order) {
        (0..self.hosts.len()).for_each(|host| self.send(host, order));
    }

    /// One answer of each host, in the order of the plan.
    fn gather(&mut self, limit: Duration) -> Result<Vec<Answer>, Stop> {
        let deadline = clock::now() + limit;
        let mut answers: Vec<Option<Answer>> = vec![None; self.hosts.len()];
        let mut silent = Duration::ZERO;
        while let Some(missing) = answers.iter().position(Option::is_none) {
            match self.next_event()? {
                Some(Event::Line { host, line }) => {
                    answers[host] = Some(self.understood(host, &line)?);
                }
                Some(Event::Order(order)) => self.backlog.push_back(order),
                Some(Event::End) | None => {}
            }
            silent = silent.max(self.hosts[missing].link.silent_for());
            if clock::now() >= deadline + silent {
                return Err(Stop::Unreachable(format!(
                    "load host `{}` did not answer in time",
                    self.hosts[missing].name
                )));
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    fn open(&mut self, order: OpenOrder) -> Result<Answer, Stop> {
        let contender = order.contender.clone();
        let connect = Duration::from_secs_f64(order.connect_s.clamp(0.0, 86_400.0));
        self.send_all(&Order::Open(order));
        let mut first: Option<Session> = None;
        let mut longest_s: f64 = 0.0;
        let answers = self.gather(connect + ANSWER_TIMEOUT)?;
        for (host, answer) in answers.into_iter().enumerate() {
            match answer {
                Answer::Opened {
                    seconds, session, ..
                } => {
                    longest_s = longest_s.max(seconds);
                    // Client 0, of whose session the server is asked, is on the first host.
                    first.get_or_insert(session);
                }
                other => {
                    let why = match other {
                        Answer::Refused { why } => why,
                        other => format!("it sent an unexpected answer: {other:?}"),
                    };
                    let why = format!("load host `{}`: {why}", self.hosts[host].name);
                    self.close(contender)?;
                    return Ok(Answer::Refused { why });
                }
            }
        }
        Ok(Answer::Opened {
            contender,
            seconds: longest_s,
            session: first.unwrap_or_default(),
        })
    }

    fn close(&mut self, contender: String) -> Result<Answer, Stop> {
        self.send_all(&Order::Close {
            contender: contender.clone(),
        });
        let mut all_commits = Vec::new();
        let mut all_examples: Vec<dbduel_record::statements::StatementExample> = Vec::new();
        for answer in self.gather(ANSWER_TIMEOUT)? {
            if let Answer::Closed {
                commits, examples, ..
            } = answer
            {
                all_commits.extend(commits);
                for example in examples {
                    if all_examples.iter().all(|one| one.class != example.class) {
                        all_examples.push(example);
                    }
                }
            }
        }
        Ok(Answer::Closed {
            contender,
            commits: all_commits,
            examples: all_examples,
        })
    }

    /// Releases the hosts.
    fn end(&self) {
        for host in &self.hosts {
            host.link.send(BYE.to_vec());
        }
        for host in &self.hosts {
            host.link.finish(BYE_TIMEOUT);
        }
    }
}
