//! What the readers of all logs share: lines of bounded length, times, numbers.

use std::io::{self, BufRead};

use memchr::memmem;

use super::{ENTRY_BYTES_MAX, LogOptions};
use crate::entry::{Lack, Sink, UnixNs};

/// Why an entry of more than [`ENTRY_BYTES_MAX`] is left out.
pub(super) const TOO_LONG: &str = "longer than 64 MiB";

/// Why an entry at the end of a log is left out: half a DELETE may be a valid one without its WHERE.
pub(super) const CUT_OFF: &str = "its end is missing";

/// Room for a line in a full buffer, bytes: enough for the beginning of any entry.
const LINE_ROOM: usize = 4096;

const SECOND_NS: u32 = 1_000_000_000;

/// Reads lines into a buffer of bounded length.
pub(super) struct Lines<'i> {
    input: &'i mut dyn BufRead,
    number: u64,
}

/// How a line was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRead {
    /// With its newline.
    Whole,
    /// The log ends in it.
    Unended,
    /// Its beginning only: the rest did not fit and was skipped.
    Cut,
}

impl<'i> Lines<'i> {
    pub(super) fn new(input: &'i mut dyn BufRead) -> Self {
        Self { input, number: 0 }
    }

    /// Number of the line read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Appends the next line with its newline; `None` at the end of the log.
    pub(super) fn append(&mut self, buffer: &mut Vec<u8>) -> io::Result<Option<LineRead>> {
        let mut room = ENTRY_BYTES_MAX.saturating_sub(buffer.len()).max(LINE_ROOM);
        let mut is_begun = false;
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                return Ok(is_begun.then_some(LineRead::Unended));
            }
            if !is_begun {
                is_begun = true;
                self.number += 1;
            }
            let available = &available[..available.len().min(room)];
            let end = memchr::memchr(b'\n', available).map(|at| at + 1);
            let length = end.unwrap_or(available.len());
            buffer.extend_from_slice(&available[..length]);
            self.input.consume(length);
            room -= length;
            if end.is_some() {
                return Ok(Some(LineRead::Whole));
            }
            if room == 0 {
                self.input.skip_until(b'\n')?;
                return Ok(Some(LineRead::Cut));
            }
        }
    }
}

/// Whether so much is in a buffer that no more of its entry is kept.
pub(super) fn is_full(buffer: &[u8]) -> bool {
    buffer.len() > ENTRY_BYTES_MAX - LINE_ROOM
}

/// Reports each lack once.
#[derive(Debug, Default)]
pub(super) struct Lacks(Vec<Lack>);

impl Lacks {
    pub(super) fn report(&mut self, lack: Lack, sink: &mut dyn Sink) {
        if !self.0.contains(&lack) {
            self.0.push(lack);
            sink.lacks(lack);
        }
    }
}

/// An instant of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogTime {
    /// Nanoseconds since 1970 UTC.
    pub(super) at: UnixNs,
    /// How exact, nanoseconds.
    pub(super) step_ns: u32,
}

impl LogTime {
    /// Whether it has no more than seconds.
    pub(super) fn is_coarse(self) -> bool {
        self.step_ns >= SECOND_NS
    }

    /// An instant that a log gives in whole seconds since 1970.
    pub(super) fn of_seconds(seconds: i64) -> Option<Self> {
        let at = seconds.checked_mul(SECOND_NS.into())?;
        let step_ns = SECOND_NS;
        Some(Self { at, step_ns })
    }

    /// This long before it.
    pub(super) fn before(self, duration_ns: u64) -> Option<Self> {
        let at = self.at.checked_sub_unsigned(duration_ns)?;
        Some(Self { at, ..self })
    }
}

/// Offset of times without a zone, seconds east of UTC.
pub(super) fn offset_s(options: &LogOptions) -> i32 {
    options.timezone_offset_s.unwrap_or(0)
}

/// Reads `YYYY-MM-DDTHH:MM:SS[.ffffff][Z|+HH:MM]` with this separator in place of the `T`; also returns its length.
pub(super) fn long_time(text: &[u8], separator: u8, offset_s: i32) -> Option<(LogTime, usize)> {
    let is_formed = text.len() >= 19
        && (text[4], text[7], text[10]) == (b'-', b'-', separator)
        && (text[13], text[16]) == (b':', b':');
    if !is_formed {
        return None;
    }
    let (fraction_ns, step_ns, end) = fraction(text, 19);
    let (offset_s, end) = match text.get(end) {
        Some(b'Z') => (0, end + 1),
        Some(sign @ (b'+' | b'-')) if text.get(end + 3) == Some(&b':') => {
            let seconds = digits(text, end + 1, 2)? * 3600 + digits(text, end + 4, 2)? * 60;
            let seconds = i32::try_from(seconds).ok()?;
            (if *sign == b'-' { -seconds } else { seconds }, end + 6)
        }
        _ => (offset_s, end),
    };
    let date = (
        digits(text, 0, 4)?,
        digits(text, 5, 2)?,
        digits(text, 8, 2)?,
    );
    let clock = (
        digits(text, 11, 2)?,
        digits(text, 14, 2)?,
        digits(text, 17, 2)?,
    );
    let at = instant(date, clock, fraction_ns, offset_s)?;
    Some((LogTime { at, step_ns }, end))
}

