//! The sentences of an explanation: differences and their sizes, never causes.

use dbduel_judge::Summary;
use dbduel_judge::explain::{
    Cost, Division, Explanation, Latency, Moved, Part, Unit, is_negligible,
};
use dbduel_judge::summary::Figure;
use dbduel_record::Verdict;

use super::highlights::{Highlight, select_highlights};
use super::phrases::PHRASES;
use super::{change, difference, is_certain, unit_of, value};
use crate::words;

const NOTHING_DIFFERS: &str = "No observed resource differs beyond its interval.";

/// Parts of the latency that have a clause.
const PARTS: usize = 3;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sentences {
    /// Opening sentences: reservations and the time of a transaction.
    pub lead: Vec<String>,
    /// One for each highlighted cost, the largest first.
    pub costs: Vec<String>,
    /// Closing sentences: costs that are equal and costs that are undecided.
    pub rest: Vec<String>,
}

impl Sentences {
    /// All of them in the order of reading.
    #[must_use]
    pub fn all(self) -> Vec<String> {
        [self.lead, self.costs, self.rest].concat()
    }
}

#[must_use]
pub fn sentences(summary: &Summary, explanation: &Explanation) -> Sentences {
    if !explanation.has_enough_blocks() {
        return Sentences {
            lead: vec![too_few_blocks(explanation)],
            ..Sentences::default()
        };
    }
    let mut sentences = Vec::new();
    let (contender, baseline) = (&explanation.contender, &summary.baseline);
    // Differences without a sentence, such as those that the latency covers, are in the table.
    let has_moved = |cost: &Cost| matches!(cost.moved, Moved::Less | Moved::More);
    let is_any_moved = explanation.costs.iter().any(has_moved);
    if let Some(reservation) = restraint(summary, explanation) {
        sentences.push(match is_any_moved {
            true => format!("{reservation} Resource use differs as follows."),
            false => reservation.to_owned(),
        });
    }
    let mut highlights = select_highlights(explanation);
    let whole = explanation.whole_us();
    if whole.value().is_some() && (is_decided(summary, explanation) || is_certain(whole)) {
        let leading = explanation
            .leading_cost()
            .map(|cost| take_out(&mut highlights, cost));
        sentences.push(of_time(explanation, leading.as_ref(), baseline));
        if let Latency::Divided(division) = &explanation.latency {
            let named: Vec<&Part> = explanation.leading_parts().collect();
            let others = of_parts(division, &named);
            sentences.extend(others.map(|clauses| format!("Other parts: {clauses}.")));
        }
    } else if let Latency::Divided(division) = &explanation.latency {
        sentences.push(of_latency(explanation, division, baseline));
    }
    if let Latency::NotDivided { why } = &explanation.latency {
        sentences.push(format!(
            "Time per transaction not divided into parts: {why}."
        ));
    }
    if !is_any_moved {
        sentences.push(NOTHING_DIFFERS.to_owned());
    }
    let costs = highlights
        .iter()
        .map(|one| of_fact(one, contender, baseline));
    let costs = costs.collect();
    let mut rest = Vec::new();
    let named = |indices: &[usize]| -> Vec<String> {
        let costs = indices.iter().map(|&index| &explanation.costs[index]);
        let costs: Vec<&Cost> = costs.filter(|cost| !is_negligible(cost)).collect();
        let unit = unit_of(costs.iter().copied());
        let costs = costs.into_iter();
        costs
            .map(|cost| match cost.ratio.interval() {
                Some(_) => format!("{} ({})", cost.name, change(cost, unit)),
                None => cost.name.clone(),
            })
            .collect()
    };
    let (same, unclear) = (named(&explanation.same), named(&explanation.unclear));
    if !same.is_empty() {
        let within = words::share(summary.rule.horizon);
        let what = words::joined_texts(&same);
        rest.push(format!("Equal within {within} per transaction: {what}."));
    }
    if !unclear.is_empty() {
        let what = words::joined_texts(&unclear);
        rest.push(format!("Undecided: {what}."));
    }
    Sentences {
        lead: sentences,
        costs,
        rest,
    }
}

/// Sentence in place of an explanation, when there are too few blocks.
fn too_few_blocks(explanation: &Explanation) -> String {
    format!(
        "Too few blocks for resource differences: {}, at least {} needed at {} confidence.",
        explanation.blocks,
        explanation.blocks_needed,
        words::share(1.0 - explanation.alpha)
    )
}

