//! Results of a check, as a JSON document and as text. Pure functions.

use std::fmt::Write as _;

use dbduel_lab::contest::condition_facts;
use dbduel_record::commits::coalesce;
use dbduel_record::facts::Conditions;
use dbduel_report::words::{count, sentence};
use dbduel_workloads::{CommitCheck, Verification, Workload};
use serde::Serialize;

use super::log::Log;

/// Raised when a field changes its name or meaning.
const SCHEMA_VERSION: u32 = 1;

/// All that `dbduel check --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Version of this document's form.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// Disclaimer that must accompany every result of the workload.
    pub disclaimer: Option<&'static str>,
    /// Whether every condition holds and nothing is lost.
    pub holds: bool,
    #[serde(flatten)]
    pub tables: Conditions,
    /// Durability of acknowledged commits, when a log was given.
    pub durability: Option<Durability>,
}

/// Durability of acknowledged commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Durability {
    /// Commits in the log, each counted once.
    pub acknowledged: u64,
    /// Of those, commits that are not in the tables.
    pub lost: u64,
    /// The first lost commit.
    pub example: Option<String>,
    /// Acknowledged numbers that the server assigned again, which it does only after losing them.
    pub repeated: u64,
    /// Commits in the tables that are not in the log.
    pub beyond: u64,
}

impl Durability {
    /// Counts of a log and of its check against the tables.
    pub fn of(log: &Log, commit_check: &CommitCheck) -> Self {
        let CommitCheck {
            acknowledged,
            lost,
            example,
            beyond,
        } = commit_check.clone();
        Durability {
            acknowledged,
            lost,
            example,
            repeated: coalesce(log.ranges.clone()).repeated,
            beyond,
        }
    }

    fn holds(&self) -> bool {
        self.lost == 0 && self.repeated == 0
    }
}

impl Document {
    /// The conditions of a workload.
    pub fn of(workload: &dyn Workload, verification: &Verification) -> Self {
        Document {
            schema_version: SCHEMA_VERSION,
            workload: workload.name().to_owned(),
            disclaimer: workload.disclaimer(),
            holds: verification.holds(),
            tables: condition_facts(verification),
            durability: None,
        }
    }

    /// Adds the durability of acknowledged commits.
    #[must_use]
    pub fn with(self, durability: Durability) -> Self {
        Document {
            holds: self.holds && durability.holds(),
            durability: Some(durability),
            ..self
        }
    }
}

pub fn text(document: &Document) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    if let Some(disclaimer) = document.disclaimer {
        line(sentence(disclaimer));
    }
    if document.tables.conditions.is_empty() {
        line(format!(
            "the workload `{}` has no conditions on its tables",
            document.workload
        ));
    }
    for condition in &document.tables.conditions {
        let state = if condition.violations == 0 {
            "holds   "
        } else {
            "VIOLATED"
        };
        line(format!(
            "{state}  {:<14} {} ({:.1} s)",
            condition.name, condition.about, condition.seconds
        ));
        if let Some(example) = &condition.example {
            line(format!(
                "          {} violations, for example {example}",
                condition.violations
            ));
        }
    }
    for (name, number) in &document.tables.counts {
        line(format!("{:>10}  {name}", count(*number)));
    }
    if let Some(durability) = &document.durability {
        line(durable(durability));
    }
    text
}

fn durable(durability: &Durability) -> String {
    let Durability {
        acknowledged,
        lost,
        example,
        repeated,
        beyond,
    } = durability;
    let mut words = if *lost == 0 {
        format!(
            "holds     durability     All {} acknowledged commits are in the tables.",
            count(*acknowledged)
        )
    } else {
        format!(
            "VIOLATED  durability     {} of {} acknowledged commits are lost, the first is {}.",
            count(*lost),
            count(*acknowledged),
            example.as_deref().unwrap_or("unknown")
        )
    };
    if *repeated > 0 {
        let _ = write!(
            words,
            "\n          {} acknowledged numbers were assigned again, so their first commits were \
             lost.",
            count(*repeated)
        );
    }
    let _ = write!(
        words,
        "\n{:>10}  in the tables but not in the log, for example commits whose acknowledgement did \
         not arrive",
        count(*beyond)
    );
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_workloads::find;

    fn durability(lost: u64, repeated: u64) -> Durability {
        Durability {
            acknowledged: 4_200,
            lost,
            example: (lost > 0).then(|| "order 3007 of district 2 of warehouse 1".to_owned()),
            repeated,
            beyond: 3,
        }
    }

    #[test]
    fn lost_commits_are_said_with_an_example_and_end_the_promise() {
        let document = || Document::of(find("order-entry").unwrap(), &Verification::default());
        let kept = document().with(durability(0, 0));
        assert!(kept.holds);
        assert!(text(&kept).contains("All 4,200 acknowledged commits are in the tables."));
        let lost = document().with(durability(5, 0));
        assert!(!lost.holds && text(&lost).contains("the first is order 3007 of district 2"));
        let reused = document().with(durability(0, 7));
        assert!(
            !reused.holds && text(&reused).contains("7 acknowledged numbers were assigned again")
        );
    }

    #[test]
    fn the_disclaimer_stands_in_text_and_json() {
        let document = Document::of(find("order-entry").unwrap(), &Verification::default());
        let said = "not comparable with published TPC-C results";
        assert!(text(&document).contains(said));
        let json = serde_json::to_value(&document).unwrap();
        assert!(json["disclaimer"].as_str().unwrap().contains(said));
        let other = Document::of(find("oltp-insert").unwrap(), &Verification::default());
        assert!(!text(&other).contains("TPC"));
    }
}
