//! Forms of values that several verbs take.

use std::time::Duration;

use crate::lab::experiment::quantity::duration;

/// A parameter of a workload and its value.
pub(super) fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("expected KEY=VALUE such as `tables=4`, found `{text}`"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// A time that is not nothing.
pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("is no time at all; give it as `20 min`".to_owned()),
        time => Ok(time),
    }
}
