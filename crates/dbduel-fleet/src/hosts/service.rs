//! An agent's work for contests of other machines: runs a load process or servers for one orchestrator at a time, and carries
//! the lines of the process that does it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use dbduel_client::share::HostShare;
use dbduel_judge::IDENTITY;
use dbduel_lab::drive::HostAccess as _;
use dbduel_lab::server_host::orders::ServerAnswer;
use dbduel_lab::{drive, line_process};
use dbduel_load::monotonic;
use dbduel_load::order::Answer;
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_nats::{Link, Nats};
use dbduel_record::facts::{Host, ServerHost};
use dbduel_server::{Home, orphans};
use dbduel_text::terminal;

use crate::NatsAccess;
use anyhow::{Context as _, Result, bail};
use nix::sys::prctl;
use nix::sys::signal::Signal;

use super::desk::{Desk, Work};
use super::{
    AttachRequest, BYE, HostWork, POLL, answers_subject, attach_subject, clock_subject, desk, load,
    orders_subject, servers, session_subject,
};
use crate::agent::Agent;

/// Time for the last answers of a session.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for servers to end with the process that runs them.
const SERVERS_END_TIMEOUT: Duration = Duration::from_secs(30);

/// Offers of an agent to contests of other machines.
#[derive(Debug, Clone)]
pub enum Service {
    /// To drive load.
    Load,
    /// To run servers.
    Servers {
        /// Where they listen for clients.
        address: IpAddr,
        /// Home directory of the servers and their data.
        home: Home,
        /// NATS for sharing data and servers with other machines, if the agent shares.
        nats: Option<NatsAccess>,
    },
}

impl Service {
    /// Part of the subjects, as in [`HostWork::word`].
    fn word(&self) -> &'static str {
        match self {
            Service::Load => "load",
            Service::Servers { .. } => "servers",
        }
    }

    /// True when the work is of this kind.
    fn fits(&self, work: &HostWork) -> bool {
        match self {
            Service::Load => matches!(work, HostWork::Load { .. }),
            Service::Servers { .. } => matches!(work, HostWork::Servers),
        }
    }

    /// The process that does the work.
    fn command(&self, work: &HostWork) -> Result<Command> {
        match (self, work) {
            (
                Service::Load,
                &HostWork::Load {
                    host,
                    hosts,
                    threads,
                    busy_poll_us,
                },
            ) => {
                let share = HostShare { host, hosts };
                let mut command = drive::command(threads, busy_poll_us, &[], share)?;
                // SAFETY: between fork and exec it calls prctl alone, which is async-signal-safe.
                unsafe {
                    command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGKILL)?));
                }
                Ok(command)
            }
            // It notices the end of the agent by the end of its input, and ends its servers.
            (
                Service::Servers {
                    address,
                    home,
                    nats,
                },
                HostWork::Servers,
            ) => {
                let mut command = line_process::own_program("serve")?;
                command.args(["--address", &address.to_string()]);
                command.arg("--home").arg(home.root());
                if let Some(nats) = nats {
                    nats.add_to(&mut command);
                }
                Ok(command)
            }
            _ => bail!("this agent offers other work"),
        }
    }

    /// Refuses an order that the process must not get.
    fn check(&self, line: &[u8]) -> Result<(), String> {
        match self {
            Service::Load => load::permitted::check(line),
            Service::Servers { nats, .. } => servers::permitted::check(line, nats.is_some()),
        }
    }

    /// The answer to an order that is refused.
    fn refusal(&self, why: String) -> Vec<u8> {
        let refusal = match self {
            Service::Load => serde_json::to_vec(&Answer::Refused { why }),
            Service::Servers { .. } => serde_json::to_vec(&ServerAnswer::Failed { why }),
        };
        // An answer of ours is always JSON.
        refusal.unwrap_or_default()
    }

    /// Time for the process to end by itself when a session is over.
    fn end_timeout(&self) -> Duration {
        match self {
            Service::Load => Duration::ZERO,
            Service::Servers { .. } => SERVERS_END_TIMEOUT,
        }
    }
}

/// Serves contests until a signal ends it.
///
/// # Errors
/// When NATS refuses a subject.
pub fn serve(nats: &Nats, agent: &Agent, facts: &Host, service: &Service) -> Result<()> {
    let name = agent.state().name;
    nats.answer(&clock_subject(&name), || {
        let now = monotonic::ns_of(Instant::now());
        now.to_string().into_bytes()
    })?;
    let session = Arc::new(Mutex::new(String::new()));
    let answered = Arc::clone(&session);
    nats.answer(&session_subject(service.word(), &name), move || {
        let session = answered.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone().into_bytes()
    })?;
    let requests = nats.questions(&attach_subject(service.word(), &name))?;
    let host = ServerHost {
        name,
        dbduel: IDENTITY.to_owned(),
        facts: facts.clone(),
    };
    let offer = Offer {
        nats,
        service,
        host: host.name.clone(),
    };
    let mut desk = Desk::new(host);
    while interrupt::urgency() == Urgency::None {
        if let Some(request) = requests.next(POLL) {
            let reply = desk.attach(&offer, &request.payload);
            publish(&session, &desk);
            requests.reply(nats, request, serde_json::to_vec(&reply)?);
        }
        if let Some((request, ended)) = desk.take_over() {
            terminal::status_line(&format!("work for {} is over", request.contest));
            publish(&session, &desk);
            ended.end();
        }
        let contest = desk.request().map(|request| request.contest.clone());
        agent.update(|state| state.drives_for = contest);
    }
    if let Some((_, work)) = desk.take() {
        work.end();
    }
    Ok(())
}

