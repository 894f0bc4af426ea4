//! The report for a terminal: the verdict first, then what it rests on.
//!
//! Plain text of a given width; colour is an ornament that can be left out.

mod orders;
mod page;
mod ratios;

use dbduel_record::event::{Finding, Severity};

use super::view::{View, audit_doubts_left, caveats, fairness_line, interval, severity};
use super::{Format, Options, Rendered, explanation, scaling, words};
pub use page::wrap;
use page::{Ink, Page, clean};

use crate::judge::Summary;
use crate::judge::audit::Grade;
use crate::judge::summary::{Comparison, Figure, Measures, Verdict};

/// Notes that are listed; the rest is counted.
const NOTES_MAX: usize = 6;

/// The format.
pub struct Terminal;

impl Format for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn file_name(&self) -> Option<&'static str> {
        None
    }

    fn render(&self, summary: &Summary, findings: &[Finding], options: &Options) -> Rendered {
        let mut page = Page::new(options);
        verdict_box(&mut page, summary, findings);
        figures(&mut page, summary);
        ratios::quantities(&mut page, summary);
        ratios::pairs(&mut page, summary);
        for (number, sentence) in scaling::sentences(summary).iter().enumerate() {
            if number == 0 {
                page.blank();
            }
            page.wrapped(sentence);
        }
        explanations(&mut page, summary);
        let view = View::new(summary, findings);
        if let Some(part) = &view.orders {
            orders::orders(&mut page, part);
        }
        list_findings(&mut page, findings);
        page.blank();
        page.wrapped(&format!(
            "Scope: {}. {}",
            words::scope(summary),
            scope_note(summary)
        ));
        if let Some(own) = words::own_resolution(summary) {
            page.wrapped(&format!("The lab's own resolution here: {own}."));
        }
        page.wrapped(&format!("Ran: {}; {}", view.when, view.workload));
        page.wrapped(&format!(
            "Again: seed {}, planned by dbduel {}",
            summary.seed, summary.planned_by
        ));
        if let Some(digest) = &summary.record_digest {
            page.wrapped(&format!("Record: digest {digest}"));
        }
        Rendered::from(page.text)
    }
}

/// Sentences per explanation on a terminal; the page has all of them.
const SENTENCES: usize = 5;

fn explanations(page: &mut Page, summary: &Summary) {
    let telling = summary
        .explanations
        .iter()
        .filter(|one| explanation::is_telling(one));
    let mut is_told = false;
    for one in telling {
        is_told = true;
        let sentences = explanation::sentences(summary, one);
        let level = summary.duels.iter().find(|duel| duel.level == one.level);
        let label = level.map_or("", |duel| duel.label.as_str());
        page.blank();
        page.wrapped(&format!(
            "What moved with it: {} against {}, {label}",
            one.contender, summary.baseline
        ));
        for sentence in sentences.iter().take(SENTENCES) {
            page.wrapped(&format!("- {sentence}"));
        }
    }
    if is_told {
        page.wrapped(explanation::CAUTION);
    }
}

fn scope_note(summary: &Summary) -> String {
    format!(
        "Intervals {}; {} error probability per load level.",
        words::share(summary.rule.confidence),
        words::share(1.0 - summary.rule.confidence)
    )
}

fn ink_of(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Faster => Ink::Good,
        Verdict::Slower | Verdict::Void => Ink::Bad,
        Verdict::Equivalent => Ink::Bold,
        Verdict::Undecided => Ink::Warning,
    }
}

fn verdict_box(page: &mut Page, summary: &Summary, findings: &[Finding]) {
    let inner = page.width - 4;
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut plain = |page: &Page, ink: Ink, text: &str| {
        for line in wrap(&clean(text), inner, 0, 0) {
            lines.push((line.clone(), page.inked(ink, &line)));
        }
    };
    plain(page, Ink::Bold, &summary.question);
    plain(page, Ink::Plain, "");
    for headline in words::headlines(summary) {
        plain(page, Ink::Plain, &format!("{headline}."));
    }
    plain(page, Ink::Plain, "");
    for row in verdict_rows(summary) {
        let cells = row.cells(inner);
        let ink = ink_of(row.verdict);
        lines.extend(cells.into_iter().map(|line| {
            let inked = line.replacen(&row.word, &page.inked(ink, &row.word), 1);
            (line, inked)
        }));
    }
    let against = format!(
        "against {}, horizon ±{}{}",
        clean(&summary.baseline),
        words::share(summary.rule.horizon),
        reservations(findings)
    );
    for line in wrap(&against, inner, 0, 0) {
        lines.push((line.clone(), page.inked(Ink::Dim, &line)));
    }
    if let Some((fairness, audit)) = fairness_line(summary).zip(summary.audit.as_ref()) {
        let ink = match audit.grade {
            Grade::Fair => Ink::Good,
            Grade::Doubtful | Grade::Unfair => Ink::Warning,
            Grade::NotComparable => Ink::Bad,
        };
        for line in wrap(&clean(&format!("fair? {fairness}")), inner, 0, 7) {
            lines.push((line.clone(), page.inked(ink, &line)));
        }
    }
    let title = " verdict ";
    page.line(&format!(
        "┌─{title}{}┐",
        "─".repeat(page.width - 3 - title.chars().count())
    ));
    for (plain, inked) in lines {
        let space = inner.saturating_sub(plain.chars().count());
        page.line(&format!("│ {inked}{} │", " ".repeat(space)));
    }
    page.line(&format!("└{}┘", "─".repeat(page.width - 2)));
}

