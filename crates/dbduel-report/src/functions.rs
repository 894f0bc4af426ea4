//! The functions of servers whose time differs, where stacks were sampled.

use dbduel_judge::Summary;
use dbduel_judge::summary::FlameDifference;
use serde::Serialize;

use super::terminal::{Ink, Page, clean, cut};
use super::{number_of, words};

/// Comparisons that a terminal lists; the others are counted.
const LISTED_MAX: usize = 8;
/// Maximum number of columns of a function's name: those of templates may have hundreds.
const NAME_MAX: usize = 60;

/// The functions of one contender at one load level.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionsView {
    pub level: usize,
    pub label: String,
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// The functions with their times.
    pub text: String,
}

/// One entry per level and contender with a difference flame graph.
#[must_use]
pub fn views(summary: &Summary) -> Vec<FunctionsView> {
    let differences = summary.flame_differences.iter();
    differences
        .map(|difference| FunctionsView {
            level: difference.level,
            label: summary
                .duels
                .iter()
                .find(|duel| duel.level == difference.level)
                .map_or_else(String::new, |duel| duel.label.clone()),
            contender: difference.contender.clone(),
            number: number_of(summary, &difference.contender),
            text: named(difference).unwrap_or_else(|| "none beyond sampling error".to_owned()),
        })
        .collect()
}

/// The functions with their times, the largest difference first; `None` where none differs beyond sampling error.
#[must_use]
pub fn named(difference: &FlameDifference) -> Option<String> {
    let functions = difference.functions.iter();
    let named: Vec<String> = functions
        .map(|one| {
            format!(
                "{} {} against {}",
                cut(&one.name, NAME_MAX),
                words::latency(one.cpu_us[1]),
                words::latency(one.cpu_us[0])
            )
        })
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Lists the functions of comparisons in which some differ.
pub(super) fn print(page: &mut Page, summary: &Summary) {
    let differing = summary.flame_differences.iter();
    let differing: Vec<(&FlameDifference, String)> = differing
        .filter_map(|difference| Some((difference, named(difference)?)))
        .collect();
    if differing.is_empty() {
        return;
    }
    page.blank();
    let title = format!(
        "Functions beyond three standard errors of sampling, CPU per transaction against {}",
        clean(&summary.baseline)
    );
    page.inked_lines(Ink::Bold, &title);
    for (difference, functions) in differing.iter().take(LISTED_MAX) {
        let duel = summary
            .duels
            .iter()
            .find(|duel| duel.level == difference.level);
        let label = duel.map_or("", |duel| duel.label.as_str());
        page.item(&format!("{label}, {}: {functions}", difference.contender));
    }
    if let Some(more) = differing
        .len()
        .checked_sub(LISTED_MAX)
        .filter(|more| *more > 0)
    {
        page.item(&format!("{more} more on the HTML page"));
    }
}

#[cfg(test)]
mod tests {
    use dbduel_record::Stamped;
    use dbduel_record::event::Event;

    use crate::{FORMATS, Options};
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn every_format_for_people_names_the_functions_that_differ() {
        let mut record = Scenario::duel().record();
        let stacks = [
            "t;main;read 500\nt;main;sort 500",
            "t;main;read 500\nt;main;sort 990",
        ];
        let plan = record.plan.clone();
        for (contender, files) in record.contenders.iter_mut().enumerate() {
            files.stacks.insert(0, stacks[contender].to_owned());
            record.events.push(Stamped {
                at_ms: 0,
                what: Event::StacksSampled {
                    contender: plan.contenders[contender].name.clone(),
                    level: 0,
                    transactions_per_s: 1000.0,
                    cpu_share_per_sample: 0.001,
                },
            });
        }
        let (summary, findings) = summarise(&record);
        let options = Options {
            width: 100,
            colour: false,
        };
        let mut named = Vec::new();
        for format in FORMATS {
            let text = format.render(&summary, &findings, &options).text;
            if text.contains("sort 990 µs against 500 µs") {
                named.push(format.name);
            }
            assert!(!text.contains("read 500 µs against"), "{}", format.name);
        }
        for format in ["terminal", "html", "markdown"] {
            assert!(named.contains(&format), "{named:?}");
        }
    }
}
