//! One client: its state and its connections, and the exchange between them.

mod child;
mod command;
mod group_reaper;
mod reaper;
mod statements;

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_client::run::Meter;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::executor::{Reactor, Token, sleep_until};
use dbduel_driver::{ClientConnection, LostError, ServerError};
use mlua::{Function, IntoLuaMulti, MultiValue};

use super::answer::{Answer, Asked, Op, Words};
use super::connections::{Connections, Lent};
use super::error::{Place, ScriptError};
use super::natives::Unused;
use super::retry_deadline::RetryDeadline;
use super::state::{Context, State};

/// A request of a script to the client's driver.
pub enum Event {
    /// The client is ready for its loop of events.
    Ready,
    /// The current event, if any, is done; asks for another one, which begins at once.
    Next,
    /// Asks for another event.
    More,
    /// An event begins.
    Start,
    /// The event is done.
    Stop,
    /// The event must not be counted, and the loop ends.
    Abandon,
    /// The event belongs to the class with this number, from 1.
    Class(usize),
    /// The event is retried because of this error. The transaction so far has been rolled back, unless it was on the
    /// lent connection.
    Restart(Option<ServerError>),
    /// The event failed. If answered with yes the loop continues, otherwise the script ends with the error.
    Failed(Box<ScriptError>),
    /// The event loop has ended.
    Finished,
    /// The function returned these values.
    Done(MultiValue),
}

/// One client.
pub struct Session {
    context: Rc<Context>,
    state: State,
    connections: Connections,
    reactor: Rc<Reactor>,
    token: Token,
    cancel: Cancel,
    /// The script's request that is not done yet.
    pending: Option<Asked>,
}

impl Session {
    /// A client with the API and without a script.
    pub fn new(
        context: Rc<Context>,
        tid: u32,
        meter: Option<Arc<Meter>>,
        retry_deadline: RetryDeadline,
        reactor: Rc<Reactor>,
        token: Token,
    ) -> Result<Self, ScriptError> {
        let own_reactor = Rc::clone(&reactor);
        let connections = Connections::new(Rc::clone(&context), retry_deadline, own_reactor, token);
        Ok(Session {
            state: State::new(&context, tid, meter)?,
            cancel: context.cancel().clone(),
            connections,
            context,
            reactor,
            token,
            pending: None,
        })
    }

    /// Runs the script's text and sets its options.
    pub async fn load(
        &mut self,
        lent: &mut Option<&mut ClientConnection>,
    ) -> Result<(), ScriptError> {
        if !self.context.globals.is_empty() {
            self.state.set_options(&self.context)?;
        }
        let script = self.state.shared.script.function(self.state.lua())?;
        self.call(script, (), lent).await?;
        if !self.context.written.is_empty() {
            let completed = self.context.completed(self.state.declared_options()?);
            let completed = completed.map_err(|error| std::io::Error::other(error.to_string()))?;
            self.context = Rc::new(completed);
        }
        self.state.set_options(&self.context)
    }

