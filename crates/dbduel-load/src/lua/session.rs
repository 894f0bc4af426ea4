//! One client: its state and its connections, and the dialogue between them.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_wire::{ServerError, Summary, Value as Wire};
use mlua::{Function, IntoLuaMulti, MultiValue, Value};

use super::answer::{Answer, Asked, Call, Op};
use super::connections::{Connections, Failure, Lent};
use super::counts::{Counter, Meter};
use super::error::{Place, ScriptError};
use super::natives::{Unused, at, handle};
use super::settings::Message;
use super::state::{Context, State};
use crate::address::Address;
use crate::conn::{Conn, LostError};
use crate::executor::{Reactor, Token, turn};

/// Pause between two looks at a child process of a script.
const CHILD_PAUSE: Duration = Duration::from_millis(5);

/// Values that fit without allocating.
const VALUES: usize = 16;

/// What a script asks of whoever drives the client.
pub(crate) enum Event {
    /// The client is ready for its loop of events.
    Ready,
    /// The running event, if there is one, is done; may there be another? It begins at once.
    Next,
    /// May there be another event?
    More,
    /// An event begins.
    Start,
    /// The event is done.
    Stop,
    /// The event is not to be counted, and the loop ends.
    Abandon,
    /// The event is tried again, because of this error. What the transaction did so far has been rolled back, unless it
    /// was on the connection that is lent.
    Restart(Option<ServerError>),
    /// The event failed. With yes the loop goes on, otherwise the script ends with the error.
    Failed(Box<ScriptError>),
    /// The loop of events is over.
    Finished,
    /// The function returned these values.
    Done(MultiValue),
}

/// One client.
pub(crate) struct Session {
    context: Rc<Context>,
    state: State,
    connections: Connections,
    reactor: Rc<Reactor>,
    token: Token,
    /// What is executed.
    call: Call,
}

impl Session {
    /// A client that has the API and no script yet.
    pub(crate) fn new(
        context: Rc<Context>,
        tid: u32,
        meter: Arc<Meter>,
        reactor: Rc<Reactor>,
        token: Token,
    ) -> Result<Self, ScriptError> {
        Ok(Session {
            state: State::new(&context, tid, meter)?,
            connections: Connections::new(Rc::clone(&context), Rc::clone(&reactor), token),
            context,
            reactor,
            token,
            call: Call::default(),
        })
    }

