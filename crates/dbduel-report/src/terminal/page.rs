//! Text for a terminal under construction: lines of a width, with or without colour.
//!
//! Independent of the report's content.

use dbduel_text::{ORNAMENTS, visible};
use textwrap::core::Word;
use textwrap::{WordSeparator, WordSplitter};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::{Options, words};

/// Narrower terminals get lines that wrap.
const WIDTH_MIN: usize = 40;
/// Wider lines are hard to read.
const WIDTH_MAX: usize = 120;

pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) width: usize,
    colour: bool,
}

/// The ornaments that a terminal can add.
#[derive(Clone, Copy)]
pub(crate) enum Ink {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warning,
}

impl Page {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            text: String::new(),
            width: options.width.clamp(WIDTH_MIN, WIDTH_MAX),
            colour: options.colour,
        }
    }

    pub(crate) fn inked(&self, ink: Ink, text: &str) -> String {
        let [bold, dim, good, bad, warning, end] = ORNAMENTS;
        let code = match ink {
            Ink::Plain => return text.to_owned(),
            _ if !self.colour => return text.to_owned(),
            Ink::Bold => bold,
            Ink::Dim => dim,
            Ink::Good => good,
            Ink::Bad => bad,
            Ink::Warning => warning,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[{end}m")
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A text in lines of the page's width.
    pub(crate) fn wrapped(&mut self, text: &str) {
        self.inked_lines(Ink::Plain, text);
    }

    pub(crate) fn inked_lines(&mut self, ink: Ink, text: &str) {
        for line in wrap(&clean(text), self.width, 0, 0) {
            let line = self.inked(ink, &line);
            self.line(&line);
        }
    }

    /// A text beside its label, its lines below each other.
    pub fn labelled(&mut self, (ink, label): (Ink, &str), (text_ink, text): (Ink, &str)) {
        let indent = columns_of(label);
        let lines = wrap(&clean(text), self.width, indent, indent);
        for (index, line) in lines.iter().enumerate() {
            let start = match index {
                0 => self.inked(ink, label),
                _ => " ".repeat(indent),
            };
            self.line(&format!("{start}{}", self.inked(text_ink, line)));
        }
    }

    /// A text as an item of a list.
    pub(crate) fn item(&mut self, text: &str) {
        self.labelled((Ink::Plain, "- "), (Ink::Plain, text));
    }
}

/// A text as one line, without control sequences that a name in the record could send to the terminal.
pub(crate) fn clean(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// Width of a text on a terminal, columns.
pub(crate) fn columns_of(text: &str) -> usize {
    text.width()
}

/// The text padded with blanks to a number of columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// The beginning of a text that fits into `columns`.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let is_beyond = |(_, character): &(usize, char)| {
        taken += character.width().unwrap_or(0);
        taken > columns
    };
    let end = text.char_indices().find(is_beyond);
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Words into lines: the first starts at column `first`, the others at `indent`. A word longer than a line is not cut.
#[must_use]
pub fn wrap(text: &str, width: usize, first: usize, indent: usize) -> Vec<String> {
    let (first, indent) = (" ".repeat(first), " ".repeat(indent));
    let options = textwrap::Options::new(width)
        .initial_indent(&first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_separator(WordSeparator::Custom(words_of))
        .word_splitter(WordSplitter::NoHyphenation);
    let text = words::units_kept(text);
    let lines = textwrap::wrap(&text, options).into_iter();
    lines
        .map(|line| line.trim().replace(words::FIRM_SPACE, " "))
        .collect()
}

/// Words end at spaces, and between two letters that are two columns wide: Chinese and Japanese have no spaces.
fn words_of(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let is_wide = |character: char| character.is_alphanumeric() && character.width() == Some(2);
    let letters = line.char_indices().zip(line.chars().skip(1));
    let ends = letters.filter_map(move |((at, letter), next)| {
        let is_end = letter == ' ' && next != ' ' || is_wide(letter) && is_wide(next);
        is_end.then(|| at + letter.len_utf8())
    });
    let mut start = 0;
    Box::new(ends.chain([line.len()]).map(move |end| {
        let word = Word::from(&line[start..end]);
        start = end;
        word
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            wrap("between 15 ms, and 20 % (of 9 s).", 12, 0, 0),
            ["between", "15 ms, and", "20 % (of", "9 s)."]
        );
        assert_eq!(wrap("a b", 2, 0, 0), ["a", "b"]);
    }

    #[test]
    fn chinese_breaks_between_letters_of_two_columns() {
        assert_eq!(wrap("双写缓冲多大？", 8, 0, 2), ["双写缓冲", "多大？"]);
        assert_eq!(cut("双写缓冲", 5), "双写");
        assert_eq!(padded("双写", 6), "双写  ");
    }
}
