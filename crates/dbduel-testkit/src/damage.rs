//! Damage to answers of servers and to files: what is cut short, changed, removed, repeated, put in.
//!
//! All of it is drawn by proptest strategies, so that a property test shrinks it, and [`draw`] draws from a seed for tests that
//! cannot.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Numbers at the borders of what programs take, and texts that stand for numbers or are none.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "1",
    "2",
    "7",
    "1000",
    "100000",
    "1000000",
    "255",
    "256",
    "65536",
    "2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999",
    "0.0",
    "0.5",
    "-0.5",
    "1e-9",
    "1e-320",
    "1e9",
    "1e18",
    "1e19",
    "1e25",
    "1e300",
    "1.7976931348623157e308",
    "-1e300",
    "1e400",
    "NaN",
    "-nan",
    "inf",
    "-inf",
    "Infinity",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "\"x\"",
    "",
];
/// Levels of nesting, on both sides of what parsers allow.
const DEPTHS: &[usize] = &[1, 100, 127, 10_000, 100_000];

/// One damage. An [`Index`] is a place in the bytes, or one of the lines or words.
#[derive(Debug, Clone)]
pub enum Damage {
    /// All behind the place is missing.
    Cut(Index),
    /// Another byte in the place.
    Change(Index, u8),
    /// So many bytes are missing.
    Remove(Index, usize),
    /// These bytes are put in.
    Insert(Index, Vec<u8>),
    /// So many bytes stand there twice.
    Repeat(Index, usize),
    /// Two lines have changed places.
    SwapLines(Index, Index),
    /// So many lines are missing.
    RemoveLines(Index, usize),
    /// So many lines stand there twice.
    RepeatLines(Index, usize),
    /// Another text for a number.
    Number(Index, &'static str),
    /// A copy of another word of the same text for a word.
    Word(Index, Index),
    /// So many opening brackets before a word.
    Nest(Index, usize),
}

impl Damage {
    /// Damages the bytes. Empty ones, and those without what is to be damaged, stay as they are.
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length_all = bytes.len();
        let range = |at: &Index, length: usize| {
            let at = at.index(length_all);
            at..(at + length).min(length_all)
        };
        match self {
            Damage::Cut(at) => bytes.truncate(at.index(length_all)),
            Damage::Change(at, byte) => bytes[at.index(length_all)] = *byte,
            Damage::Remove(at, length) => drop(bytes.drain(range(at, *length))),
            Damage::Insert(at, more) => {
                let at = at.index(length_all);
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Repeat(at, length) => repeat(bytes, range(at, *length)),
            Damage::SwapLines(one, other) => {
                let lines = lines(bytes);
                let mut pair = [one.index(lines.len()), other.index(lines.len())];
                pair.sort_unstable();
                let [first, second] = pair.map(|line| lines[line].clone());
                let second_text = bytes[second.clone()].to_vec();
                let first_text = bytes[first.clone()].to_vec();
                // From behind, so that the first range still holds.
                bytes.splice(second, first_text);
                bytes.splice(first, second_text);
            }
            Damage::RemoveLines(at, count) => {
                let lines = some_lines(bytes, at, *count);
                bytes.drain(lines);
            }
            Damage::RepeatLines(at, count) => {
                let lines = some_lines(bytes, at, *count);
                repeat(bytes, lines);
            }
            Damage::Number(at, text) => {
                let numbers: Vec<Range<usize>> = words(bytes)
                    .into_iter()
                    .filter(|word| is_number(&bytes[word.clone()]))
                    .collect();
                if !numbers.is_empty() {
                    bytes.splice(numbers[at.index(numbers.len())].clone(), text.bytes());
                }
            }
            Damage::Word(at, from) => {
                let words = words(bytes);
                if !words.is_empty() {
                    let copied = bytes[words[from.index(words.len())].clone()].to_vec();
                    bytes.splice(words[at.index(words.len())].clone(), copied);
                }
            }
            Damage::Nest(at, depth) => {
                let words = words(bytes);
                if !words.is_empty() {
                    let at = words[at.index(words.len())].start;
                    bytes.splice(at..at, std::iter::repeat_n(b'[', *depth));
                }
            }
        }
    }
}

fn repeat(bytes: &mut Vec<u8>, range: Range<usize>) {
    let again = bytes[range.clone()].to_vec();
    bytes.splice(range.start..range.start, again);
}

/// Where the lines are, their ends included. One line at least.
fn lines(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut from = 0;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| {
            from += line.len();
            from - line.len()..from
        })
        .collect()
}