fn reservations(findings: &[Finding]) -> String {
    let count = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    match (count(Severity::Void), count(Severity::Doubt)) {
        (0, 0) => String::new(),
        (0, 1) => "; 1 doubt, see below".to_owned(),
        (0, doubts) => format!("; {doubts} doubts, see below"),
        (_, _) => "; not valid as it stands, see below".to_owned(),
    }
}

/// A verdict as a row of the box.
struct Row {
    label: String,
    label_width: usize,
    verdict: Verdict,
    word: String,
    ratio: String,
    interval: String,
    blocks: String,
    because: Option<String>,
}

impl Row {
    /// One line where it fits, more where it does not, and the reason for the verdict below.
    fn cells(&self, width: usize) -> Vec<String> {
        let verdict = format!("{:<12} {:>8}", self.word, self.ratio);
        let rest = format!("({})  {}", self.interval, self.blocks);
        let label_width = self.label_width;
        let whole = format!("{:<label_width$}  {verdict}  {rest}", self.label);
        let indented = |text: &str| {
            wrap(text, width - 4, 0, 0)
                .into_iter()
                .map(|line| format!("    {line}"))
        };
        let mut lines = if whole.chars().count() <= width {
            vec![whole]
        } else {
            let mut lines = vec![format!("  {verdict}")];
            lines.splice(0..0, wrap(&self.label, width, 0, 0));
            lines.extend(indented(&rest));
            lines
        };
        if let Some(because) = &self.because {
            lines.extend(indented(&clean(because)));
        }
        lines
    }
}

fn verdict_rows(summary: &Summary) -> Vec<Row> {
    let several = summary.contenders.len() > 2;
    let mut rows: Vec<Row> = Vec::new();
    for duel in &summary.duels {
        for comparison in &duel.comparisons {
            let label = if several {
                format!("{}, {}", comparison.contender, duel.label)
            } else {
                duel.label.clone()
            };
            rows.push(row(clean(&label), comparison, duel.blocks_complete));
        }
    }
    let label_width = rows
        .iter()
        .map(|row| row.label.chars().count())
        .max()
        .unwrap_or(0);
    for row in &mut rows {
        row.label_width = label_width;
    }
    rows
}

fn row(label: String, comparison: &Comparison, blocks: u32) -> Row {
    Row {
        label,
        label_width: 0,
        verdict: comparison.verdict,
        word: format!(
            "{} {}",
            words::sign(comparison.verdict),
            comparison.verdict.word()
        ),
        ratio: words::ratio_value(&comparison.ratio).unwrap_or_else(|| "–".to_owned()),
        interval: match &comparison.ratio {
            ratio @ Figure::Estimated { .. } => interval(ratio),
            Figure::Bare { .. } => "no interval".to_owned(),
            Figure::NotMeasured { .. } => words::NOT_MEASURED.to_owned(),
        },
        blocks: if blocks == 1 {
            "1 block".to_owned()
        } else {
            format!("{blocks} blocks")
        },
        because: comparison.because.clone(),
    }
}

