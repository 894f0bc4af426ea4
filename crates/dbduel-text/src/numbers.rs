//! Numbers with their units.

use crate::{counts, percent};

/// Ratios that are written as percentages.
pub const NEAR_ONE: std::ops::Range<f64> = 0.5..2.0;

/// Range of multiples with three decimals: with fewer, a difference of a percent would not show.
const DISTINCT: std::ops::Range<f64> = 0.9..1.1;

/// A number with about three significant digits and separated thousands.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "∞".to_owned();
    }
    let size = value.abs();
    let text = match size {
        0.0 => "0".to_owned(),
        _ if size >= 100.0 => counts::of(size.round() as u64),
        _ if size >= 10.0 => format!("{size:.1}"),
        _ if size >= 1.0 => format!("{size:.2}"),
        _ if size >= 0.001 => format!("{size:.3}"),
        _ if size >= 1e-6 => format!("{size:.6}").trim_end_matches('0').to_owned(),
        _ => format!("{size:.1e}"),
    };
    if value < 0.0 {
        format!("−{text}")
    } else {
        text
    }
}

/// A large number with a word for its power of a thousand: `32.6 million`.
#[must_use]
pub fn large(value: f64) -> String {
    for (factor, word) in [(1e12, "trillion"), (1e9, "billion"), (1e6, "million")] {
        if value >= factor {
            return format!("{} {word}", number(value / factor));
        }
    }
    number(value)
}

/// A duration given in microseconds, with a suitable unit.
#[must_use]
pub fn latency(us: f64) -> String {
    let (factor, unit) = latency_unit(us);
    format!("{} {unit}", number(us / factor))
}

/// Microseconds per unit, and a suitable unit for a latency of this size.
#[must_use]
pub fn latency_unit(us: f64) -> (f64, &'static str) {
    match us {
        _ if us >= 1e6 => (1e6, "s"),
        _ if us >= 1e3 => (1e3, "ms"),
        _ => (1.0, "µs"),
    }
}

/// A latency on an axis: `5 ms`, without trailing zeros.
#[must_use]
pub fn latency_tick(us: f64) -> String {
    let (factor, unit) = latency_unit(us * 1.0001);
    format!("{} {unit}", trimmed(us / factor))
}

/// A number on an axis, without trailing zeros.
#[must_use]
pub fn trimmed(value: f64) -> String {
    if value.abs() >= 1000.0 {
        return number(value);
    }
    let text = format!("{value:.3}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number with up to six decimals, for shares close to one: `99.9999`.
#[must_use]
pub fn trimmed_fine(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Units that stay with the number before them.
const UNITS: [&str; 13] = [
    "%", "ns", "µs", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB", "million",
];

/// A non-breaking space.
pub const FIRM_SPACE: char = '\u{a0}';

/// The text with [`FIRM_SPACE`] between every number and its unit.
#[must_use]
pub fn units_kept(text: &str) -> String {
    let mut kept = String::with_capacity(text.len() + 16);
    for (index, word) in text.split(' ').enumerate() {
        let unit = word.trim_end_matches(|end: char| !end.is_alphanumeric() && end != '%');
        let is_after_number = kept.ends_with(|end: char| end.is_ascii_digit());
        match index {
            0 => {}
            _ if is_after_number && UNITS.contains(&unit) => kept.push(FIRM_SPACE),
            _ => kept.push(' '),
        }
        kept.push_str(word);
    }
    kept
}

/// A stretch of time in seconds: `230 ms`, `2.5 s`, `45 s`, `12 min`, `3 h 20 min`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        _ if 0.0 < seconds && seconds < 1.0 => latency(1e6 * seconds),
        0..10 => {
            let tenths = format!("{:.1}", seconds.max(0.0));
            format!("{} s", tenths.trim_end_matches(".0"))
        }
        10..120 => format!("{whole} s"),
        120..7200 => format!("{} min", (whole + 30) / 60),
        _ => {
            let minutes = whole.saturating_add(30) / 60;
            match minutes % 60 {
                0 => format!("{} h", minutes / 60),
                rest => format!("{} h {rest} min", minutes / 60),
            }
        }
    }
}

/// Bytes with a binary unit: `1.95 GiB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let (factor, unit) = bytes_unit(bytes as f64);
    format!("{} {unit}", number(bytes as f64 / factor))
}

