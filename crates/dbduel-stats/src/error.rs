//! The one error type: input that no estimate or verdict can be made from.
//!
//! It does not know what the numbers mean; it names the argument, the position and the remedy, and
//! the caller adds which contender or record it came from.

/// Why a computation was refused. Nothing in this crate panics on input.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Fewer observations than the method needs to say anything at all.
    #[error("{what}: got {got}, but at least {needed} are needed; measure longer")]
    TooFew {
        /// Which input was too short.
        what: &'static str,
        /// The least number that would do.
        needed: usize,
        /// The number that was given.
        got: usize,
    },
    /// A NaN or an infinity among the observations.
    #[error(
        "{what}: value {value} at position {index} is not finite; drop or repair it by a rule declared beforehand"
    )]
    NotFinite {
        /// Which input held the value.
        what: &'static str,
        /// Its position, from 0.
        index: usize,
        /// The offending value.
        value: f64,
    },
    /// A zero or negative value where a logarithm is to be taken, such as a slice without a single completion.
    #[error(
        "{what}: value {value} at position {index} is not positive, so it has no logarithm; a contender that completed nothing cannot be compared by ratio"
    )]
    NotPositive {
        /// Which input held the value.
        what: &'static str,
        /// Its position, from 0.
        index: usize,
        /// The offending value.
        value: f64,
    },
    /// A setting of the method that makes no sense.
    #[error("parameter `{name}` is {value}, but must be {requirement}")]
    Parameter {
        /// The parameter's name.
        name: &'static str,
        /// What it was.
        value: f64,
        /// What it must be.
        requirement: &'static str,
    },
    /// Inputs whose shapes do not fit each other or the design that was announced.
    #[error("{what}: {problem}")]
    Shape {
        /// Which input has the wrong shape.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

/// Fails on the first value that is NaN or infinite.
pub(crate) fn all_finite(what: &'static str, values: &[f64]) -> Result<(), StatsError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(StatsError::NotFinite {
            what,
            index,
            value: values[index],
        }),
        None => Ok(()),
    }
}

/// Fails when fewer than `needed` values are given.
pub(crate) fn at_least(what: &'static str, needed: usize, got: usize) -> Result<(), StatsError> {
    if got < needed {
        return Err(StatsError::TooFew { what, needed, got });
    }
    Ok(())
}

/// Fails unless `0 < value < 1`.
pub(crate) fn open_fraction(name: &'static str, value: f64) -> Result<(), StatsError> {
    if value > 0.0 && value < 1.0 {
        return Ok(());
    }
    Err(StatsError::Parameter {
        name,
        value,
        requirement: "strictly between 0 and 1",
    })
}
