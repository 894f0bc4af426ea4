//! The coroutine that a script runs in: its requests and their answers, in the words of Lua.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::io;
use std::rc::Rc;

use mlua::{IntoLuaMulti, LightUserData, Lua, MultiValue, Thread, Value, ffi};

use super::answer::{Answer, Asked, Failed, Op, Words};
use super::error::ScriptError;
use super::fiber::{CallStatus, Fiber, FiberContext, SuspendReason};

/// Answer to a script that asks for an error when nothing failed, which the prelude does not do.
const NOTHING_FAILED: &str = "no statement has failed";

/// One coroutine of a state.
pub(super) struct Coroutine {
    /// Protects the state below from the collector.
    thread: Thread,
    fiber: RefCell<Fiber>,
    edge: Rc<FiberContext>,
    /// Why an execution failed, until the script asks for the message.
    failed: Cell<Option<Failed>>,
}

impl Coroutine {
    /// A coroutine that will run the thread's function.
    pub(super) fn new(thread: Thread, edge: &Rc<FiberContext>) -> io::Result<Self> {
        // SAFETY: the edge and the thread are kept here, and no other code has the thread.
        let fiber = unsafe { Fiber::new(edge, thread.state()) }?;
        Ok(Coroutine {
            thread,
            fiber: RefCell::new(fiber),
            edge: Rc::clone(edge),
            failed: Cell::default(),
        })
    }

    /// Resumes it with an answer until its next request.
    #[inline]
    pub(super) fn resume(&self, lua: &Lua, mut answer: Answer) -> Result<Asked, ScriptError> {
        loop {
            self.answer(lua, answer)?;
            self.fiber.borrow_mut().enter(&self.edge);
            let asked = match self.edge.left() {
                SuspendReason::Next => return Ok(Asked::Next),
                SuspendReason::Execute(execution) => return Ok(Asked::Execute(execution)),
                // SAFETY: the state waits for the answer.
                SuspendReason::Asks(state) => unsafe { read(lua, state, ffi::lua_gettop(state)) }?,
                // SAFETY: nothing runs in the state any more.
                SuspendReason::Returned(ffi::LUA_OK, count) => unsafe {
                    return read(lua, self.thread.state(), count);
                },
                SuspendReason::Returned(status, _) => return Err(self.error(lua, status)?.into()),
                // It has begun by now.
                SuspendReason::Before(_) => return Err(mlua::Error::CoroutineUnresumable.into()),
            };
            let Asked::InWords(Op::WhyFailed, _) = asked else {
                return Ok(asked);
            };
            answer = Answer::Failed(self.failed.take().unwrap_or(Failed::Misuse(NOTHING_FAILED)));
        }
    }

    /// Stores an answer where the coroutine reads it.
    #[inline]
    fn answer(&self, lua: &Lua, answer: Answer) -> Result<(), ScriptError> {
        match (self.edge.left(), answer) {
            (SuspendReason::Returned(..), _) => {
                return Err(mlua::Error::CoroutineUnresumable.into());
            }
            (SuspendReason::Before(state) | SuspendReason::Asks(state), answer) => {
                self.edge.answer_words(push(lua, state, answer)?);
            }
            (SuspendReason::Next | SuspendReason::Execute(_), Answer::Flag(false)) => {
                self.edge.answer(CallStatus::No);
            }
            (
                SuspendReason::Next | SuspendReason::Execute(_),
                Answer::Skipped { rows, generation },
            ) => {
                self.edge.answer_rows(rows, generation);
            }
            (SuspendReason::Next | SuspendReason::Execute(_), Answer::Failed(failed)) => {
                self.failed.set(Some(failed));
                self.edge.answer(CallStatus::Words);
            }
            // Compiled code asks for nothing that has another answer.
            (
                SuspendReason::Next | SuspendReason::Execute(_),
                Answer::Flag(true) | Answer::Rows(_) | Answer::Words(_),
            ) => {
                self.edge.answer(CallStatus::Yes);
            }
        }
        Ok(())
    }

    /// The error that it failed with.
    #[cold]
    fn error(&self, lua: &Lua, status: c_int) -> mlua::Result<mlua::Error> {
        let state = self.thread.state();
        if status == ffi::LUA_YIELD {
            return Ok(mlua::Error::runtime(
                "the script yields where no caller resumes it",
            ));
        }
        // SAFETY: a coroutine that failed has its error on top of its stack.
        let error = unsafe { lua.exec_raw((), |to| ffi::lua_xmove(state, to, 1)) }?;
        let text = match error {
            Value::Error(error) => return Ok(*error),
            Value::String(text) => text.to_string_lossy(),
            other => format!("(error object is a {} value)", other.type_name()),
        };
        Ok(match status {
            ffi::LUA_ERRMEM => mlua::Error::MemoryError(text),
            _ => mlua::Error::RuntimeError(text),
        })
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        self.fiber.get_mut().give_up(&self.edge);
    }
}

/// Pushes an answer onto the stack of a waiting state; returns the number of words.
fn push(lua: &Lua, state: *mut ffi::lua_State, answer: Answer) -> mlua::Result<c_int> {
    let words = match answer {
        Answer::Words(words) => words,
        Answer::Failed(failed) => failed.words(lua)?,
        Answer::Flag(flag) => flag.into_lua_multi(lua)?,
        Answer::Rows(shape) => (
            true,
            shape.columns as f64,
            shape.rows as f64,
            shape.generation,
        )
            .into_lua_multi(lua)?,
        Answer::Skipped { rows, generation } => (rows as f64, generation).into_lua_multi(lua)?,
    };
    let count = c_int::try_from(words.len()).unwrap_or(c_int::MAX);
    // SAFETY: the state waits, so its stack may be written to, and it has room for all that is pushed.
    unsafe {
        if ffi::lua_checkstack(state, count) == 0 {
            return Err(mlua::Error::StackError);
        }
        lua.exec_raw::<()>(words, |from| ffi::lua_xmove(from, state, count))?;
    }
    Ok(count)
}

/// The request in the last machine words on a stack.
///
/// # Safety
/// The state waits, and has this many words on its stack.
unsafe fn read(lua: &Lua, state: *mut ffi::lua_State, count: c_int) -> Result<Asked, ScriptError> {
    // SAFETY: as above; the words are taken from the stack.
    let mut words: MultiValue = unsafe {
        lua.exec_raw((), |to| {
            if ffi::lua_checkstack(to, count) != 0 {
                ffi::lua_xmove(state, to, count);
            }
        })
    }?;
    let op = match words.pop_front() {
        Some(Value::LightUserData(LightUserData(mark))) => Op::from_mark(mark),
        _ => None,
    };
    match op {
        Some(op) => Ok(Asked::InWords(op, Words::new(words))),
        None => Err(mlua::Error::runtime("the script asks for something unknown").into()),
    }
}
