//! Mock servers on a unix socket, each on a thread of its own.
//!
//! The null server answers at once: the remaining cost in a measurement against it is the lab's own. The scripted
//! server answers after exact delays, with errors, or not at all, which tests the clocks and the error paths. Their
//! replies are defined in `dbduel-wire`; here are the sockets and the delays.

use std::cell::Cell;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbduel_wire::server::{Act, Effect, NullServer, ScriptedServer, Shape};

use crate::address::Address;
use crate::executor::{Bell, Executor, Interest, Task, turn};
use crate::socket::{OnLoop, Socket, Waiter as _};
use crate::starts_session;

/// Text statements that a scripted server remembers.
const HEARD_MAX: usize = 10_000;

/// Answers of a scripted server whose times are kept.
const SERVED_MAX: usize = 100_000;

/// How long a scripted server polls before it sleeps, and how long before an answer it stops sleeping. A thread that
/// sleeps resumes tens of microseconds late, which would be taken for an error of the client.
const AWAKE: Duration = Duration::from_micros(200);

/// One answer of a scripted server, on the machine's clock. The client cannot have sent its request after `heard` nor
/// received its reply before `answered`, so the load's own times can be checked against these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// When the request had been read.
    pub heard: Instant,
    /// Right before the answer was sent.
    pub answered: Instant,
}

/// How a mock server answers.
#[derive(Debug, Clone)]
pub enum Role {
    /// At once.
    Null,
    /// By these acts, see [`ScriptedServer`]; each connection begins with the first one.
    Scripted(Vec<Act>),
}

/// A running mock server. Dropping it ends it.
#[derive(Debug)]
pub struct MockServer {
    path: PathBuf,
    bell: Bell,
    stage: Arc<Stage>,
    handle: Option<JoinHandle<()>>,
}

/// State shared by the thread and its owner.
#[derive(Debug, Default)]
struct Stage {
    over: AtomicBool,
    connections: AtomicU64,
    heard: Mutex<Vec<String>>,
    served: Mutex<Vec<Served>>,
}

impl Stage {
    fn heard(&self) -> MutexGuard<'_, Vec<String>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn served(&self) -> MutexGuard<'_, Vec<Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MockServer {
    /// Listens on `path`, which must not exist.
    ///
    /// # Errors
    /// When the socket or the event loop cannot be made.
    pub fn start(path: &Path, role: Role) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        let stage = Arc::new(Stage::default());
        let (bell_sender, bell_receiver) = std::sync::mpsc::channel();
        let shared = Arc::clone(&stage);
        let handle = std::thread::Builder::new()
            .name("mock server".to_owned())
            .spawn(move || {
                // Clients notice a broken event loop as a lost connection.
                let _ = serve(&listener, &role, &shared, |bell| {
                    let _ = bell_sender.send(bell);
                });
            })?;
        let bell = bell_receiver
            .recv()
            .map_err(|_| io::Error::other("a mock server could not make its event loop"))?;
        Ok(MockServer {
            path: path.to_owned(),
            bell,
            stage,
            handle: Some(handle),
        })
    }

    /// The socket's path.
    #[must_use]
    pub fn address(&self) -> Address {
        Address::Unix {
            path: self.path.clone(),
        }
    }

    /// Connections so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.stage.connections.load(Ordering::Relaxed)
    }

    /// The statements that a scripted server received as text or to prepare, the first ten thousand, without those
    /// that begin sessions.
    #[must_use]
    pub fn heard(&self) -> Vec<String> {
        self.stage.heard().clone()
    }

    /// When a scripted server received requests and answered, in the order of the answers, the first hundred thousand.
    #[must_use]
    pub fn served(&self) -> Vec<Served> {
        self.stage.served().clone()
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.stage.over.store(true, Ordering::Relaxed);
        self.bell.ring();
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(
    listener: &UnixListener,
    role: &Role,
    stage: &Arc<Stage>,
    ready: impl FnOnce(Bell),
) -> io::Result<()> {
    let mut executor: Executor<()> = match role {
        Role::Null => Executor::new()?,
        Role::Scripted(_) => Executor::polling(AWAKE)?,
    };
    let reactor = Rc::clone(executor.reactor());
    // A task cannot add tasks, so the listener's only says that a client connects.
    let knocked = Rc::new(Cell::new(false));
    let door = executor.insert(|_| watch_door(Rc::clone(&knocked)));
    executor.poll(door);
    reactor.watch(listener, door, Interest::Read)?;
    ready(reactor.bell());
    while !stage.over.load(Ordering::Relaxed) {
        executor.turn(&mut Vec::new())?;
        while knocked.get() {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    knocked.set(false);
                    break;
                }
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(true)?;
            let number = stage.connections.fetch_add(1, Ordering::Relaxed) as u32;
            let (reactor, stage) = (Rc::clone(&reactor), Arc::clone(stage));
            let token = executor.insert(|token| {
                let waiter = OnLoop { reactor, token };
                match role {
                    Role::Null => Box::pin(until_closed(play_null(waiter, stream, number))),
                    Role::Scripted(acts) => Box::pin(until_closed(play_script(
                        waiter,
                        stream,
                        number,
                        acts.clone(),
                        stage,
                    ))),
                }
            });
            executor.poll(token);
        }
    }
    Ok(())
}

