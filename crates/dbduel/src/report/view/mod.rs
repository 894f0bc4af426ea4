//! What the page and its Markdown twin say, as ready text in the order of reading.
//!
//! Decides words, not looks: no markup, no colour.

use dbduel_record::event::{Finding, Severity};
use serde::Serialize;

use super::explanation::{ExplanationView, caution, views};
use super::{method, scaling, words};
use crate::judge::Summary;

mod by_clients;
mod facts;
mod fairness;
mod figures;
mod orders;
mod pairs;
mod ratios;
mod storage;
mod verdicts;

pub use by_clients::{ByClientsView, HEADS as BY_CLIENTS_HEADS};
pub use fairness::{FairnessView, line as fairness_line};
pub use figures::COLUMNS;
pub use orders::{CLASS_COLUMNS, OrdersView};
pub use pairs::PairsView;
pub use verdicts::{interval, severity};

use by_clients::by_clients;
use facts::{contender, host, reproduce, setting, when};
use fairness::fairness;
use figures::level;
use storage::storage;
pub use storage::{HEADS as STORAGE_HEADS, StorageView};
use verdicts::{finding, verdict};

/// Differing settings that are shown at once; the rest is one click away.
const SETTINGS_SHOWN: usize = 24;
/// Differing settings that are listed at all.
const SETTINGS_MAX: usize = 600;

/// A whole report as text.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// The experiment's question.
    pub question: String,
    /// One sentence per contender.
    pub headlines: Vec<String>,
    /// Name of the baseline.
    pub baseline: String,
    /// The horizon, `±2 %`.
    pub horizon: String,
    /// What the verdicts are about.
    pub scope: String,
    /// The confidence, `95 %`.
    pub confidence: String,
    /// When the run began and how long it took.
    pub when: String,
    /// Name of the workload.
    pub workload: String,
    /// The verdicts, level by level.
    pub verdicts: Vec<VerdictView>,
    /// Latency and cost against the baseline, level by level.
    pub quantities: Vec<RatioView>,
    /// What these are and how sure.
    pub quantities_note: String,
    /// Every two contenders, level by level; absent for a duel of two.
    pub pairs: Option<PairsView>,
    /// Whether the contest was fair.
    pub fairness: Option<FairnessView>,
    /// What a reader must be told, by section.
    pub disclosure: Vec<DisclosureView>,
    /// How much of it the record has.
    pub disclosed: String,
    /// Scaling over the clients and crossings, as sentences.
    pub scaling: Vec<String>,
    /// Number of findings of severity void and doubt.
    pub reservations: usize,
    /// Those that stand beside the verdicts.
    pub caveats: Vec<FindingView>,
    /// How many of the audit are left to its own section.
    pub caveats_more: usize,
    /// Findings, heaviest first.
    pub findings: Vec<FindingView>,
    /// Tables of figures, one per level.
    pub levels: Vec<LevelView>,
    /// How many cells were in a steady state; empty when it is not known.
    pub courses: String,
    /// What moved with each difference.
    pub explanations: Vec<ExplanationView>,
    /// What must be read with the explanations; empty where none compares anything.
    pub caution: String,
    /// Throughput over load levels; empty with fewer than two.
    pub by_clients: Vec<ByClientsView>,
    /// What storage made of the changes.
    pub storage: Vec<StorageView>,
    /// What only the order-entry workload has.
    pub orders: Option<OrdersView>,
    /// The contenders.
    pub contenders: Vec<ContenderView>,
    /// Settings that differ and are shown at once.
    pub settings: Vec<SettingView>,
    /// Settings that differ and are folded away.
    pub settings_more: Vec<SettingView>,
    /// The machine.
    pub host: Vec<Entry>,
    /// How figures came about.
    pub method: Vec<Entry>,
    /// What was not measured.
    pub not_measured: Vec<String>,
    /// What it takes to run it again.
    pub reproduce: Vec<Entry>,
}

