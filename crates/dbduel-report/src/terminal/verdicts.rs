//! The box with the verdicts.

use dbduel_audit::Grade;
use dbduel_judge::Summary;
use dbduel_judge::summary::{Comparison, Figure};
use dbduel_record::Verdict;

use super::page::{Ink, Page, clean, columns_of, padded, wrap};
use crate::view::{FindingView, fairness_line};
use crate::words::{self, RatioUnit};

/// Prints the box: question, answer, and whether it was fair.
pub(super) fn verdict_box(page: &mut Page, summary: &Summary, findings: &[FindingView]) {
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
    // The verdicts of a suite are its matrices.
    let rows = match summary.suite {
        Some(_) => Vec::new(),
        None => verdict_rows(summary),
    };
    for row in rows {
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
        for line in wrap(&clean(&format!("Was it fair? {fairness}")), inner, 0, 0) {
            lines.push((line.clone(), page.inked(ink, &line)));
        }
    }
    let title = " verdict ";
    page.line(&format!(
        "┌─{title}{}┐",
        "─".repeat(page.width - 3 - columns_of(title))
    ));
    for (plain, inked) in lines {
        let space = inner.saturating_sub(columns_of(&plain));
        page.line(&format!("│ {inked}{} │", " ".repeat(space)));
    }
    page.line(&format!("└{}┘", "─".repeat(page.width - 2)));
}

fn ink_of(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Faster => Ink::Good,
        Verdict::Slower | Verdict::Void => Ink::Bad,
        Verdict::Equivalent => Ink::Bold,
        Verdict::Undecided => Ink::Warning,
    }
}

fn reservations(findings: &[FindingView]) -> String {
    let count = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    match (count("void"), count("doubt")) {
        (0, 0) => String::new(),
        // Not called doubts: whether settings are fair is another question, answered on the next line.
        (0, doubts) => format!("; {} below", words::things(doubts as u64, "caveat")),
        (_, _) => "; not valid, see below".to_owned(),
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
    /// Reason for the verdict and reservations.
    remarks: Vec<String>,
}

impl Row {
    /// Lines of a row: one where it fits, more where it does not, and the reason for the verdict below.
    fn cells(&self, width: usize) -> Vec<String> {
        let verdict = format!("{} {:>8}", padded(&self.word, 12), self.ratio);
        let rest = format!("({})  {}", self.interval, self.blocks);
        let whole = format!(
            "{}  {verdict}  {rest}",
            padded(&self.label, self.label_width)
        );
        let indented = |text: &str| {
            wrap(text, width - 4, 0, 0)
                .into_iter()
                .map(|line| format!("    {line}"))
        };
        let mut lines = if columns_of(&whole) <= width {
            vec![whole]
        } else {
            let mut lines = vec![format!("  {verdict}")];
            lines.splice(0..0, wrap(&self.label, width, 0, 0));
            lines.extend(indented(&rest));
            lines
        };
        for remark in &self.remarks {
            lines.extend(indented(&clean(remark)));
        }
        lines
    }
}

fn verdict_rows(summary: &Summary) -> Vec<Row> {
    let unit = words::verdict_unit(summary);
    let several = summary.contenders.len() > 2;
    let mut rows: Vec<Row> = Vec::new();
    for duel in &summary.duels {
        for comparison in &duel.comparisons {
            let label = if several {
                format!("{}, {}", comparison.contender, duel.label)
            } else {
                duel.label.clone()
            };
            let mut row = row(clean(&label), comparison, duel.blocks_complete, unit);
            let identical = words::identical(summary, &comparison.contender);
            row.remarks.extend(identical.map(str::to_owned));
            rows.push(row);
        }
    }
    let label_width = rows
        .iter()
        .map(|row| columns_of(&row.label))
        .max()
        .unwrap_or(0);
    for row in &mut rows {
        row.label_width = label_width;
    }
    rows
}

fn row(label: String, comparison: &Comparison, blocks: u32, unit: RatioUnit) -> Row {
    let mut remarks: Vec<String> = comparison.because.iter().cloned().collect();
    if let Figure::Bare { why, .. } = &comparison.ratio
        && comparison.because.is_none()
    {
        remarks.push(format!("no interval: {why}"));
    }
    Row {
        label,
        label_width: 0,
        verdict: comparison.verdict,
        word: format!(
            "{} {}",
            words::sign(comparison.verdict),
            comparison.verdict.word()
        ),
        ratio: unit.value(&comparison.ratio),
        interval: match &comparison.ratio {
            ratio @ Figure::Estimated { .. } => unit.doubt(ratio),
            Figure::Bare { .. } => "no interval".to_owned(),
            Figure::NotMeasured { .. } => words::NOT_MEASURED.to_owned(),
        },
        blocks: words::things(blocks.into(), "block"),
        remarks,
    }
}
