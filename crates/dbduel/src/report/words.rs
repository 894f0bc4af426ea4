//! Numbers and verdicts as text, the same in every format.
//!
//! Pure functions from values to words; no layout, no colour.

use crate::judge::summary::{Change, Comparison, Duel, Figure, Quantity, Scope, Summary, Verdict};

/// Ratios that are written as percentages.
const NEAR_ONE: std::ops::Range<f64> = 0.5..2.0;

/// What stands where nothing was measured.
pub const NOT_MEASURED: &str = "not measured";

/// A count with thousands separated: `12,346`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with about three significant digits and separated thousands.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "∞".to_owned();
    }
    let size = value.abs();
    let text = match size {
        0.0 => "0".to_owned(),
        _ if size >= 100.0 => count(size.round() as u64),
        _ if size >= 10.0 => format!("{size:.1}"),
        _ if size >= 1.0 => format!("{size:.2}"),
        _ if size >= 0.001 => format!("{size:.3}"),
        _ => format!("{size:.1e}"),
    };
    if value < 0.0 {
        format!("−{text}")
    } else {
        text
    }
}

/// A duration given in microseconds, with the unit that suits it.
#[must_use]
pub fn latency(us: f64) -> String {
    let (factor, unit) = latency_unit(us);
    format!("{} {unit}", number(us / factor))
}

/// Microseconds per unit, and the unit that suits a latency of this size.
#[must_use]
pub fn latency_unit(us: f64) -> (f64, &'static str) {
    match us {
        _ if us >= 1e6 => (1e6, "s"),
        _ if us >= 1e3 => (1e3, "ms"),
        _ => (1.0, "µs"),
    }
}

/// A latency on an axis: `5 ms`, without needless digits.
#[must_use]
pub fn latency_tick(us: f64) -> String {
    let (factor, unit) = latency_unit(us * 1.0001);
    format!("{} {unit}", trimmed(us / factor))
}

/// A number on an axis: no digits beyond those that it needs.
#[must_use]
pub fn trimmed(value: f64) -> String {
    if value.abs() >= 1000.0 {
        return number(value);
    }
    let text = format!("{value:.3}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number with up to six decimals, for shares close to one: `99.9999`.
#[must_use]
pub fn trimmed_fine(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A stretch of time in seconds: `45 s`, `12 min`, `3 h 20 min`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..120 => format!("{whole} s"),
        120..7200 => format!("{} min", (whole + 30) / 60),
        _ => {
            let minutes = (whole + 30) / 60;
            match minutes % 60 {
                0 => format!("{} h", minutes / 60),
                rest => format!("{} h {rest} min", minutes / 60),
            }
        }
    }
}

/// Bytes with a binary unit: `1.95 GiB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", number(value), units[unit])
}

/// Bytes that are a mean and need not be whole: `31.4 KiB`, `0.250 B`.
#[must_use]
pub fn bytes_of(value: f64) -> String {
    if value < 1024.0 {
        format!("{} B", number(value))
    } else {
        bytes(value.round() as u64)
    }
}

/// Texts with commas and an "and".
#[must_use]
pub fn joined_texts(texts: &[String]) -> String {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    joined(&texts)
}

/// A ratio as people say it: `+4.1 %` near one, `2.41×` far from it.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "∞".to_owned();
    }
    if !NEAR_ONE.contains(&ratio) {
        return multiple(ratio);
    }
    percent(ratio - 1.0)
}