    /// Runs the script's text and gives it its options.
    pub(crate) async fn load(&mut self, lent: &mut Option<&mut Conn>) -> Result<(), ScriptError> {
        if !self.context.globals.is_empty() {
            self.state.set_options(&self.context)?;
        }
        let script = self.state.script()?;
        self.call(script, (), lent).await?;
        if !self.context.written.is_empty() {
            let completed = self.context.completed(self.state.declared_options()?);
            let completed = completed.map_err(|error| std::io::Error::other(error.to_string()))?;
            self.context = Rc::new(completed);
        }
        self.state.set_options(&self.context)
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Begins another stream of random numbers.
    pub(crate) fn seed(&self, seed: u64) {
        self.state.shared.dice.borrow_mut().seed(seed);
    }

    /// What the script is from now on given as its options.
    pub(super) fn set_context(&mut self, context: Rc<Context>) -> Result<(), ScriptError> {
        self.state.set_options(&context)?;
        self.context = context;
        Ok(())
    }

    /// Why a connection was of no use any more, if one was since this was asked last.
    pub(crate) fn take_lost(&mut self) -> Option<LostError> {
        self.connections.lost.take()
    }

    /// Runs a function to its end. What it asks of the loop of events is refused.
    pub(super) async fn call(
        &mut self,
        function: Function,
        words: impl IntoLuaMulti,
        lent: &mut Option<&mut Conn>,
    ) -> Result<MultiValue, ScriptError> {
        let mut answer = self.state.begin(function, words)?;
        loop {
            match self.advance(answer, lent).await? {
                Event::Done(values) => return Ok(values),
                _ => answer = Answer::Flag(false),
            }
        }
    }

    /// Runs a function of the prelude to its end.
    pub(super) async fn call_host(
        &mut self,
        name: &str,
        words: impl IntoLuaMulti,
    ) -> Result<MultiValue, ScriptError> {
        let function = self.state.host_function(name)?;
        self.call(function, words, &mut None).await
    }

    /// Begins the life of a client: its initialisation, its loop of events, its end.
    pub(crate) fn begin(&mut self, tid: u32) -> Result<Resume, ScriptError> {
        let main = self.state.host_function("thread_main")?;
        self.state.begin(main, tid).map(Resume)
    }

    /// Lets the script go on until it asks for something that is not a matter of this client alone.
    pub(crate) async fn go_on(
        &mut self,
        resume: Resume,
        lent: &mut Option<&mut Conn>,
    ) -> Result<Event, ScriptError> {
        self.advance(resume.0, lent).await
    }

    async fn advance(
        &mut self,
        mut answer: Answer,
        lent: &mut Lent<'_>,
    ) -> Result<Event, ScriptError> {
        loop {
            let mut asked = self.state.resume(answer, &mut self.call)?;
            answer = match asked.op {
                Op::Execute => self.execute(lent).await?,
                Op::Query => self.query(&mut asked, lent).await?,
                Op::Prepare => self.prepare(&mut asked, lent).await?,
                Op::Close => {
                    self.connections.close(lent, asked.id()).await;
                    Answer::Flag(true)
                }
                Op::Connect => self.connect(lent).await?,
                Op::Disconnect => self.disconnect(&mut asked)?,
                Op::Reconnect => self.reconnect(&mut asked, lent).await?,
                Op::Sleep => {
                    let seconds = asked.number().clamp(0.0, 86_400.0);
                    self.sleep(Duration::from_secs_f64(seconds)).await;
                    Answer::Flag(true)
                }
                Op::ExecuteCommand => self.execute_command(&mut asked).await?,
                Op::Restart => {
                    let connection = asked.id();
                    self.roll_back(connection, lent).await;
                    let error = self.state.shared.last_error.borrow();
                    return Ok(Event::Restart(
                        error.as_ref().map(|(error, _)| error.clone()),
                    ));
                }
                Op::EventFailed => {
                    return Ok(Event::Failed(Box::new(self.raised(&mut asked))));
                }
                Op::Failed => return Err(self.raised(&mut asked)),
                Op::Done => return Ok(Event::Done(asked.words)),
                Op::Ready => return Ok(Event::Ready),
                Op::Next => return Ok(Event::Next),
                Op::More => return Ok(Event::More),
                Op::Start => return Ok(Event::Start),
                Op::Stop => return Ok(Event::Stop),
                Op::Abandon => return Ok(Event::Abandon),
                Op::Finished => return Ok(Event::Finished),
            };
            self.drop_unused(lent).await;
        }
    }

    fn raised(&self, asked: &mut Asked) -> ScriptError {
        let by_server = matches!(asked.words.get(4), Some(Value::Boolean(true)));
        let message = asked.text().unwrap_or_default();
        let trace = asked.text().unwrap_or_default();
        let file = asked.text();
        let line = asked.number() as u32;
        let error = self.state.shared.last_error.borrow();
        ScriptError::Raised {
            message,
            place: file.map(|file| Place { file, line }),
            trace,
            sql: error
                .as_ref()
                .filter(|_| by_server)
                .map(|(error, _)| error.clone()),
        }
    }

    #[inline]
    async fn execute(&mut self, lent: &mut Lent<'_>) -> Result<Answer, ScriptError> {
        let statement = self.call.statement();
        let mut few = [Wire::Null; VALUES];
        let mut many = Vec::new();
        let count;
        {
            let doubles = self.state.shared.doubles.borrow();
            let doubles = doubles.get(statement).map_or(&[][..], Vec::as_slice);
            let values = self.call.values(doubles);
            count = values.len();
            if count <= VALUES {
                for (place, value) in few.iter_mut().zip(values) {
                    *place = value;
                }
            } else {
                many.extend(values);
            }
        }
        let values = if count <= VALUES {
            &few[..count]
        } else {
            &many
        };
        let outcome = self.connections.execute(lent, statement, values).await;
        let connection = self.connections.connection_of(statement);
        match outcome {
            Ok(summary) if summary.result_sets == 0 => {
                self.count(&summary);
                Ok(Answer::Flag(true))
            }
            Ok(summary) => {
                self.count(&summary);
                let shape = {
                    // The rows were not kept, as in sysbench; the next statement's result is another one all the same.
                    let mut all = self.state.shared.rows.borrow_mut();
                    let rows = at(&mut all, connection);
                    rows.begin(0);
                    rows.shape_of_skipped(summary.rows as usize)
                };
                Ok(Answer::Rows(shape))
            }
            Err(failure) => self.failed(failure, "mysql_stmt_execute"),
        }
    }

    async fn query(
        &mut self,
        asked: &mut Asked,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let connection = asked.id();
        let Some(Value::String(sql)) = asked.words.pop_front() else {
            return self.failed(
                Failure::Misuse("a query must be a text"),
                "mysql_real_query",
            );
        };
        // Rows are written while others could look, so they are taken out meanwhile.
        let mut rows = std::mem::take(at(&mut self.state.shared.rows.borrow_mut(), connection));
        rows.begin(self.context.settings.limits.memory_bytes);
        let outcome = {
            let sql = sql.as_bytes();
            self.connections
                .query(lent, connection, &sql, &mut rows)
                .await
        };
        let (shape, overflowed) = (rows.shape(), rows.overflowed());
        *at(&mut self.state.shared.rows.borrow_mut(), connection) = rows;
        match outcome {
            Ok(_) if overflowed => self.failed(
                Failure::Misuse("the result is larger than a script may keep"),
                "mysql_store_result",
            ),
            Ok(summary) => {
                self.count(&summary);
                Ok(shape.map_or(Answer::Flag(true), Answer::Rows))
            }
            Err(failure) => self.failed(failure, "mysql_drv_query"),
        }
    }

    async fn prepare(
        &mut self,
        asked: &mut Asked,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let connection = asked.id();
        let Some(sql) = asked.text() else {
            return self.failed(
                Failure::Misuse("a statement must be a text"),
                "mysql_stmt_prepare",
            );
        };
        match self.connections.prepare(lent, connection, &sql).await {
            Ok((statement, parameters)) => {
                let lua = self.state.lua();
                let handle = handle(lua, &self.state.shared, Unused::Statement(statement))?;
                Ok(Answer::Words(
                    (true, statement, parameters, handle).into_lua_multi(lua)?,
                ))
            }
            Err(failure) => self.failed(failure, "mysql_stmt_prepare"),
        }
    }

    async fn connect(&mut self, lent: &mut Lent<'_>) -> Result<Answer, ScriptError> {
        match self.connections.connect(lent).await {
            Ok(connection) => {
                let lua = self.state.lua();
                let handle = handle(lua, &self.state.shared, Unused::Connection(connection))?;
                Ok(Answer::Words((connection, handle).into_lua_multi(lua)?))
            }
            Err((address, error)) => {
                self.tell_unreachable(&address, &error);
                *self.state.shared.last_error.borrow_mut() = Some((error, "mysql_real_connect"));
                Ok(Answer::Flag(false))
            }
        }
    }

    fn tell_unreachable(&self, address: &Address, error: &ServerError) {
        let place = match address {
            Address::Unix { path } => format!("socket '{}'", path.display()),
            Address::Tcp { host, port } => format!("host '{host}', port {port}"),
        };
        let sink = &self.state.shared.sink;
        sink.show(Message::Fatal(&format!(
            "unable to connect to MySQL server on {place}, aborting..."
        )));
        sink.show(Message::Fatal(&format!(
            "error {}: {}",
            error.code, error.message
        )));
    }

    fn disconnect(&mut self, asked: &mut Asked) -> Result<Answer, ScriptError> {
        let was_open = self.connections.disconnect(asked.id());
        match was_open {
            true => Ok(Answer::Flag(true)),
            false => self.words((false, "attempt to close an already closed connection")),
        }
    }

    async fn reconnect(
        &mut self,
        asked: &mut Asked,
        lent: &mut Lent<'_>,
    ) -> Result<Answer, ScriptError> {
        let connection = asked.id();
        if !self.connections.is_open(connection) {
            return self.words((Value::Nil, "attempt to use an already closed connection"));
        }
        self.state.shared.meter.borrow().add(Counter::Reconnect, 1);
        match self.connections.reconnect(lent, connection).await {
            Ok(()) => Ok(Answer::Flag(true)),
            Err((address, error)) => {
                self.tell_unreachable(&address, &error);
                Ok(Answer::Flag(false))
            }
        }
    }

    async fn sleep(&self, length: Duration) {
        let until = Instant::now() + length;
        self.reactor.wake_at(self.token, until);
        while Instant::now() < until {
            turn().await;
        }
    }

    /// A child process, waited for by a thread of its own; what it prints is the script's print.
    async fn execute_command(&mut self, asked: &mut Asked) -> Result<Answer, ScriptError> {
        use std::os::unix::process::ExitStatusExt as _;
        let Some(command) = asked.text() else {
            return self.words(-1);
        };
        let child = std::thread::Builder::new()
            .name("script-command".to_owned())
            .spawn(move || {
                let mut shell = std::process::Command::new("/bin/sh");
                shell
                    .args(["-c", &command])
                    .stdin(std::process::Stdio::null());
                shell.stderr(std::process::Stdio::inherit()).output()
            })?;
        while !child.is_finished() {
            self.sleep(CHILD_PAUSE).await;
        }
        match child.join() {
            Ok(Ok(output)) => {
                self.state.shared.sink.show(Message::Print(&output.stdout));
                self.words(output.status.into_raw())
            }
            _ => self.words(-1),
        }
    }

    /// A lock wait timeout leaves the transaction open, and what it did before would be committed by the next one.
    async fn roll_back(&mut self, connection: usize, lent: &mut Lent<'_>) {
        if self.connections.is_lent(connection) || !self.connections.is_open(connection) {
            return;
        }
        let mut rows = super::rows::Rows::default();
        // One that fails leaves a connection that says so at its next statement.
        let _ = self
            .connections
            .query(lent, connection, b"ROLLBACK", &mut rows)
            .await;
    }

    /// Gives up what Lua's collector found unused.
    async fn drop_unused(&mut self, lent: &mut Lent<'_>) {
        if self.state.shared.unused.borrow().is_empty() {
            return;
        }
        let unused = std::mem::take(&mut *self.state.shared.unused.borrow_mut());
        for thing in unused {
            match thing {
                Unused::Statement(statement) => {
                    self.connections.close(lent, statement).await;
                    self.connections.forget_statement(statement);
                }
                Unused::Connection(connection) => self.connections.forget(connection),
            }
        }
    }

    #[inline]
    fn count(&self, summary: &Summary) {
        let counter = if summary.result_sets > 0 {
            Counter::Read
        } else if summary.affected_rows > 0 {
            Counter::Write
        } else {
            Counter::Other
        };
        self.state.shared.meter.borrow().add(counter, 1);
    }

    #[cold]
    fn failed(&self, failure: Failure, function: &'static str) -> Result<Answer, ScriptError> {
        let (error, reconnected) = match failure {
            Failure::Misuse(why) => {
                *self.state.shared.last_error.borrow_mut() = None;
                return self.words((Value::Nil, why));
            }
            Failure::Error { error, reconnected } => (error, reconnected),
        };
        let ignorable = reconnected || self.context.settings.ignored_errors.contains(error.code);
        let counter = if reconnected {
            Counter::Reconnect
        } else {
            Counter::Error
        };
        self.state.shared.meter.borrow().add(counter, 1);
        let state = String::from_utf8_lossy(&error.sqlstate).into_owned();
        let answer = self.words((false, error.code, state, error.message.as_str(), ignorable));
        *self.state.shared.last_error.borrow_mut() = Some((error, function));
        answer
    }

    fn words(&self, words: impl IntoLuaMulti) -> Result<Answer, ScriptError> {
        Ok(Answer::Words(words.into_lua_multi(self.state.lua())?))
    }
}

/// What a client's script is told next.
pub(crate) struct Resume(Answer);

impl Resume {
    /// Yes or no.
    pub(crate) fn with(flag: bool) -> Self {
        Resume(Answer::Flag(flag))
    }
}