fn verdict(summary: &Summary, explanation: &Explanation) -> Option<Verdict> {
    let duels = &mut summary.duels.iter();
    let duel = duels.find(|duel| duel.level == explanation.level)?;
    let mut comparisons = duel.comparisons.iter();
    let comparison = comparisons.find(|one| one.contender == explanation.contender)?;
    Some(comparison.verdict)
}

/// True when the verdict of the explained comparison is faster or slower.
pub fn is_decided(summary: &Summary, explanation: &Explanation) -> bool {
    let verdict = verdict(summary, explanation);
    matches!(verdict, Some(Verdict::Faster | Verdict::Slower))
}

/// A reservation where throughput itself does not differ.
fn restraint(summary: &Summary, explanation: &Explanation) -> Option<&'static str> {
    match verdict(summary, explanation)? {
        Verdict::Faster | Verdict::Slower => None,
        Verdict::Equivalent => Some("Equivalent throughput."),
        Verdict::Undecided => Some("No detectable throughput difference."),
        Verdict::Void => Some("No valid throughput verdict."),
    }
}

/// Removes the highlight of `cost` from `highlights` and returns it with the costs joined to it.
fn take_out<'e>(highlights: &mut Vec<Highlight<'e>>, cost: &'e Cost) -> Highlight<'e> {
    let is_it = |one: &&Cost| one.resource == cost.resource;
    let place = highlights
        .iter()
        .position(|highlight| is_it(&highlight.cost) || highlight.joined.iter().any(is_it));
    let taken = place.map(|place| highlights.remove(place));
    let facts = taken.into_iter().flat_map(|taken| {
        let head = std::iter::once(taken.cost);
        head.chain(taken.joined).collect::<Vec<_>>()
    });
    Highlight {
        cost,
        joined: facts.filter(|one| !is_it(one)).collect(),
    }
}

/// The first sentence about a difference in time: its size, its largest part, and the leading cost.
fn of_time(explanation: &Explanation, leading: Option<&Highlight<'_>>, baseline: &str) -> String {
    let mut sentence = format!(
        "`{}` takes {} per transaction than `{baseline}`",
        explanation.contender,
        less_or_longer(explanation.whole_us())
    );
    if let Latency::Divided(division) = &explanation.latency {
        let value = |figure: &Figure| words::value(figure, words::latency);
        sentence.push_str(&format!(
            " ({} against {})",
            value(&division.contender_us),
            value(&division.baseline_us)
        ));
    }
    for (part, is_largest) in explanation.leading_parts().zip([true, false]) {
        sentence.push_str(&format!(
            "{}{}, {}{}",
            if is_largest {
                "; largest part: "
            } else {
                ", and "
            },
            part.doing.name(),
            less_or_longer(&part.difference_us),
            match is_certain(&part.difference_us) {
                true => "",
                false => " (may be zero)",
            }
        ));
    }
    if let Some(leading) = leading {
        let clause = predicate(leading.cost, baseline);
        sentence.push_str("; it ");
        sentence.push_str(&with_likewise(&clause, &leading.joined));
    }
    sentence.push('.');
    sentence
}

/// The same for a difference that may be zero.
fn of_latency(explanation: &Explanation, division: &Division, baseline: &str) -> String {
    let value = |figure: &Figure| words::value(figure, words::latency);
    // Not called its latency: what was given up or cut short took clients' time too.
    let whole = format!(
        "Client time per transaction: `{}` {}, `{baseline}` {} (within blocks {})",
        explanation.contender,
        value(&division.contender_us),
        value(&division.baseline_us),
        difference(&division.difference_us)
    );
    let uncertain = explanation.leading_parts().next();
    let uncertain = uncertain.filter(|part| !is_certain(&part.difference_us));
    let largest = uncertain.map(|part| {
        let change = difference(&part.difference_us);
        format!("largest part: {}, {change}", part.doing.name())
    });
    let clauses: Vec<String> = largest.into_iter().chain(of_parts(division, &[])).collect();
    match clauses.is_empty() {
        true => format!("{whole}; no part differs beyond its interval."),
        false => format!("{whole}; {}.", clauses.join("; ")),
    }
}

