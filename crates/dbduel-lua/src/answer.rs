//! Requests of a script, and their answers.

use std::ffi::c_void;

use mlua::{IntoLuaMulti, LightUserData, Lua, MultiValue, Value};

use super::execution::Execution;
use super::rows::Shape;

/// One address per operation. It is the first word of every request of the prelude and identifies the operation; no
/// value of a script can equal it.
static MARKS: [u8; OPS.len()] = [0; OPS.len()];

/// Operations. The prelude knows them by these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Done,
    Failed,
    Connect,
    Disconnect,
    Reconnect,
    Query,
    Prepare,
    Close,
    Ready,
    More,
    Start,
    Stop,
    Abandon,
    Restart,
    EventFailed,
    Finished,
    Sleep,
    ExecuteCommand,
    Class,
    WhyFailed,
    /// Nothing: the script is no longer waited for.
    Over,
}

/// Every operation with its name; the position is that of its mark.
pub(super) const OPS: [(Op, &str); 21] = [
    (Op::Done, "done"),
    (Op::Failed, "failed"),
    (Op::Connect, "connect"),
    (Op::Disconnect, "disconnect"),
    (Op::Reconnect, "reconnect"),
    (Op::Query, "query"),
    (Op::Prepare, "prepare"),
    (Op::Close, "close"),
    (Op::Ready, "ready"),
    (Op::More, "more"),
    (Op::Start, "start"),
    (Op::Stop, "stop"),
    (Op::Abandon, "abandon"),
    (Op::Restart, "restart"),
    (Op::EventFailed, "event_failed"),
    (Op::Finished, "finished"),
    (Op::Sleep, "sleep"),
    (Op::ExecuteCommand, "execute_command"),
    (Op::Class, "class"),
    (Op::WhyFailed, "why_failed"),
    (Op::Over, "over"),
];

/// A request of the script.
pub(super) enum Asked {
    /// The current event, if any, is done; asks for another one.
    Next,
    /// Executes a prepared statement.
    Execute(Execution),
    /// A request with words as arguments.
    InWords(Op, Words),
}

/// Arguments of a request.
pub(super) struct Words(MultiValue);

impl Op {
    /// The word that identifies the operation.
    pub(super) fn mark(self) -> LightUserData {
        let place = std::ptr::from_ref(&MARKS[self as usize]);
        LightUserData(place.cast::<c_void>().cast_mut())
    }

    /// `None` when the word identifies no operation.
    #[inline]
    pub(super) fn from_mark(word: *const c_void) -> Option<Self> {
        let number = word.addr().wrapping_sub(MARKS.as_ptr().addr());
        OPS.get(number).map(|&(op, _)| op)
    }
}

impl Words {
    pub(super) fn new(words: MultiValue) -> Self {
        Words(words)
    }

    fn pop(&mut self) -> Option<Value> {
        self.0.pop_front()
    }

    /// The remaining words.
    pub(super) fn rest(self) -> MultiValue {
        self.0
    }

    /// True when the remaining word at `index` is `true`.
    pub(super) fn is_true(&self, index: usize) -> bool {
        matches!(self.0.get(index), Some(Value::Boolean(true)))
    }

    /// The remaining word at `index` as text, if it is text.
    pub(super) fn text_at(&self, index: usize) -> Option<String> {
        match self.0.get(index)? {
            Value::String(text) => Some(text.to_string_lossy()),
            _ => None,
        }
    }

    /// The next word as text in Lua's own memory, if it is text.
    pub(super) fn raw_text(&mut self) -> Option<mlua::LuaString> {
        match self.pop()? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The next word as an id; 0, which identifies nothing, when it is not a number.
    pub(super) fn id(&mut self) -> usize {
        number(self.pop().as_ref()).map_or(0, |number| number as usize)
    }

    /// The next word as a number.
    pub(super) fn number(&mut self) -> f64 {
        number(self.pop().as_ref()).unwrap_or_default()
    }

    /// The next word as text, if it is text.
    pub(super) fn text(&mut self) -> Option<String> {
        self.raw_text().map(|text| text.to_string_lossy())
    }
}

fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// An answer to the script.
pub(super) enum Answer {
    /// Yes or no; also: done without rows.
    Flag(bool),
    /// There are rows.
    Rows(Shape),
    /// A prepared statement returned rows, which were not kept.
    Skipped {
        /// Number of rows.
        rows: u64,
        /// Distinguishes the result from earlier ones.
        generation: u32,
    },
    /// A statement failed.
    Failed(Failed),
    /// The values that the operation returns.
    Words(MultiValue),
}

/// Why a statement failed, not yet in Lua's words: while compiled code waits, its state must not be used.
pub(super) enum Failed {
    /// The API was misused.
    Misuse(&'static str),
    /// An error of the server or the connection.
    Error {
        code: u32,
        sqlstate: String,
        message: String,
        /// The event must be retried.
        is_ignorable: bool,
    },
}

impl Failed {
    /// The error in the prelude's form.
    pub(super) fn words(self, lua: &Lua) -> mlua::Result<MultiValue> {
        match self {
            Failed::Misuse(why) => (Value::Nil, why).into_lua_multi(lua),
            Failed::Error {
                code,
                sqlstate,
                message,
                is_ignorable,
            } => (false, code, sqlstate, message, is_ignorable).into_lua_multi(lua),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_known_by_their_marks() {
        for (number, (op, name)) in OPS.iter().enumerate() {
            assert_eq!(*op as usize, number, "{name}");
            assert_eq!(Op::from_mark(op.mark().0), Some(*op), "{name}");
        }
        assert_eq!(Op::from_mark(std::ptr::null()), None);
        let behind = MARKS.as_ptr_range().end;
        assert_eq!(Op::from_mark(behind.cast()), None);
    }
}
