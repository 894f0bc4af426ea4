//! What stands around the figures: fairness, contenders, machine, method.

use std::fmt::Write as _;

use super::text::{head, plain, prose, row};
use crate::report::view::{Entry, SettingView, View};
use crate::report::words;

/// Whether the contest was fair.
pub(super) fn fairness(text: &mut String, view: &View) {
    let Some(fairness) = &view.fairness else {
        return;
    };
    let _ = writeln!(
        text,
        "## Was it fair?\n\n**{}**: {}. {}\n",
        fairness.grade,
        prose(&fairness.because),
        fairness.compared
    );
    for promise in &fairness.promises {
        let _ = writeln!(
            text,
            "- {}: {}",
            plain(&promise.label),
            plain(&promise.text)
        );
    }
    text.push('\n');
    for one in fairness.doubts.iter().chain(&fairness.waived) {
        let _ = write!(
            text,
            "- **{}** {} *{}*",
            one.severity,
            prose(&one.claim),
            prose(&one.remedy)
        );
        if !one.waived.is_empty() {
            let _ = write!(text, " Waived: {}", plain(&one.waived));
        }
        let _ = writeln!(text, " ({})", plain(&one.rule));
        for side in &one.evidence {
            let _ = writeln!(text, "  - {}: {}", plain(&side.label), plain(&side.text));
        }
    }
    if !fairness.notes.is_empty() {
        let notes = words::things(fairness.notes.len() as u64, "note");
        let _ = writeln!(text, "\n<details><summary>{notes}</summary>\n");
        for one in &fairness.notes {
            let _ = writeln!(text, "- {} ({})", prose(&one.claim), plain(&one.rule));
        }
        text.push_str("\n</details>\n");
    }
    text.push('\n');
}

/// What a reader must be told.
pub(super) fn disclosure(text: &mut String, view: &View) {
    let _ = writeln!(text, "## Disclosure\n\n{}.\n", view.disclosed);
    for section in &view.disclosure {
        let missing = section
            .missing
            .iter()
            .map(|item| format!("**missing: {}**", plain(&item.label)));
        let present = section.present.iter().map(|item| plain(item));
        let items: Vec<String> = missing.chain(present).collect();
        let _ = writeln!(text, "- {}: {}", section.section, items.join("; "));
    }
    text.push('\n');
}

/// The contenders and the settings that differ.
pub(super) fn contenders(text: &mut String, view: &View) {
    text.push_str("## Contenders\n\n");
    for contender in &view.contenders {
        let baseline = if contender.is_baseline {
            " (baseline)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "### {}{baseline}\n\n{}\n",
            plain(&contender.name),
            plain(&contender.version)
        );
        for Entry { label, text: value } in contender.facts.iter().chain(&contender.settings) {
            let _ = writeln!(text, "- {}: {}", plain(label), plain(value));
        }
        text.push('\n');
    }
    if view.settings.is_empty() {
        text.push_str("No differing effective setting is known.\n\n");
        return;
    }
    text.push_str("### Effective settings that differ\n\n");
    let names: Vec<String> = view
        .contenders
        .iter()
        .map(|contender| plain(&contender.name))
        .collect();
    let mut heads = vec!["setting"];
    heads.extend(names.iter().map(String::as_str));
    head(text, &heads, heads.len());
    settings(text, &view.settings);
    text.push('\n');
    if !view.settings_more.is_empty() {
        let _ = writeln!(
            text,
            "<details><summary>{} more</summary>\n",
            view.settings_more.len()
        );
        head(text, &heads, heads.len());
        settings(text, &view.settings_more);
        text.push_str("\n</details>\n\n");
    }
}

fn settings(text: &mut String, settings: &[SettingView]) {
    for setting in settings {
        let asked = if setting.is_asked_for {
            " (asked for)"
        } else {
            ""
        };
        let mut cells = vec![format!("{}{asked}", plain(&setting.name))];
        cells.extend(setting.values.iter().map(|value| plain(value)));
        row(text, &cells);
    }
}

/// Labels with their texts, under a title.
pub(super) fn entries(text: &mut String, title: &str, entries: &[Entry]) {
    let _ = writeln!(text, "## {title}\n");
    for entry in entries {
        let _ = writeln!(
            text,
            "- **{}**: {}",
            plain(&entry.label),
            prose(&entry.text)
        );
    }
    text.push('\n');
}

/// Sentences under a title.
pub(super) fn list(text: &mut String, title: &str, items: &[String]) {
    let _ = writeln!(text, "## {title}\n");
    for item in items {
        let _ = writeln!(text, "- {}", prose(item));
    }
    text.push('\n');
}
