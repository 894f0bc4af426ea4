//! Where a person follows what the lab does.

use std::fmt::Debug;

use dbduel_server::Progress;

/// Shows what a contest does: lines that stay, and how far it is.
pub trait StatusOutput: Progress + Debug {
    /// A line that stays.
    fn say(&self, line: &str);

    /// How much load there was, of the most that there may be, seconds, with a message.
    fn measuring(&self, done_s: f64, total_s: f64, message: &str);
}