/// The parts that differ beyond their intervals, except those already named.
fn of_parts(division: &Division, named: &[&Part]) -> Option<String> {
    let mut certain: Vec<&Part> = division
        .parts
        .iter()
        .filter(|part| is_certain(&part.difference_us))
        .filter(|part| !named.iter().any(|named| named.doing == part.doing))
        .collect();
    let size = |part: &Part| part.difference_us.value().unwrap_or(0.0);
    certain.sort_by(|one, other| size(other).abs().total_cmp(&size(one).abs()));
    let listed = |is_wanted: fn(f64) -> bool| -> Vec<String> {
        certain
            .iter()
            .filter(|part| is_wanted(size(part)))
            .take(PARTS)
            .map(|part| format!("{} by {}", part.doing.name(), amount(&part.difference_us)))
            .collect()
    };
    let (shorter, longer) = (listed(|us| us < 0.0), listed(|us| us > 0.0));
    let mut clauses = Vec::new();
    if !shorter.is_empty() {
        clauses.push(format!("shorter: {}", shorter.join(", ")));
    }
    if !longer.is_empty() {
        clauses.push(format!("longer: {}", longer.join(", ")));
    }
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// A difference in time: `450 µs [300, 600] less`.
fn less_or_longer(difference: &Figure) -> String {
    let word = match difference.value() {
        Some(us) if us > 0.0 => "longer",
        _ => "less",
    };
    format!("{} {word}", amount(difference))
}

/// The size of a difference with its interval, in one unit: `450 µs [300, 600]`; `450 µs [−20, 920]` where it may be in the other
/// direction.
fn amount(difference: &Figure) -> String {
    let value = difference.value().unwrap_or(0.0);
    let sign = if value < 0.0 { -1.0 } else { 1.0 };
    let (factor, unit) = words::latency_unit(value.abs());
    let text = |us: f64| words::number(sign * us / factor);
    match difference.interval() {
        Some((low, high)) => {
            let (near, far) = match sign < 0.0 {
                true => (high, low),
                false => (low, high),
            };
            format!("{} {unit} [{}, {}]", text(value), text(near), text(far))
        }
        None => format!("{} {unit}", text(value)),
    }
}

/// A cost, with the costs joined to it.
fn of_fact(highlight: &Highlight<'_>, contender: &str, baseline: &str) -> String {
    let sentence = of_cost(highlight.cost, contender, baseline);
    let clause = sentence.trim_end_matches('.');
    format!("{}.", with_likewise(clause, &highlight.joined))
}

/// A clause, with the costs joined to it.
fn with_likewise(clause: &str, joined: &[&Cost]) -> String {
    let joined = joined.iter().map(|cost| {
        let (ours, theirs) = (value(cost, &cost.contender), value(cost, &cost.baseline));
        format!("{} ({ours} against {theirs})", cost.name)
    });
    let joined: Vec<String> = joined.collect();
    match joined.is_empty() {
        true => clause.to_owned(),
        false => format!("{clause}; likewise {}", words::joined_texts(&joined)),
    }
}

fn of_cost(cost: &Cost, contender: &str, baseline: &str) -> String {
    if !cost.is_level || cost.ratio.value().is_none() {
        return format!("`{contender}` {}.", predicate(cost, baseline));
    }
    let mut letters = cost.name.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!(
        "{first}{}: {} with `{contender}`, {} with `{baseline}` ({}).",
        letters.as_str(),
        value(cost, &cost.contender),
        value(cost, &cost.baseline),
        change(cost, unit_of([cost]))
    )
}

/// Predicate of a sentence: how a contender's cost differs from the baseline's.
fn predicate(cost: &Cost, baseline: &str) -> String {
    let phrase = PHRASES.iter().find(|(id, ..)| *id == cost.resource);
    let is_countable = cost.unit != Unit::Microseconds;
    let (verb, object) =
        phrase.map_or(("shows", cost.name.as_str()), |phrase| (phrase.1, phrase.2));
    let per = if cost.is_level {
        ""
    } else {
        " per transaction"
    };
    let (ours, theirs) = (value(cost, &cost.contender), value(cost, &cost.baseline));
    let how_much = match cost.moved {
        Moved::Less if is_countable => "fewer",
        Moved::Less => "less",
        Moved::More | Moved::Same | Moved::Still | Moved::Unclear | Moved::Unknown => "more",
    };
    let Some(ratio) = cost.ratio.value() else {
        // The amount has its unit: not "40 B bytes of redo" but "40 B of redo".
        let amount_of = match cost.unit {
            Unit::Bytes => object.strip_prefix("bytes ").unwrap_or(object),
            Unit::Microseconds | Unit::Count => object,
        };
        return match cost.contender.value() {
            Some(0.0) => format!("{verb} no {object}{per}; `{baseline}` {theirs}"),
            _ => format!("{verb} {ours} {amount_of}{per}; `{baseline}` none"),
        };
    };
    // Beyond twice as much, or a tenth, a factor says more than a percentage.
    let most = cost.ratio.interval().map_or(ratio, |(_, high)| high);
    let size = if 0.1 <= ratio && ratio.max(most) < 2.0 {
        // Whole percents, unless all of the interval would become the same number.
        let is_narrow = cost
            .ratio
            .interval()
            .is_some_and(|(low, high)| high - low < 0.02);
        let digits = usize::from(is_narrow);
        let percent = |ratio: f64| format!("{:.digits$}", 100.0 * (ratio - 1.0).abs());
        let range = cost.ratio.interval().map_or(String::new(), |(low, high)| {
            let (near, far) = if ratio < 1.0 {
                (high, low)
            } else {
                (low, high)
            };
            format!(" [{}, {}]", percent(near), percent(far))
        });
        format!("{} %{range} {how_much} {object}", percent(ratio))
    } else {
        // A small part is read as one of so many.
        let is_part = ratio < 0.1 && ratio > 0.0;
        let shown = |ratio: f64| match is_part && ratio > 0.0 {
            true => format!("1/{}", words::number(1.0 / ratio)),
            false => words::number(ratio),
        };
        let range = cost.ratio.interval().map_or(String::new(), |(low, high)| {
            format!(" [{}, {}]", shown(low), shown(high))
        });
        match is_part {
            true => format!("{}{range} of the {object}", shown(ratio)),
            false => format!("{} times{range} the {object}", shown(ratio)),
        }
    };
    format!("{verb} {size}{per}: {ours} against {theirs}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::explain::{Doing, Group, resource_ids};
    use dbduel_judge::summarise;
    use dbduel_record::Record;
    use dbduel_record::rows::{ALL_CLASSES, ReadingRow};
    use dbduel_testkit::synthetic::{Observation, Scenario};

    #[test]
    fn sentences_about_a_difference_name_no_cause() {
        let record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        let (summary, _) = summarise(&record);
        let text = sentences(&summary, &summary.explanations[0])
            .all()
            .join("\n");
        insta::assert_snapshot!("explanation_sentences", text);
        for word in ["because", "due to", "caused", "thanks to", "therefore"] {
            assert!(!text.contains(word), "`{word}` claims a cause: {text}");
        }
    }

    fn estimate(value: f64, [low, high]: [f64; 2]) -> Figure {
        Figure::Estimated {
            value,
            low,
            high: Some(high),
            confidence: 0.998,
            n: 14,
            how: dbduel_judge::summary::How::PairedTotals,
        }
    }

    /// First sentence of a duel whose second contender has this difference in time, and this one in waits for the log.
    fn first_sentence(whole: (f64, [f64; 2]), log: (f64, [f64; 2])) -> String {
        let record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        let (summary, _) = summarise(&record);
        let mut explanation = summary.explanations[0].clone();
        explanation.leading.part = Some(Doing::Commit);
        let Latency::Divided(division) = &mut explanation.latency else {
            panic!("not divided")
        };
        division.difference_us = estimate(whole.0, whole.1);
        for part in &mut division.parts {
            if part.doing == Doing::Commit {
                part.difference_us = estimate(log.0, log.1);
            }
        }
        sentences(&summary, &explanation).lead.swap_remove(0)
    }

    #[test]
    fn the_largest_part_is_named_first_with_its_certainty() {
        let said = first_sentence((-584.0, [-700.0, -470.0]), (-254.0, [-510.0, 2.1]));
        assert!(
            said.starts_with("`no-doublewrite` takes 584 µs [470, 700] less per transaction than `doublewrite` (")
                && said.contains("; largest part: waiting for the log, 254 µs [−2.10, 510] less (may be zero); it writes "),
            "{said}"
        );
        let said = first_sentence((-584.0, [-700.0, -470.0]), (-254.0, [-310.0, -200.0]));
        assert!(
            said.contains("waiting for the log, 254 µs [200, 310] less; it writes "),
            "{said}"
        );
    }

    #[test]
    fn a_slower_contender_takes_longer() {
        let said = first_sentence((2_310.0, [1_900.0, 2_700.0]), (1_800.0, [-100.0, 3_700.0]));
        assert!(
            said.starts_with(
                "`no-doublewrite` takes 2.31 ms [1.90, 2.70] longer per transaction than"
            ) && said.contains("waiting for the log, 1.80 ms [−0.100, 3.70] longer (may be zero)"),
            "{said}"
        );
    }

    #[test]
    fn too_few_blocks_are_said_and_nothing_else() {
        for (blocks, said) in [
            (
                1,
                "Too few blocks for resource differences: 1, at least 6 needed at 95 % confidence.",
            ),
            (
                3,
                "Too few blocks for resource differences: 3, at least 6 needed at 95 % confidence.",
            ),
        ] {
            let scenario = Scenario {
                blocks,
                ..Scenario::duel()
            };
            let mut record = scenario.observed(Observation::doublewrite()).record();
            add_level(&mut record, [1.0, 435.0]);
            let (summary, _) = summarise(&record);
            for explanation in &summary.explanations {
                assert_eq!(sentences(&summary, explanation).all(), [said]);
                assert!(explanation.moved.is_empty() && explanation.same.is_empty());
            }
            let view = &crate::explanation::views(&summary)[0];
            assert!(view.parts.is_some() && view.resources > 0);
            let tables = view.parts.iter().chain([&view.costs]);
            for row in tables.flat_map(crate::view::table::Table::rows) {
                assert_eq!(row.cells[3].value, "–", "{row:?}");
            }
        }
    }

    /// Adds a constant level of dirty pages for the baseline and the other contender.
    fn add_level(record: &mut Record, [baseline, other]: [f64; 2]) {
        let slices = record.slices.iter().filter(|row| row.class == ALL_CLASSES);
        let readings = slices.map(|row| ReadingRow {
            block: row.block,
            position: row.position,
            contender: row.contender.clone(),
            source: "engine".to_owned(),
            metric: "dirty_pages_count".to_owned(),
            value: match row.contender.as_str() {
                "doublewrite" => baseline,
                _ => other,
            },
        });
        let readings: Vec<ReadingRow> = readings.collect();
        record.readings.extend(readings);
    }

    #[test]
    fn a_constant_level_is_called_so_even_at_zero() {
        for levels in [[1.0, 435.0], [0.0, 435.0]] {
            let mut record = Scenario::duel()
                .observed(Observation::doublewrite())
                .record();
            add_level(&mut record, levels);
            let (summary, _) = summarise(&record);
            let mut costs = summary.explanations[0].costs.iter();
            let level = costs.find(|cost| cost.resource == "dirty-pages").unwrap();
            assert_eq!(change(level, unit_of([level])), "constant", "{level:?}");
        }
    }

    #[test]
    fn nothing_differs_only_where_no_cost_moved() {
        let record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        let (summary, _) = summarise(&record);
        let says_nothing = |moved: Moved| {
            let mut explanation = summary.explanations[0].clone();
            // As if the latency covered what moved.
            explanation.moved.clear();
            for cost in &mut explanation.costs {
                cost.moved = Moved::Unclear;
            }
            explanation.costs[0].moved = moved;
            sentences(&summary, &explanation)
                .lead
                .contains(&NOTHING_DIFFERS.to_owned())
        };
        assert!(says_nothing(Moved::Unclear) && says_nothing(Moved::Same));
        assert!(!says_nothing(Moved::Less) && !says_nothing(Moved::More));
    }

    #[test]
    fn waits_are_said_to_be_those_of_all_threads() {
        let mut record = Scenario::duel().record();
        // The groups of waits as samplers name them; the second contender waits three times as long for each.
        let groups = [
            "redo_files",
            "data_files",
            "doublewrite_files",
            "binary_log_files",
        ];
        let more = ["engine_latches", "server_latches", "table_locks"];
        let readings = record.slices.iter().flat_map(|row| {
            let factor = if row.contender == "doublewrite" {
                1.0
            } else {
                3.0
            };
            groups.iter().chain(&more).map(move |group| ReadingRow {
                block: row.block,
                position: row.position,
                contender: row.contender.clone(),
                source: "waits".to_owned(),
                metric: format!("{group}_s"),
                value: factor * 1e-4 * row.ok as f64,
            })
        });
        let readings: Vec<ReadingRow> = readings.collect();
        record.readings.extend(readings);
        let (summary, _) = summarise(&record);
        let waits = summary.explanations[0]
            .costs
            .iter()
            .filter(|cost| cost.group == Group::Waits);
        let said: Vec<String> = waits.map(|cost| of_cost(cost, "b", "a")).collect();
        assert_eq!(said.len(), groups.len() + more.len());
        for sentence in said {
            assert!(
                sentence.starts_with("`b` spends 3.00 times [3.00, 3.00] the time in waits for ")
                    && sentence.contains(", all threads together, per transaction: "),
                "{sentence}"
            );
        }
    }

    #[test]
    fn phrases_are_about_resources_that_exist() {
        for (id, ..) in PHRASES {
            assert!(resource_ids().any(|one| one == *id), "`{id}`");
        }
    }
}
