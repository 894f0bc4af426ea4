//! Text from servers, files and records, made safe to show: without terminal control sequences and marks that change
//! the direction of a line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replacement for a character that is not shown.
const STAND_IN: char = '\u{fffd}';

/// Control sequences that reports use for emphasis on a terminal; the last ends each of the others.
pub const ORNAMENTS: [&str; 6] = ["1", "2", "1;32", "1;31", "1;33", "0"];

/// The text with control characters (except line breaks and tabs), direction marks and invisible line ends replaced.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |_| None)
}

/// As [`visible`], but keeps [`ORNAMENTS`].
#[must_use]
pub fn visible_inked(text: &str) -> Cow<'_, str> {
    replaced(text, ornament)
}

/// A JSON document with the same characters written as escapes, which have the same meaning there.
#[must_use]
pub fn escaped_json(document: String) -> String {
    if !document.chars().any(is_unfit) {
        return document;
    }
    let mut escaped = String::with_capacity(document.len());
    for character in document.chars() {
        if is_unfit(character) {
            // All of them are in the basic plane.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// The text, or its first `characters` and an ellipsis where it has more.
#[must_use]
pub fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

fn replaced(text: &str, length_kept: impl Fn(&str) -> Option<usize>) -> Cow<'_, str> {
    if !text.chars().any(is_unfit) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match length_kept(rest) {
            Some(length) => {
                shown.push_str(&rest[..length]);
                length
            }
            None => {
                shown.push(if is_unfit(character) {
                    STAND_IN
                } else {
                    character
                });
                character.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(shown)
}

/// The length of an ornament at the beginning of a text.
fn ornament(text: &str) -> Option<usize> {
    let code = text.strip_prefix("\u{1b}[")?;
    let found = ORNAMENTS.iter().find(|ornament| {
        code.strip_prefix(**ornament)
            .is_some_and(|rest| rest.starts_with('m'))
    })?;
    Some("\u{1b}[m".len() + found.len())
}

fn is_unfit(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Marks of direction, and line ends that are no control characters.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        _ => character.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[31mb\u{7}\r\u{9b}2Jc\u{202e}d\u{2066}e\u{2028}";

    #[test]
    fn nothing_drives_a_terminal_or_turns_a_line() {
        assert_eq!(
            visible(HOSTILE),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}\u{fffd}2Jc\u{fffd}d\u{fffd}e\u{fffd}"
        );
        let harmless = "Grüße,\n\tΩ 数 — ±1 % ▲";
        assert!(matches!(visible(harmless), Cow::Borrowed(same) if same == harmless));
    }

    #[test]
    fn only_ornaments_of_reports_stay() {
        let inked = "\u{1b}[1;32mfaster\u{1b}[0m";
        assert_eq!(visible_inked(inked), inked);
        assert_eq!(visible_inked("\u{1b}[8mx"), "\u{fffd}[8mx");
        assert_eq!(visible_inked("\u{1b}[1;32x"), "\u{fffd}[1;32x");
        assert!(!visible(inked).contains('\u{1b}'));
    }

    #[test]
    fn json_keeps_its_meaning() {
        let document = serde_json::to_string(&[HOSTILE]).unwrap();
        let escaped = escaped_json(document);
        assert!(!escaped.chars().any(is_unfit), "{escaped}");
        assert_eq!(
            serde_json::from_str::<Vec<String>>(&escaped).unwrap(),
            [HOSTILE]
        );
    }
}
