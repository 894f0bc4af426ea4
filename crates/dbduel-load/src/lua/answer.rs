//! What a script can ask for, and how it is answered.

use std::ffi::c_void;

use mlua::{LightUserData, MultiValue, Value};

use super::rows::Shape;

/// Stands before everything that the prelude yields, so that a script's own yields are not taken for it.
static MARK: u8 = 0;

pub(super) fn mark() -> LightUserData {
    LightUserData(std::ptr::from_ref(&MARK).cast::<c_void>().cast_mut())
}

/// What is asked for. The prelude knows them by these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Done,
    Failed,
    Connect,
    Disconnect,
    Reconnect,
    Query,
    Prepare,
    Execute,
    Close,
    Ready,
    Next,
    More,
    Start,
    Stop,
    Abandon,
    Restart,
    EventFailed,
    Finished,
    Sleep,
    ExecuteCommand,
}

/// Every operation with its name; the position is its number.
pub(super) const OPS: [(Op, &str); 20] = [
    (Op::Done, "done"),
    (Op::Failed, "failed"),
    (Op::Connect, "connect"),
    (Op::Disconnect, "disconnect"),
    (Op::Reconnect, "reconnect"),
    (Op::Query, "query"),
    (Op::Prepare, "prepare"),
    (Op::Execute, "execute"),
    (Op::Close, "close"),
    (Op::Ready, "ready"),
    (Op::Next, "next"),
    (Op::More, "more"),
    (Op::Start, "start"),
    (Op::Stop, "stop"),
    (Op::Abandon, "abandon"),
    (Op::Restart, "restart"),
    (Op::EventFailed, "event_failed"),
    (Op::Finished, "finished"),
    (Op::Sleep, "sleep"),
    (Op::ExecuteCommand, "execute_command"),
];

/// What the script asked for, with what it said about it.
pub(super) struct Asked {
    pub(super) op: Op,
    pub(super) words: MultiValue,
}

impl Asked {
    /// None when it is a yield of the script's own, outside of any coroutine of its own.
    pub(super) fn read(mut words: MultiValue) -> Option<Self> {
        match words.pop_front() {
            Some(Value::LightUserData(found)) if found == mark() => {}
            _ => return None,
        }
        let (op, _) = *OPS.get(number(words.pop_front().as_ref())? as usize)?;
        Some(Asked { op, words })
    }

    /// The next word as a number that names something; 0, which names nothing, when it is none.
    pub(super) fn id(&mut self) -> usize {
        number(self.words.pop_front().as_ref()).map_or(0, |number| number as usize)
    }

    /// The next word as a number.
    pub(super) fn number(&mut self) -> f64 {
        number(self.words.pop_front().as_ref()).unwrap_or_default()
    }

    /// The next word as text, if it is one.
    pub(super) fn text(&mut self) -> Option<String> {
        match self.words.pop_front()? {
            Value::String(text) => Some(text.to_string_lossy()),
            _ => None,
        }
    }
}

fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// What the script is told.
pub(super) enum Answer {
    /// Yes or no; also: done, and there are no rows.
    Flag(bool),
    /// There are rows.
    Rows(Shape),
    /// Whatever the operation answers with.
    Words(MultiValue),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_operations_are_their_positions() {
        for (number, (op, name)) in OPS.iter().enumerate() {
            assert_eq!(*op as usize, number, "{name}");
        }
    }
}
