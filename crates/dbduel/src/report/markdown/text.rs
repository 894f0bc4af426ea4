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

/// A sentence of ours: what it has in back quotes is code, the rest is [`plain`].
pub(in crate::report) fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // Back quotes that are not in pairs quote nothing.
    if parts.len().is_multiple_of(2) {
        return plain(text);
    }
    let mut written = String::with_capacity(text.len());
    for (index, part) in parts.iter().enumerate() {
        let is_code = index % 2 == 1;
        // What HTML or a link could be made of is escaped, which code would undo.
        let is_text = part.trim().is_empty()
            || part
                .chars()
                .any(|c| c.is_control() || "<>&@|[]\\".contains(c));
        match (is_code, is_text) {
            (true, false) => written.push_str(&format!("`{part}`")),
            (true, true) => written.push_str(&format!("\\`{}\\`", plain(part))),
            (false, _) => written.push_str(&plain(part)),
        }
    }
    written
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_code_and_the_rest_stays_text() {
        for (text, expected) in [
            ("`a_b` writes *less*", "`a_b` writes \\*less\\*"),
            ("`<script>` & <b>", "\\`&lt;script&gt;\\` &amp; &lt;b&gt;"),
            ("an odd ` and _", "an odd \\` and \\_"),
            ("`` twice ``", "\\`\\` twice \\`\\`"),
            ("`a\nb`", "\\`a b\\`"),
        ] {
            assert_eq!(prose(text), expected, "{text}");
        }
    }
}
