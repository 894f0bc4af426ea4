//! The coroutine that a script runs in, resumed over LuaJIT's own interface: an execution, of which there are very many,
//! allocates nothing on its way in or out.

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr;

use mlua::{Lua, Thread, Value, ffi};

use super::answer::{Answer, Asked, Call, Op};
use super::error::ScriptError;

/// More than an answer of few words needs.
const ROOM: c_int = 8;

/// Words before those that say more about what is asked: the operation's mark.
const HEAD: c_int = 1;

/// One coroutine of a state.
pub(super) struct Coroutine {
    thread: Thread,
    /// It has neither returned nor failed.
    goes_on: Cell<bool>,
}

impl Coroutine {
    pub(super) fn new(thread: Thread) -> Self {
        Coroutine {
            thread,
            goes_on: Cell::new(true),
        }
    }

    /// Lets it go on with an answer until it asks for something. What is to be executed goes into `call`; the words of
    /// everything else are in what is returned.
    #[inline]
    pub(super) fn resume(
        &self,
        lua: &Lua,
        answer: Answer,
        call: &mut Call,
    ) -> Result<Asked, ScriptError> {
        if !self.goes_on.get() {
            return Err(mlua::Error::CoroutineUnresumable.into());
        }
        let state = self.thread.state();
        let pushed = self.push(lua, answer)?;
        let mut count = 0;
        // SAFETY: the coroutine is suspended, or has not begun and its function is on its stack; nobody else runs in the
        // state, since what is called from there does not resume coroutines of ours.
        let status = unsafe { ffi::lua_resume(state, ptr::null_mut(), pushed, &raw mut count) };
        match status {
            ffi::LUA_YIELD => {}
            ffi::LUA_OK => self.goes_on.set(false),
            status => {
                self.goes_on.set(false);
                return Err(self.error(lua, status)?.into());
            }
        }
        let asked = self.read(lua, count, call);
        // SAFETY: the words have been read, and the stack of a coroutine that does not run is ours.
        unsafe { ffi::lua_settop(state, 0) };
        asked?.ok_or_else(|| {
            mlua::Error::runtime("the script yields as nothing in the prelude does").into()
        })
    }

    /// Puts an answer onto the coroutine's stack; how many words it is.
    #[inline]
    fn push(&self, lua: &Lua, answer: Answer) -> mlua::Result<c_int> {
        let state = self.thread.state();
        let room = match &answer {
            Answer::Words(words) => c_int::try_from(words.len()).unwrap_or(c_int::MAX),
            _ => ROOM,
        };
        // SAFETY: the coroutine does not run, so its stack may be written to, and it has room for all that is pushed.
        // Flags and numbers are pushed without allocating, so without errors.
        unsafe {
            if ffi::lua_checkstack(state, room) == 0 {
                return Err(mlua::Error::StackError);
            }
            Ok(match answer {
                Answer::Flag(flag) => {
                    ffi::lua_pushboolean(state, c_int::from(flag));
                    1
                }
                Answer::Rows(shape) => {
                    ffi::lua_pushboolean(state, 1);
                    ffi::lua_pushnumber(state, shape.columns as f64);
                    ffi::lua_pushnumber(state, shape.rows as f64);
                    ffi::lua_pushnumber(state, f64::from(shape.generation));
                    4
                }
                Answer::Skipped { rows, generation } => {
                    ffi::lua_pushnumber(state, rows as f64);
                    ffi::lua_pushnumber(state, f64::from(generation));
                    2
                }
                Answer::Words(words) => {
                    lua.exec_raw::<()>(words, |from| ffi::lua_xmove(from, state, room))?;
                    room
                }
            })
        }
    }

    /// What it asks for, in so many words on its stack; none when the yield is not the prelude's.
    #[inline]
    fn read(&self, lua: &Lua, count: c_int, call: &mut Call) -> mlua::Result<Option<Asked>> {
        let state = self.thread.state();
        // SAFETY: the words are on the stack until it is cleared. Only values of the right type are converted, which
        // leaves them as they are and cannot fail.
        unsafe {
            // Null when the first word is no userdata or there is none.
            let Some(op) = Op::from_mark(ffi::lua_touserdata(state, 1)) else {
                return Ok(None);
            };
            if op == Op::Execute {
                read_call(state, count, call);
                return Ok(Some(Asked::new(op, None)));
            }
            let words = match count - HEAD {
                0 => None,
                rest => Some(lua.exec_raw((), |to| {
                    if ffi::lua_checkstack(to, rest) != 0 {
                        ffi::lua_xmove(state, to, rest);
                    }
                })?),
            };
            Ok(Some(Asked::new(op, words)))
        }
    }

    /// What it failed with.
    #[cold]
    fn error(&self, lua: &Lua, status: c_int) -> mlua::Result<mlua::Error> {
        let state = self.thread.state();
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

/// Copies the values of an execution.
///
/// # Safety
/// `state` does not run, and has `count` words on its stack.
#[inline]
unsafe fn read_call(state: *mut ffi::lua_State, count: c_int, call: &mut Call) {
    call.clear();
    // SAFETY: as above; a text is copied while it is on the stack, where the collector does not take it.
    unsafe {
        for index in HEAD + 1..=count {
            match ffi::lua_type(state, index) {
                ffi::LUA_TNUMBER => call.number(ffi::lua_tonumber(state, index)),
                ffi::LUA_TSTRING => {
                    let mut length = 0;
                    let text = ffi::lua_tolstring(state, index, &raw mut length);
                    call.text(std::slice::from_raw_parts(text.cast(), length));
                }
                _ => call.null(),
            }
        }
    }
}
