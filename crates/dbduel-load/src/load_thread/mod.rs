//! One load thread: an executor, its clients, and its commands.
//!
//! It executes a [`Command`] and sends a [`Report`]; the text of orders and answers is handled elsewhere. It waits
//! only for its event loop.

mod handle;
mod running;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use dbduel_driver::LostError;
use dbduel_driver::executor::policy::suit_clients;
use dbduel_driver::executor::{Executor, Token};
use dbduel_driver::session::Session;

use dbduel_client::commit_log::Acknowledged;
use dbduel_client::tally::{Tally, TickTally};
use dbduel_client::{ClientConfig, ClientEnd, Duty, Group, Slice, SliceSpec, start_client};
pub use handle::LoadThread;
use running::RunningSlice;
pub use running::{SliceReport, Used};

/// A command to a load thread.
pub enum Command {
    /// Connect this thread's clients of a contender.
    Open {
        /// Name of the contender.
        contender: String,
        /// Server and workload.
        config: Arc<ClientConfig>,
        /// Numbers of the clients.
        clients: Vec<u32>,
    },
    /// Report when no client of the contender is inside a transaction that outlasted the drain of an earlier slice, or
    /// has been inside one for as long as a drain; with `is_parked`, when none is inside any transaction.
    Settle {
        /// Number of the command, which the report repeats.
        number: u64,
        /// Name of the contender.
        contender: String,
        /// Whether all transactions are awaited.
        is_parked: bool,
    },
    /// Drive a slice.
    Begin(Box<BeginSlice>),
    /// Move the planned end of the running slice to now.
    Stop,
    /// End the running slice now and report it, then the sessions' reports to the server's statistics. Clients still
    /// begin transactions, until they are halted.
    End,
    /// Begin nothing more in the running or last reported slice.
    Halt,
    /// Drop a contender's clients in any state.
    Close {
        /// Name of the contender.
        contender: String,
    },
}

/// A slice for a load thread.
#[derive(Debug)]
pub struct BeginSlice {
    /// Name of the contender.
    pub contender: String,
    /// This thread's part.
    pub spec: SliceSpec,
    /// The planned end, nanoseconds since the start.
    pub close_ns: u64,
    /// An empty tally, whose window includes the longest drain.
    pub tally: Tally,
    /// Longest wait, after the planned end, for transactions that were due before it.
    pub drain: Duration,
}

/// A report of a load thread.
#[derive(Debug)]
pub enum Report {
    /// Its clients of the contender are connected and prepared. With the server's report on the first client's
    /// session, when that client is among them.
    Opened(Option<Box<Session>>),
    /// None of its clients of the contender is inside a transaction that was awaited.
    Settled(u64),
    /// A tick of the running slice is over.
    Tick {
        /// Index of the tick in the slice.
        index: usize,
        /// Its counts.
        tick: TickTally,
    },
    /// Commits that a contender's server acknowledged. Comes before the report of anything that ended meanwhile.
    Committed {
        /// Name of the contender.
        contender: String,
        /// The numbers.
        acknowledged: Vec<Acknowledged>,
    },
    /// All its clients have done their work in the running slice before its planned end.
    Finished,
    /// The wait for transactions of the running slice is over.
    Drained {
        /// False when some did not end in time.
        in_time: bool,
    },
    /// The slice is over.
    Done(Box<SliceReport>),
    /// After the slice was over, all sessions of its clients have reported to the statistics of a server that takes
    /// reports on request; at once for other servers.
    Reported {
        /// When the slice began, nanoseconds of `CLOCK_MONOTONIC`; identifies the slice.
        start_ns: u64,
        /// Transactions committed since the sessions' previous reports; `None` where unknown.
        committed: Option<u64>,
    },
    /// A client's connection is unusable. Comes before the report of the slice that it ends.
    Lost {
        /// Name of its contender.
        contender: String,
        /// The error.
        why: LostError,
    },
    /// The contender's clients are gone.
    Closed,
    /// The thread has ended.
    Ended(io::Result<()>),
}

/// The clients of one contender.
struct ContenderClients {
    group: Rc<Group>,
    tokens: Vec<Token>,
    reported_open: bool,
    /// The last slice that was reported.
    last: Option<Rc<Slice>>,
}

impl ContenderClients {
    /// True when no client is inside the transactions of a [`Command::Settle`].
    fn is_settled(&self, is_parked: bool) -> bool {
        match is_parked {
            true => self.group.is_parked(),
            false => {
                !self.group.is_stuck() && !self.last.as_ref().is_some_and(|last| last.is_overdue())
            }
        }
    }
}

/// Longest time in which clients continue after their slice has ended: the controlling process may have been stopped.
const COVER_MAX: Duration = Duration::from_secs(10);