/// A signed relative difference: `+4.1 %`, `−0.35 %`.
#[must_use]
pub fn percent(difference: f64) -> String {
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

/// An unsigned share: `2 %`, `0.5 %`.
#[must_use]
pub fn share(share: f64) -> String {
    let percent = 100.0 * share;
    let text = if percent < 10.0 {
        format!("{percent:.2}")
    } else {
        format!("{percent:.1}")
    };
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The value of a ratio, written like its interval; `None` when nothing was measured.
#[must_use]
pub fn ratio_value(figure: &Figure) -> Option<String> {
    figure.value().map(ratio_writer(figure))
}

/// The interval of a ratio: `+3.0 % to +5.2 %`; empty when there is none.
#[must_use]
pub fn ratio_interval(figure: &Figure) -> String {
    let ratio = ratio_writer(figure);
    match figure.interval() {
        Some((low, _)) if figure_is_open(figure) => format!("at least {}", ratio(low)),
        Some((low, high)) => format!("{} to {}", ratio(low), ratio(high)),
        None => String::new(),
    }
}

/// Percentages when all of the figure is near one, multiples for all of it otherwise.
fn ratio_writer(figure: &Figure) -> fn(f64) -> String {
    let ends = figure
        .interval()
        .into_iter()
        .flat_map(|(low, high)| [low, high]);
    let is_near = |value: f64| NEAR_ONE.contains(&value) || value.is_infinite();
    if figure.value().into_iter().chain(ends).all(is_near) {
        ratio
    } else {
        multiple
    }
}

fn multiple(ratio: f64) -> String {
    format!("{}×", number(ratio))
}

fn figure_is_open(figure: &Figure) -> bool {
    matches!(figure, Figure::Estimated { high: None, .. })
}

/// The doubt about a figure, in the figure's unit: `41–44`, or the reason why there is none.
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

/// The doubt about a latency in the unit of its value.
#[must_use]
pub fn latency_doubt(figure: &Figure) -> String {
    let (factor, unit) = latency_unit(figure.value().unwrap_or(0.0));
    doubt(figure, |us| format!("{} {unit}", number(us / factor)))
}

/// The doubt about a rate.
#[must_use]
pub fn rate_doubt(figure: &Figure) -> String {
    doubt(figure, number)
}

/// The figure's value, or that there is none.
#[must_use]
pub fn value(figure: &Figure, text: impl Fn(f64) -> String) -> String {
    figure.value().map_or_else(|| NOT_MEASURED.to_owned(), text)
}

/// The verdict of a comparison as a phrase: `faster`, `faster, by less than the horizon`.
#[must_use]
pub fn verdict(comparison: &Comparison) -> String {
    match comparison.verdict {
        Verdict::Faster | Verdict::Slower if comparison.is_within_horizon => {
            format!("{}, by less than the horizon", comparison.verdict.word())
        }
        verdict => verdict.word().to_owned(),
    }
}

/// A sign that carries the verdict without colour.
#[must_use]
pub fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "▲",
        Verdict::Slower => "▼",
        Verdict::Equivalent => "＝",
        Verdict::Undecided => "?",
        Verdict::Void => "✕",
    }
}

/// What the verdicts are about.
#[must_use]
pub fn scope(summary: &Summary) -> String {
    match summary.scope {
        Scope::TheseInstances => {
            "these instances: one start of each server, on one machine".to_owned()
        }
        Scope::TheseServers => format!(
            "these servers: {} starts of each, on one machine; a start is one observation",
            summary.run.epochs
        ),
    }
}

/// A sign for the answer about a quantity; it carries the answer without colour.
#[must_use]
pub fn change_sign(change: Change) -> &'static str {
    match change {
        Change::Higher => "▲",
        Change::Lower => "▼",
        Change::Equivalent => "＝",
        Change::Undecided => "?",
        Change::NotCompared => "–",
    }
}

/// What the quantities beside throughput are, and how sure their intervals.
#[must_use]
pub fn quantities_note(summary: &Summary) -> String {
    let comparisons = summary.contenders.len().saturating_sub(1).max(1);
    let alpha = (1.0 - summary.rule.confidence) / (comparisons * Quantity::ALL.len()) as f64;
    format!(
        "Ratios to {} within blocks. Latency: the quantile of a typical slice. The {} quantities of a level share an \
         error probability of {} of their own ({} each), at every moment of the run at once; lower is better.",
        summary.baseline,
        comparisons * Quantity::ALL.len(),
        share(1.0 - summary.rule.confidence),
        share(alpha)
    )
}

