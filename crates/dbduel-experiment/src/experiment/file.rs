//! The experiment file: where it is, what stands in it, and what was read from that. The three stay together,
//! since errors name the place of a value.

use std::path::Path;

use super::Experiment;

/// An experiment file that was parsed.
#[derive(Debug, Clone, Copy)]
pub struct ExperimentFile<'f> {
    /// Where it is; relative paths in it start at its directory.
    pub path: &'f Path,
    /// As given, byte for byte.
    pub text: &'f str,
    /// What was read from it. The cells of a sweep have one each, for the same text.
    pub experiment: &'f Experiment,
}