/// A requested wait for clients.
struct Settling {
    number: u64,
    contender: String,
    is_parked: bool,
}

/// A reported slice whose clients continue.
struct Covering {
    contender: Rc<str>,
    slice: Rc<Slice>,
    until: Instant,
}

struct State<'a, R> {
    executor: Executor<ClientEnd>,
    contenders: HashMap<String, ContenderClients>,
    running: Option<RunningSlice>,
    covering: Option<Covering>,
    settling: Option<Settling>,
    /// The contender whose sessions report after a slice, and the start of that slice.
    reporting: Option<(String, u64)>,
    /// True while the clients of a contender have not reported that they are open.
    opening: bool,
    report: &'a R,
}

impl<'a, R: Fn(Report)> State<'a, R> {
    fn run(
        executor: Executor<ClientEnd>,
        commands: &Receiver<Command>,
        report: &'a R,
    ) -> io::Result<()> {
        let mut state = State {
            executor,
            contenders: HashMap::new(),
            running: None,
            covering: None,
            settling: None,
            reporting: None,
            opening: false,
            report,
        };
        let mut ended = Vec::new();
        let mut rung = true;
        loop {
            if rung && !state.obey(commands, &mut ended) {
                return Ok(());
            }
            for (token, end) in ended.drain(..) {
                if let Err(why) = end {
                    state.lose(token, why);
                }
            }
            state.look_after_opening();
            state.look_after_reports();
            state.look_after_slice(&mut ended);
            rung = state.executor.turn(&mut ended)?.rung;
        }
    }

