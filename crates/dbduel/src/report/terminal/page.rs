//! Text for a terminal under construction: lines of a width, with or without colour.
//!
//! Knows nothing of what it is about.

use crate::report::{Options, words};
use crate::visible::{ORNAMENTS, visible};

/// Narrower terminals get lines that wrap.
const WIDTH_MIN: usize = 40;
/// Wider lines are hard to read.
const WIDTH_MAX: usize = 120;

/// Text under construction.
pub(in crate::report) struct Page {
    pub(in crate::report) text: String,
    pub(super) width: usize,
    colour: bool,
}

/// The ornaments that a terminal can add.
#[derive(Clone, Copy)]
pub(in crate::report) enum Ink {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warning,
}

impl Page {
    pub(in crate::report) fn new(options: &Options) -> Self {
        Self {
            text: String::new(),
            width: options.width.clamp(WIDTH_MIN, WIDTH_MAX),
            colour: options.colour,
        }
    }

    pub(in crate::report) fn inked(&self, ink: Ink, text: &str) -> String {
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

    pub(in crate::report) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    pub(in crate::report) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A text in lines of the page's width.
    pub(in crate::report) fn wrapped(&mut self, text: &str) {
        for line in wrap(&clean(text), self.width, 0, 0) {
            self.line(&line);
        }
    }

    /// A text as an item of a list, its lines below each other.
    pub(in crate::report) fn item(&mut self, text: &str) {
        for (index, line) in wrap(&clean(text), self.width, 2, 2).iter().enumerate() {
            let start = if index == 0 { "- " } else { "  " };
            self.line(&format!("{start}{line}"));
        }
    }
}

/// A text of one line, without what would let a name in the record drive the terminal.
pub(in crate::report) fn clean(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// Words into lines: the first starts at column `first`, the others at `indent`.
#[must_use]
pub fn wrap(text: &str, width: usize, first: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut column = first;
    for word in words::units_kept(text)
        .split([' ', '\n'])
        .filter(|word| !word.is_empty())
    {
        let length = word.chars().count();
        let is_empty = lines.last().is_none_or(String::is_empty);
        if !is_empty && column + 1 + length > width {
            lines.push(String::new());
            column = indent;
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
                column += 1;
            }
            line.push_str(&word.replace(words::FIRM_SPACE, " "));
            column += length;
        }
    }
    lines
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
}
