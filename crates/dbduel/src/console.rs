//! The program's output: results on standard output, progress on standard error, as bars on a terminal and as plain
//! lines elsewhere.

use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use dbduel_lab::StatusOutput;
use dbduel_server::{Progress, ProgressUnit};
pub use dbduel_text::terminal::{print, status_line};
use dbduel_text::{escaped_json, visible};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use dbduel_report::words;

/// Least time between two plain progress lines of one stage.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// No rate is shown before this time has passed.
const RATE_AFTER: Duration = Duration::from_secs(2);

/// Progress of the program.
#[derive(Debug)]
pub struct Console {
    bar: Option<ProgressBar>,
    plain: Mutex<PlainLines>,
}

#[derive(Debug)]
struct PlainLines {
    stage: String,
    last: Option<Instant>,
    /// When the stage was first seen to advance, and from where.
    first: Option<(Instant, u64)>,
}

impl Console {
    /// A console on standard error.
    #[must_use]
    pub fn new() -> Self {
        let is_watched = io::stderr().is_terminal();
        #[cfg(test)]
        let is_watched = is_watched && !dbduel_text::terminal::silence::is_kept();
        let bar = is_watched.then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        let plain = Mutex::new(PlainLines {
            stage: String::new(),
            last: None,
            first: None,
        });
        Self { bar, plain }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn plain_advance(&self, done: u64, total: Option<u64>, unit: ProgressUnit) {
        let (stage, first) = {
            let mut plain = self
                .plain
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let (begun, before) = *plain.first.get_or_insert((Instant::now(), done));
            (plain.stage.clone(), (begun.elapsed(), before))
        };
        self.plain_line(&stage, || progress_line(&stage, done, total, unit, first));
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
            if plain.stage != stage {
                stage.clone_into(&mut plain.stage);
                plain.first = None;
            }
            plain.last = Some(Instant::now());
            status_line(&line());
        }
    }
}

impl StatusOutput for Console {
    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(visible(line)),
            None => status_line(line),
        }
    }

    fn measuring(&self, done_s: f64, total_s: f64, message: &str) {
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
}

impl Progress for Console {
    fn stage(&self, what: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_style(style("{spinner} {msg}"));
                bar.unset_length();
                bar.set_position(0);
                // The rate is that of this stage.
                bar.reset_eta();
                bar.set_message(visible(what).into_owned());
            }
            None => self.plain_line(what, || what.to_owned()),
        }
    }

    fn advance(&self, done: u64, total: Option<u64>, unit: ProgressUnit) {
        let Some(bar) = &self.bar else {
            self.plain_advance(done, total, unit);
            return;
        };
        let template = match (unit, total) {
            (ProgressUnit::Bytes, Some(_)) => {
                "{spinner} {msg} [{bar:24}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left"
            }
            (ProgressUnit::Bytes, None) => {
                "{spinner} {msg} ({binary_bytes}, {binary_bytes_per_sec})"
            }
            (ProgressUnit::Rows, Some(_)) => {
                "{spinner} {msg} [{bar:24}] {percent} % of {human_len} rows, {per_sec}, {eta} left"
            }
            (ProgressUnit::Rows, None) => "{spinner} {msg} ({human_pos} rows, {per_sec})",
        };
        bar.set_style(style(template));
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_position(done);
    }
}

/// Progress of a stage, its rate, and the time left at that rate.
fn progress_line(
    stage: &str,
    done: u64,
    total: Option<u64>,
    unit: ProgressUnit,
    first: (Duration, u64),
) -> String {
    let amount = |count: u64| match unit {
        ProgressUnit::Bytes => words::bytes(count),
        ProgressUnit::Rows => words::count(count),
    };
    let mut line = format!("{stage}: {}", amount(done));
    if let Some(total) = total {
        line += &format!(" of {}", amount(total));
    }
    if unit == ProgressUnit::Rows {
        line += " rows";
    }
    let (passed, before) = first;
    let per_second = done.saturating_sub(before) as f64 / passed.as_secs_f64();
    if passed >= RATE_AFTER && per_second >= 1.0 {
        line += &format!(", {}/s", amount(per_second as u64));
        if let Some(left) = total.and_then(|total| total.checked_sub(done)) {
            line += &format!(", about {} left", words::duration(left as f64 / per_second));
        }
    }
    line
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

/// A document as indented JSON text with a final newline.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn json(document: &impl Serialize) -> serde_json::Result<String> {
    Ok(escaped_json(serde_json::to_string_pretty(document)? + "\n"))
}

/// Writes a document as JSON to standard output.
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

/// Lines of the terminal that standard output is; `None` when it is none.
#[must_use]
pub fn height() -> Option<u16> {
    terminal_size::terminal_size_of(io::stdout()).map(|(_, height)| height.0)
}

/// True when standard output is a terminal that shows colours and none of `NO_COLOR`, `CLICOLOR` and `TERM` switches them off.
#[must_use]
pub fn is_colour_wanted() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_has_the_rate_and_the_remaining_time() {
        let first = (Duration::from_secs(10), 5 << 20);
        let bytes = progress_line(
            "fetching x",
            25 << 20,
            Some(45 << 20),
            ProgressUnit::Bytes,
            first,
        );
        assert_eq!(
            bytes,
            "fetching x: 25.0 MiB of 45.0 MiB, 2.00 MiB/s, about 10 s left"
        );
        let rows = progress_line(
            "loading",
            1_000_000,
            Some(3_000_000),
            ProgressUnit::Rows,
            (Duration::from_secs(4), 0),
        );
        assert_eq!(
            rows,
            "loading: 1,000,000 of 3,000,000 rows, 250,000/s, about 8 s left"
        );
        // Too early for a rate, and without a known end.
        let early = progress_line(
            "unpacking",
            1 << 20,
            None,
            ProgressUnit::Bytes,
            (Duration::ZERO, 0),
        );
        assert_eq!(early, "unpacking: 1.00 MiB");
    }
}
