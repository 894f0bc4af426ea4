//! The audit as text for a terminal.

use std::fmt::Write as _;

use dbduel_audit::Audit;
use dbduel_audit::Finding;
use dbduel_audit::codes::{What, codes};
use dbduel_record::event::Severity;

use dbduel_report as report;

/// Narrowest text that is wrapped, columns.
pub(super) const WIDTH_MIN: usize = 60;
/// Where the text of a finding begins, columns.
pub(super) const INDENT: usize = 7;
/// Most values printed per side; the JSON has all.
const READS_PRINTED: usize = 6;

/// The audit as text.
pub fn render(audit: &Audit, is_everything: bool, width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut text = format!("Was it fair? {}{}\n\n", audit.grade.word(), counted(audit));
    let longest = audit
        .contenders
        .iter()
        .map(|contender| contender.name.chars().count())
        .max()
        .unwrap_or(0);
    for contender in &audit.contenders {
        let _ = writeln!(
            text,
            "  {:<longest$}  {} {}",
            contender.name, contender.product, contender.version
        );
        wrap(
            &mut text,
            &format!("from {}", contender.source),
            longest + 4,
            width,
        );
        wrap(&mut text, &contender.promise, longest + 4, width);
    }
    for finding in &audit.findings {
        text.push('\n');
        render_finding(&mut text, finding, is_everything, width);
    }
    render_counts(&mut text, audit, is_everything, width);
    for waiver in &audit.unused_waivers {
        let line = format!(
            "The waiver of {} was not needed: {}",
            waiver.of, waiver.reason
        );
        wrap(&mut text, &line, 0, width);
    }
    text
}

/// How many findings of each severity there are, heaviest first; empty when there is none.
fn counted(audit: &Audit) -> String {
    let words = audit.counted(Severity::Note);
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(", "))
    }
}

fn render_finding(text: &mut String, finding: &Finding, is_everything: bool, width: usize) {
    let word = match finding.severity {
        Severity::Void => "void ",
        Severity::Doubt => "doubt",
        Severity::Note => "note ",
    };
    let _ = writeln!(text, "{word}  {}  {}", finding.class, finding.rule);
    wrap(text, &finding.claim, INDENT, width);
    if let Some(reason) = &finding.waived {
        wrap(text, &format!("Waived: {reason}"), INDENT, width);
    }
    if finding.severity == Severity::Note && !is_everything {
        return;
    }
    for side in finding.evidence.iter().filter(|side| !side.from.is_empty()) {
        let reads = side.reads(READS_PRINTED, |read| {
            format!("{}={}", read.name, read.value)
        });
        let line = format!("{}: {}", side.contender, reads.join(" "));
        wrap(text, &line, INDENT + 2, width);
    }
    wrap(text, &finding.why, INDENT, width);
    wrap(text, &finding.remedy, INDENT, width);
}

fn render_counts(text: &mut String, audit: &Audit, is_everything: bool, width: usize) {
    text.push('\n');
    wrap(text, &audit.compared(), 0, width);
    let favoured: Vec<String> = audit
        .contenders
        .iter()
        .map(|contender| (audit.favours(&contender.name), &contender.name))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} `{name}`"))
        .collect();
    if !favoured.is_empty() {
        let line = format!(
            "Doubts with a known direction favour: {}.",
            favoured.join(", ")
        );
        wrap(text, &line, 0, width);
    }
    if is_everything {
        for one in &audit.comparisons {
            let line = format!(
                "{:<4} {}: {} | {}",
                one.class, one.title, one.sides[0].value, one.sides[1].value
            );
            wrap(text, &line, 2, width);
        }
    }
}

/// Appends `line`, wrapped at blanks and indented. Control characters, which foreign files may contain, are replaced by
/// blanks.
pub(super) fn wrap(text: &mut String, line: &str, indent: usize, width: usize) {
    let line = line.replace(char::is_control, " ");
    for line in report::wrap(&line, width, indent, indent) {
        let line = format!("{:indent$}{line}", "");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Lines on inputs that could not be used, with the reason.
pub fn left_out(left_out: &[String], width: usize) -> String {
    let mut text = String::new();
    for why in left_out {
        wrap(
            &mut text,
            &format!("Left out: {why}"),
            0,
            width.max(WIDTH_MIN),
        );
    }
    if !text.is_empty() {
        text.insert(0, '\n');
    }
    text
}

/// All names for --waive, --about and `[waivers]`, by class.
pub fn names(width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut text = String::from(
        "Names for --waive, --about and [waivers]. A class stands for all of its facts and rules.\n",
    );
    for code in codes() {
        match code.what {
            What::Class => {
                let _ = writeln!(text, "\n{:<5} {}", code.name, code.about);
            }
            What::Fact | What::Rule => {
                // A variable that means the same everywhere speaks for itself.
                let line = if code.name == code.about {
                    code.about
                } else {
                    format!("{}: {}", code.name, code.about)
                };
                wrap(&mut text, &line, INDENT - 1, width);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_blanks() {
        let mut text = String::new();
        wrap(&mut text, "one two three", 2, 9);
        assert_eq!(text, "  one two\n  three\n");
        text.clear();
        wrap(&mut text, "a\u{1b}[31mb\nc", 0, 60);
        assert_eq!(text, "a [31mb c\n");
    }
}
