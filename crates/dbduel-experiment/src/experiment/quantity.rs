//! Durations, shares and sizes in readable form: `20 min`, `2 %`, `256 MiB`.

use std::time::Duration;

use dbduel_record::plan::{InjectedStalls, IoLimit};

/// Longest duration, seconds. A year bounds every conversion that follows; no contest lasts that long.
const LONGEST_S: f64 = 366.0 * 86_400.0;
/// Limit of polling of a wait. Longer polling takes a processor for replies that are late already.
const BUSY_POLL_MAX: Duration = Duration::from_millis(100);

/// Reads a duration: a number and a unit (`us` or `µs`, `ms`, `s`, `min`, `h`), possibly several (`1 h 30 min`).
///
/// # Errors
/// States the expected form.
pub fn duration(text: &str) -> Result<Duration, String> {
    let expected =
        || format!("expected a duration such as `90 s`, `20 min` or `1 h 30 min`, found `{text}`");
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(expected());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
            .unwrap_or(rest.len());
        let number: f64 = rest[..digits]
            .replace('_', "")
            .parse()
            .map_err(|_| expected())?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(rest.len());
        seconds += number
            * match &rest[..letters] {
                "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
                "ms" => 1e-3,
                "s" | "sec" | "second" | "seconds" => 1.0,
                "m" | "min" | "minute" | "minutes" => 60.0,
                "h" | "hour" | "hours" => 3600.0,
                _ => return Err(expected()),
            };
        rest = rest[letters..].trim_start();
    }
    if seconds > LONGEST_S {
        return Err(format!(
            "expected at most {} h, a year, found `{text}`",
            LONGEST_S / 3600.0
        ));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads a duration as both bounds, or two of them in ascending order: `4 s`, `2 s to 6 s`.
///
/// # Errors
/// States the expected form.
pub fn duration_bounds(text: &str) -> Result<[Duration; 2], String> {
    let (least, most) = text.split_once(" to ").unwrap_or((text, text));
    let bounds = [duration(least)?, duration(most)?];
    match bounds.is_sorted() {
        true => Ok(bounds),
        false => Err(format!(
            "expected the smaller bound first, such as `2 s to 6 s`, found `{text}`"
        )),
    }
}

/// Reads the length of stalls and of the time awake before each: `1 s every 4 s`, `1 s every 2 s to 6 s`.
///
/// # Errors
/// States the expected form.
pub fn stalls(text: &str) -> Result<InjectedStalls, String> {
    let expected = || {
        format!("expected stalls such as `1 s every 4 s` or `1 s every 2 s to 6 s`, found `{text}`")
    };
    let (stall, every) = text.split_once("every").ok_or_else(expected)?;
    let bounds = duration_bounds(every)?;
    Ok(InjectedStalls {
        stall_s: duration(stall)?.as_secs_f64(),
        every_s: bounds.map(|bound| bound.as_secs_f64()),
    })
}

/// Reads how long a wait of a load thread polls before sleeping: a duration up to 100 ms.
///
/// # Errors
/// States the expected form.
pub fn busy_poll(text: &str) -> Result<Duration, String> {
    let time = duration(text).map_err(|_| {
        format!("expected a polling time, such as `2 ms` or `500 us`, found `{text}`")
    })?;
    if time > BUSY_POLL_MAX {
        return Err(format!(
            "expected busy polling for at most {} ms, found `{text}`; 2 ms is enough for exact timing",
            BUSY_POLL_MAX.as_millis()
        ));
    }
    Ok(time)
}

/// Reads a share: `2 %` or `0.02`.
///
/// # Errors
/// States the expected form.
pub fn share(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let (number, scale) = match trimmed.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (trimmed, 1.0),
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("expected a share such as `2 %` or `0.02`, found `{text}`"))?;
    Ok(value / scale)
}

/// Reads a size in bytes: a number and a unit (`KiB`, `MiB`, `GiB`, `TiB`).
///
/// # Errors
/// States the expected form.
pub fn size(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a size such as `256 MiB` or `10 GiB`, found `{text}`");
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(trimmed.len());
    let number: u64 = trimmed[..digits]
        .replace('_', "")
        .parse()
        .map_err(|_| expected())?;
    let shift = match trimmed[digits..].trim() {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return Err(expected()),
    };
    number.checked_mul(1 << shift).ok_or_else(expected)
}

