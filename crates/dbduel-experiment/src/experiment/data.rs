//! `[data]`: tables that are loaded from a file.

use std::ops::Range;

use super::document::{Located, Report, Section, string};

/// `[data]`.
#[derive(Debug, Clone)]
pub struct Data {
    /// Its place.
    pub span: Range<usize>,
    /// The dump, relative to the experiment.
    pub dump: Located<String>,
}

pub(super) fn read_data(report: &Report<'_>, section: &Section<'_, '_>) -> Option<Data> {
    let dump = section.get("dump", string);
    let has_dump = section.value("dump").is_some();
    if section.refuse_unknown_keys() && !has_dump {
        let message = "[data] needs `dump`, a file that mysqldump, mariadb-dump or pg_dump made";
        report.add(&section.span(), message);
    }
    Some(Data {
        span: section.span(),
        dump: dump?,
    })
}