/// A column of the table of figures.
type Column = (&'static str, fn(&Measures) -> &Figure, fn(f64) -> String);

/// The columns in the order of their importance; narrow terminals get the first ones.
const COLUMNS: [Column; 7] = [
    (
        "trx/s",
        |measures| &measures.throughput_per_s,
        words::number,
    ),
    ("mean", |measures| &measures.latency_us_mean, words::latency),
    ("p50", |measures| &measures.latency_us_p50, words::latency),
    ("p95", |measures| &measures.latency_us_p95, words::latency),
    ("p99", |measures| &measures.latency_us_p99, words::latency),
    ("max", |measures| &measures.latency_us_max, words::latency),
    (
        "CPU/trx",
        |measures| &measures.server_cpu_us_per_transaction,
        words::latency,
    ),
];

fn figures(page: &mut Page, summary: &Summary) {
    page.blank();
    let cell_width = 10;
    let names = summary
        .contenders
        .iter()
        .map(|contender| clean(&contender.name).chars().count() + 2);
    let name_width = names.max().unwrap_or(0).clamp(10, page.width / 3);
    let shown = ((page.width - name_width) / (cell_width + 1)).clamp(1, COLUMNS.len());
    let heads: String = COLUMNS[..shown]
        .iter()
        .map(|(head, ..)| format!(" {head:>cell_width$}"))
        .collect();
    let head = page.inked(Ink::Dim, &format!("{:name_width$}{heads}", ""));
    page.line(&head);
    for duel in &summary.duels {
        let label = page.inked(Ink::Bold, &duel.label);
        page.line(&label);
        for measures in &duel.contenders {
            let name: String = clean(&measures.contender)
                .chars()
                .take(name_width - 2)
                .collect();
            let column = |figure: &Figure, text: fn(f64) -> String| {
                figure.value().map_or("–".to_owned(), text)
            };
            let values: String = COLUMNS[..shown]
                .iter()
                .map(|(_, figure, text)| {
                    format!(" {:>cell_width$}", column(figure(measures), *text))
                })
                .collect();
            page.line(&format!("  {name:<space$}{values}", space = name_width - 2));
            let doubts: Vec<String> = COLUMNS[..shown]
                .iter()
                .map(|(_, figure, _)| half_width(figure(measures)))
                .collect();
            if doubts.iter().any(|doubt| !doubt.is_empty()) {
                let doubts: String = doubts
                    .iter()
                    .map(|doubt| format!(" {doubt:>cell_width$}"))
                    .collect();
                let line = page.inked(Ink::Dim, &format!("{:name_width$}{doubts}", ""));
                page.line(&line);
            }
        }
    }
    let note = format!(
        "±: half width of the {} interval of a single contender, over slices; no ±: no interval could be given. Compare \
         contenders by the ratio above.",
        words::share(summary.rule.confidence)
    );
    for line in wrap(&note, page.width, 0, 0) {
        let line = page.inked(Ink::Dim, &line);
        page.line(&line);
    }
}

/// The larger half of the interval as a share of the value.
fn half_width(figure: &Figure) -> String {
    let Some((value, (low, high))) = figure.value().zip(figure.interval()) else {
        return String::new();
    };
    if value <= 0.0 || !high.is_finite() {
        return "±?".to_owned();
    }
    let half = (high - value).max(value - low) / value;
    format!("±{:.1} %", 100.0 * half)
}

fn list_findings(page: &mut Page, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.blank();
    let mut notes = 0;
    let left = audit_doubts_left(findings);
    let is_note = |finding: &&Finding| finding.severity == Severity::Note;
    for finding in caveats(findings).chain(findings.iter().filter(is_note)) {
        let (word, sign) = severity(finding.severity);
        if finding.severity == Severity::Note {
            notes += 1;
            if notes > NOTES_MAX {
                continue;
            }
        }
        let ink = match finding.severity {
            Severity::Void => Ink::Bad,
            Severity::Doubt => Ink::Warning,
            Severity::Note => Ink::Dim,
        };
        let label = format!("{sign} {word:<5}  ");
        let lines = wrap(&clean(&finding.claim), page.width, 9, 9);
        for (index, line) in lines.iter().enumerate() {
            let start = if index == 0 {
                page.inked(ink, &label)
            } else {
                " ".repeat(9)
            };
            page.line(&format!("{start}{line}"));
        }
        if finding.severity > Severity::Note {
            for line in wrap(&format!("→ {}", clean(&finding.remedy)), page.width, 9, 11) {
                let line = page.inked(Ink::Dim, &format!("         {line}"));
                page.line(&line);
            }
        }
    }
    if left > 0 {
        let more = format!(
            "and {left} more doubts of the audit: see the page, or `dbduel audit` the record"
        );
        for line in wrap(&more, page.width, 9, 9) {
            page.line(&format!("         {line}"));
        }
    }
    if notes > NOTES_MAX {
        page.line(&format!("         and {} more notes", notes - NOTES_MAX));
    }
}
