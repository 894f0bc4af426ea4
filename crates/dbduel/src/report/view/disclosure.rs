//! The disclosure checklist by section: items that the record has and items that it lacks.

use serde::Serialize;

use super::{Entry, entry};
use crate::judge::Summary;

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

pub(super) fn disclosure(summary: &Summary) -> Vec<DisclosureView> {
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

/// How much of it the record has.
pub(super) fn disclosed(summary: &Summary) -> String {
    let all = summary.disclosure.len();
    let present = summary
        .disclosure
        .iter()
        .filter(|item| item.present)
        .count();
    format!("{present} of {all} present, {} missing", all - present)
}
