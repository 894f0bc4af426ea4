//! A bisection as one HTML page that needs nothing else; every step has a page of its own, which it links to.

use dbduel_judge::records::bisect::BisectSummary;
use serde::Serialize;

use super::view::BisectView;
use crate::chart;
use crate::html::{PAGE_STYLE, Pair};
use crate::template::rendered;

#[derive(Serialize)]
struct Page<'a> {
    view: &'a BisectView,
    style: String,
    /// One per part; absent where nothing was measured.
    searches: Vec<Option<Pair>>,
}

pub fn page(summary: &BisectSummary, view: &BisectView) -> String {
    // As in the view.
    let searches = summary.parts.iter().filter(|part| !part.steps.is_empty());
    let page = Page {
        view,
        style: format!("{}{PAGE_STYLE}", chart::STYLE),
        searches: searches
            .map(|part| Pair::maybe(|width| chart::search(summary, part, width)))
            .collect(),
    };
    rendered("bisect.html", &page)
}
