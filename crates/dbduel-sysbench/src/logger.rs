//! All output of the command. `--verbosity` decides what is printed; everything goes to standard output, as in
//! sysbench.

use std::sync::{Mutex, PoisonError};

use dbduel_text::terminal;

/// The last printed line, and the number of repetitions suppressed since.
static LAST: Mutex<(String, u64)> = Mutex::new((String::new(), 0));

/// The level of the requested output.
const NOTICE: u64 = 3;

/// Prints messages up to a verbosity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logger {
    /// 0 fatal, 1 alerts, 2 warnings, 3 notices, 4 information, 5 debugging.
    pub verbosity: u64,
}

impl Logger {
    /// For messages on options that sysbench prints before it reads the verbosity.
    pub const ALWAYS: Logger = Logger { verbosity: 2 };

    fn say(self, level: u64, text: &str) {
        if self.verbosity < level {
            return;
        }
        let mut guard = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, repeated) = &mut *guard;
        // As sysbench does; lines of a report are what was asked for.
        if level < NOTICE && last == text {
            *repeated += 1;
            return;
        }
        let mut lines = String::new();
        if *repeated > 0 {
            lines = format!("(last message repeated {repeated} times)\n");
        }
        lines += text;
        *repeated = 0;
        text.clone_into(last);
        // A run continues when its output is not read.
        let _ = terminal::print(&lines);
    }

    /// Prints an error that ends the run.
    pub fn fatal(self, text: &str) {
        self.say(0, &format!("FATAL: {text}\n"));
    }

    /// Prints an error in the use of the script interface.
    pub fn alert(self, text: &str) {
        self.say(1, &format!("ALERT: {text}\n"));
    }

    /// Prints a warning.
    pub fn warning(self, text: &str) {
        self.say(2, &format!("WARNING: {text}\n"));
    }

    /// Prints a line of the requested output.
    pub fn notice(self, line: &str) {
        self.say(NOTICE, &format!("{line}\n"));
    }

    /// Prints a debugging message.
    pub fn debug(self, text: &str) {
        self.say(5, &format!("DEBUG: {text}\n"));
    }
}
