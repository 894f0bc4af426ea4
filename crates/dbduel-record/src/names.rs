//! User-chosen names, encoded for file names and tags.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::seed::named_seed;

/// Longest file name that is used unchanged, bytes. Common file systems allow 255.
const FILE_NAME_BYTES_MAX: usize = 100;
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// The name with everything but ASCII letters, digits, `.`, `_` and `-` as `%XX`.
#[must_use]
pub fn percent_encode(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

/// Decodes a name encoded by [`percent_encode`].
///
/// # Errors
/// The bytes are not UTF-8.
pub fn percent_decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(String::from)
        .map_err(|_| format!("`{text}` is not UTF-8 when decoded"))
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
    fn bytes_that_are_no_text_are_an_error() {
        assert!(percent_decode("%FF").is_err());
    }

    #[test]
    fn different_names_get_different_files() {
        assert_ne!(file_name("."), file_name(".."));
        assert_ne!(file_name(&"a".repeat(200)), file_name(&"a".repeat(201)));
    }
}
