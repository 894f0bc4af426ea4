//! Bytes written, write amplification and size of the data, as text.

use dbduel_judge::Summary;
use dbduel_judge::explain::Amplification;

use super::table::{Cell, Column, NAME, NUMBER, Row, Table};
use crate::words;

const COLUMNS: [(&str, &str); 10] = [
    (NAME, "contender"),
    (NUMBER, "rows changed"),
    (NUMBER, "written per row"),
    (NUMBER, "write amplification"),
    (NUMBER, "transactions per TB written"),
    (NUMBER, "data on disk"),
    (NUMBER, "share of file size"),
    (NUMBER, "ratio to the baseline"),
    (NUMBER, "data growth"),
    (NUMBER, "load time"),
];

/// The table; `None` when nothing is known of any contender.
pub(super) fn storage(summary: &Summary) -> Option<Table> {
    let is_known =
        |one: &Amplification| one.device_written_bytes.is_some() || one.allocated_bytes.is_some();
    if !summary.storage.iter().any(is_known) {
        return None;
    }
    let rows = summary.storage.iter().enumerate().map(|(number, one)| {
        let name = Cell::of_contender(number, &one.contender);
        let figures = figures(one).map(Cell::from);
        [name].into_iter().chain(figures).collect::<Row>()
    });
    Some(Table::new(COLUMNS.map(Column::from).into(), rows))
}

fn figures(one: &Amplification) -> [String; 9] {
    let or_missing = |text: Option<String>| text.unwrap_or_else(|| words::NOT_MEASURED.to_owned());
    // Nothing can be divided by no rows.
    let per_row = |text: Option<String>| match one.rows_changed {
        Some(0.0) => "–".to_owned(),
        _ => or_missing(text),
    };
    let growth = one.growth_bytes.map(|bytes| {
        let sign = match bytes {
            ..0 => "−",
            0 => "",
            1.. => "+",
        };
        format!("{sign}{}", words::bytes(bytes.unsigned_abs()))
    });
    let load = one.load_s.map(|seconds| {
        let how = if one.is_restored == Some(true) {
            "copied"
        } else {
            "loaded"
        };
        format!("{} ({how})", words::duration(seconds))
    });
    [
        or_missing(one.rows_changed.map(|rows| words::count(rows as u64))),
        per_row(one.written_per_row_bytes.map(words::bytes_of)),
        per_row(
            one.write_amplification
                .map(|times| format!("{}×", words::number(times))),
        ),
        or_missing(one.transactions_per_tb_written.map(words::large)),
        or_missing(one.allocated_bytes.map(words::bytes)),
        or_missing(one.allocated_share.map(words::share)),
        or_missing(
            one.allocated_of_baseline
                .map(|times| format!("{}×", words::number(times))),
        ),
        or_missing(growth),
        or_missing(load),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_changed_row_is_a_count_and_a_count_that_does_not_hold_is_none() {
        let read_only = Amplification {
            rows_changed: Some(0.0),
            growth_bytes: Some(0),
            ..Amplification::default()
        };
        let shown = figures(&read_only);
        assert_eq!(shown[..3], ["0", "–", "–"]);
        assert_eq!(shown[7], "0 B");
        let unknown = figures(&Amplification::default());
        assert_eq!(unknown[..3], [words::NOT_MEASURED; 3]);
    }
}
