//! The one error type: input from which no estimate or verdict can be made.
//!
//! An error names the argument, the position and the remedy; the caller adds the contender or record.

/// Largest magnitude of a number in computations: squares of larger ones, and sums of them, may overflow. Values that
/// must be positive must be at least its reciprocal.
pub const MAGNITUDE_MAX: f64 = 1e100;

/// Why a computation was refused. Nothing in this crate panics on input.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Fewer observations than the method needs.
    #[error("{what}: got {got}, but at least {needed} are needed; measure longer")]
    TooFew {
        /// The input that was too short.
        what: &'static str,
        /// The least sufficient number.
        needed: usize,
        /// The number that was given.
        got: usize,
    },
    /// A NaN, an infinity or a number beyond ±[`MAGNITUDE_MAX`] among the observations.
    #[error(
        "{what}: value {value} at position {index} is not a number within {MAGNITUDE_MAX:e} of zero; drop or repair it by a rule declared beforehand"
    )]
    OutOfRange {
        /// The input that held the value.
        what: &'static str,
        /// Its position, from 0.
        index: usize,
        /// The offending value.
        value: f64,
    },
    /// A zero or negative value where a logarithm is to be taken, such as a slice without a single completion,
    /// or one below the reciprocal of [`MAGNITUDE_MAX`].
    #[error(
        "{what}: value {value} at position {index} is not above zero, so it has no usable logarithm; a contender that completed nothing cannot be compared by ratio"
    )]
    NotPositive {
        /// The input that held the value.
        what: &'static str,
        /// Its position, from 0.
        index: usize,
        /// The offending value.
        value: f64,
    },
    /// A setting of the method that is out of range.
    #[error("parameter `{name}` is {value}, but must be {requirement}")]
    Parameter {
        /// The parameter's name.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The requirement.
        requirement: &'static str,
    },
    /// Inputs whose shapes do not fit each other or the design that was announced.
    #[error("{what}: {problem}")]
    Shape {
        /// The input with the wrong shape.
        what: &'static str,
        /// The mismatch.
        problem: String,
    },
}

/// Fails on a value that is NaN, infinite or beyond [`MAGNITUDE_MAX`].
pub(crate) fn finite(what: &'static str, index: usize, value: f64) -> Result<(), StatsError> {
    if value.abs() <= MAGNITUDE_MAX {
        return Ok(());
    }
    Err(StatsError::OutOfRange { what, index, value })
}

/// Fails on the first value that [`finite`] refuses.
pub(crate) fn all_finite(what: &'static str, values: &[f64]) -> Result<(), StatsError> {
    let mut numbered = values.iter().enumerate();
    numbered.try_for_each(|(index, value)| finite(what, index, *value))
}

/// Fails on the first value that [`finite`] refuses or that has no logarithm.
pub(crate) fn all_positive(what: &'static str, values: &[f64]) -> Result<(), StatsError> {
    all_finite(what, values)?;
    match values
        .iter()
        .position(|value| *value < MAGNITUDE_MAX.recip())
    {
        Some(index) => Err(StatsError::NotPositive {
            what,
            index,
            value: values[index],
        }),
        None => Ok(()),
    }
}

/// Fails unless the number is finite and not negative.
pub(crate) fn not_negative(name: &'static str, value: f64) -> Result<(), StatsError> {
    if (0.0..=MAGNITUDE_MAX).contains(&value) {
        return Ok(());
    }
    Err(StatsError::Parameter {
        name,
        value,
        requirement: "finite and not negative",
    })
}

/// Maximum number of simulated paths, permutations or counted events: a bound of time and memory.
pub(crate) const COUNT_MAX: usize = 10_000_000;

/// Fails on more than [`COUNT_MAX`].
pub(crate) fn bounded(name: &'static str, count: usize) -> Result<(), StatsError> {
    if count <= COUNT_MAX {
        return Ok(());
    }
    Err(StatsError::Parameter {
        name,
        value: count as f64,
        requirement: "at most ten million",
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_too_large_to_compute_with_are_refused_with_the_bound() {
        assert!(all_finite("units", &[MAGNITUDE_MAX, -MAGNITUDE_MAX, 0.0]).is_ok());
        for value in [1e200, f64::NEG_INFINITY, f64::NAN] {
            let error = all_finite("units", &[1.0, value]).unwrap_err();
            assert!(matches!(error, StatsError::OutOfRange { index: 1, .. }));
            assert!(
                error.to_string().contains("within 1e100 of zero"),
                "{error}"
            );
        }
    }
}
