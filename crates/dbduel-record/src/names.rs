//! Names that people chose, made safe for file names and tags.
//!
//! Knows nothing of what the names mean.

use std::fmt::Write as _;

use crate::seed::named_seed;

/// Longest file name that is used as it is, bytes. Common file systems allow 255.
const FILE_NAME_BYTES_MAX: usize = 100;

/// The name with everything but ASCII letters, digits, `.`, `_` and `-` as `%XX`.
#[must_use]
pub fn percent_encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The name that [`percent_encode`] was given.
///
/// # Errors
/// When a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
pub fn percent_decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let code = after
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok());
        let value = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(
            value.ok_or_else(|| format!("`{text}` has a `%` without two hexadecimal digits"))?,
        );
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` does not decode to UTF-8"))
}

/// A file name for `name`: readable, unique, and never `.`, `..` or too long.
#[must_use]
pub fn file_name(name: &str) -> String {
    let encoded = percent_encode(name);
    let is_plain = !encoded.is_empty() && !encoded.starts_with('.');
    if is_plain && encoded.len() <= FILE_NAME_BYTES_MAX {
        return encoded;
    }
    let start: String = encoded
        .trim_start_matches('.')
        .chars()
        .take(FILE_NAME_BYTES_MAX)
        .collect();
    format!("{start}~{:016x}", named_seed(0, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_undoes_encoding(name in "\\PC{0,40}") {
            prop_assert_eq!(percent_decode(&percent_encode(&name)).unwrap(), name);
        }

        #[test]
        fn a_file_name_is_one_plain_component(name in "\\PC{0,300}") {
            let file = file_name(&name);
            prop_assert!(!file.is_empty() && file.len() < 200);
            prop_assert!(!file.contains('/') && !file.starts_with('.'));
        }
    }

    #[test]
    fn broken_codes_are_errors() {
        for text in ["%", "%1", "%zz", "a%F", "%FF"] {
            assert!(percent_decode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn different_names_get_different_files() {
        assert_ne!(file_name("."), file_name(".."));
        assert_ne!(file_name(&"a".repeat(200)), file_name(&"a".repeat(201)));
    }
}
