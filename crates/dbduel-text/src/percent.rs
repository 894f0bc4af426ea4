//! Percentages for readers: the one formatter for messages, findings and reports.
//!
//! Only significant digits: no trailing zeros, no rounding to 0 or 100. Columns of aligned numbers keep a fixed number
//! of decimals and are formatted elsewhere.

/// A share of one, unsigned: `2 %`, `0.5 %`, `93.4 %`, `99.99 %`, `0.00036 %`.
#[must_use]
pub fn of(share: f64) -> String {
    let percent = 100.0 * share;
    // What is left to nothing, or to a hundred, keeps two digits.
    let left = match percent {
        _ if percent > 99.0 && percent < 100.0 => 100.0 - percent,
        _ => percent.abs(),
    };
    let decimals = match left {
        _ if left >= 10.0 || (10.0..=99.0).contains(&percent) => 1,
        _ if left >= 1.0 || left == 0.0 => 2,
        _ => ((1.0 - left.log10().floor()) as usize).clamp(2, DECIMALS_MAX),
    };
    let text = format!("{percent:.decimals$}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Maximum number of decimals of a share.
const DECIMALS_MAX: usize = 9;

/// A signed relative difference: `+4.1 %`, `−0.35 %`.
#[must_use]
pub fn signed(difference: f64) -> String {
    let percent = 100.0 * difference;
    let text = if percent.abs() >= 0.995 {
        format!("{:.1}", percent.abs())
    } else {
        format!("{:.2}", percent.abs())
    };
    let sign = match percent {
        _ if text.chars().all(|digit| "0.".contains(digit)) => "±",
        _ if percent < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_digits_that_tell_something() {
        for (share, expected) in [
            (0.0, "0 %"),
            (0.02, "2 %"),
            (0.07, "7 %"),
            (0.0475, "4.75 %"),
            (0.005, "0.5 %"),
            (0.000_123, "0.012 %"),
            (3.6e-6, "0.00036 %"),
            (0.3, "30 %"),
            (0.95, "95 %"),
            (0.934_12, "93.4 %"),
            (0.991_67, "99.17 %"),
            (0.999, "99.9 %"),
            (1.0 - 1e-4, "99.99 %"),
            (1.0 - 1e-6, "99.9999 %"),
            (1.0, "100 %"),
            (1.066, "106.6 %"),
        ] {
            assert_eq!(of(share), expected, "{share}");
        }
    }

    #[test]
    fn differences_have_a_sign() {
        for (difference, expected) in [(0.041, "+4.1 %"), (-0.0035, "−0.35 %"), (1e-9, "±0.00 %")]
        {
            assert_eq!(signed(difference), expected, "{difference}");
        }
    }
}
