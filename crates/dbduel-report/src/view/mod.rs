//! Content of the page and of its Markdown twin as ready text, in reading order.
//!
//! Text only: no markup, no colour.

use dbduel_audit::Finding;
use dbduel_judge::Summary;
use serde::Serialize;

use super::explanation::{ExplanationView, caution, views};
use super::{attribution, champions, functions, method, order_entry, scaling, suite, words};

mod by_clients;
mod classes;
mod facts;
mod fairness;
pub(super) mod figures;
mod findings;
mod pairs;
mod ratios;
mod storage;
mod verdicts;

pub use by_clients::ByClientsView;
pub use classes::{ClassText, ClassesView};
pub use facts::{ContenderView, SettingView};
pub use fairness::{FairnessView, line as fairness_line};
pub use figures::LevelView;
pub use findings::{DisclosureView, FindingView, severity};
pub use pairs::PairsView;
pub use ratios::RatioView;
pub use verdicts::VerdictView;

use by_clients::by_clients;
use facts::{contender, host, reproduce, setting, when};
use fairness::fairness;
use figures::level;
use findings::{audit_doubts_left, caveats, disclosed, disclosure};
pub use storage::StorageView;
use storage::storage;
use verdicts::verdicts;

/// Differing settings shown at once; the others are folded away.
const SETTINGS_SHOWN: usize = 24;
/// Differing settings listed at most.
const SETTINGS_MAX: usize = 600;

#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub question: String,
    pub headlines: Vec<String>,
    pub baseline: String,
    pub horizon: String,
    pub scope: String,
    pub confidence: String,
    /// Results of the continuity check, as sentences without the full stop.
    pub continuity: Vec<String>,
    /// When the run began and how long it took.
    pub when: String,
    pub workload: String,
    pub verdicts: Vec<VerdictView>,
    /// Content that only a suite has.
    pub suite: Option<suite::SuiteView>,
    /// Latency and cost against the baseline, level by level.
    pub quantities: Vec<RatioView>,
    /// Definitions of these quantities and their error probability.
    pub quantities_note: String,
    /// Every two contenders, level by level; absent for a duel of two.
    pub pairs: Option<PairsView>,
    /// Effects of the factors; absent unless the contest is designed.
    pub attribution: Option<attribution::AttributionView>,
    pub champions: Option<champions::ChampionsView>,
    pub fairness: Option<FairnessView>,
    pub disclosure: Vec<DisclosureView>,
    /// Summary of the disclosure checklist.
    pub disclosed: String,
    /// Scaling over the clients and crossings, as sentences.
    pub scaling: Vec<String>,
    /// Number of findings of severity void and doubt.
    pub reservations: usize,
    /// Findings beside the verdicts.
    pub caveats: Vec<FindingView>,
    /// Number of the audit's doubts shown only in its own section.
    pub caveats_more: usize,
    pub findings: Vec<FindingView>,
    /// Headings of the tables of figures.
    pub columns: Vec<&'static str>,
    /// Tables of figures, one per level.
    pub levels: Vec<LevelView>,
    /// How many cells were in a steady state; empty when it is not known.
    pub courses: String,
    pub explanations: Vec<ExplanationView>,
    /// Functions of servers whose time differs, where stacks were sampled.
    pub functions: Vec<functions::FunctionsView>,
    /// The caveat of the explanations; empty where none compares anything.
    pub caution: String,
    /// Headings of the table over load levels.
    pub by_clients_heads: [&'static str; 8],
    /// Throughput over load levels; empty with fewer than two.
    pub by_clients: Vec<ByClientsView>,
    /// Headings of the table of storage.
    pub storage_heads: [&'static str; 10],
    pub storage: Vec<StorageView>,
    /// Content that only the order-entry workload has.
    pub orders: Option<order_entry::OrdersView>,
    /// Transaction classes, for workloads that have several.
    pub classes: Option<ClassesView>,
    pub contenders: Vec<ContenderView>,
    /// Settings that differ and are shown at once.
    pub settings: Vec<SettingView>,
    /// Settings that differ and are folded away.
    pub settings_more: Vec<SettingView>,
    pub host: Vec<Entry>,
    pub method: Vec<Entry>,
    pub not_measured: Vec<String>,
    /// How to run it again.
    pub reproduce: Vec<Entry>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    pub label: String,
    pub text: String,
}

impl View {
    #[must_use]
    pub fn new(summary: &Summary, findings: &[Finding]) -> Self {
        let mut settings: Vec<SettingView> = summary
            .settings
            .iter()
            .take(SETTINGS_MAX)
            .map(setting)
            .collect();
        let settings_more = settings.split_off(settings.len().min(SETTINGS_SHOWN));
        // A suite has a comparison for each of its cells; these are in its matrices, in the JSON report and in exports.
        let is_suite = summary.suite.is_some();
        let (quantities, quantities_note) = match is_suite {
            true => (Vec::new(), String::new()),
            false => ratios::quantities(summary),
        };
        let findings = findings::views(summary, findings);
        Self {
            question: summary.question.clone(),
            headlines: words::headlines(summary),
            baseline: summary.baseline.clone(),
            horizon: format!("±{}", words::share(summary.rule.horizon)),
            scope: words::scope(summary),
            confidence: words::share(summary.rule.confidence),
            continuity: words::continuity(summary),
            when: when(summary),
            workload: match summary.suite {
                Some(_) => words::things(summary.duels.len() as u64, "workload"),
                None => summary.workload.name.clone(),
            },
            verdicts: verdicts(summary),
            suite: suite::view(summary),
            quantities,
            quantities_note,
            pairs: match is_suite {
                true => None,
                false => pairs::pairs(summary),
            },
            attribution: attribution::view(summary),
            champions: champions::view(summary),
            fairness: fairness(summary),
            disclosure: disclosure(summary),
            disclosed: disclosed(summary),
            caveats: caveats(&findings),
            caveats_more: audit_doubts_left(&findings),
            scaling: scaling::sentences(summary),
            reservations: findings.iter().filter(|one| !one.is_note()).count(),
            findings,
            columns: figures::COLUMNS.iter().map(|column| column.head).collect(),
            levels: summary.duels.iter().map(level).collect(),
            courses: words::courses(summary).unwrap_or_default(),
            explanations: match is_suite {
                true => Vec::new(),
                false => views(summary),
            },
            functions: functions::views(summary),
            caution: caution(summary),
            by_clients_heads: by_clients::HEADS,
            by_clients: match is_suite {
                true => Vec::new(),
                false => by_clients(summary),
            },
            storage_heads: storage::HEADS,
            storage: storage(summary),
            orders: order_entry::view(summary),
            classes: classes::classes(summary),
            contenders: summary
                .contenders
                .iter()
                .enumerate()
                .map(|(at, facts)| contender(summary, at, facts))
                .collect(),
            settings,
            settings_more,
            host: host(summary),
            method: method::paragraphs(summary)
                .into_iter()
                .map(|(label, text)| entry(label, text))
                .collect(),
            not_measured: summary.not_measured.clone(),
            reproduce: reproduce(summary),
        }
    }
}

pub(super) fn entry(label: &str, text: impl Into<String>) -> Entry {
    Entry {
        label: label.to_owned(),
        text: text.into(),
    }
}
