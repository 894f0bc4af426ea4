//! Dates: one keyed offset of whole weeks for all, so that order, distances and days of the week stay.

use jiff::ToSpan as _;
use jiff::civil::Date;

use super::chain::MapKey;

/// The offset is at least so many weeks into the past.
const WEEKS_MIN: u16 = 26;
/// Offsets.
const WEEKS: u16 = 235;
/// Days of a year, to shift years without a day.
const YEAR_DAYS: i32 = 365;

/// Dates that stand for none, which stay.
const KEPT: [&[u8]; 5] = [
    b"9999-12-31",
    b"1970-01-01",
    b"1000-01-01",
    b"0001-01-01",
    b"1901-01-01",
];
/// Years of numbers that are times, such as 20261128093000.
const NUMBER_YEARS: std::ops::RangeInclusive<i16> = 1900..=2100;

/// A map of dates.
pub(super) struct DateMap {
    days: i32,
    key: MapKey,
}

/// The number that these digits are.
fn digits(text: &[u8]) -> Option<i16> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok()?;
    is_number.then(|| text.parse().ok()).flatten()
}

impl DateMap {
    pub(super) fn new(key: &MapKey) -> Self {
        let mut random = [0; 2];
        key.fill(&mut random);
        let weeks = WEEKS_MIN + u16::from_le_bytes(random) % WEEKS;
        DateMap {
            days: -7 * i32::from(weeks),
            key: key.clone(),
        }
    }

    /// What instants are shifted by, nanoseconds.
    pub(super) fn offset_ns(&self) -> i64 {
        i64::from(self.days) * 86_400_000_000_000
    }

    fn shifted(&self, year: i16, month: i16, day: i16) -> Option<Date> {
        let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
        date.checked_add(self.days.days())
            .ok()
            .filter(|date| date.year() >= 1)
    }

    /// Appends the replacement of a date, or of a time with one; false, with nothing appended, where the text is none.
    pub(super) fn replace(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let (Some(date), Some(rest)) = (text.get(..10), text.get(10..)) else {
            return false;
        };
        if date[4] != b'-' || date[7] != b'-' || !is_time_behind_date(rest) {
            return false;
        }
        let parts = [digits(&date[..4]), digits(&date[5..7]), digits(&date[8..])];
        let [Some(year), Some(month), Some(day)] = parts else {
            return false;
        };
        if year == 0 || KEPT.contains(&date) {
            out.extend_from_slice(text);
            return true;
        }
        if month == 0 || day == 0 {
            let year = i32::from(year) + self.days / YEAR_DAYS;
            out.extend_from_slice(format!("{:04}", year.max(1)).as_bytes());
            out.extend_from_slice(&text[4..]);
            return true;
        }
        let Some(date) = self.shifted(year, month, day) else {
            return false;
        };
        out.extend_from_slice(date.to_string().as_bytes());
        out.extend_from_slice(rest);
        true
    }

    /// The same for a time as a number of 14 digits.
    pub(super) fn replace_number(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        if text.len() != 14 {
            return false;
        }
        let part = |from: usize, to: usize| digits(&text[from..to]);
        let (Some(year), Some(month), Some(day)) = (part(0, 4), part(4, 6), part(6, 8)) else {
            return false;
        };
        let is_time = part(8, 10).is_some_and(|hour| hour < 24)
            && part(10, 12).is_some_and(|minute| minute < 60)
            && part(12, 14).is_some_and(|second| second < 60);
        if !is_time || !NUMBER_YEARS.contains(&year) {
            return false;
        }
        let Some(date) = self.shifted(year, month, day) else {
            return false;
        };
        let date = date.to_string().replace('-', "");
        out.extend_from_slice(date.as_bytes());
        out.extend_from_slice(&text[8..]);
        true
    }

