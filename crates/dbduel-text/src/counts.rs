//! Counts for readers: the one formatter for messages, findings and reports.

/// A count with thousands separated: `12,346`.
#[must_use]
pub fn of(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with what it counts: `1 block`, `12,346 blocks`, `2 classes`. For nouns whose plural is an s, or es after an s.
#[must_use]
pub fn things(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ if one.ends_with('s') => format!("{} {one}es", of(count)),
        _ => format!("{} {one}s", of(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (value, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (132_377, "132,377"),
            (5_089_491, "5,089,491"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(of(value), expected);
        }
    }

    #[test]
    fn one_thing_is_no_several() {
        assert_eq!(things(0, "slice"), "0 slices");
        assert_eq!(things(1, "slice"), "1 slice");
        assert_eq!(things(1_200, "slice"), "1,200 slices");
        assert_eq!(things(2, "class"), "2 classes");
    }
}
