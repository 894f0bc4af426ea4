//! One session on its own event loop: used for the global state of a script and its commands.

use std::rc::Rc;

use dbduel_driver::cancel::Cancel;
use dbduel_driver::executor::{Executor, Task};
use mlua::{IntoLuaMulti, MultiValue};

use super::error::ScriptError;
use super::host::ScriptClients;
use super::retry_deadline::RetryDeadline;
use super::session::Session;
use super::state::Context;

/// The random stream of commands, the same every time, so that data are the same.
const COMMAND_SEED: u64 = 1;

/// Result of a call: the session, and the function's result.
type Called<T> = (Box<Session>, Result<T, ScriptError>);

/// One session on its own event loop, driven by its caller.
pub(super) struct Solo {
    executor: Executor<Called<MultiValue>>,
    session: Option<Box<Session>>,
    cancel: Cancel,
}

impl Solo {
    /// `retry_deadline` bounds the wait for its connections.
    pub(super) fn new(
        clients: &ScriptClients,
        tid: u32,
        retry_deadline: RetryDeadline,
    ) -> Result<Self, ScriptError> {
        let mut executor = Executor::new()?;
        // Connections know the task that waits for them by its token: the only one, now and later.
        let mut token = None;
        let task: Task<Called<MultiValue>> = Box::pin(std::future::pending());
        executor.insert(|own| {
            token = Some(own);
            task
        });
        let Some(token) = token else {
            return Err(std::io::Error::other("an event loop gave no token").into());
        };
        executor.remove(token);
        let context = Rc::new(clients.context());
        let cancel = context.cancel().clone();
        cancel.listen(executor.reactor().bell());
        let reactor = Rc::clone(executor.reactor());
        let session = Box::new(Session::new(
            context,
            tid,
            None,
            retry_deadline,
            reactor,
            token,
        )?);
        session.seed(COMMAND_SEED.wrapping_add(u64::from(tid)));
        let mut solo = Solo {
            executor,
            session: Some(session),
            cancel,
        };
        solo.run(|mut session| {
            Box::pin(async move {
                let outcome = session.load(&mut None).await;
                (session, outcome.map(|()| MultiValue::new()))
            })
        })?;
        Ok(solo)
    }

    /// Why a connection is lost that is not made again because the run is over.
    pub(super) fn lost_when_over(&self) -> Option<String> {
        self.session.as_ref()?.lost_when_over()
    }

    pub(super) fn session(&self) -> &Session {
        self.session
            .as_ref()
            .expect("a session is away only while it is called")
    }

    pub(super) fn set_context(&mut self, context: Context) -> Result<(), ScriptError> {
        match &mut self.session {
            Some(session) => session.set_context(Rc::new(context)),
            None => Ok(()),
        }
    }

    /// Calls a function of the prelude.
    pub(super) fn call(
        &mut self,
        name: &str,
        words: impl IntoLuaMulti,
    ) -> Result<MultiValue, ScriptError> {
        let words = words.into_lua_multi(self.session().state().lua())?;
        let name = name.to_owned();
        self.run(|mut session| {
            Box::pin(async move {
                let outcome = session.call_host(&name, words).await;
                (session, outcome)
            })
        })
    }

    fn run(
        &mut self,
        make: impl FnOnce(Box<Session>) -> Task<Called<MultiValue>>,
    ) -> Result<MultiValue, ScriptError> {
        let Some(session) = self.session.take() else {
            return Err(std::io::Error::other("the script is being called already").into());
        };
        let token = self.executor.insert(|_| make(session));
        let mut called = self.executor.poll(token);
        let mut ended = Vec::new();
        while called.is_none() {
            if self.cancel.is_set() {
                // With its session, whose connections are closed.
                self.executor.remove(token);
                return Err(ScriptError::Cancelled);
            }
            self.executor.turn(&mut ended)?;
            called = ended.pop().map(|(_, called)| called);
        }
        // The next call gets the same token, which the session's connections are known by.
        self.executor.remove(token);
        let Some((session, outcome)) = called else {
            return Err(std::io::Error::other("a call ended without an outcome").into());
        };
        self.session = Some(session);
        outcome
    }
}