/// Makes the session known, which links ask for while their agent is silent.
fn publish(session: &Mutex<String>, desk: &Desk<Session>) {
    *session.lock().unwrap_or_else(PoisonError::into_inner) = desk.session();
}

/// The agent's offer of its service.
struct Offer<'a> {
    nats: &'a Nats,
    service: &'a Service,
    host: String,
}

impl desk::Service<Session> for Offer<'_> {
    fn fits(&self, work: &HostWork) -> bool {
        self.service.fits(work)
    }

    fn start(&self, request: &AttachRequest) -> Result<Session> {
        let started = Session::start(self.nats, self.service, &self.host, request)?;
        let (verb, contest) = (request.work.verb(), &request.contest);
        terminal::status_line(&format!("{verb} for {contest}"));
        Ok(started)
    }
}

/// The answer of a host whose process has ended; `why` is the reason.
pub(super) fn last_answer(work: &HostWork, host: &str, why: &str) -> Vec<u8> {
    let why = format!("{}: {why}", work.title(host));
    let answer = match work {
        HostWork::Load { .. } => serde_json::to_vec(&Answer::Unreachable { why }),
        HostWork::Servers => serde_json::to_vec(&ServerAnswer::Unreachable { why }),
    };
    // An answer of ours is always JSON.
    answer.unwrap_or_default()
}

/// A process at work, and the link to its orchestrator.
struct Session {
    /// Name of this host.
    host: String,
    work: HostWork,
    service: Service,
    child: Child,
    link: Arc<Link>,
}

impl Session {
    fn start(nats: &Nats, service: &Service, host: &str, request: &AttachRequest) -> Result<Self> {
        let mut command = service.command(&request.work)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        let (sender, lines) = channel();
        let link = nats.link(
            &answers_subject(service.word(), host, &request.session),
            &orders_subject(service.word(), host, &request.session),
            move |line| {
                let _ = sender.send(line);
            },
        )?;
        let link = Arc::new(link);
        let mut child = command.spawn().context("could not start dbduel again")?;
        if let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) {
            let (back, forth) = (Arc::downgrade(&link), Arc::downgrade(&link));
            let service = service.clone();
            std::thread::spawn(move || pass_orders(&service, &lines, orders, &back));
            std::thread::spawn(move || pass_answers(answers, &forth));
        }
        Ok(Self {
            host: host.to_owned(),
            work: request.work.clone(),
            service: service.clone(),
            child,
            link,
        })
    }
}

impl Work for Session {
    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn is_broken(&self) -> bool {
        self.link.is_broken()
    }

    fn silent_for(&self) -> Duration {
        self.link.silent_for()
    }

    fn end(self) {
        let Self {
            host,
            work,
            service,
            mut child,
            link,
        } = self;
        if let Ok(Some(status)) = child.try_wait()
            && !status.success()
        {
            let why = format!("its process ended: {status}");
            link.send(last_answer(&work, &host, &why));
        }
        // A link that has gone acknowledges nothing.
        if link.silent_for() < FINISH_TIMEOUT {
            link.finish(FINISH_TIMEOUT);
        }
        // With the link the input of the process ends.
        drop(link);
        let deadline = Instant::now() + service.end_timeout();
        while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
        let _ = child.kill();
        let ended = child.wait();
        // One that was killed leaves its servers.
        if let Service::Servers { home, .. } = &service
            && !ended.is_ok_and(|status| status.success())
        {
            orphans::sweep(home, SERVERS_END_TIMEOUT);
        }
    }
}

/// Passes the orders of the link to the process, each after a check. The process ends after the last one.
fn pass_orders(
    service: &Service,
    lines: &Receiver<Vec<u8>>,
    mut orders: ChildStdin,
    link: &Weak<Link>,
) {
    for mut line in lines {
        if line == BYE {
            return;
        }
        if let Err(why) = service.check(&line) {
            if let Some(link) = link.upgrade() {
                link.send(service.refusal(why));
            }
            continue;
        }
        line.push(b'\n');
        if orders.write_all(&line).is_err() {
            return;
        }
    }
}

/// Passes the answers of the process to the link.
fn pass_answers(answers: ChildStdout, link: &Weak<Link>) {
    for line in BufReader::new(answers).split(b'\n') {
        match (line, link.upgrade()) {
            (Ok(line), Some(link)) => link.send(line),
            _ => return,
        }
    }
}
