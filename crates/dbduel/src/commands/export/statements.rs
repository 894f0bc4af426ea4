//! Tables of captured statements by class, which only the record of a workload `captured` has.

use dbduel_judge::Summary;
use dbduel_judge::workloads::captured::{StatementCell, StatementFigures};
use dbduel_record::Record;

use super::table::Kind::{Real, Text, Whole};
use super::table::{Cell, Table};
use super::tables::{high, low, word};

/// A class of statements of one contender at one load level.
struct OfContender<'s> {
    label: &'s str,
    clients: u32,
    class: &'s StatementFigures,
    cell: &'s StatementCell,
}

/// One row per class of statements and contender at each load level.
pub fn classes(summary: &Summary) -> Table {
    let rows = summary.statement_classes.iter().flat_map(|level| {
        let duel = summary.duels.iter().find(|duel| duel.level == level.level);
        let (label, clients) =
            duel.map_or(("", 0), |duel| (duel.label.as_str(), duel.load.clients));
        level.classes.iter().flat_map(move |class| {
            class.contenders.iter().map(move |cell| OfContender {
                label,
                clients,
                class,
                cell,
            })
        })
    });
    Table::of(
        "statements",
        rows,
        &[
            ("load", Text, |one| one.label.into()),
            ("clients", Whole, |one| one.clients.into()),
            ("class", Text, |one| (&one.class.id).into()),
            ("text", Text, |one| (&one.class.text).into()),
            ("writes", Whole, |one| u32::from(one.class.writes).into()),
            ("compared", Whole, |one| {
                u32::from(one.class.is_compared).into()
            }),
            ("captured", Whole, |one| {
                one.class.captured.statements.into()
            }),
            ("captured_share_percent", Real, |one| {
                one.class.captured.share_percent.into()
            }),
            ("captured_time_share_percent", Real, |one| {
                one.class.captured.time_share_percent.into()
            }),
            ("captured_unchanged_percent", Real, |one| {
                one.class.captured.unchanged_percent.into()
            }),
            ("contender", Text, |one| (&one.cell.contender).into()),
            ("ok", Whole, |one| one.cell.ok.into()),
            ("failed", Whole, |one| one.cell.failed.into()),
            ("errors", Text, |one| errors(one.cell)),
            ("time_share_percent", Real, |one| {
                one.cell.time_share_percent.into()
            }),
            ("rows_returned_mean", Real, |one| {
                one.cell.rows_returned_mean.into()
            }),
            ("unchanged_percent", Real, |one| {
                one.cell.unchanged_percent.into()
            }),
            ("key_exists_percent", Real, |one| {
                one.cell.key_exists_percent.into()
            }),
            ("latency_us_mean", Real, |one| {
                one.cell.latency_us_mean.value().into()
            }),
            ("latency_us_mean_low", Real, |one| {
                low(&one.cell.latency_us_mean)
            }),
            ("latency_us_mean_high", Real, |one| {
                high(&one.cell.latency_us_mean)
            }),
            ("latency_us_p50", Real, |one| {
                one.cell.latency_us_p50.value().into()
            }),
            ("latency_us_p95", Real, |one| {
                one.cell.latency_us_p95.value().into()
            }),
            ("latency_us_p99", Real, |one| {
                one.cell.latency_us_p99.value().into()
            }),
            ("change", Text, |one| match &one.cell.against_baseline {
                Some(comparison) => word(&comparison.change),
                None => Cell::Missing,
            }),
            ("ratio", Real, |one| {
                let comparison = one.cell.against_baseline.as_ref();
                comparison
                    .and_then(|comparison| comparison.ratio.value())
                    .into()
            }),
            ("ratio_low", Real, |one| {
                let comparison = one.cell.against_baseline.as_ref();
                comparison.map_or(Cell::Missing, |comparison| low(&comparison.ratio))
            }),
            ("ratio_high", Real, |one| {
                let comparison = one.cell.against_baseline.as_ref();
                comparison.map_or(Cell::Missing, |comparison| high(&comparison.ratio))
            }),
            ("alpha", Real, |one| {
                let comparison = one.cell.against_baseline.as_ref();
                comparison.map(|comparison| comparison.alpha).into()
            }),
        ],
    )
}

/// Error codes with their counts, as the record writes them.
fn errors(cell: &StatementCell) -> Cell {
    let errors = cell.errors.iter().map(|one| (&one.code, one.count));
    (&dbduel_record::statement_classes::join_counts(errors)).into()
}

/// One row per class and slice.
pub fn slices(record: &Record) -> Table {
    Table::of(
        "statement_slices",
        &record.statements,
        &[
            ("block", Whole, |row| row.block.into()),
            ("position", Whole, |row| row.position.into()),
            ("contender", Text, |row| (&row.contender).into()),
            ("class", Text, |row| (&row.statement).into()),
            ("ok", Whole, |row| row.ok.into()),
            ("failed", Whole, |row| row.failed.into()),
            ("key_exists", Whole, |row| row.key_exists.into()),
            ("unchanged", Whole, |row| row.unchanged.into()),
            ("rows_returned", Whole, |row| row.rows_returned.into()),
            ("rows_changed", Whole, |row| row.rows_changed.into()),
            ("latency_us_sum", Real, |row| row.latency_us_sum.into()),
            ("failed_us_sum", Real, |row| row.failed_us_sum.into()),
            ("errors", Text, |row| (&row.errors).into()),
        ],
    )
}
