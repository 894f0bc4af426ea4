//! What a value is replaced by, chosen by its content alone.

use std::collections::{BTreeMap, HashSet};

use super::KEY_BYTES;
use super::chain::MapKey;
use super::dates::DateMap;
use super::numbers::{NumberMap, Plain};
use super::text::{replace, replace_bits, replace_bytes, replace_hex, replace_ipv4};

/// Values that say no more than yes, no or nothing, and words that types of dates and numbers know.
const KEPT: [&str; 18] = [
    "t",
    "f",
    "y",
    "n",
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "null",
    "now",
    "today",
    "epoch",
    "infinity",
    "-infinity",
    "nan",
    "-",
];
/// Longest of them, and of names and listed values that are looked up, bytes.
const KEPT_BYTES_MAX: usize = 256;
/// Shortest text that counts as hexadecimal, bytes.
const HEX_BYTES_MIN: usize = 8;
/// Shortest text that counts as base64, bytes.
const BASE64_BYTES_MIN: usize = 40;
/// JSON within strings of JSON is replaced to this depth; deeper it is text.
const JSON_DEPTH_MAX: u32 = 2;

/// Forms of values that were replaced otherwise than a reader may expect, and how many there were.
pub type Notes = BTreeMap<&'static str, u64>;

/// Note: JSON.
const JSON: &str = "JSON: its strings, names and numbers were replaced one by one, its form stays";
/// Note: PHP.
const PHP: &str = "serialised PHP: replaced as text, so its lengths no longer fit and applications cannot read it";
/// Note: base64.
const BASE64: &str = "base64: replaced as text, so what it encodes is no longer valid";
/// Note: long numbers.
const LONG: &str = "numbers of more than 64 bits: replaced digit by digit, without their order";
/// Note: fractions.
const FRACTIONS: &str =
    "numbers with a fraction: the whole part keeps its order, the fraction does not";
/// Note: growth.
const LONGER: &str = "numbers as text with a digit more than before: they may not fit their column";

/// Replaces values by a key.
pub struct Replacer {
    text: MapKey,
    hex: MapKey,
    bytes: MapKey,
    fractions: MapKey,
    numbers: NumberMap,
    dates: DateMap,
    kept: HashSet<Vec<u8>>,
    notes: Notes,
}