    /// Executes all commands; false when there will be no more.
    fn obey(&mut self, commands: &Receiver<Command>, ended: &mut Vec<(Token, ClientEnd)>) -> bool {
        loop {
            match commands.try_recv() {
                Ok(Command::Open {
                    contender,
                    config,
                    clients,
                }) => self.open(contender, &config, &clients, ended),
                Ok(Command::Settle {
                    number,
                    contender,
                    is_parked,
                }) => {
                    self.settling = Some(Settling {
                        number,
                        contender,
                        is_parked,
                    });
                }
                Ok(Command::Begin(begin)) => self.begin(*begin, ended),
                Ok(Command::Stop) => self.stop(ended),
                Ok(Command::End) => self.end_slice(Instant::now(), ended),
                Ok(Command::Halt) => self.halt(ended),
                Ok(Command::Close { contender }) => self.close(&contender),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn open(
        &mut self,
        contender: String,
        config: &Arc<ClientConfig>,
        clients: &[u32],
        ended: &mut Vec<(Token, ClientEnd)>,
    ) {
        let group = Rc::new(Group::default());
        let start = |&client: &u32| {
            let duty = Duty::Slices(Rc::clone(&group));
            start_client(client, config, duty, &mut self.executor)
        };
        let tokens: Vec<Token> = clients.iter().map(start).collect();
        self.executor.poll_all(&tokens, ended);
        self.opening = true;
        self.contenders.insert(
            contender,
            ContenderClients {
                group,
                tokens,
                reported_open: false,
                last: None,
            },
        );
    }

    fn begin(&mut self, begin: BeginSlice, ended: &mut Vec<(Token, ClientEnd)>) {
        self.halt(ended);
        // Without it the load still runs, only dearer; the cost is measured and reported.
        let _ = suit_clients(begin.spec.share.own_clients());
        let running = RunningSlice::new(begin);
        let clients = self.contenders.get(&**running.contender());
        let tokens = clients.map(|clients| {
            clients
                .group
                .begin(Rc::clone(running.slice()), running.drain());
            clients.tokens.clone()
        });
        let tokens = tokens.unwrap_or_default();
        let parked = tokens.iter().copied();
        let parked = parked.filter(|token| clients.is_some_and(|all| !all.group.is_busy(*token)));
        // What parked clients waited for is over. Others may still be inside a transaction.
        self.executor
            .reactor()
            .forget_timers(&parked.collect::<Vec<Token>>());
        self.running = Some(running);
        self.reporting = None;
        // A guard of zero length ends before anything is sent.
        self.look_after_slice(ended);
        self.executor.poll_all(&tokens, ended);
        if tokens.is_empty()
            && let Some(running) = &self.running
        {
            running.slice().left_by_all();
        }
    }

    fn stop(&mut self, ended: &mut Vec<(Token, ClientEnd)>) {
        let Some(running) = &mut self.running else {
            return;
        };
        running.stop();
        // Those that wait for an instant learn that it will not come.
        let clients = self.contenders.get(&**running.contender());
        let tokens = clients.map(|clients| clients.tokens.clone());
        self.executor.poll_all(&tokens.unwrap_or_default(), ended);
    }

    /// Halts the running or last reported slice.
    fn halt(&mut self, ended: &mut Vec<(Token, ClientEnd)>) {
        let (contender, slice) = match (&self.running, self.covering.take()) {
            (Some(running), _) => (Rc::clone(running.contender()), Rc::clone(running.slice())),
            (None, Some(covering)) => {
                self.executor.reactor().wake_owner_at(None);
                (covering.contender, covering.slice)
            }
            (None, None) => return,
        };
        slice.halt();
        let Some(clients) = self.contenders.get(&*contender) else {
            return;
        };
        clients.group.halt();
        // Those that wait for an instant learn that it will not come.
        let tokens = clients.tokens.clone();
        self.executor.poll_all(&tokens, ended);
    }

    fn close(&mut self, contender: &str) {
        self.end_slice_early(contender, self.report);
        self.drop_clients(contender);
        (self.report)(Report::Closed);
    }

    fn drop_clients(&mut self, contender: &str) {
        if let Some(clients) = self.contenders.remove(contender) {
            for token in clients.tokens {
                self.executor.remove(token);
            }
            hand_over(&clients.group, contender, self.report);
        }
        if self
            .running
            .as_ref()
            .is_some_and(|running| **running.contender() == *contender)
        {
            self.running = None;
            self.executor.reactor().wake_owner_at(None);
        }
        if self
            .covering
            .as_ref()
            .is_some_and(|covering| *covering.contender == *contender)
        {
            self.covering = None;
            self.executor.reactor().wake_owner_at(None);
        }
        if self
            .settling
            .as_ref()
            .is_some_and(|settling| settling.contender == contender)
        {
            self.settling = None;
        }
    }

    /// Called when a client's connection is lost: all clients of its contender stop.
    fn lose(&mut self, token: Token, why: LostError) {
        let owner = self
            .contenders
            .iter()
            .find(|(_, clients)| clients.tokens.contains(&token));
        // None, when an earlier loss took the clients with it.
        let Some(contender) = owner.map(|(contender, _)| contender.clone()) else {
            return;
        };
        let (report, counted) = (self.report, RefCell::new(None));
        self.end_slice_early(&contender, &|early| match early {
            Report::Done(_) => *counted.borrow_mut() = Some(early),
            other => report(other),
        });
        self.drop_clients(&contender);
        report(Report::Lost { contender, why });
        // Where all threads lose their clients at once and had reported this before, the slice would be taken for a whole one.
        counted.take().into_iter().for_each(report);
    }

    /// Reports the counts of a contender's running slice; transactions in flight count as unfinished.
    fn end_slice_early(&mut self, contender: &str, report: &impl Fn(Report)) {
        if let Some(running) = &mut self.running
            && **running.contender() == *contender
        {
            running.stop();
            let polled = self.executor.reactor().polled();
            running.end(Instant::now(), polled, report);
        }
    }

    fn look_after_opening(&mut self) {
        if self.opening {
            self.opening = false;
            for clients in self
                .contenders
                .values_mut()
                .filter(|clients| !clients.reported_open)
            {
                clients.reported_open = clients.group.opened() as usize == clients.tokens.len();
                match clients.reported_open {
                    true => {
                        let session = clients.group.take_session().map(Box::new);
                        (self.report)(Report::Opened(session));
                    }
                    false => self.opening = true,
                }
            }
        }
        let Some(Settling {
            number,
            contender,
            is_parked,
        }) = &self.settling
        else {
            return;
        };
        if self
            .contenders
            .get(contender)
            .is_none_or(|clients| clients.is_settled(*is_parked))
        {
            (self.report)(Report::Settled(*number));
            self.settling = None;
        }
    }

    fn look_after_reports(&mut self) {
        let Some((contender, start_ns)) = &self.reporting else {
            return;
        };
        let clients = self.contenders.get(contender);
        if let Some(committed) = clients.and_then(|clients| clients.group.take_reports()) {
            (self.report)(Report::Reported {
                start_ns: *start_ns,
                committed,
            });
            self.reporting = None;
        }
    }

    fn look_after_slice(&mut self, ended: &mut Vec<(Token, ClientEnd)>) {
        let now = self.executor.reactor().turn_began();
        if self
            .covering
            .as_ref()
            .is_some_and(|covering| now >= covering.until)
        {
            self.halt(ended);
        }
        let Some(running) = &mut self.running else {
            return;
        };
        if !running.is_due(now) {
            return;
        }
        let reactor = self.executor.reactor();
        let group = self.contenders.get(&**running.contender());
        let group = group.map(|clients| Rc::clone(&clients.group));
        let contender = Rc::clone(running.contender());
        let next = running.look(now, reactor.polled(), &|report: Report| {
            if let Some(group) = &group {
                hand_over(group, &contender, self.report);
            }
            (self.report)(report);
        });
        reactor.wake_owner_at(Some(next));
    }

    /// Ends the running slice and reports it; its clients continue.
    fn end_slice(&mut self, now: Instant, ended: &mut Vec<(Token, ClientEnd)>) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        let reactor = self.executor.reactor();
        let slice = Rc::clone(running.slice());
        let contender = Rc::clone(running.contender());
        let clients = self.contenders.get_mut(&*contender);
        if let Some(clients) = &clients {
            hand_over(&clients.group, &contender, self.report);
        }
        running.end(now, reactor.polled(), self.report);
        let mut tokens = Vec::new();
        if let Some(clients) = clients {
            clients.group.end();
            if clients.group.ask_for_reports() {
                tokens.clone_from(&clients.tokens);
            }
            clients.last = Some(Rc::clone(&slice));
            self.reporting = Some((contender.to_string(), slice.spec().start_ns));
        }
        // Other hosts may still wait for transactions of theirs.
        let until = now + running.drain() + COVER_MAX;
        reactor.wake_owner_at(Some(until));
        self.covering = Some(Covering {
            contender,
            slice,
            until,
        });
        // Those that wait learn that their sessions are to report.
        self.executor.poll_all(&tokens, ended);
        self.look_after_reports();
    }
}

/// Reports the commits that a contender's server acknowledged, if there are any.
fn hand_over(group: &Group, contender: &str, report: &impl Fn(Report)) {
    let acknowledged = group.take_acknowledged();
    if !acknowledged.is_empty() {
        report(Report::Committed {
            contender: contender.to_owned(),
            acknowledged,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use dbduel_record::plan::{Arrival, Parameters};
    use dbduel_wire::server::{Act, Answer};

    use super::*;
    use crate::monotonic;
    use dbduel_client::share::HostShare;
    use dbduel_client::tally::Window;
    use dbduel_driver::mock_server::{MockServer, Role};
    use dbduel_driver::{Credentials, Dialect, Tls, TlsMode};
    use dbduel_workloads::{find, parameters};

    #[test]
    fn a_loss_is_reported_before_the_slice_that_it_ends() {
        const SECOND: u64 = 1_000_000_000;
        let act = |answer| Act {
            after: Duration::ZERO,
            answer,
        };
        let acts = [vec![act(Answer::Proper); 20], vec![act(Answer::Close)]].concat();
        let folder = tempfile::tempdir().unwrap();
        let server =
            MockServer::start(&folder.path().join("s.sock"), Role::Scripted(acts)).unwrap();
        let workload = find("oltp-point-select").unwrap();
        let parameters = parameters::resolve(workload, &Parameters::new()).unwrap();
        let config = ClientConfig {
            dialect: Dialect::MySql,
            address: server.address(),
            credentials: Credentials::default(),
            tls: Arc::new(Tls::new(TlsMode::Off)),
            database: "dbduel".to_owned(),
            workload,
            shared: workload.shared(&parameters),
            parameters,
            sequence: Arc::default(),
            host: HostShare::WHOLE,
            examples: None,
        };
        let (sender, reports) = channel();
        let thread = LoadThread::start(0, Duration::ZERO, move |report| {
            let _ = sender.send(report);
        });
        let thread = thread.unwrap();
        thread.command(Command::Open {
            contender: "only".to_owned(),
            config: Arc::new(config),
            clients: vec![0],
        });
        let report = || reports.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(matches!(report(), Report::Opened(_)));
        let start = Instant::now();
        let window = Window {
            open_ns: 0,
            close_ns: 600 * SECOND,
            tick_ns: 60 * SECOND,
        };
        thread.command(Command::Begin(Box::new(BeginSlice {
            contender: "only".to_owned(),
            spec: SliceSpec {
                start,
                start_ns: monotonic::ns_of(start),
                arrival: Arrival::Closed { think_ms: 0.0 },
                share: HostShare::WHOLE.of_thread(0, 1, 1),
                retries: 0,
                quantum: None,
                seed: 1,
            },
            close_ns: window.close_ns,
            tally: Tally::new(1, window),
            drain: Duration::ZERO,
        })));
        let first = loop {
            match report() {
                Report::Tick { .. } => {}
                other => break other,
            }
        };
        assert!(matches!(first, Report::Lost { .. }), "{first:?}");
        let second = report();
        assert!(matches!(second, Report::Done(_)), "{second:?}");
        thread.end();
    }
}
