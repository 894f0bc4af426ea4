//! Tab-separated tables as written by `mysql --batch`, and as users' own dumps have them.

/// A field with newline, tab, backslash and the zero byte escaped.
#[must_use]
pub fn escape(field: &str) -> String {
    let mut escaped = String::with_capacity(field.len());
    for character in field.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\\' => escaped.push_str("\\\\"),
            '\0' => escaped.push_str("\\0"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Reverses [`escape`]. A backslash before another character is dropped, one at the end is kept.
#[must_use]
pub fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('0') => plain.push('\0'),
            Some(other) => plain.push(other),
            None => plain.push('\\'),
        }
    }
    plain
}

/// One line of fields, newline included.
#[must_use]
pub fn line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| escape(field)).collect();
    fields.join("\t") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unescaping_undoes_escaping(field in "\\PC{0,20}[\\x00\\n\\t\\\\]{0,5}\\PC{0,20}") {
            let escaped = escape(&field);
            prop_assert!(!escaped.contains(['\n', '\t', '\0']));
            prop_assert_eq!(unescape(&escaped), field);
        }
    }

    #[test]
    fn what_no_writer_wrote_is_still_read() {
        assert_eq!(unescape("a\\qb\\"), "aqb\\");
    }
}
