//! The process on a server host that executes the orders of a contest: `dbduel serve`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, Read as _, Seek as _, SeekFrom, Write};
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use dbduel_driver::address::Address;
use dbduel_driver::{ConnectOptions, Connection};
use dbduel_lab::contest::backend::Health;
use dbduel_lab::contest::{Backend as _, Sandboxed, sandboxed};
use dbduel_lab::observe::{Observer, Subject, Watch, write_accounting};
use dbduel_lab::server_host::HostObserved;
use dbduel_lab::server_host::orders::{ServerAnswer, ServerOrder, ServerTask, StartedServer};
use dbduel_lab::snapshots::{Description, Snapshots};
use dbduel_machine::host;
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_record::event::LoadTime;
use dbduel_report::words;
use dbduel_server::{
    DATABASE, Home, RefusedSetting, RunningServer, ServerName, Silent, StartError, file_sizes,
};
use dbduel_text::terminal;

use crate::NatsAccess;
use crate::shared::{self, snapshots};
use anyhow::{Context as _, Result, bail};

use super::super::write_answer;

/// Most bytes sent of the end of a log. A message has room for them even where each byte needs six.
const LOG_BYTES_MAX: u64 = 8 << 20;
/// Timeout of a question to a server: a longer one would disturb the server.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two checks for signals.
const POLL: Duration = Duration::from_millis(100);
/// Longer than any turn.
const SECONDS_MAX: f64 = 86_400.0;

/// Executes orders until the input ends or a signal arrives, then ends the servers. They listen for clients on
/// `address`. The end of the input interrupts the current order, as a signal does.
///
/// # Errors
/// When the answers cannot be written, or a signal came.
pub fn serve(
    home: &Home,
    address: IpAddr,
    nats: Option<NatsAccess>,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<()> {
    let mut host = Host {
        home,
        address,
        nats,
        subject: Subject {
            disk: host::disk_of(home.root()),
            // As in a contest on one machine.
            overcounts_writes: write_accounting::overcounts(home.root()).unwrap_or(false),
            ..Subject::default()
        },
        servers: BTreeMap::new(),
    };
    let (sender, orders) = channel();
    let is_over = Arc::new(AtomicBool::new(false));
    let is_over_there = Arc::clone(&is_over);
    std::thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
        is_over_there.store(true, Ordering::Relaxed);
        interrupt::request();
    });
    while interrupt::check().is_ok() {
        let line = match orders.recv_timeout(POLL) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let answer = match serde_json::from_str(&line) {
            Ok(order) => host.obey(order).unwrap_or_else(failure),
            Err(error) => ServerAnswer::Failed {
                why: format!("not an order: {error}"),
            },
        };
        write_answer(&mut output, &answer).context("cannot write answers")?;
    }
    if !is_over.load(Ordering::Relaxed) {
        interrupt::check()?;
    }
    Ok(())
}

fn failure(error: anyhow::Error) -> ServerAnswer {
    match error.downcast::<RefusedSetting>() {
        Ok(refused) => ServerAnswer::RefusedSetting {
            name: refused.setting.name,
            value: refused.setting.value,
            said: refused.said,
        },
        Err(error) => ServerAnswer::Failed {
            why: format!("{error:#}"),
        },
    }
}

/// The measured part of a turn, which begins `opens_in_s` seconds from now.
fn measured_part(opens_in_s: f64, length_s: f64) -> Range<Instant> {
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX));
    let now = Instant::now();
    let opens = match opens_in_s < 0.0 {
        true => now.checked_sub(seconds(-opens_in_s)).unwrap_or(now),
        false => now + seconds(opens_in_s),
    };
    opens..opens + seconds(length_s)
}

fn not_shared(key: &str, error: &anyhow::Error) {
    terminal::status_line(&format!(
        "could not share the data {key} with other hosts: {error:#}"
    ));
}

/// The end of a log, which says how much is missing before it.
fn end_of(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let before = file.metadata()?.len().saturating_sub(LOG_BYTES_MAX);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    let end = String::from_utf8_lossy(&bytes);
    Ok(match before {
        0 => end.into_owned(),
        _ => format!("(the first {before} bytes of this log stayed on its host)\n{end}"),
    })
}

/// The servers of a contest.
struct Host<'h> {
    home: &'h Home,
    address: IpAddr,
    /// NATS for sharing data and servers, if the agent shares.
    nats: Option<NatsAccess>,
    /// Subject of the samplers, beside the process.
    subject: Subject,
    /// Servers by index of the plan's contenders.
    servers: BTreeMap<usize, HostedServer>,
}

/// One of them.
struct HostedServer {
    plan: Plan,
    number: usize,
    own: Sandboxed,
    /// Between turns.
    observer: Observer,
    /// During a turn.
    watch: Option<Watch>,
}