/// How sure the table of all pairs is.
#[must_use]
pub fn pairs_note(summary: &Summary) -> String {
    let pairs = summary.duels.iter().map(|duel| duel.pairs.len());
    let pairs = pairs.max().unwrap_or(0).max(1);
    let alpha = 1.0 - summary.rule.confidence;
    format!(
        "All statements about the {pairs} pairs of a level are right together with {} confidence ({} error probability \
         each).",
        share(summary.rule.confidence),
        share(alpha / pairs as f64)
    )
}

/// Who is ahead of whom at a level as far as it is decided: `a before b and c`.
#[must_use]
pub fn ranking(duel: &Duel) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for pair in &duel.pairs {
        for name in [pair.against.as_str(), pair.contender.as_str()] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let beaten_by = |name: &str| -> Vec<&str> {
        let beaten = duel.pairs.iter().filter_map(|pair| match pair.verdict {
            Verdict::Faster if pair.contender == name => Some(pair.against.as_str()),
            Verdict::Slower if pair.against == name => Some(pair.contender.as_str()),
            _ => None,
        });
        beaten.collect()
    };
    let mut ranked: Vec<(&str, Vec<&str>)> =
        names.iter().map(|name| (*name, beaten_by(name))).collect();
    ranked.retain(|(_, beaten)| !beaten.is_empty());
    ranked.sort_by_key(|(_, beaten)| std::cmp::Reverse(beaten.len()));
    let lines = ranked
        .iter()
        .map(|(name, beaten)| format!("{name} is before {}", joined(beaten)));
    lines.collect()
}

/// The contest in one sentence per contender.
#[must_use]
pub fn headlines(summary: &Summary) -> Vec<String> {
    if summary.search.is_some() {
        return super::scaling::highest_rates(summary);
    }
    let others = summary
        .contenders
        .iter()
        .filter(|contender| contender.name != summary.baseline);
    others
        .map(|contender| headline(summary, &contender.name))
        .collect()
}

fn headline(summary: &Summary, contender: &str) -> String {
    let comparisons: Vec<(&Duel, &Comparison)> = summary
        .duels
        .iter()
        .filter_map(|duel| {
            Some((
                duel,
                duel.comparisons
                    .iter()
                    .find(|one| one.contender == contender)?,
            ))
        })
        .collect();
    let verdicts = [
        Verdict::Faster,
        Verdict::Slower,
        Verdict::Equivalent,
        Verdict::Undecided,
        Verdict::Void,
    ];
    let mut parts = Vec::new();
    for verdict in verdicts {
        let of_it: Vec<&(&Duel, &Comparison)> = comparisons
            .iter()
            .filter(|(_, comparison)| comparison.verdict == verdict)
            .collect();
        if of_it.is_empty() {
            continue;
        }
        let labels: Vec<&str> = of_it.iter().map(|(duel, _)| duel.label.as_str()).collect();
        let place = if labels.len() == comparisons.len() && comparisons.len() > 1 {
            "at every load level".to_owned()
        } else {
            format!("at {}", listed(&labels))
        };
        let by = if matches!(verdict, Verdict::Faster | Verdict::Slower) {
            span(&of_it)
        } else {
            String::new()
        };
        parts.push(format!("{}{by} {place}", verdict.word()));
    }
    if parts.is_empty() {
        return format!("{contender} was not compared");
    }
    format!("{contender} is {}", parts.join(", "))
}

/// How much, from the smallest to the largest point estimate: ` by 3.4 %`, ` (2.41×)`.
fn span(comparisons: &[&(&Duel, &Comparison)]) -> String {
    let mut values: Vec<f64> = comparisons
        .iter()
        .filter_map(|(_, comparison)| comparison.ratio.value())
        .collect();
    values.sort_by(|one, other| one.ln().abs().total_cmp(&other.ln().abs()));
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return String::new();
    };
    if !values.iter().all(|value| NEAR_ONE.contains(value)) {
        let (first, last) = (multiple(*first), multiple(*last));
        return if first == last {
            format!(" ({first})")
        } else {
            format!(" ({first} to {last})")
        };
    }
    let unsigned = |value: f64| ratio(value).trim_start_matches(['+', '−']).to_owned();
    let (first, last) = (unsigned(*first), unsigned(*last));
    if first == last {
        format!(" by {first}")
    } else {
        format!(" by {first} to {last}")
    }
}