fn watch_door(knocked: Rc<Cell<bool>>) -> Task<()> {
    Box::pin(async move {
        loop {
            turn().await;
            knocked.set(true);
        }
    })
}

/// A broken connection is the client's concern; for the mock server it has ended.
async fn until_closed(connection: impl Future<Output = io::Result<()>>) {
    let _ = connection.await;
}

async fn play_null(waiter: OnLoop, stream: UnixStream, number: u32) -> io::Result<()> {
    let mut socket = Socket::accepted(&waiter, stream)?;
    let mut out = Vec::new();
    let mut server = NullServer::begin(number, &mut out);
    loop {
        socket.send(&waiter, &out).await?;
        out.clear();
        turn().await;
        let mut buffer = waiter.buffer();
        while let Some(bytes) = socket.receive(&mut buffer)? {
            let goes_on = server
                .feed(bytes, &mut shape, &mut out)
                .map_err(io::Error::other)?;
            if !goes_on {
                return Ok(());
            }
        }
    }
}

async fn play_script(
    waiter: OnLoop,
    stream: UnixStream,
    number: u32,
    acts: Vec<Act>,
    stage: Arc<Stage>,
) -> io::Result<()> {
    let mut socket = Socket::accepted(&waiter, stream)?;
    let mut greeting = Vec::new();
    let mut server = ScriptedServer::begin(number, acts, &mut greeting);
    socket.send(&waiter, &greeting).await?;
    let mut hear = |sql: &[u8]| {
        if starts_session(sql) {
            return Shape {
                is_outside_script: true,
                ..shape(sql)
            };
        }
        let mut heard = stage.heard();
        if heard.len() < HEARD_MAX {
            heard.push(String::from_utf8_lossy(sql).into_owned());
        }
        shape(sql)
    };
    loop {
        turn().await;
        let mut actions = Vec::new();
        {
            let mut buffer = waiter.buffer();
            while let Some(bytes) = socket.receive(&mut buffer)? {
                actions.extend(server.feed(bytes, &mut hear).map_err(io::Error::other)?);
            }
        }
        let heard = Instant::now();
        for action in actions {
            // Through the kernel's timer, which is late, and then to the instant by polling.
            sleep_until(heard + action.after.saturating_sub(AWAKE), &waiter).await;
            sleep_until(heard + action.after, &waiter).await;
            match action.effect {
                Effect::Send(bytes) => {
                    keep(&stage, heard);
                    socket.send(&waiter, &bytes).await?;
                }
                Effect::Close => return Ok(()),
            }
        }
    }
}

async fn sleep_until(at: Instant, waiter: &OnLoop) {
    if Instant::now() < at {
        waiter.reactor.wake_at(waiter.token, at);
    }
    while Instant::now() < at {
        turn().await;
    }
}

/// Records the times of an answer that is about to be sent.
fn keep(stage: &Stage, heard: Instant) {
    let mut served = stage.served();
    if served.len() < SERVED_MAX {
        served.push(Served {
            heard,
            answered: Instant::now(),
        });
    }
}

/// Shape of a statement for the mock servers: a query returns one row of numbers.
fn shape(sql: &[u8]) -> Shape {
    let parameters = sql.iter().filter(|&&byte| byte == b'?').count();
    let is_query = sql
        .get(..6)
        .is_some_and(|word| word.eq_ignore_ascii_case(b"SELECT"));
    Shape {
        parameters: u16::try_from(parameters).unwrap_or(u16::MAX),
        columns: if is_query { columns(sql) } else { 0 },
        rows: u32::from(is_query),
        is_outside_script: false,
    }
}

/// Columns of a query: one more than there are commas before FROM, those in parentheses aside.
fn columns(query: &[u8]) -> u16 {
    let from = query
        .windows(6)
        .position(|word| word.eq_ignore_ascii_case(b" FROM "));
    let (mut depth, mut columns) = (0_u32, 1_u16);
    for byte in &query[..from.unwrap_or(query.len())] {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => columns = columns.saturating_add(1),
            _ => {}
        }
    }
    columns
}