/// Reads an I/O limit per second: bytes (`20 MiB/s`), requests (`500/s`), or both with a comma.
///
/// # Errors
/// States the expected form.
pub fn io_limit(text: &str) -> Result<IoLimit, String> {
    let expected = || {
        format!("expected a limit such as `20 MiB/s`, `500/s` or `20 MiB/s, 500/s`, found `{text}`")
    };
    let mut limit = IoLimit {
        bytes_per_s: None,
        operations_per_s: None,
    };
    for part in text.split(',') {
        let amount = part.trim().strip_suffix("/s").ok_or_else(expected)?.trim();
        let is_number = amount.chars().all(|c| c.is_ascii_digit() || c == '_');
        let (place, value) = if is_number {
            let count = amount.replace('_', "").parse().map_err(|_| expected())?;
            (&mut limit.operations_per_s, count)
        } else {
            (
                &mut limit.bytes_per_s,
                size(amount).map_err(|_| expected())?,
            )
        };
        if value == 0 || place.replace(value).is_some() {
            return Err(expected());
        }
    }
    Ok(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_unit_and_fit_into_64_bits() {
        assert_eq!(size("256 MiB").unwrap(), 256 << 20);
        assert_eq!(size("1_0GiB").unwrap(), 10 << 30);
        for text in ["", "256", "MiB", "1.5 GiB", "-1 MiB", "99999999999999 TiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_are_bytes_or_requests_per_second() {
        let limit = |bytes_per_s, operations_per_s| IoLimit {
            bytes_per_s,
            operations_per_s,
        };
        assert_eq!(io_limit("20 MiB/s").unwrap(), limit(Some(20 << 20), None));
        assert_eq!(io_limit("1_500 /s").unwrap(), limit(None, Some(1500)));
        assert_eq!(
            io_limit("1 GiB/s, 500/s").unwrap(),
            limit(Some(1 << 30), Some(500))
        );
        for text in ["", "20 MiB", "0/s", "/s", "5/s, 6/s", "1 MB/s", "-1/s"] {
            assert!(io_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn busy_polling_has_a_limit() {
        assert_eq!(busy_poll("0 s"), Ok(Duration::ZERO));
        // The sign of its own, and the Greek letter.
        for text in ["50 us", "50 \u{b5}s", "50 \u{3bc}s"] {
            assert_eq!(busy_poll(text), Ok(Duration::from_micros(50)));
        }
        assert_eq!(busy_poll("100 ms"), Ok(BUSY_POLL_MAX));
        let refused = busy_poll("0.2 s").unwrap_err();
        assert!(
            refused.contains("at most 100 ms, found `0.2 s`"),
            "{refused}"
        );
        assert!(busy_poll("2").is_err());
    }

    #[track_caller]
    fn check_duration(text: &str, seconds: f64) {
        assert_eq!(duration(text).unwrap().as_secs_f64(), seconds, "{text}");
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        check_duration("20 min", 1200.0);
        check_duration("90s", 90.0);
        check_duration("1 h 30 min", 5400.0);
        check_duration("1.5h", 5400.0);
        check_duration("250 ms", 0.25);
        check_duration("1_000 s", 1000.0);
    }

    #[test]
    fn what_is_too_long_is_not_called_unreadable() {
        check_duration("8784 h", LONGEST_S);
        let endless = format!("{} s", "9".repeat(400));
        for text in ["8785 h", "99999999999 h", &endless] {
            let refused = duration(text).unwrap_err();
            assert!(refused.starts_with("expected at most 8784 h"), "{refused}");
        }
    }

    #[test]
    fn stalls_are_written_as_they_are_read() {
        for text in ["1 s every 4 s", "0.25 s every 2 s to 6.5 s"] {
            assert_eq!(stalls(text).unwrap().to_string(), text);
        }
        assert_eq!(
            stalls("500 ms every 1 min").unwrap().to_string(),
            "0.5 s every 60 s"
        );
        for (text, part) in [
            ("1 s", "expected stalls such as `1 s every 4 s`"),
            ("1 every 4 s", "expected a duration"),
            ("1 s every 6 s to 2 s", "the smaller bound first"),
            ("1 s every 2 s to", "expected a duration"),
        ] {
            let refused = stalls(text).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_no_duration() {
        for text in [
            "",
            "20",
            "min",
            "20 parsecs",
            "-5 s",
            "1e400 s",
            "99999999999 h",
            "5 s foo",
            "…",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_percentages_or_fractions() {
        assert_eq!(share("2 %").unwrap(), 0.02);
        assert_eq!(share("2%").unwrap(), 0.02);
        assert_eq!(share("0.02").unwrap(), 0.02);
        assert!(share("two").is_err());
    }
}
