//! Text, character by character: each is replaced by one of its class, chosen by the key and by the characters before it.
//!
//! So equal beginnings stay equal, and `LIKE 'ab%'` finds the rows that it found. Letters of both cases shift alike: what a collation without
//! case takes for equal stays equal.

use super::chain::{Chain, MapKey};

/// First and last character of characters that replace each other.
type Range = (u32, u32);

/// What a character is replaced by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Any of these.
    Range(Range),
    /// Any of these that is in no other class.
    Rest(Range),
}

/// Letters other than ASCII by script. Rows of two have capital and small letters in the same order.
const LETTERS: [[Range; 2]; 5] = [
    [(0xc0, 0xd6), (0xe0, 0xf6)],
    [(0xd8, 0xde), (0xf8, 0xfe)],
    [(0x391, 0x3a1), (0x3b1, 0x3c1)],
    [(0x3a3, 0x3a9), (0x3c3, 0x3c9)],
    [(0x410, 0x42f), (0x430, 0x44f)],
];
/// The same of scripts without capital letters, or with both in turn.
const SINGLE: [Range; 12] = [
    (0x100, 0x137),
    (0x14a, 0x177),
    (0x5d0, 0x5ea),
    (0x621, 0x63a),
    (0x641, 0x64a),
    (0x905, 0x939),
    (0xe01, 0xe2e),
    (0x3041, 0x3094),
    (0x30a1, 0x30f4),
    (0x3400, 0x4dbf),
    (0x4e00, 0x9fff),
    (0xac00, 0xd7a3),
];
/// Other characters than ASCII change within groups of so many: their last byte in UTF-8.
const GROUP: u32 = 64;

/// A character's class, and what stands for it in the chain.
fn class_of(character: char) -> (Option<Class>, u32) {
    let code = character as u32;
    let range = |first: char, last: char| Some(Class::Range((first as u32, last as u32)));
    match character {
        '0'..='9' => return (range('0', '9'), code),
        'a'..='z' => return (range('a', 'z'), code),
        'A'..='Z' => return (range('A', 'Z'), code + 0x20),
        '\0'..='\u{7f}' => return (None, code),
        _ if character.is_whitespace() || character.is_control() => return (None, code),
        _ => {}
    }
    let holds = |range: &Range| (range.0..=range.1).contains(&code);
    for [capital, small] in LETTERS {
        if holds(&capital) {
            return (Some(Class::Range(capital)), code - capital.0 + small.0);
        }
        if holds(&small) {
            return (Some(Class::Range(small)), code);
        }
    }
    let first = code / GROUP * GROUP;
    let single = SINGLE.iter().find(|range| holds(range));
    let class = match single {
        Some(range) => Class::Range(*range),
        None => Class::Rest((first, first + GROUP - 1)),
    };
    (Some(class), code)
}

fn shifted(code: u32, (first, last): Range, shift: u32) -> u32 {
    first + (code - first + shift) % (last - first + 1)
}

/// The character that replaces another one at this place of a chain.
fn replacement(character: char, class: Class, chain: &Chain<'_>) -> char {
    let (Class::Range(range) | Class::Rest(range)) = class;
    let shift = chain.shift(range.1 - range.0 + 1);
    let mut code = character as u32;
    loop {
        code = shifted(code, range, shift);
        // Comes back to the character itself at last. No group has surrogates.
        let found = char::from_u32(code).unwrap_or(character);
        if matches!(class, Class::Range(_)) || class_of(found).0 == Some(class) {
            return found;
        }
    }
}

/// Appends the replacement of a text.
pub(super) fn replace(text: &str, key: &MapKey, out: &mut Vec<u8>) {
    let mut chain = Chain::new(key);
    let mut encoded = [0; 4];
    let mut characters = text.chars().peekable();
    // Leading zeros stay, so that no number's replacement is the same.
    while characters.peek() == Some(&'0') {
        characters.next();
        chain.pass('0' as u32);
        out.push(b'0');
    }
    while let Some(character) = characters.next() {
        let (class, folded) = class_of(character);
        let replaced = class.map_or(character, |class| replacement(character, class, &chain));
        out.extend_from_slice(replaced.encode_utf8(&mut encoded).as_bytes());
        // In a pattern a backslash before a wildcard stands for nothing.
        let is_escape = character == '\\' && matches!(characters.peek(), Some('%' | '_'));
        if !is_escape {
            chain.pass(folded);
        }
    }
}

/// Appends the replacement of hexadecimal digits: digits and the letters from a to f stay so. Other characters stay.
pub(super) fn replace_hex(text: &[u8], key: &MapKey, out: &mut Vec<u8>) {
    let mut chain = Chain::new(key);
    for byte in text {
        let code = u32::from(*byte);
        let replaced = match byte {
            b'0'..=b'9' => shifted(code, (0x30, 0x39), chain.shift(10)),
            b'a'..=b'f' => shifted(code, (0x61, 0x66), chain.shift(6)),
            b'A'..=b'F' => shifted(code, (0x41, 0x46), chain.shift(6)),
            _ => code,
        };
        out.push(replaced as u8);
        chain.pass(u32::from(byte.to_ascii_lowercase()));
    }
}

