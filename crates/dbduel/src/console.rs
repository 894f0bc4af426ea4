//! The one place that writes to the terminal.
//!
//! Results go to standard output, everything about progress to standard error: bars where a person
//! watches, plain lines elsewhere.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::lab::server::Progress;
use crate::visible::{escaped_json, visible, visible_inked};

/// Least time between two plain progress lines of one stage.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// Shows what is going on.
#[derive(Debug)]
pub struct Console {
    bar: Option<ProgressBar>,
    plain: Mutex<PlainLines>,
}

#[derive(Debug)]
struct PlainLines {
    stage: String,
    last: Option<Instant>,
}

impl Console {
    /// A console on standard error.
    #[must_use]
    pub fn new() -> Self {
        let is_watched = io::stderr().is_terminal();
        let bar = is_watched.then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        let plain = Mutex::new(PlainLines {
            stage: String::new(),
            last: None,
        });
        Self { bar, plain }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(visible(line)),
            None => status_line(line),
        }
    }

    /// Shows progress from 0 to `total_s` seconds of load, with a message.
    pub fn measuring(&self, done_s: f64, total_s: f64, message: &str) {
        if let Some(bar) = &self.bar {
            bar.set_style(style("{spinner} {wide_msg} [{bar:24}] {prefix}"));
            bar.set_length((total_s * 10.0) as u64);
            bar.set_position((done_s.min(total_s) * 10.0) as u64);
            bar.set_prefix(format!("{} of at most {}", clock(done_s), clock(total_s)));
            bar.set_message(visible(message).into_owned());
        } else {
            self.plain_line("measuring", || {
                format!("{} of at most {}: {message}", clock(done_s), clock(total_s))
            });
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// At most one line per [`LINE_PAUSE`] and stage.
    fn plain_line(&self, stage: &str, line: impl FnOnce() -> String) {
        let mut plain = self
            .plain
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_due =
            plain.stage != stage || plain.last.is_none_or(|last| last.elapsed() >= LINE_PAUSE);
        if is_due {
            stage.clone_into(&mut plain.stage);
            plain.last = Some(Instant::now());
            status_line(&line());
        }
    }
}

impl Progress for Console {
    fn stage(&self, what: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_style(style("{spinner} {msg}"));
                bar.unset_length();
                bar.set_message(visible(what).into_owned());
            }
            None => self.plain_line(what, || what.to_owned()),
        }
    }

    fn advance(&self, done: u64, total: Option<u64>) {
        let Some(bar) = &self.bar else {
            let stage = self
                .plain
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .stage
                .clone();
            self.plain_line(&stage, || match total {
                Some(total) if total > 0 => format!("{stage}: {} %", done.min(total) * 100 / total),
                _ => format!("{stage}: {done}"),
            });
            return;
        };
        match total {
            Some(total) => {
                bar.set_style(style("{spinner} {msg} [{bar:24}] {percent} % ({eta} left)"));
                bar.set_length(total);
            }
            None => bar.set_style(style("{spinner} {msg} ({pos})")),
        }
        bar.set_position(done);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .progress_chars("━━─")
}

/// Minutes and seconds: `3:07`.
fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// A line on standard error. A closed standard error is no reason to end a contest.
pub fn status_line(line: &str) {
    let _ = writeln!(io::stderr(), "{}", visible(line));
}

/// Writes a result to standard output, with nothing in it that drives a terminal but the ornaments of reports. A reader that went away early is no error.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let written = output
        .write_all(visible_inked(text).as_bytes())
        .and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A document as programs read it.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn json(document: &impl Serialize) -> serde_json::Result<String> {
    Ok(escaped_json(serde_json::to_string_pretty(document)? + "\n"))
}

/// Writes a document for programs to standard output.
///
/// # Errors
/// When it cannot be written.
pub fn print_json(document: &impl Serialize) -> io::Result<()> {
    print(&json(document)?)
}

/// Columns of the terminal, or 100 where there is none.
#[must_use]
pub fn width() -> usize {
    let columns = terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0));
    columns.clamp(40, 160)
}

/// True when standard output is a terminal that shows colours and none of `NO_COLOR`, `CLICOLOR` and `TERM` switches them off.
#[must_use]
pub fn is_colour_wanted() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}
