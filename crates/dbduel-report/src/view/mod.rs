//! Content of the page and of its Markdown twin as ready text, in reading order.
//!
//! Text only: no markup, no colour.

use dbduel_audit::Finding;
use dbduel_judge::Summary;
use serde::Serialize;

use super::explanation::{ExplanationView, caution, views};
use super::{attribution, champions, functions, method, order_entry, scaling, suite, words};

mod answers;
mod by_clients;
mod classes;
mod facts;
mod fairness;
pub(super) mod figures;
mod findings;
mod pairs;
mod ratios;
mod statement_classes;
mod storage;
pub(super) mod table;
mod verdicts;

pub use answers::AnswersView;
pub use classes::ClassesView;
pub use facts::ContenderView;
pub use fairness::{FairnessView, line as fairness_line};
pub use figures::LevelView;
pub use findings::{DisclosureView, FindingView, first_caveats, severity};
pub use pairs::PairsView;
pub use statement_classes::StatementsView;
pub use verdicts::VerdictView;

use answers::answers;
use by_clients::by_clients;
use facts::{contender, host, reproduce, settings, when};
use fairness::fairness;
use figures::level;
use findings::{audit_doubts_left, caveats, disclosed, disclosure};
use storage::storage;
use table::Table;

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
    /// The verdicts with their evidence.
    pub evidence: Table,
    /// Content that only a suite has.
    pub suite: Option<suite::SuiteView>,
    /// Latency and cost against the baseline, level by level.
    pub quantities: Option<Table>,
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
    /// Tables of figures, one per level.
    pub levels: Vec<LevelView>,
    /// How many cells were in a steady state; empty when it is not known.
    pub courses: String,
    pub explanations: Vec<ExplanationView>,
    /// Functions of servers whose time differs, where stacks were sampled.
    pub functions: Vec<functions::FunctionsView>,
    /// The caveat of the explanations; empty where none compares anything.
    pub caution: String,
    /// Throughput over load levels; absent with fewer than two.
    pub by_clients: Option<Table>,
    /// Legend of the stars in that table; empty where it has none.
    pub by_clients_legend: &'static str,
    pub storage: Option<Table>,
    /// Content that only the order-entry workload has.
    pub orders: Option<order_entry::OrdersView>,
    /// Transaction classes, for workloads that have several.
    pub classes: Option<ClassesView>,
    /// Classes of single statements, where these were measured.
    pub statements: Option<StatementsView>,
    /// Answers to captured statements, where they were compared.
    pub answers: Option<AnswersView>,
    pub contenders: Vec<ContenderView>,
    /// Settings that differ and are shown at once.
    pub settings: Option<Table>,
    /// Settings that differ and are folded away.
    pub settings_more: Option<Table>,
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
        let differing = &summary.settings[..summary.settings.len().min(SETTINGS_MAX)];
        let (shown, folded) = differing.split_at(differing.len().min(SETTINGS_SHOWN));
        // A suite has a comparison for each of its cells; these are in its matrices, in the JSON report and in exports.
        let is_suite = summary.suite.is_some();
        let (quantities, quantities_note) = match is_suite {
            true => (None, String::new()),
            false => ratios::quantities(summary),
        };
        let findings = findings::views(summary, findings);
        let verdicts = verdicts::verdicts(summary);
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
            evidence: verdicts::table(&verdicts),
            verdicts,
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
            levels: summary.duels.iter().map(level).collect(),
            courses: words::courses(summary).unwrap_or_default(),
            explanations: match is_suite {
                true => Vec::new(),
                false => views(summary),
            },
            functions: functions::views(summary),
            caution: caution(summary),
            by_clients: match is_suite {
                true => None,
                false => by_clients(summary),
            },
            by_clients_legend: by_clients::legend(summary),
            storage: storage(summary),
            orders: order_entry::view(summary),
            classes: classes::classes(summary),
            statements: statement_classes::statement_classes(summary),
            answers: answers(summary),
            contenders: summary
                .contenders
                .iter()
                .enumerate()
                .map(|(at, facts)| contender(summary, at, facts))
                .collect(),
            settings: settings(summary, shown),
            settings_more: settings(summary, folded),
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