/// Appends the replacement of bytes that are no text: each becomes any other.
pub(super) fn replace_bytes(bytes: &[u8], key: &MapKey, out: &mut Vec<u8>) {
    let mut chain = Chain::new(key);
    for byte in bytes {
        out.push(byte.wrapping_add(chain.shift(256) as u8));
        chain.pass(u32::from(*byte));
    }
}

/// Appends the replacement of the digits 0 and 1.
pub(super) fn replace_bits(bits: &[u8], key: &MapKey, out: &mut Vec<u8>) {
    let mut chain = Chain::new(key);
    for bit in bits {
        out.push(match bit {
            b'0' | b'1' => bit ^ chain.bit(),
            other => *other,
        });
        chain.pass(u32::from(*bit));
    }
}

/// Appends the replacement of an address of IPv4: each part keeps its number of digits. Empty where it is none.
pub(super) fn replace_ipv4(text: &[u8], key: &MapKey, out: &mut Vec<u8>) -> bool {
    let mut parts = [0_u32; 4];
    let mut found = text.split(|byte| *byte == b'.');
    for part in &mut parts {
        let number = found.next().and_then(|digits| {
            let is_plain = digits.iter().all(u8::is_ascii_digit) && digits.len() <= 3;
            let is_canonical = digits == b"0" || digits.first().is_some_and(|first| *first != b'0');
            let text = std::str::from_utf8(digits).ok()?;
            (is_plain && is_canonical)
                .then(|| text.parse::<u8>().ok())
                .flatten()
        });
        match number {
            Some(number) => *part = u32::from(number),
            None => return false,
        }
    }
    if found.next().is_some() {
        return false;
    }
    let mut chain = Chain::new(key);
    for (place, part) in parts.into_iter().enumerate() {
        let class = match part {
            0..=9 => (0, 9),
            10..=99 => (10, 99),
            _ => (100, 255),
        };
        let replaced = shifted(part, class, chain.shift(class.1 - class.0 + 1));
        chain.pass(part);
        if place > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(replaced.to_string().as_bytes());
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> MapKey {
        MapKey::derive(&[byte; 32], "test")
    }

    fn replaced(text: &str) -> String {
        let mut out = Vec::new();
        replace(text, &key(1), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The class of each character.
    fn shape(text: &str) -> Vec<(usize, Option<Class>)> {
        let characters = text.chars();
        characters
            .map(|character| (character.len_utf8(), class_of(character).0))
            .collect()
    }

    #[test]
    fn case_prefixes_and_signs_stay() {
        let name = replaced("Admin-7 Straße");
        assert_eq!(name.to_lowercase(), replaced("admin-7 straße"));
        assert_eq!(&name[5..6], "-");
        assert!(name.starts_with(&replaced("Admin")));
        assert_ne!(&name[..5], "Admin");
        // A pattern's escape before a wildcard is none of the text's.
        assert_eq!(
            replaced("wp\\_user%").replace('\\', ""),
            replaced("wp_user%")
        );
        assert!(replaced("wp_user_roles").starts_with(&replaced("wp_user")));
        assert!(replaced("0071").starts_with("00"));
        let mut other = Vec::new();
        replace("Admin", &key(2), &mut other);
        assert_ne!(other, replaced("Admin").as_bytes());
    }

    #[test]
    fn bytes_digits_and_addresses_keep_their_form() {
        let mut out = Vec::new();
        replace_hex(b"550e8400-e29b-41d4-A716-446655440000", &key(1), &mut out);
        assert!(
            out.iter()
                .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
        );
        assert_eq!(out.len(), 36);
        out.clear();
        assert!(replace_ipv4(b"192.168.1.25", &key(1), &mut out));
        let text = String::from_utf8(out).unwrap();
        let parts: Vec<u8> = text.split('.').map(|part| part.parse().unwrap()).collect();
        assert_eq!((parts.len(), text.len()), (4, 12));
        for other in ["192.168.1", "1.2.3.4.5", "01.2.3.4", "1.2.3.400", "a.b.c.d"] {
            assert!(!replace_ipv4(other.as_bytes(), &key(1), &mut Vec::new()));
        }
    }

    proptest! {
        #[test]
        fn length_and_classes_stay_and_no_two_texts_become_one(
            one in "[\\PC\\n]{0,20}", other in "[\\PC\\n]{0,20}",
        ) {
            prop_assert_eq!(shape(&replaced(&one)), shape(&one));
            prop_assert_eq!(replaced(&one).len(), one.len());
            prop_assert_eq!(one == other, replaced(&one) == replaced(&other));
        }

        #[test]
        fn bytes_change_and_come_from_one_only(
            one in proptest::collection::vec(any::<u8>(), 0..20), other in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let map = |bytes: &[u8]| {
                let mut out = Vec::new();
                replace_bytes(bytes, &key(1), &mut out);
                out
            };
            prop_assert!(map(&one).iter().zip(&one).all(|(new, old)| new != old));
            prop_assert_eq!(one == other, map(&one) == map(&other));
        }
    }
}