impl Replacer {
    /// The replacer of a key.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        let derive = |purpose: &str| {
            MapKey::derive(key, &format!("dbduel 2026-11 capture anonymise: {purpose}"))
        };
        Replacer {
            text: derive("text"),
            hex: derive("hexadecimal digits"),
            bytes: derive("bytes"),
            fractions: derive("fractions"),
            numbers: NumberMap::new(&derive("numbers")),
            dates: DateMap::new(&derive("dates")),
            kept: KEPT.iter().map(|word| word.as_bytes().to_vec()).collect(),
            notes: Notes::new(),
        }
    }

    /// From now on a value that is equal to this one but for its case stays: a name of the schema, or a value that a type lists.
    pub fn keep(&mut self, value: &[u8]) {
        if value.len() <= KEPT_BYTES_MAX {
            self.kept.insert(value.to_ascii_lowercase());
        }
    }

    /// What was replaced otherwise than a reader may expect.
    #[must_use]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// What instants are shifted by, nanoseconds.
    pub(super) fn offset_ns(&self) -> i64 {
        self.dates.offset_ns()
    }

    fn note(&mut self, what: &'static str) {
        *self.notes.entry(what).or_default() += 1;
    }

    fn is_kept(&self, value: &[u8]) -> bool {
        value.len() <= KEPT_BYTES_MAX
            && match value.iter().any(u8::is_ascii_uppercase) {
                true => self.kept.contains(value.to_ascii_lowercase().as_slice()),
                false => self.kept.contains(value),
            }
    }

    /// Appends the replacement of a value, given as its bytes: those of a string, a prepared statement's, or a field of COPY.
    pub fn value(&mut self, value: &[u8], out: &mut Vec<u8>) {
        self.value_within(value, 0, out);
    }

    fn value_within(&mut self, value: &[u8], depth: u32, out: &mut Vec<u8>) {
        if self.is_kept(value) {
            out.extend_from_slice(value);
            return;
        }
        let is_done = match value.first() {
            None => true,
            Some(b'0'..=b'9' | b'-') => self.number_or_date(value, out),
            Some(b'\\') => self.bytea(value, out),
            Some(b'{' | b'[') => self.json(value, depth, out),
            Some(b'$') => self.json_path(value, out),
            Some(_) => false,
        };
        if is_done {
            return;
        }
        if is_hex(value) {
            return replace_hex(value, &self.hex, out);
        }
        match std::str::from_utf8(value) {
            Ok(text) => {
                self.note_text(value);
                replace(text, &self.text, out);
            }
            Err(_) => replace_bytes(value, &self.bytes, out),
        }
    }

    fn number_or_date(&mut self, value: &[u8], out: &mut Vec<u8>) -> bool {
        if self.dates.replace(value, out)
            || self.dates.replace_number(value, out)
            || self.dates.replace_time(value, out)
            || replace_ipv4(value, &self.text, out)
        {
            return true;
        }
        let unsigned = value.strip_prefix(b"-").unwrap_or(value);
        if Plain::parse(unsigned).is_none() {
            return false;
        }
        let before = out.len();
        out.extend_from_slice(&value[..value.len() - unsigned.len()]);
        self.number(unsigned, out);
        if out.len() - before > value.len() {
            self.note(LONGER);
        }
        true
    }

    /// Appends the replacement of a number without a sign: digits, and maybe a point, a fraction and an exponent.
    pub(super) fn number(&mut self, number: &[u8], out: &mut Vec<u8>) {
        let is_exponent = |byte: &u8| matches!(byte, b'e' | b'E');
        let mantissa = number.iter().position(is_exponent);
        let (mantissa, exponent) = number.split_at(mantissa.unwrap_or(number.len()));
        let Some(plain) = Plain::parse(mantissa) else {
            // Such as .5 or 007, or 1_000 of PostgreSQL.
            let text = String::from_utf8_lossy(mantissa);
            replace(&text, &self.fractions, out);
            out.extend_from_slice(exponent);
            return;
        };
        if plain.fraction.is_none() && self.dates.replace_number(number, out) {
            return;
        }
        match plain.value() {
            Some(value) => {
                let replaced = self.numbers.replace(value);
                out.extend_from_slice(replaced.to_string().as_bytes());
            }
            None => {
                self.note(LONG);
                replace(&String::from_utf8_lossy(plain.whole), &self.text, out);
            }
        }
        if let Some(fraction) = plain.fraction {
            out.push(b'.');
            self.fraction(plain.whole, fraction, out);
        }
        out.extend_from_slice(exponent);
    }

    /// The digits behind a point. Zeros at the end stay, so that 1.5 and 1.50 remain equal.
    fn fraction(&mut self, whole: &[u8], fraction: &[u8], out: &mut Vec<u8>) {
        let zeros = fraction.iter().rev().take_while(|byte| **byte == b'0');
        let (digits, zeros) = fraction.split_at(fraction.len() - zeros.count());
        if !digits.is_empty() {
            self.note(FRACTIONS);
            // The whole part decides as well; what replaces it here is dropped.
            let text = [whole, b".", digits].concat();
            let from = out.len();
            replace(&String::from_utf8_lossy(&text), &self.fractions, out);
            out.drain(from..=from + whole.len());
            // A zero at the end would make another number of it.
            if let Some(last) = out.last_mut()
                && *last == b'0'
            {
                *last = digits[digits.len() - 1];
            }
        }
        out.extend_from_slice(zeros);
    }

    /// Appends the replacement of bytes that are written as hexadecimal digits; false where their number is odd or others are among them.
    pub(super) fn hex_bytes(&mut self, digits: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(bytes) = decoded_hex(digits) else {
            return false;
        };
        let mut replaced = Vec::with_capacity(bytes.len());
        self.value(&bytes, &mut replaced);
        let is_capital = digits.iter().any(u8::is_ascii_uppercase);
        for byte in replaced {
            let pair = match is_capital {
                true => format!("{byte:02X}"),
                false => format!("{byte:02x}"),
            };
            out.extend_from_slice(pair.as_bytes());
        }
        true
    }

    /// Appends the replacement of the digits 0 and 1.
    pub(super) fn bits(&self, bits: &[u8], out: &mut Vec<u8>) {
        replace_bits(bits, &self.bytes, out);
    }

    /// `\x…`, as PostgreSQL writes bytes.
    fn bytea(&mut self, value: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(digits) = value.strip_prefix(b"\\x") else {
            return false;
        };
        let before = out.len();
        out.extend_from_slice(b"\\x");
        let is_done = self.hex_bytes(digits, out);
        if !is_done {
            out.truncate(before);
        }
        is_done
    }

    fn json(&mut self, value: &[u8], depth: u32, out: &mut Vec<u8>) -> bool {
        let parsed: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(value);
        if parsed.is_err() || depth >= JSON_DEPTH_MAX {
            return false;
        }
        let before = out.len();
        let is_done = self.json_tokens(value, depth, out).is_some();
        match is_done {
            true => self.note(JSON),
            false => out.truncate(before),
        }
        is_done
    }

    /// The parts of a text that is known to be JSON.
    fn json_tokens(&mut self, value: &[u8], depth: u32, out: &mut Vec<u8>) -> Option<()> {
        let mut at = 0;
        while let Some(byte) = value.get(at) {
            let rest = &value[at..];
            let length = match byte {
                b'"' => {
                    let length = json_string_length(rest)?;
                    let text: String = serde_json::from_slice(&rest[..length]).ok()?;
                    let mut replaced = Vec::with_capacity(text.len());
                    self.value_within(text.as_bytes(), depth + 1, &mut replaced);
                    let replaced = String::from_utf8(replaced).ok()?;
                    out.extend_from_slice(&serde_json::to_vec(&replaced).ok()?);
                    length
                }
                b'0'..=b'9' => {
                    let is_number = |byte: &&u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
                    let length = rest.iter().take_while(is_number).count();
                    self.number(&rest[..length], out);
                    length
                }
                byte => {
                    out.push(*byte);
                    1
                }
            };
            at += length;
        }
        Some(())
    }

    /// A path in JSON, `$.name[0]`: its names are replaced as those in the documents are.
    fn json_path(&mut self, value: &[u8], out: &mut Vec<u8>) -> bool {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.[]*$\"".contains(byte);
        let is_path =
            matches!(value, [b'$'] | [b'$', b'.' | b'[', ..]) && value.iter().all(is_part);
        if !is_path {
            return false;
        }
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let mut rest = value;
        while let Some(first) = rest.first() {
            let length = rest.iter().take_while(|byte| is_name(byte)).count();
            match length {
                0 => out.push(*first),
                _ => self.value_within(&rest[..length], JSON_DEPTH_MAX, out),
            }
            rest = &rest[length.max(1)..];
        }
        true
    }

    fn note_text(&mut self, value: &[u8]) {
        if is_php(value) {
            self.note(PHP);
        } else if is_base64(value) {
            self.note(BASE64);
        }
    }
}

