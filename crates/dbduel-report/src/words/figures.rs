//! Figures: values with their uncertainty, in one unit and with the same digits.

use dbduel_text::percent;
use dbduel_text::{NEAR_ONE, latency_unit, multiple, number, ratio};

use dbduel_judge::summary::{Figure, How};

/// Text in place of a value that was not measured.
pub const NOT_MEASURED: &str = "not measured";

/// Share of an interval, from each end on a logarithmic scale, in which an estimate gets a note on why it is not in
/// the middle.
const NEAR_AN_END: f64 = 0.1;

/// Why an estimate may be near an end of its interval: the interval is the intersection of the intervals of all looks,
/// the estimate is the mean of all blocks.
const NOT_IN_THE_MIDDLE: &str = "running intersection of all looks";

/// Why an estimate may not be that of the whole run.
const BALANCED: &str = "earlier looks exclude the ratio of the whole run";

/// Legend of the mark of [`RatioUnit::short_interval`].
const STARRED: &str = "* Estimate near an end of its interval, or balanced, as earlier looks exclude the whole run's.";

/// Unit of the ratios in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioUnit {
    /// Differences from one, in percent.
    Percent,
    /// Multiples.
    Factor,
}

impl RatioUnit {
    /// The unit of figures that stand together, by their values and the ends of their intervals.
    pub fn of<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> Self {
        Self::of_values(figures.into_iter().flat_map(ratio_values))
    }

    /// Percent where all values are within a factor of two of one or unbounded, factors otherwise.
    pub fn of_values(values: impl IntoIterator<Item = f64>) -> Self {
        let is_near = |value: f64| NEAR_ONE.contains(&value) || value.is_infinite();
        match values.into_iter().all(is_near) {
            true => Self::Percent,
            false => Self::Factor,
        }
    }

    /// A ratio in this unit.
    #[must_use]
    pub fn write(self, value: f64) -> String {
        match self {
            Self::Percent => ratio(value),
            Self::Factor => multiple(value),
        }
    }

    /// The value of a ratio, or a dash when nothing was measured.
    #[must_use]
    pub fn value(self, figure: &Figure) -> String {
        let value = figure.value();
        value.map_or_else(|| "–".to_owned(), |value| self.write(value))
    }

    /// The interval of a ratio: `+3.0 % to +5.2 %`; empty when there is none.
    #[must_use]
    pub fn interval(self, figure: &Figure) -> String {
        match figure.interval() {
            Some((low, _)) if figure_is_open(figure) => format!("at least {}", self.write(low)),
            Some((low, high)) => format!("{} to {}", self.write(low), self.write(high)),
            None => String::new(),
        }
    }

    /// The interval of a ratio, with the reason where [`off_centre`] has one; of a ratio without interval the reason why it
    /// has none.
    #[must_use]
    pub fn doubt(self, figure: &Figure) -> String {
        match figure {
            Figure::Estimated { .. } => match off_centre(figure) {
                Some(why) => format!("{}; {why}", self.interval(figure)),
                None => self.interval(figure),
            },
            Figure::Bare { why, .. } | Figure::NotMeasured { why } => why.clone(),
        }
    }

    /// The interval of a ratio where there is no room for a reason: with a star where [`off_centre`] has one; [`starred`] is
    /// the legend.
    #[must_use]
    pub fn short_interval(self, figure: &Figure) -> String {
        let star = off_centre(figure).map_or("", |_| "*");
        format!("{}{star}", self.interval(figure))
    }

    /// The standard deviation of a log ratio: `3.1 %`, or the factor that it stands for.
    #[must_use]
    pub fn deviation(self, sd: f64) -> String {
        match self {
            Self::Percent => percent::of(sd),
            Self::Factor => multiple(sd.exp()),
        }
    }
}

/// Why the estimate of a ratio is near an end of its interval or is not that of the whole run; `None` where neither is so.
#[must_use]
pub fn off_centre(figure: &Figure) -> Option<&'static str> {
    let Figure::Estimated {
        value,
        low,
        high,
        how,
        ..
    } = figure
    else {
        return None;
    };
    match (how, high) {
        (How::Balance | How::BalanceOfEpochs, _) => Some(BALANCED),
        (How::PairedBlocks | How::BlockTotals | How::Epochs, Some(high))
            if *low > 0.0 && high > low =>
        {
            let place = (value / low).ln() / (high / low).ln();
            let is_central = (NEAR_AN_END..=1.0 - NEAR_AN_END).contains(&place);
            (!is_central).then_some(NOT_IN_THE_MIDDLE)
        }
        _ => None,
    }
}

/// Legend of the stars of [`RatioUnit::short_interval`]; empty where none of the figures has one.
#[must_use]
pub fn starred<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> &'static str {
    let mut figures = figures.into_iter();
    match figures.any(|figure| off_centre(figure).is_some()) {
        true => STARRED,
        false => "",
    }
}

/// The value of a ratio in the unit of its interval; `None` when nothing was measured.
#[must_use]
pub fn ratio_value(figure: &Figure) -> Option<String> {
    let unit = RatioUnit::of([figure]);
    figure.value().map(|value| unit.write(value))
}