    /// Why a connection is lost that is not made again because the run is over.
    pub(super) fn lost_when_over(&self) -> Option<String> {
        let lost = self.connections.lost.as_ref();
        lost.filter(|_| self.connections.is_over())
            .map(ToString::to_string)
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Starts another stream of random numbers.
    pub fn seed(&self, seed: u64) {
        self.state.shared.dice.borrow_mut().seed(seed);
    }

    /// Replaces the options that the script is given from now on.
    pub(super) fn set_context(&mut self, context: Rc<Context>) -> Result<(), ScriptError> {
        self.state.set_options(&context)?;
        self.context = context;
        Ok(())
    }

    /// Why a connection was lost, if one was since the last call.
    pub fn take_lost(&mut self) -> Option<LostError> {
        self.connections.lost.take()
    }

    /// Runs a function to its end. Its requests to the event loop are refused.
    pub(super) async fn call(
        &mut self,
        function: Function,
        words: impl IntoLuaMulti,
        lent: &mut Option<&mut ClientConnection>,
    ) -> Result<MultiValue, ScriptError> {
        let mut answer = self.give_up_for(function, words)?;
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

    /// Begins the life of a client: its initialisation, its event loop, its end.
    pub fn begin(&mut self, tid: u32) -> Result<Resume, ScriptError> {
        let main = self.state.host_function("thread_main")?;
        self.give_up_for(main, tid).map(Resume)
    }

    /// Makes the next resumption run a function. The previous call is abandoned, with its request.
    fn give_up_for(
        &mut self,
        function: Function,
        words: impl IntoLuaMulti,
    ) -> Result<Answer, ScriptError> {
        self.pending = None;
        self.state.begin(function, words)
    }

    /// Makes functions of the script report the event's class when they are called.
    pub async fn name_classes(
        &mut self,
        names: &[String],
        lent: &mut Option<&mut ClientConnection>,
    ) -> Result<(), ScriptError> {
        let function = self.state.host_function("name_classes")?;
        self.call(function, names.to_vec(), lent).await.map(drop)
    }

    /// Resumes the script up to its first request. A request that does not belong to the beginning of an event is kept
    /// for [`Session::go_on`], and `None` is returned. `in_event`: one has begun, so a request for the next one is its
    /// end.
    pub fn look_ahead(
        &mut self,
        resume: Resume,
        in_event: bool,
    ) -> Result<Option<Event>, ScriptError> {
        Ok(match self.ask(resume.0)? {
            Asked::Next if !in_event => Some(Event::Next),
            Asked::InWords(Op::More, _) if !in_event => Some(Event::More),
            Asked::InWords(Op::Start, _) => Some(Event::Start),
            Asked::InWords(Op::Class, mut words) => Some(Event::Class(words.id())),
            asked => {
                self.pending = Some(asked);
                None
            }
        })
    }

    fn ask(&mut self, answer: Answer) -> Result<Asked, ScriptError> {
        let asked = self.state.resume(answer)?;
        if self.cancel.is_set() {
            self.state.give_up();
            return Err(ScriptError::Cancelled);
        }
        Ok(asked)
    }

    /// Resumes the script until a request that concerns more than this client. A kept request is done first, and then
    /// `resume` is not needed.
    pub async fn go_on(
        &mut self,
        resume: Resume,
        lent: &mut Option<&mut ClientConnection>,
    ) -> Result<Event, ScriptError> {
        self.advance(resume.0, lent).await
    }

    async fn advance(
        &mut self,
        mut answer: Answer,
        lent: &mut Lent<'_>,
    ) -> Result<Event, ScriptError> {
        loop {
            let asked = match self.pending.take() {
                Some(asked) => asked,
                None => self.ask(answer)?,
            };
            answer = match asked {
                Asked::Execute(execution) => self.execute(execution, lent).await?,
                Asked::Next => return Ok(Event::Next),
                Asked::InWords(op, words) => match self.boxed_in_words(op, words, lent).await? {
                    Outcome::Answer(answer) => answer,
                    Outcome::Event(event) => return Ok(event),
                },
            };
            if self.has_unused() {
                self.boxed_drop_unused(lent).await;
            }
        }
    }

    /// In a separate allocation: it is large, and a client's state for its executions is small without it. In a
    /// separate function, because it would otherwise be in both.
    #[inline(never)]
    fn boxed_in_words<'a>(
        &'a mut self,
        op: Op,
        words: Words,
        lent: &'a mut Lent<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, ScriptError>> + 'a>> {
        Box::pin(self.in_words(op, words, lent))
    }

    /// As [`Session::boxed_in_words`].
    #[inline(never)]
    fn boxed_drop_unused<'a>(
        &'a mut self,
        lent: &'a mut Lent<'_>,
    ) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(self.drop_unused(lent))
    }