/// `1 client, 16 and 64 clients` would repeat itself: a unit that all share is said once.
fn listed(labels: &[&str]) -> String {
    if let [_, .., last] = labels
        && let Some((_, unit)) = last.split_once(' ')
        && let Some(numbers) = labels
            .iter()
            .map(|label| label.strip_suffix(unit))
            .collect::<Option<Vec<_>>>()
    {
        let numbers: Vec<&str> = numbers.into_iter().map(str::trim_end).collect();
        return format!("{} {unit}", joined(&numbers));
    }
    joined(labels)
}

fn joined(labels: &[&str]) -> String {
    match labels {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [start @ .., last] => format!("{} and {last}", start.join(", ")),
    }
}

/// `1 client`, `16 clients`.
#[must_use]
pub fn clients(count: u32) -> String {
    match count {
        1 => "1 client".to_owned(),
        count => format!("{count} clients"),
    }
}

/// What the lab can tell apart on the machine of a run, in one sentence without its end; `None` when
/// that was not known before the run.
#[must_use]
pub fn own_resolution(summary: &Summary) -> Option<String> {
    let test = summary.self_test.as_ref()?;
    let reached = test.resolution.last()?;
    let null = test.null_server.as_ref().map_or_else(String::new, |null| {
        format!(
            "; the load process alone takes {} of CPU per transaction ({} to {})",
            latency(null.client_cpu_us_per_transaction),
            latency(null.low_us),
            latency(null.high_us)
        )
    });
    Some(format!(
        "two equal contenders are told apart from a difference of ±{} after {:.1} min ({} confidence; {}, {}, {}; {}){null}",
        share(reached.half_width),
        reached.minutes,
        share(test.confidence),
        test.server,
        test.workload,
        clients(test.clients),
        test.at
    ))
}

/// When something happened, UTC to the second; empty when it cannot be said.
#[must_use]
pub fn moment(at_ms: Option<u64>) -> String {
    let timestamp =
        at_ms.and_then(|at_ms| jiff::Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok());
    timestamp
        .map(|timestamp| timestamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// The text with a large first letter and a full stop.
#[must_use]
pub fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first: String = characters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        for (value, expected) in [
            (0.0, "0"),
            (1234567.4, "1,234,567"),
            (123.4, "123"),
            (12.34, "12.3"),
            (-1.234, "−1.23"),
            (0.01234, "0.012"),
        ] {
            assert_eq!(number(value), expected);
        }
        assert_eq!(number(f64::INFINITY), "∞");
    }

    #[test]
    fn ratios_near_one_are_percentages() {
        for (value, expected) in [
            (1.041, "+4.1 %"),
            (0.9965, "−0.35 %"),
            (1.0, "±0.00 %"),
            (2.41, "2.41×"),
            (0.25, "0.250×"),
            (0.5, "−50.0 %"),
        ] {
            assert_eq!(ratio(value), expected);
        }
    }

    #[test]
    fn a_ratio_and_its_interval_are_written_alike() {
        let figure = |value, low, high| Figure::Estimated {
            value,
            low,
            high: Some(high),
            confidence: 0.95,
            n: 9,
            how: crate::judge::summary::How::PairedBlocks,
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
    fn durations_and_latencies_choose_their_unit() {
        assert_eq!(duration(45.2), "45 s");
        assert_eq!(duration(750.0), "13 min");
        assert_eq!(duration(12_000.0), "3 h 20 min");
        assert_eq!(latency(830.0), "830 µs");
        assert_eq!(latency(12_345.0), "12.3 ms");
        assert_eq!(bytes(2_100_000_000), "1.96 GiB");
        assert_eq!(
            [share(0.02), share(0.0475), share(0.3), share(1.066)],
            ["2 %", "4.75 %", "30 %", "106.6 %"]
        );
    }
}
