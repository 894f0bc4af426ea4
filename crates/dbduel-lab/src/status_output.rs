//! Progress output of the lab for the user.

use std::fmt::Debug;

use dbduel_server::Progress;

/// Shows the progress of a contest: permanent lines and a progress line.
pub trait StatusOutput: Progress + Debug {
    /// Prints a permanent line.
    fn say(&self, line: &str);

    /// Updates the progress line: load so far and its limit, seconds, with a message.
    fn measuring(&self, done_s: f64, total_s: f64, message: &str);
}