fn some_lines(bytes: &[u8], at: &Index, count: usize) -> Range<usize> {
    let lines = lines(bytes);
    let first = at.index(lines.len());
    let last = (first + count.max(1)).min(lines.len()) - 1;
    lines[first].start..lines[last].end
}

/// Where the words are: letters, digits, `_`, `.`, `+` and `-`.
fn words(bytes: &[u8]) -> Vec<Range<usize>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match words.last_mut() {
            Some(word) if is_word(*byte) && word.end == at => word.end = at + 1,
            _ if is_word(*byte) => words.push(at..at + 1),
            _ => {}
        }
    }
    words
}

fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    digits.first().is_some_and(u8::is_ascii_digit)
}

/// Damage to any bytes.
pub fn to_bytes() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        1 => place().prop_map(Damage::Cut),
        6 => (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Change(at, byte)),
        // Lengths and counts break at their borders.
        6 => (place(), select(vec![0, 1, 0x7f, 0x80, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff]))
            .prop_map(|(at, byte)| Damage::Change(at, byte)),
        2 => (place(), 1..8_usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        2 => (place(), vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => (place(), 1..64_usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
    ]
}

/// Damage to text: mostly such that its form remains and what it says does not.
pub fn to_text() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        3 => to_bytes(),
        24 => (place(), select(NUMBERS)).prop_map(|(at, text)| Damage::Number(at, text)),
        6 => (place(), place()).prop_map(|(at, from)| Damage::Word(at, from)),
        2 => (place(), place()).prop_map(|(one, other)| Damage::SwapLines(one, other)),
        2 => (place(), 1..20_usize).prop_map(|(at, count)| Damage::RemoveLines(at, count)),
        2 => (place(), 1..20_usize).prop_map(|(at, count)| Damage::RepeatLines(at, count)),
        1 => (place(), select(DEPTHS)).prop_map(|(at, depth)| Damage::Nest(at, depth)),
    ]
}

/// What the strategy gives for this seed: always the same.
///
/// # Panics
/// When the strategy refuses, which none of this module does.
pub fn draw<S: Strategy>(strategy: &S, seed: u64) -> S::Value {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    match strategy.new_tree(&mut runner) {
        Ok(tree) => tree.current(),
        Err(why) => panic!("the strategy gives nothing: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\nb = -2.5e3, c\n[d]\n";

    #[test]
    fn lines_and_numbers_are_what_is_damaged() {
        let swapped = (0..200).map(|seed| {
            let strategy = (any::<Index>(), any::<Index>());
            let (one, other) = draw(&strategy, seed);
            let mut bytes = TEXT.as_bytes().to_vec();
            Damage::SwapLines(one, other).apply(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let swapped: std::collections::BTreeSet<String> = swapped.collect();
        assert_eq!(swapped.len(), 4, "none, and three pairs: {swapped:?}");
        assert!(swapped.contains("[d]\nb = -2.5e3, c\na = 1\n"));
        let numbers = (0..50).map(|seed| {
            let mut bytes = TEXT.as_bytes().to_vec();
            Damage::Number(draw(&any::<Index>(), seed), "NaN").apply(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let numbers: std::collections::BTreeSet<String> = numbers.collect();
        assert_eq!(
            numbers.into_iter().collect::<Vec<_>>(),
            ["a = 1\nb = NaN, c\n[d]\n", "a = NaN\nb = -2.5e3, c\n[d]\n"]
        );
    }

    #[test]
    fn a_seed_always_gives_the_same_damage_and_any_text_can_be_damaged() {
        for seed in 0..2000 {
            let damages = draw(&vec(to_text(), 1..5), seed);
            for text in ["", "\n", "1", TEXT] {
                let mut bytes = text.as_bytes().to_vec();
                damages.iter().for_each(|damage| damage.apply(&mut bytes));
            }
            let again = draw(&vec(to_text(), 1..5), seed);
            assert_eq!(format!("{damages:?}"), format!("{again:?}"));
        }
    }
}