    /// Appends the replacement of a time of the day or a duration, `HH:MM:SS`: the hours stay. False where the text is none.
    pub(super) fn replace_time(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let hours = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let Some([b':', m1, m2, b':', s1, s2]) = text.get(hours..hours + 6) else {
            return false;
        };
        let (Some(minute), Some(second)) = (digits(&[*m1, *m2]), digits(&[*s1, *s2])) else {
            return false;
        };
        let fraction = &text[hours + 6..];
        let is_fraction = match fraction.split_first() {
            None => true,
            Some((b'.', digits)) => digits.iter().all(u8::is_ascii_digit),
            Some(_) => false,
        };
        if !(1..=3).contains(&hours) || minute > 59 || second > 59 || !is_fraction {
            return false;
        }
        let mut random = [0; 4];
        self.key.fill(&mut random);
        let shift = u32::from_le_bytes(random) % 3599 + 1;
        let moved = (minute as u32 * 60 + second as u32 + shift) % 3600;
        out.extend_from_slice(&text[..hours]);
        out.extend_from_slice(format!(":{:02}:{:02}", moved / 60, moved % 60).as_bytes());
        out.extend_from_slice(fraction);
        true
    }
}

/// True for what may follow a date: nothing, or a time of the day, with a zone or without.
fn is_time_behind_date(rest: &[u8]) -> bool {
    let Some((first, time)) = rest.split_first() else {
        return true;
    };
    let digit = |place: usize| time.get(place).is_some_and(u8::is_ascii_digit);
    let is_time = digit(0) && digit(1) && time.get(2) == Some(&b':') && digit(3) && digit(4);
    let is_known = |byte: &u8| byte.is_ascii_digit() || b":.+-Z ".contains(byte);
    let end = time.strip_suffix(b"UTC").unwrap_or(time);
    matches!(first, b' ' | b'T') && is_time && end.iter().all(is_known) && time.len() <= 30
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> DateMap {
        DateMap::new(&MapKey::derive(&[5; 32], "test"))
    }

    fn replaced(text: &str) -> Option<String> {
        let mut out = Vec::new();
        let is_date = map().replace(text.as_bytes(), &mut out);
        is_date.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn dates_move_by_one_number_of_weeks() {
        let map = map();
        let distance = |text: &str| {
            let one: Date = text.parse().unwrap();
            let other: Date = replaced(text).unwrap().parse().unwrap();
            (other - one).get_days()
        };
        let days = distance("2026-11-28");
        assert!(days % 7 == 0 && days < -180);
        assert_eq!(i64::from(days) * 86_400_000_000_000, map.offset_ns());
        for text in ["2024-02-29", "2000-01-01", "1956-03-01"] {
            assert_eq!(distance(text), days);
        }
        for text in [
            "2026-11-28 09:30:00",
            "2026-11-28T09:30:00.5Z",
            "2026-11-28 09:30:00+02:00",
        ] {
            let moved = replaced(text).unwrap();
            assert_eq!(&moved[10..], &text[10..]);
            assert_eq!(moved[..10], replaced("2026-11-28").unwrap());
        }
        assert!(replaced("2026-00-00").unwrap().ends_with("-00-00"));
        for text in [
            "0000-00-00",
            "9999-12-31",
            "0000-00-00 00:00:00",
            "1970-01-01 00:00:01",
        ] {
            assert_eq!(replaced(text).as_deref(), Some(text));
        }
        for text in [
            "2026-13-01",
            "2026-11-28x",
            "2026-1-1",
            "26-11-2812",
            "2026-11-28 secret",
            "2026-11-281",
        ] {
            assert_eq!(replaced(text), None, "{text}");
        }
    }

    #[test]
    fn times_stay_times() {
        let mut out = Vec::new();
        assert!(map().replace_time(b"09:30:15.5", &mut out));
        assert!(out.starts_with(b"09:") && out.ends_with(b".5") && out != b"09:30:15.5");
        for text in ["09:30", "9:61:00", "1234:00:00", "09:30:15x", "secret"] {
            assert!(
                !map().replace_time(text.as_bytes(), &mut Vec::new()),
                "{text}"
            );
        }
        out.clear();
        assert!(map().replace_number(b"20261128093000", &mut out));
        assert!(out.ends_with(b"093000") && !out.starts_with(b"20261128"));
        for text in ["20261128", "12345678901234", "20261328093000"] {
            assert!(
                !map().replace_number(text.as_bytes(), &mut Vec::new()),
                "{text}"
            );
        }
    }
}
