//! A script that fails at one line again: no restart of a server or of the load process corrects it.

use anyhow::Result;

use super::Contest;
use dbduel_driver::SCRIPT_FAILED;

/// The workload's script failed twice in a row at the same place on one contender.
#[derive(Debug, thiserror::Error)]
#[error(
    "the workload's script failed twice with `{contender}`: {why}; correct the script and run the experiment again"
)]
pub struct ScriptFails {
    contender: String,
    why: String,
}

/// The last failure of a script.
#[derive(Debug, PartialEq, Eq)]
pub struct ScriptFailure {
    contender: usize,
    /// File and line, or the first line of the error where it has no position.
    place: String,
}

impl Contest<'_, '_> {
    /// Notes a failure of a contender's clients.
    ///
    /// # Errors
    /// [`ScriptFails`] when the script has failed at this place before, with no finished load of the contender between.
    pub(super) fn note_failure(&mut self, contender: usize, why: &str) -> Result<()> {
        let Some(error) = error_of_script(why) else {
            return Ok(());
        };
        let failure = ScriptFailure {
            contender,
            place: place(error).to_owned(),
        };
        if self.progress.script_failure.as_ref() == Some(&failure) {
            return Err(ScriptFails {
                contender: self.config.plan.contenders[contender].name.clone(),
                why: error.to_owned(),
            }
            .into());
        }
        self.progress.script_failure = Some(failure);
        Ok(())
    }

    /// Notes that load of a contender finished.
    pub(super) fn note_finished(&mut self, contender: usize) {
        let failure = self.progress.script_failure.as_ref();
        if failure.is_some_and(|failure| failure.contender == contender) {
            self.progress.script_failure = None;
        }
    }
}

/// The first line of a script's error; `None` for a failure of another kind.
fn error_of_script(why: &str) -> Option<&str> {
    let (_, error) = why.split_once(SCRIPT_FAILED)?;
    error.trim_start_matches([':', ' ']).lines().next()
}

/// `file:line` at the start of an error, or all of it: its text may have values that change.
fn place(error: &str) -> &str {
    let is_line = |(at, _): &(usize, &str)| {
        let rest = &error[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with(':')
    };
    let Some((at, _)) = error.match_indices(':').find(is_line) else {
        return error;
    };
    let end = error[at + 1..]
        .find(':')
        .map_or(error.len(), |length| at + 1 + length);
    &error[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_a_script_is_known_by_its_file_and_line() {
        let why = "`a` failed during its warm-up: the script failed: /x/bad.lua:11: attempt to index 'x'\nstack traceback:\n";
        let error = error_of_script(why).unwrap();
        assert_eq!(error, "/x/bad.lua:11: attempt to index 'x'");
        assert_eq!(place(error), "/x/bad.lua:11");
        assert_eq!(place("no position: 7"), "no position: 7");
        assert_eq!(error_of_script("the connection broke: reset"), None);
    }
}