/// A label and its text.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Label.
    pub label: String,
    /// Text.
    pub text: String,
}

/// A section of the disclosure checklist.
#[derive(Debug, Clone, Serialize)]
pub struct DisclosureView {
    /// Its heading.
    pub section: String,
    /// Items that the record has.
    pub present: Vec<String>,
    /// Items that it lacks, each with the place where it would be.
    pub missing: Vec<Entry>,
}

/// One verdict.
#[derive(Debug, Clone, Serialize)]
pub struct VerdictView {
    /// Name of the level.
    pub level: String,
    /// Name of the contender.
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// `faster`, `slower`, `equivalent`, `undecided` or `void`.
    pub verdict: &'static str,
    /// The verdict with its restriction.
    pub phrase: String,
    /// A sign for the verdict.
    pub sign: &'static str,
    /// The ratio.
    pub ratio: String,
    /// Its interval, or why there is none.
    pub interval: String,
    /// Number of blocks.
    pub blocks: String,
    /// How it was decided, or why not.
    pub how: String,
    /// Cross-checks of the ratio.
    pub checks: String,
    /// What would overturn it.
    pub overturned_by: Vec<String>,
}

/// One ratio beside the verdict's.
#[derive(Debug, Clone, Serialize)]
pub struct RatioView {
    /// Name of the level.
    pub level: String,
    /// Name of the contender.
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// What is compared.
    pub what: String,
    /// The answer as a class of looks: `higher`, `lower`, `undecided` ...
    pub answer: &'static str,
    /// The answer with its sign.
    pub phrase: String,
    /// The ratio.
    pub ratio: String,
    /// Its interval, or why there is none.
    pub interval: String,
    /// Standard deviation of a block; empty when there is none.
    pub block_sd: String,
}

/// One finding.
#[derive(Debug, Clone, Serialize)]
pub struct FindingView {
    /// `void`, `doubt` or `note`.
    pub severity: &'static str,
    /// A sign for the severity.
    pub sign: &'static str,
    /// Name of the rule.
    pub rule: String,
    /// Why the rule matters; empty when it says so itself.
    pub why: String,
    /// The claim.
    pub claim: String,
    /// The remedy.
    pub remedy: String,
}

/// The figures of one level.
#[derive(Debug, Clone, Serialize)]
pub struct LevelView {
    /// Name of the level.
    pub label: String,
    /// Blocks that count and those that do not.
    pub blocks: String,
    /// One row per contender.
    pub rows: Vec<MeasuresView>,
    /// Heading of the list below.
    pub why_without: String,
    /// Why some of the figures have no interval.
    pub without_interval: Vec<String>,
}

/// The figures of one contender at one level.
#[derive(Debug, Clone, Serialize)]
pub struct MeasuresView {
    /// Name.
    pub contender: String,
    /// Number, for colour and shape.
    pub number: usize,
    /// Figures in the order of [`COLUMNS`].
    pub figures: Vec<FigureView>,
    /// Committed, failed, retried.
    pub outcomes: String,
    /// The stall ledger.
    pub stalls: String,
    /// Whether it was in a steady state; absent where nothing is shown.
    pub course: Option<String>,
}

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub struct FigureView {
    /// Value, or that there is none.
    pub value: String,
    /// Interval, or that there is none.
    pub doubt: String,
    /// How it was obtained and why there is no interval.
    pub how: String,
}

/// One contender.
#[derive(Debug, Clone, Serialize)]
pub struct ContenderView {
    /// Name.
    pub name: String,
    /// Number, for colour and shape.
    pub number: usize,
    /// True for the baseline.
    pub is_baseline: bool,
    /// Product and version as found.
    pub version: String,
    /// Facts about it.
    pub facts: Vec<Entry>,
    /// Settings asked for.
    pub settings: Vec<Entry>,
}

/// One setting that differs.
#[derive(Debug, Clone, Serialize)]
pub struct SettingView {
    /// Name of the variable.
    pub name: String,
    /// True when the experiment set it.
    pub is_asked_for: bool,
    /// Value per contender.
    pub values: Vec<String>,
}