/// Hexadecimal digits with a letter, or an identifier such as a UUID or an address of IPv6.
fn is_hex(value: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b':');
    value.len() >= HEX_BYTES_MIN
        && value.iter().all(is_part)
        && value.iter().any(u8::is_ascii_alphabetic)
        && value.iter().any(u8::is_ascii_digit)
}

fn is_php(value: &[u8]) -> bool {
    matches!(value, [b'a' | b'O' | b's', b':', b'0'..=b'9', ..])
        && matches!(value.last(), Some(b'}' | b';'))
}

fn is_base64(value: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte);
    value.len() >= BASE64_BYTES_MIN && value.len().is_multiple_of(4) && value.iter().all(is_part)
}

fn decoded_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

/// Bytes of the string at the beginning of a text in JSON, quotes included.
fn json_string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replacer() -> Replacer {
        Replacer::new(&[7; KEY_BYTES])
    }

    fn replaced(replacer: &mut Replacer, value: &str) -> String {
        let mut out = Vec::new();
        replacer.value(value.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_number_is_the_same_as_text_as_without_quotes_and_among_json() {
        let mut replacer = replacer();
        let text = replaced(&mut replacer, "123456");
        let mut bare = Vec::new();
        replacer.number(b"123456", &mut bare);
        assert_eq!(text.as_bytes(), bare);
        assert_eq!(replaced(&mut replacer, "-123456"), format!("-{text}"));
        let json = replaced(&mut replacer, "[123456, -123456]");
        assert_eq!(json, format!("[{text}, -{text}]"));
        let price = replaced(&mut replacer, "123456.50");
        assert!(price.starts_with(&format!("{text}.")) && price.ends_with('0'));
        assert_eq!(
            price.trim_end_matches('0'),
            replaced(&mut replacer, "123456.5")
        );
        assert_eq!(replaced(&mut replacer, "12.00"), "12.00");
        assert_ne!(replaced(&mut replacer, "12.34"), "12.34");
    }

    #[test]
    fn every_form_stays_one() {
        let mut replacer = replacer();
        replacer.keep(b"Active");
        assert_eq!(replaced(&mut replacer, "active"), "active");
        assert_eq!(replaced(&mut replacer, "TRUE"), "TRUE");
        assert_eq!(replaced(&mut replacer, ""), "");
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        let hidden = replaced(&mut replacer, uuid);
        assert!(is_hex(hidden.as_bytes()) && hidden != uuid);
        let bytes = replaced(&mut replacer, "\\xdeadbeef00ff");
        assert!(bytes.starts_with("\\x") && bytes.len() == 14 && bytes != "\\xdeadbeef00ff");
        let mail = replaced(&mut replacer, "ann.lee@shop.example");
        assert_eq!((mail.len(), &mail[3..4], &mail[7..8]), (20, ".", "@"));
        let document = r#"{"name": "Ann \"x\" é", "tags": ["true", true, null, 1.5e3], "nested": "{\"name\": 1}"}"#;
        let hidden = replaced(&mut replacer, document);
        let parsed: serde_json::Value = serde_json::from_str(&hidden).unwrap();
        let name = replaced(&mut replacer, "name");
        assert!(parsed.get(&name).is_some() && !hidden.contains("Ann"));
        assert_eq!(replaced(&mut replacer, "$.name[0]"), format!("$.{name}[0]"));
        // A password's hash is no path.
        assert!(!replaced(&mut replacer, "$P$Bsecret.hash").contains("secret"));
        replaced(&mut replacer, "a:1:{s:5:\"hello\";i:1;}");
        replaced(&mut replacer, &"QUJD".repeat(12));
        replaced(&mut replacer, "99999999999999999999999");
        for note in [JSON, PHP, BASE64, LONG] {
            assert!(replacer.notes().contains_key(note), "{note}");
        }
    }

    #[test]
    fn bytes_as_digits_are_what_they_are_as_text() {
        let mut replacer = replacer();
        let text = replaced(&mut replacer, "secret");
        let mut digits = Vec::new();
        assert!(replacer.hex_bytes(b"736563726574", &mut digits));
        assert_eq!(decoded_hex(&digits).unwrap(), text.as_bytes());
        assert!(!replacer.hex_bytes(b"7", &mut digits));
    }
}
