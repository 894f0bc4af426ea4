//! The published JSON: the summary and the findings as they are, nothing rounded.

use dbduel_record::event::Finding;
use serde::{Deserialize, Serialize};

use super::{Format, Options, Rendered, explanation};
use crate::judge::Summary;
use crate::judge::summary::SCHEMA_VERSION;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of the document's schema.
    pub schema_version: u32,
    /// What was concluded.
    pub summary: Summary,
    /// What a reader must be told, heaviest first.
    pub findings: Vec<Finding>,
    /// The explanations of the summary in sentences, in the same order.
    #[serde(default)]
    pub sentences: Vec<Vec<String>>,
}

/// The format.
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn file_name(&self) -> Option<&'static str> {
        Some("report.json")
    }

    fn render(&self, summary: &Summary, findings: &[Finding], _options: &Options) -> Rendered {
        let document = Document {
            schema_version: SCHEMA_VERSION,
            summary: summary.clone(),
            findings: findings.to_vec(),
            sentences: summary
                .explanations
                .iter()
                .map(|one| explanation::sentences(summary, one))
                .collect(),
        };
        let mut text = serde_json::to_string_pretty(&document)
            .expect("a summary has string keys and finite numbers, so it is always JSON");
        text.push('\n');
        text.into()
    }
}