impl View {
    /// The report on a summary.
    #[must_use]
    pub fn new(summary: &Summary, findings: &[Finding]) -> Self {
        let mut settings: Vec<SettingView> = summary
            .settings
            .iter()
            .take(SETTINGS_MAX)
            .map(setting)
            .collect();
        let settings_more = settings.split_off(settings.len().min(SETTINGS_SHOWN));
        let (quantities, quantities_note) = ratios::quantities(summary);
        Self {
            question: summary.question.clone(),
            headlines: words::headlines(summary),
            baseline: summary.baseline.clone(),
            horizon: format!("±{}", words::share(summary.rule.horizon)),
            scope: words::scope(summary),
            confidence: words::share(summary.rule.confidence),
            when: when(summary),
            workload: summary.workload.name.clone(),
            verdicts: summary
                .duels
                .iter()
                .flat_map(|duel| {
                    duel.comparisons
                        .iter()
                        .map(|comparison| verdict(summary, duel, comparison))
                })
                .collect(),
            quantities,
            quantities_note,
            pairs: pairs::pairs(summary),
            fairness: fairness(summary),
            disclosure: disclosure(summary),
            disclosed: disclosed(summary),
            caveats: caveats(findings).map(|one| finding(summary, one)).collect(),
            caveats_more: audit_doubts_left(findings),
            scaling: scaling::sentences(summary),
            reservations: findings
                .iter()
                .filter(|finding| finding.severity > Severity::Note)
                .count(),
            findings: findings.iter().map(|one| finding(summary, one)).collect(),
            levels: summary.duels.iter().map(level).collect(),
            courses: words::courses(summary).unwrap_or_default(),
            explanations: views(summary),
            caution: caution(summary),
            by_clients: by_clients(summary),
            storage: storage(summary),
            orders: orders::orders(summary),
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

/// Doubts of the audit that stand beside the verdicts; the audit has a section for all of them.
const AUDIT_DOUBTS_SHOWN: usize = 5;

fn is_of_audit(finding: &Finding) -> bool {
    finding.severity == Severity::Doubt && finding.rule.starts_with("audit.")
}

/// What must stand beside the verdicts: voids and doubts, of the audit's doubts only the first.
pub fn caveats(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    let heavy = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note);
    let mut of_audit = 0;
    heavy.filter(move |finding| {
        of_audit += usize::from(is_of_audit(finding));
        !is_of_audit(finding) || of_audit <= AUDIT_DOUBTS_SHOWN
    })
}

/// How many doubts of the audit are not among the [`caveats`].
#[must_use]
pub fn audit_doubts_left(findings: &[Finding]) -> usize {
    let of_audit = findings.iter().filter(|finding| is_of_audit(finding));
    of_audit.count().saturating_sub(AUDIT_DOUBTS_SHOWN)
}

fn disclosure(summary: &Summary) -> Vec<DisclosureView> {
    let mut sections: Vec<DisclosureView> = Vec::new();
    for item in &summary.disclosure {
        if sections
            .last()
            .is_none_or(|last| last.section != item.section)
        {
            sections.push(DisclosureView {
                section: item.section.clone(),
                present: Vec::new(),
                missing: Vec::new(),
            });
        }
        let Some(section) = sections.last_mut() else {
            continue;
        };
        if item.present {
            section.present.push(item.item.clone());
        } else {
            section.missing.push(entry(&item.item, item.place.clone()));
        }
    }
    sections
}

fn disclosed(summary: &Summary) -> String {
    let all = summary.disclosure.len();
    let present = summary
        .disclosure
        .iter()
        .filter(|item| item.present)
        .count();
    format!("{present} of {all} present, {} missing", all - present)
}

fn entry(label: &str, text: impl Into<String>) -> Entry {
    Entry {
        label: label.to_owned(),
        text: text.into(),
    }
}