impl Host<'_> {
    fn obey(&mut self, order: ServerOrder) -> Result<ServerAnswer> {
        let (home, number) = (self.home, order.contender);
        match order.what {
            ServerTask::Prepare { run, plan, sent } => {
                return self.prepare(number, &run, *plan, sent.as_deref());
            }
            ServerTask::Start { keeps_data } => {
                let nats = self.nats.clone();
                let server = self.server(number)?;
                return server.start_on_data(home, nats.as_ref(), keeps_data);
            }
            ServerTask::KeepData { load } => {
                let nats = self.nats.clone();
                return self.server(number)?.keep_data(home, nats.as_ref(), load);
            }
            ServerTask::Restart => return self.server(number)?.restart(),
            ServerTask::Freeze => {
                return self.server(number)?.unless_dead(Sandboxed::freeze_running);
            }
            ServerTask::Thaw => return self.server(number)?.unless_dead(Sandboxed::thaw_running),
            ServerTask::Health => return self.server(number)?.unless_dead(|_| Ok(())),
            ServerTask::Watch => {
                let subject = self.subject.clone();
                self.server(number)?.watch(subject)?;
            }
            ServerTask::Measure {
                opens_in_s,
                length_s,
            } => {
                if let Some(watch) = &self.server(number)?.watch {
                    watch.measure(measured_part(opens_in_s, length_s));
                }
            }
            ServerTask::EndWatch => {
                let seen = self.server(number)?.end_watch();
                return Ok(ServerAnswer::Observed { seen });
            }
            ServerTask::ResumeInjection { injection } => {
                let HostedServer { plan, own, .. } = self.server(number)?;
                own.resume_injection(&injection, plan.seed)?;
            }
            ServerTask::PauseInjection => {
                let injected = self.server(number)?.own.pause_injection();
                return Ok(ServerAnswer::Injected(injected));
            }
            ServerTask::Sizes => {
                let data = self.server(number)?.own.sandbox.data();
                let files = file_sizes(&data)?;
                return Ok(ServerAnswer::Sizes { files });
            }
            ServerTask::Files => return Ok(self.server(number)?.files()),
            ServerTask::Stop => self.server(number)?.stop()?,
            ServerTask::Remove => {
                if let Some(gone) = self.servers.remove(&number) {
                    drop(gone.own.server);
                    gone.own.sandbox.remove()?;
                }
            }
        }
        Ok(ServerAnswer::Done)
    }

    fn server(&mut self, number: usize) -> Result<&mut HostedServer> {
        let server = self.servers.get_mut(&number);
        server.context("its sandbox was not prepared")
    }

    fn prepare(
        &mut self,
        number: usize,
        run: &str,
        plan: Plan,
        sent: Option<&str>,
    ) -> Result<ServerAnswer> {
        // A server that is prepared again has ended.
        self.servers.remove(&number);
        let contender = plan.contenders.get(number);
        let contender = contender.context("the plan does not have this contender")?;
        let name = match sent {
            Some(digest) => match shared::servers::fetch(self.nats.as_ref(), self.home, digest)? {
                Some(name) => name,
                None => return Ok(ServerAnswer::ServerWanted),
            },
            None => ServerName::parse(&contender.server)?,
        };
        let build = sandboxed::fetch(self.home, &Silent, &plan, contender, &name)?;
        let made = sandboxed::make(self.home, &plan, number, run, build, Some(self.address));
        let (sandbox, notices) = made?;
        let answer = ServerAnswer::Prepared {
            build: Box::new(sandbox.build().clone()),
            overcounts_writes: self.subject.overcounts_writes,
            notices: notices
                .into_iter()
                .map(|notice| (notice.name, notice.said))
                .collect(),
        };
        let own = Sandboxed::new(sandbox);
        let server = HostedServer {
            plan,
            number,
            own,
            observer: Observer::default(),
            watch: None,
        };
        self.servers.insert(number, server);
        Ok(answer)
    }
}

impl HostedServer {
    fn start_on_data(
        &mut self,
        home: &Home,
        nats: Option<&NatsAccess>,
        keeps_data: bool,
    ) -> Result<ServerAnswer> {
        let data = self.own.sandbox.data();
        let keeps_data = keeps_data && data.is_dir();
        let mut restored = None;
        if !keeps_data {
            if data.is_dir() {
                fs::remove_dir_all(&data)
                    .with_context(|| format!("could not clear `{}`", data.display()))?;
            }
            let contender = &self.plan.contenders[self.number];
            let key = sandboxed::key(&self.own.sandbox, contender, &self.plan);
            let is_here = Snapshots::new(home).description(&key).is_some();
            if let Some(nats) = nats.filter(|_| self.shares_data() && !is_here) {
                match snapshots::fetch(nats, home, &key) {
                    Ok(Some(bytes)) => {
                        let size = words::bytes(bytes);
                        terminal::status_line(&format!(
                            "fetched the data {key} ({size}) from NATS"
                        ));
                    }
                    Ok(None) => {}
                    Err(error) => not_shared(&key, &error),
                }
            }
            restored = sandboxed::put_data(home, &Silent, &self.own.sandbox, &key)?;
        }
        self.start(restored, keeps_data)
    }

