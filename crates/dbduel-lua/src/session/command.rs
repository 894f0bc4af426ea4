//! `os.execute` of a script, which must not block the other clients of its thread.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use super::super::answer::{Answer, Words};
use super::super::error::ScriptError;
use super::super::settings::Message;
use super::Session;
use super::child::ShellCommand;

/// Pause between two checks of a child process.
const CHILD_PAUSE: Duration = Duration::from_millis(5);

/// Bytes of output that are kept until the command ends, so that output of different clients is not mixed. More output
/// is shown earlier, so that a command which prints without end needs no more memory.
const KEPT_BYTES: usize = 1 << 20;

/// Return value of `system()` when the shell cannot be executed: the wait status of a process that exits with 127.
const NO_SHELL: i32 = 127 << 8;

impl Session {
    /// Runs a command as a child process, which ends with the client when that is dropped; its output is shown like
    /// the script's prints.
    pub(super) async fn execute_command(
        &mut self,
        words: &mut Words,
    ) -> Result<Answer, ScriptError> {
        let Some(command) = words.raw_text() else {
            return self.words(-1);
        };
        // As `system()` has it, a command that cannot be started is a matter of the script.
        let mut child = match ShellCommand::start(&command.as_bytes()) {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::ArgumentListTooLong => {
                return self.words(NO_SHELL);
            }
            Err(_) => return self.words(-1),
        };
        let mut printed = Vec::new();
        let status = loop {
            let looked = child.look(&mut printed);
            if printed.len() >= KEPT_BYTES {
                self.state.shared.sink.show(Message::Print(&printed));
                printed.clear();
            }
            match looked {
                Ok(None) => self.sleep(CHILD_PAUSE).await,
                ended => break ended,
            }
        };
        self.state.shared.sink.show(Message::Print(&printed));
        match status {
            Ok(Some(status)) => self.words(status.into_raw()),
            _ => self.words(-1),
        }
    }
}