/// The interval of a ratio, with the reason where the estimate is near one of its ends; empty when there is none.
#[must_use]
pub fn ratio_interval(figure: &Figure) -> String {
    match figure {
        Figure::Estimated { .. } => RatioUnit::of([figure]).doubt(figure),
        Figure::Bare { .. } | Figure::NotMeasured { .. } => String::new(),
    }
}

/// The value of a ratio and the finite ends of its interval.
pub fn ratio_values(figure: &Figure) -> impl Iterator<Item = f64> + use<> {
    let ends = figure.interval().into_iter();
    let ends = ends.flat_map(|(low, high)| [low, high]);
    figure.value().into_iter().chain(ends)
}

fn figure_is_open(figure: &Figure) -> bool {
    matches!(figure, Figure::Estimated { high: None, .. })
}

/// The uncertainty of a figure, in the figure's unit: `41–44`, or the reason why there is none.
#[must_use]
pub fn doubt(figure: &Figure, text: impl Fn(f64) -> String) -> String {
    match figure {
        Figure::Estimated {
            low,
            high: Some(high),
            ..
        } => range(&text(*low), &text(*high)),
        Figure::Estimated {
            low, high: None, ..
        } => format!("at least {}", text(*low)),
        Figure::Bare { .. } => "no interval".to_owned(),
        Figure::NotMeasured { .. } => String::new(),
    }
}

/// Two numbers with one unit where they have the same.
fn range(low: &str, high: &str) -> String {
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((low, unit)), Some((high, other))) if unit == other => format!("{low}–{high} {unit}"),
        _ => format!("{low}–{high}"),
    }
}

/// The uncertainty of a latency in the unit of its value.
#[must_use]
pub fn latency_doubt(figure: &Figure) -> String {
    let (factor, unit) = latency_unit(figure.value().unwrap_or(0.0));
    doubt(figure, |us| format!("{} {unit}", number(us / factor)))
}

/// The small print below a rate, as [`doubt`].
#[must_use]
pub fn rate_doubt(figure: &Figure) -> String {
    doubt(figure, number)
}

/// The figure's value, or `not measured`.
#[must_use]
pub fn value(figure: &Figure, text: impl Fn(f64) -> String) -> String {
    figure.value().map_or_else(|| NOT_MEASURED.to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_and_its_interval_are_written_alike() {
        let figure = |value, low, high| Figure::Estimated {
            value,
            low,
            high: Some(high),
            confidence: 0.95,
            n: 9,
            how: dbduel_judge::summary::How::PairedBlocks,
        };
        let wide = figure(0.47, 0.282, 0.993);
        assert_eq!(ratio_value(&wide).unwrap(), "0.470×");
        assert_eq!(ratio_interval(&wide), "0.282× to 0.993×");
        assert_eq!(
            ratio_interval(&figure(1.04, 1.03, 1.05)),
            "+3.0 % to +5.0 %"
        );
    }

    #[test]
    fn one_ratio_far_from_one_turns_all_of_a_table_into_factors() {
        let bare = |value| Figure::Bare {
            value,
            n: 9,
            how: How::PairedBlocks,
            why: "in a test".to_owned(),
        };
        let near = [bare(1.011), bare(0.9951)];
        assert_eq!(RatioUnit::of(&near), RatioUnit::Percent);
        let mixed = [bare(1.011), bare(56.4)];
        let unit = RatioUnit::of(&mixed);
        assert_eq!(
            mixed.each_ref().map(|one| unit.value(one)),
            ["1.011×", "56.4×"]
        );
        assert_eq!(unit.deviation(0.08), "1.083×");
    }

    #[test]
    fn an_estimate_near_an_end_of_its_interval_says_why() {
        let figure = |value, low, high, how| Figure::Estimated {
            value,
            low,
            high: Some(high),
            confidence: 0.95,
            n: 14,
            how,
        };
        assert_eq!(
            ratio_interval(&figure(0.438, 0.430, 1.57, How::PairedBlocks)),
            "0.430× to 1.57×; running intersection of all looks"
        );
        let balanced = figure(1.12, 1.046, 1.166, How::Balance);
        assert_eq!(
            ratio_interval(&balanced),
            "+4.6 % to +16.6 %; earlier looks exclude the ratio of the whole run"
        );
        let open = Figure::Estimated {
            value: 1.3,
            low: 1.2,
            high: None,
            confidence: 0.95,
            n: 6,
            how: How::BalanceOfEpochs,
        };
        assert_eq!(
            ratio_interval(&open),
            "at least +20.0 %; earlier looks exclude the ratio of the whole run"
        );
        let unit = RatioUnit::Percent;
        assert_eq!(unit.short_interval(&balanced), "+4.6 % to +16.6 %*");
        assert_eq!(starred([&balanced]), STARRED);
        let central = figure(1.1, 1.046, 1.166, How::BlockTotals);
        assert_eq!(unit.short_interval(&central), "+4.6 % to +16.6 %");
        assert_eq!(starred([&central]), "");
        for at_the_centre in [
            figure(0.82, 0.430, 1.57, How::PairedBlocks),
            // The interval of a mean is not made by several looks.
            figure(0.438, 0.430, 1.57, How::PairedMean),
            figure(1.01, 1.01, 1.01, How::PairedBlocks),
        ] {
            assert_eq!(off_centre(&at_the_centre), None);
        }
    }
}
