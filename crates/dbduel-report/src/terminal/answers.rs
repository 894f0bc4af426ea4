//! Answers to captured statements for a terminal: counts; the pages have the classes.

use super::page::{Ink, Page};
use crate::view::AnswersView;

pub(super) fn print(page: &mut Page, view: &AnswersView) {
    page.blank();
    page.inked_lines(Ink::Bold, "Answers on equal data before the load");
    for sentence in &view.sentences {
        page.item(sentence);
    }
    if view.table.is_some() {
        page.wrapped("Classes that differ, with examples: HTML page.");
    }
}