    /// Handles a request in words.
    async fn in_words(
        &mut self,
        op: Op,
        mut words: Words,
        lent: &mut Lent<'_>,
    ) -> Result<Outcome, ScriptError> {
        let answer = match op {
            Op::Query => self.query(&mut words, lent).await?,
            Op::Prepare => self.prepare(&mut words, lent).await?,
            Op::Close => {
                self.connections.close(lent, words.id()).await;
                Answer::Flag(true)
            }
            Op::Connect => self.connect(lent).await?,
            Op::Disconnect => self.disconnect(&mut words)?,
            Op::Reconnect => self.reconnect(&mut words, lent).await?,
            Op::Sleep => {
                self.sleep(time_to_sleep(words.number())).await;
                Answer::Flag(true)
            }
            Op::ExecuteCommand => self.execute_command(&mut words).await?,
            // Neither gets as far as here: the coroutine answers the one, and the other is not waited for.
            Op::WhyFailed | Op::Over => Answer::Flag(false),
            Op::Failed => return Err(self.raised(&mut words)),
            Op::Restart => {
                let connection = words.id();
                self.roll_back(connection, lent).await;
                let error = self.state.shared.last_error.borrow();
                let error = error.as_ref().map(|(error, _)| error.clone());
                return Ok(Outcome::Event(Event::Restart(error)));
            }
            Op::EventFailed => {
                let error = Box::new(self.raised(&mut words));
                return Ok(Outcome::Event(Event::Failed(error)));
            }
            Op::Done => return Ok(Outcome::Event(Event::Done(words.rest()))),
            Op::Ready => return Ok(Outcome::Event(Event::Ready)),
            Op::More => return Ok(Outcome::Event(Event::More)),
            Op::Start => return Ok(Outcome::Event(Event::Start)),
            Op::Stop => return Ok(Outcome::Event(Event::Stop)),
            Op::Abandon => return Ok(Outcome::Event(Event::Abandon)),
            Op::Finished => return Ok(Outcome::Event(Event::Finished)),
            Op::Class => return Ok(Outcome::Event(Event::Class(words.id()))),
        };
        Ok(Outcome::Answer(answer))
    }

    fn raised(&self, words: &mut Words) -> ScriptError {
        let (by_server, function) = (words.is_true(4), words.text_at(5));
        let message = words.text().unwrap_or_default();
        let trace = words.text().unwrap_or_default();
        let file = words.text();
        let line = words.number() as u32;
        let error = self.state.shared.last_error.borrow();
        ScriptError::Raised {
            message,
            place: file.map(|file| Place { file, line }),
            function,
            trace,
            sql: error
                .as_ref()
                .filter(|_| by_server)
                .map(|(error, _)| Box::new(error.clone())),
        }
    }

    async fn sleep(&self, length: Duration) {
        sleep_until(&self.reactor, self.token, Instant::now() + length).await;
    }

    fn has_unused(&self) -> bool {
        !self.state.shared.unused.borrow().is_empty()
    }

    /// Releases objects that Lua's collector has freed.
    #[cold]
    async fn drop_unused(&mut self, lent: &mut Lent<'_>) {
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

    fn words(&self, words: impl IntoLuaMulti) -> Result<Answer, ScriptError> {
        Ok(Answer::Words(words.into_lua_multi(self.state.lua())?))
    }
}

/// Result of a request: the script continues, or its driver must answer.
enum Outcome {
    Answer(Answer),
    Event(Event),
}

/// The answer with which a client's script continues.
pub struct Resume(Answer);

impl Resume {
    /// An answer of yes or no.
    pub fn with(flag: bool) -> Self {
        Resume(Answer::Flag(flag))
    }
}

/// Duration of a script's sleep of `seconds`: zero for invalid values, a day at most.
fn time_to_sleep(seconds: f64) -> Duration {
    // `clamp` keeps a number that is none.
    let seconds = if seconds.is_nan() { 0.0 } else { seconds };
    Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_sleeps_for_a_time_whatever_number_it_gives() {
        for (seconds, slept_s) in [
            (0.25, 0.25),
            (-1.0, 0.0),
            (f64::NAN, 0.0),
            (f64::INFINITY, 86_400.0),
            (1e300, 86_400.0),
        ] {
            assert_eq!(time_to_sleep(seconds).as_secs_f64(), slept_s, "{seconds}");
        }
    }
}