    /// True when contenders on other hosts may use its data.
    fn shares_data(&self) -> bool {
        let own = &self.plan.contenders[self.number].host;
        let mut others = self.plan.contenders.iter();
        others.any(|other| other.host != *own)
    }

    fn keep_data(
        &mut self,
        home: &Home,
        nats: Option<&NatsAccess>,
        load: LoadTime,
    ) -> Result<ServerAnswer> {
        let nats = nats.filter(|_| self.shares_data());
        let Self {
            plan, number, own, ..
        } = self;
        let contender = &plan.contenders[*number];
        sandboxed::stop_and_keep(home, &Silent, plan, contender, own, load)?;
        if let Some(nats) = nats {
            let key = sandboxed::key(&own.sandbox, contender, plan);
            if let Err(error) = snapshots::offer(nats, home, &key) {
                not_shared(&key, &error);
            }
        }
        self.start(None, true)
    }

    fn restart(&mut self) -> Result<ServerAnswer> {
        self.own.server = None;
        self.start(None, true)
    }

    fn start(&mut self, restored: Option<Description>, kept_data: bool) -> Result<ServerAnswer> {
        let started = self.own.sandbox.start(&self.plan.limits);
        let server = started.map_err(|error| match error {
            StartError::Refused(refused) => refused.into(),
            other => anyhow::Error::new(other),
        })?;
        let Address::Tcp { host, port } = server.client_address() else {
            bail!("its server listens on no TCP address");
        };
        let credentials = server.credentials();
        let started = StartedServer {
            host,
            port,
            user: credentials.user.clone(),
            password: credentials.password.clone(),
            ready_after_s: server.ready_after().as_secs_f64(),
        };
        self.own.server = Some(server);
        Ok(ServerAnswer::Started {
            restored,
            kept_data,
            server: started,
        })
    }

    fn stop(&mut self) -> Result<()> {
        if let Some(server) = self.own.server.take() {
            server.stop(Duration::from_secs_f64(self.plan.limits.server_stop_s))?;
        }
        Ok(())
    }

    /// Runs `act` on the server; a server that died before or meanwhile is not an error.
    fn unless_dead(
        &mut self,
        act: impl FnOnce(&mut Sandboxed) -> Result<()>,
    ) -> Result<ServerAnswer> {
        Ok(match self.own.unless_dead(act)? {
            Health::Dead { how } => ServerAnswer::Ended { how },
            Health::Alive => ServerAnswer::Done,
        })
    }

    fn watch(&mut self, subject: Subject) -> Result<()> {
        self.end_watch();
        let server = self.own.server.as_ref();
        let server = server.context("the server is not running")?;
        let mut observer = std::mem::take(&mut self.observer);
        if observer.connection.is_none() {
            let statement = Duration::from_secs_f64(self.plan.limits.statement_s);
            let options = ConnectOptions {
                dialect: self.own.sandbox.build().product()?.dialect(),
                database: Some(DATABASE.to_owned()),
                statement_deadline: statement.min(QUESTION_TIMEOUT),
                ..ConnectOptions::default()
            };
            let connection =
                Connection::connect(&server.address(), &server.credentials(), &options);
            // Without a connection the turn is measured all the same; what then is missing is said.
            observer.connection = connection.ok();
        }
        let process = Subject {
            pid: u32::try_from(server.pid()).ok(),
            ..subject
        };
        let load = Subject {
            is_load: true,
            is_elsewhere: true,
            ..Subject::default()
        };
        self.watch = Some(Watch::start(observer, process, load)?);
        Ok(())
    }

    fn end_watch(&mut self) -> HostObserved {
        let Some(watch) = self.watch.take() else {
            return HostObserved::default();
        };
        let (observer, observed) = watch.finish();
        self.observer = observer;
        observed.into()
    }

    fn files(&self) -> ServerAnswer {
        let Sandboxed {
            sandbox, server, ..
        } = &self.own;
        let config = fs::read(sandbox.config()).unwrap_or_default();
        let since_start = server.as_ref().map(RunningServer::log_since_start);
        ServerAnswer::Files {
            config: String::from_utf8_lossy(&config).into_owned(),
            log: end_of(&sandbox.log()).unwrap_or_default(),
            log_since_start: since_start.unwrap_or_default(),
        }
    }
}
