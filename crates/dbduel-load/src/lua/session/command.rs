//! `os.execute` of a script, which must not hold up the other clients of its thread.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use super::super::answer::{Answer, Asked};
use super::super::error::ScriptError;
use super::super::settings::Message;
use super::Session;

/// Pause between two looks at a child process of a script.
const CHILD_PAUSE: Duration = Duration::from_millis(5);

impl Session {
    /// A child process, waited for by a thread of its own; what it prints is the script's print.
    pub(super) async fn execute_command(
        &mut self,
        asked: &mut Asked,
    ) -> Result<Answer, ScriptError> {
        let Some(command) = asked.text() else {
            return self.words(-1);
        };
        let child = std::thread::Builder::new()
            .name("script-command".to_owned())
            .spawn(move || {
                let mut shell = std::process::Command::new("/bin/sh");
                shell.args(["-c", &command]).stdin(Stdio::null());
                shell.stderr(Stdio::inherit()).output()
            })?;
        while !child.is_finished() {
            self.sleep(CHILD_PAUSE).await;
        }
        match child.join() {
            Ok(Ok(output)) => {
                self.state.shared.sink.show(Message::Print(&output.stdout));
                self.words(output.status.into_raw())
            }
            _ => self.words(-1),
        }
    }
}
