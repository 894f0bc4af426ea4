//! The published JSON: the summary and the findings as they are, nothing rounded.

use dbduel_audit::Finding;
use dbduel_judge::Summary;
use dbduel_judge::summary::SCHEMA_VERSION;
use dbduel_record::event;
use dbduel_text::escaped_json;
use serde::Serialize;

use super::{Format, Options, Rendered, explanation};

/// A report of dbduel in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "dbduel report"))]
pub struct Document {
    /// Version of the document's schema.
    pub schema_version: u32,
    /// Verdicts, figures and facts of the contest.
    pub summary: Summary,
    /// Findings, heaviest first.
    pub findings: Vec<event::Notice>,
    /// The explanations of the summary in sentences, in the same order.
    #[serde(default)]
    pub sentences: Vec<Vec<String>>,
}

/// The schema of the document as it is written, JSON Schema 2020-12. Fields may be added without a new version.
pub const SCHEMA: &str = include_str!("../report.schema.json");

/// The format.
pub const JSON: Format = Format {
    name: "json",
    file_name: Some("report.json"),
    render: json,
};

fn json(summary: &Summary, findings: &[Finding], _options: &Options) -> Rendered {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        summary: summary.clone(),
        findings: findings.iter().cloned().map(event::Notice::from).collect(),
        sentences: summary
            .explanations
            .iter()
            .map(|one| explanation::sentences(summary, one).all())
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("a summary has string keys and finite numbers, so it is always JSON");
    text.push('\n');
    Rendered::of_files(&escaped_json(text), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::{Observation, Scenario};
    use serde_json::{Value, json};

    use crate::published_schema::tests::{published, violations};

    fn schema() -> Value {
        published::<Document>("report.schema.json")
    }

    fn document(scenario: &Scenario) -> Value {
        let (summary, findings) = summarise(&scenario.record());
        let options = Options {
            width: 80,
            colour: false,
        };
        serde_json::from_str(&JSON.render(&summary, &findings, &options).text).unwrap()
    }

    #[test]
    fn the_published_schema_is_that_of_the_types() {
        schema();
    }

    #[test]
    fn reports_of_all_kinds_obey_the_schema() {
        let schema = schema();
        let mut with_stalls = Scenario::duel();
        with_stalls.sides[1].stalls_per_s = 0.03;
        let scenarios = [
            Scenario::duel(),
            Scenario::duel().observed(Observation::doublewrite()),
            Scenario::four(),
            with_stalls,
            Scenario {
                blocks: 1,
                ..Scenario::duel()
            },
        ];
        for scenario in &scenarios {
            let found = violations(&schema, &document(scenario));
            assert!(found.is_empty(), "{found:#?}");
        }
    }

    #[test]
    fn what_is_no_report_breaks_the_schema() {
        let schema = schema();
        let good = document(&Scenario::duel());
        let broken = [
            ("/schema_version", json!("2")),
            ("/summary/baseline", json!(null)),
            ("/summary/duels/0/comparisons/0/verdict", json!("better")),
            (
                "/summary/duels/0/comparisons/0/ratio",
                json!({ "state": "estimated" }),
            ),
            ("/findings", json!({})),
        ];
        for (place, value) in broken {
            let mut document = good.clone();
            *document.pointer_mut(place).expect(place) = value;
            assert!(!violations(&schema, &document).is_empty(), "{place}");
        }
    }
}
