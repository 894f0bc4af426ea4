//! What a script can ask for, and how it is answered.

use std::ffi::c_void;

use dbduel_wire::Value as Wire;
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

/// What the script asked for, with what it said about it; the words of an execution are in its [`Call`].
pub(super) struct Asked {
    pub(super) op: Op,
    pub(super) words: MultiValue,
}

impl Op {
    /// None when no operation has that number.
    #[inline]
    pub(super) fn from_number(number: f64) -> Option<Self> {
        OPS.get(number as usize).map(|&(op, _)| op)
    }
}

/// A statement's execution: its number and the values for it. Kept from one to the next for its memory.
#[derive(Default)]
pub(super) struct Call {
    /// The statement comes first, then its values.
    words: Vec<Given>,
    texts: Vec<u8>,
}

/// A value that the script gives.
#[derive(Clone, Copy)]
enum Given {
    Null,
    Number(f64),
    /// Where it begins and ends among the texts.
    Text(usize, usize),
}

impl Call {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.texts.clear();
    }

    #[inline]
    pub(super) fn null(&mut self) {
        self.words.push(Given::Null);
    }

    #[inline]
    pub(super) fn number(&mut self, number: f64) {
        self.words.push(Given::Number(number));
    }

    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) {
        let begin = self.texts.len();
        self.texts.extend_from_slice(text);
        self.words.push(Given::Text(begin, self.texts.len()));
    }

    /// The statement's number; 0, which names none, when there is none.
    #[inline]
    pub(super) fn statement(&self) -> usize {
        match self.words.first() {
            Some(Given::Number(number)) => *number as usize,
            _ => 0,
        }
    }

    /// The values as they are sent. Integers that a Lua number cannot hold come as texts.
    #[inline]
    pub(super) fn values(&self, doubles: &[bool]) -> impl ExactSizeIterator<Item = Wire<'_>> {
        let values = self.words.get(1..).unwrap_or_default();
        values
            .iter()
            .enumerate()
            .map(|(index, value)| match *value {
                Given::Null => Wire::Null,
                Given::Number(number) if doubles.get(index) == Some(&true) => Wire::Double(number),
                Given::Number(number) => Wire::Signed(number as i64),
                Given::Text(begin, end) => Wire::Bytes(&self.texts[begin..end]),
            })
    }
}

impl Asked {
    pub(super) fn new(op: Op, words: MultiValue) -> Self {
        Asked { op, words }
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