/// Reads `YYMMDD HH:MM:SS[.ffffff]`, where the hour may have a blank in place of its first digit; also returns its length.
pub(super) fn short_time(text: &[u8], offset_s: i32) -> Option<(LogTime, usize)> {
    let is_formed = text.len() >= 15 && (text[6], text[9], text[12]) == (b' ', b':', b':');
    if !is_formed {
        return None;
    }
    let hour = match text[7] {
        b' ' => digits(text, 8, 1)?,
        _ => digits(text, 7, 2)?,
    };
    let date = (
        2000 + digits(text, 0, 2)?,
        digits(text, 2, 2)?,
        digits(text, 4, 2)?,
    );
    let clock = (hour, digits(text, 10, 2)?, digits(text, 13, 2)?);
    let (fraction_ns, step_ns, end) = fraction(text, 15);
    let at = instant(date, clock, fraction_ns, offset_s)?;
    Some((LogTime { at, step_ns }, end))
}

/// Fraction of a second from its point on: nanoseconds, how exact, where it ends.
fn fraction(text: &[u8], at: usize) -> (u32, u32, usize) {
    if text.get(at) != Some(&b'.') {
        return (0, SECOND_NS, at);
    }
    let (mut value, mut step, mut end) = (0, SECOND_NS, at + 1);
    while let Some(digit) = text.get(end).filter(|byte| byte.is_ascii_digit()) {
        if step > 1 {
            step /= 10;
            value += u32::from(digit - b'0') * step;
        }
        end += 1;
    }
    (value, step, end)
}

fn instant(
    (year, month, day): (u32, u32, u32),
    (hour, minute, second): (u32, u32, u32),
    fraction_ns: u32,
    offset_s: i32,
) -> Option<UnixNs> {
    let is_valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    // Days of the proleptic Gregorian calendar since 1970, with years that begin in March:
    // Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let seconds = days * 86_400 + i64::from(hour * 3600 + minute * 60 + second);
    (seconds - i64::from(offset_s))
        .checked_mul(SECOND_NS.into())?
        .checked_add(fraction_ns.into())
}

/// The number that these digits are.
fn digits(text: &[u8], from: usize, count: usize) -> Option<u32> {
    let mut value = 0;
    for byte in text.get(from..from + count)? {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u32::from(byte - b'0');
    }
    Some(value)
}

/// The number that a field of nothing but digits is.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        value.checked_mul(10)?.checked_add(digit.into())
    })
}

/// A duration in seconds, as in `1.100202`, in nanoseconds.
pub(super) fn seconds_ns(text: &[u8]) -> Option<u64> {
    let whole = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction_ns, _, end) = fraction(text, whole);
    if end != text.len() {
        return None;
    }
    number(&text[..whole])?
        .checked_mul(SECOND_NS.into())?
        .checked_add(fraction_ns.into())
}

/// Where `part` begins in `text`.
pub(super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memmem::find(text, part)
}

/// Without one newline at its end, and a carriage return before that.
pub(super) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_forms_are_read() {
        let (time, length) = long_time(b"2026-11-28T00:15:02.784329Z\t", b'T', 3600).unwrap();
        assert_eq!(
            (time.at, time.step_ns, length),
            (1_795_824_902_784_329_000, 1000, 27)
        );
        let (time, _) = long_time(b"2026-11-28T01:15:02.784329+01:00", b'T', 0).unwrap();
        assert_eq!(time.at, 1_795_824_902_784_329_000);
        let (time, length) = short_time(b"261128  0:15:01\t", 3600).unwrap();
        assert_eq!(
            (time.at, time.step_ns, length),
            (1_795_821_301_000_000_000, SECOND_NS, 15)
        );
        let (time, _) = long_time(b"2026-11-28 00:15:01.525026", b' ', 0).unwrap();
        assert_eq!(time.at, 1_795_824_901_525_026_000);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "2026-13-28T00:15:02Z",
            "2026-11-28T24:15:02Z",
            "9999-11-28T00:15:02Z",
            "2026-11-28T00:15",
            "2026-11-28T00:15:0xZ",
            "2026-11-28T00:15:02+xx:00",
        ] {
            assert_eq!(long_time(text.as_bytes(), b'T', 0), None, "{text}");
        }
        for text in ["261128", "261328  0:15:01", "26112   0:15:01"] {
            assert_eq!(short_time(text.as_bytes(), 0), None, "{text}");
        }
    }

    #[test]
    fn durations_have_nanoseconds() {
        assert_eq!(seconds_ns(b"1.100202"), Some(1_100_202_000));
        assert_eq!(seconds_ns(b"12"), Some(12_000_000_000));
        assert_eq!(seconds_ns(b"-1.0"), None);
        assert_eq!(seconds_ns(b"99999999999999.0"), None);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_read() {
        let mut log = vec![b'x'; ENTRY_BYTES_MAX + 10];
        log.extend(b"\nnext\n");
        let mut input = &log[..];
        let mut lines = Lines::new(&mut input);
        let mut buffer = Vec::new();
        assert_eq!(lines.append(&mut buffer).unwrap(), Some(LineRead::Cut));
        assert_eq!(buffer.len(), ENTRY_BYTES_MAX);
        buffer.clear();
        assert_eq!(lines.append(&mut buffer).unwrap(), Some(LineRead::Whole));
        assert_eq!((&buffer[..], lines.number()), (&b"next\n"[..], 2));
        assert_eq!(lines.append(&mut buffer).unwrap(), None);
    }
}