/// Mean number of bytes, which need not be whole: `31.4 KiB`, `0.250 B`.
#[must_use]
pub fn bytes_of(value: f64) -> String {
    if value < 1024.0 {
        format!("{} B", number(value))
    } else {
        bytes(value.round() as u64)
    }
}

/// Bytes on an axis: `512 MiB`, without trailing zeros.
#[must_use]
pub fn bytes_tick(value: f64) -> String {
    let (factor, unit) = bytes_unit(value * 1.0001);
    format!("{} {unit}", trimmed(value / factor))
}

/// Bytes per unit, and a suitable binary unit for this many.
#[must_use]
pub fn bytes_unit(value: f64) -> (f64, &'static str) {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut factor = 1.0;
    for unit in &units[..units.len() - 1] {
        if value < 1024.0 * factor {
            return (factor, unit);
        }
        factor *= 1024.0;
    }
    (factor, units[units.len() - 1])
}

/// A ratio for readers: `+4.1 %` near one, `2.41×` far from it.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "∞".to_owned();
    }
    if !NEAR_ONE.contains(&ratio) {
        return multiple(ratio);
    }
    percent::signed(ratio - 1.0)
}

/// A ratio as a multiple: `2.41×`, near one with the digits of a percentage: `0.995×`.
pub fn multiple(ratio: f64) -> String {
    match DISTINCT.contains(&ratio) {
        true => format!("{ratio:.3}×"),
        false => format!("{}×", number(ratio)),
    }
}

/// The ends of a range as they are shown: `0.62 to 2.08`, and one number where both read alike: `0.19`.
#[must_use]
pub fn from_to(first: &str, last: &str) -> String {
    match first == last {
        true => first.to_owned(),
        false => format!("{first} to {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_whose_ends_read_alike_is_one_number() {
        assert_eq!(from_to("0.62", "2.08"), "0.62 to 2.08");
        assert_eq!(from_to("0.19", "0.19"), "0.19");
    }

    #[test]
    fn numbers_are_short_and_readable() {
        for (value, expected) in [
            (0.0, "0"),
            (1234567.4, "1,234,567"),
            (123.4, "123"),
            (12.34, "12.3"),
            (-1.234, "−1.23"),
            (0.01234, "0.012"),
            (0.000_047, "0.000047"),
            (0.000_5, "0.0005"),
        ] {
            assert_eq!(number(value), expected);
        }
        assert_eq!(number(f64::INFINITY), "∞");
        assert_eq!(large(32_570_000.0), "32.6 million");
        assert_eq!(large(12_345.0), "12,345");
    }

    #[test]
    fn ratios_near_one_are_percentages() {
        for (value, expected) in [
            (1.041, "+4.1 %"),
            (0.9965, "−0.35 %"),
            (1.0, "±0.00 %"),
            (2.41, "2.41×"),
            (0.25, "0.250×"),
            (0.005, "0.005×"),
            (0.5, "−50.0 %"),
        ] {
            assert_eq!(ratio(value), expected);
        }
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            units_kept("from 15 ms, or 20 % of 9 seconds in 1 s."),
            "from 15\u{a0}ms, or 20\u{a0}% of 9 seconds in 1\u{a0}s."
        );
    }

    #[test]
    fn durations_and_latencies_choose_their_unit() {
        assert_eq!(duration(45.2), "45 s");
        assert_eq!(duration(0.23), "230 ms");
        assert_eq!(
            [2.0, 2.54, 0.0, 9.96].map(duration),
            ["2 s", "2.5 s", "0 s", "10 s"]
        );
        assert_eq!(duration(750.0), "13 min");
        assert_eq!(duration(12_000.0), "3 h 20 min");
        assert_eq!(latency(830.0), "830 µs");
        assert_eq!(latency(12_345.0), "12.3 ms");
        assert_eq!(bytes(2_100_000_000), "1.96 GiB");
    }
}
