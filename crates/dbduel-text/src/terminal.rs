//! The one place that writes to the terminal: results to standard output, all else to standard error.

use std::io::{self, Write as _};

use crate::{visible, visible_inked};

/// Writes a line to standard error. A closed standard error does not end a contest.
pub fn status_line(line: &str) {
    #[cfg(feature = "silence")]
    if silence::is_kept() {
        return;
    }
    let _ = writeln!(io::stderr(), "{}", visible(line));
}

/// Writes a result to standard output, without control sequences except the reports' own. A reader that has closed the
/// pipe is not an error.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    #[cfg(feature = "silence")]
    if silence::is_kept() {
        return Ok(());
    }
    let mut output = io::stdout().lock();
    let written = output
        .write_all(visible_inked(text).as_bytes())
        .and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Threads without output, for tests.
#[cfg(feature = "silence")]
pub mod silence {
    use std::cell::Cell;

    thread_local! {
        static IS_KEPT: Cell<bool> = const { Cell::new(false) };
    }

    /// Suppresses this thread's output until it is dropped.
    #[derive(Debug)]
    pub struct Silence(());

    impl Drop for Silence {
        fn drop(&mut self) {
            IS_KEPT.set(false);
        }
    }

    /// Begins to suppress output.
    #[must_use]
    pub fn keep() -> Silence {
        IS_KEPT.set(true);
        Silence(())
    }

    /// Whether this thread's output is suppressed.
    #[must_use]
    pub fn is_kept() -> bool {
        IS_KEPT.get()
    }
}
