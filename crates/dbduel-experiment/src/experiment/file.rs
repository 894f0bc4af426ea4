//! The experiment file: path, text and parsed content, kept together because errors name the position of a value.

use std::ops::Range;
use std::path::Path;

use super::Experiment;
use super::document::Trouble;

/// An experiment file that was parsed.
#[derive(Debug, Clone, Copy)]
pub struct ExperimentFile<'f> {
    /// Its path; relative paths in it start at its directory.
    pub path: &'f Path,
    /// Its text, byte for byte.
    pub text: &'f str,
    /// The parsed experiment. The cells of a sweep have one each, for the same text.
    pub experiment: &'f Experiment,
}

impl ExperimentFile<'_> {
    /// The place of a value in front of a message: `path:line:column: `.
    #[must_use]
    pub fn place(&self, span: &Range<usize>) -> String {
        let Trouble { line, column, .. } = Trouble::at(self.text, span.start, String::new());
        format!("{}:{line}:{column}: ", self.path.display())
    }
}
