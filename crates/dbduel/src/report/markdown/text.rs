//! Pieces of Markdown in which text from outside stays text.

use std::fmt::Write as _;

/// Text that Markdown and HTML leave alone, fit for a cell of a table.
pub(in crate::report) fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A mention of a user, or a link out of bare text.
            '@' => escaped.push_str("&#64;"),
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

/// A row of a table.
pub(super) fn row(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// The head of a table; columns from `numbers_from` on hold numbers.
pub(super) fn head(text: &mut String, cells: &[&str], numbers_from: usize) {
    row(
        text,
        &cells
            .iter()
            .map(|cell| (*cell).to_owned())
            .collect::<Vec<_>>(),
    );
    let rules: Vec<String> = (0..cells.len())
        .map(|index| if index < numbers_from { "---" } else { "---:" }.to_owned())
        .collect();
    row(text, &rules);
}
