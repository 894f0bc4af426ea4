//! The matrices of a suite on a terminal.

use super::{Matrix, SuiteView};
use crate::terminal::{Ink, Page, clean, columns_of, cut, padded};
use crate::view::table::{self, Cell, Row};

/// Columns of a contender's figures: ratio with its sign, and interval.
const CELL: usize = VALUE + 12;
const VALUE: usize = 8;
/// Columns of the names of workloads, at most.
const NAME_MAX: usize = 24;
/// Columns of the table of sums: index of the sum, heading, and width in characters.
const SUMS: [(usize, &str, usize); 4] = [
    (0, "mean", 8),
    (1, "interval", 16),
    (2, "quartiles", 24),
    (4, "▲ ▼ = ?", 12),
];
/// Columns of the contenders' numbers before their sums.
const NUMBER: usize = 4;

/// Prints the matrices of throughput and their error probability.
pub fn print(page: &mut Page, view: &SuiteView) {
    for matrix in &view.matrices {
        page.blank();
        page.inked_lines(Ink::Bold, &matrix.title);
        legend(page, matrix);
        for group in &matrix.table.groups {
            page.blank();
            let is_sum = |row: &&Row| row.class == table::SUMS;
            let (of_sums, rows): (Vec<&Row>, Vec<&Row>) = group.rows.iter().partition(is_sum);
            if rows.is_empty() {
                page.inked_lines(Ink::Dim, &group.head);
            } else {
                table(page, &group.head, matrix, &rows);
            }
            if !of_sums.is_empty() {
                sums(page, matrix, &of_sums);
            }
        }
    }
    page.blank();
    if let Some(matrix) = view.matrices.first() {
        page.inked_lines(Ink::Dim, &matrix.note);
        page.inked_lines(
            Ink::Dim,
            "Beside a value: the interval of its verdict. Interval of a mean: for a number of blocks fixed in advance.",
        );
    }
    if !view.legend.is_empty() {
        page.inked_lines(Ink::Dim, view.legend);
    }
    page.inked_lines(Ink::Dim, &view.promise);
    page.inked_lines(Ink::Dim, &view.order);
    if !view.memory_max.is_empty() {
        page.inked_lines(Ink::Dim, &view.memory_max);
    }
    if !view.costs.is_empty() {
        page.inked_lines(
            Ink::Dim,
            "Costs per transaction and the figures of each workload: HTML page, or `dbduel export`.",
        );
    }
}

/// Names do not fit above the columns, so numbers stand there.
fn legend(page: &mut Page, matrix: &Matrix) {
    let columns = matrix.columns.iter().enumerate();
    let entries: Vec<String> = columns
        .map(|(at, column)| {
            format!(
                "{} {} (against {})",
                at + 1,
                clean(&column.contender),
                clean(&column.against)
            )
        })
        .collect();
    page.wrapped(&entries.join("; "));
}

fn ink_of(cell: &Cell) -> Ink {
    match cell.answer {
        "faster" => Ink::Good,
        "slower" | "void" => Ink::Bad,
        "undecided" => Ink::Dim,
        _ => Ink::Plain,
    }
}

fn name_columns(rows: &[&Row]) -> usize {
    let names = rows
        .iter()
        .map(|row| columns_of(&clean(&row.cells[0].value)));
    names.max().unwrap_or(0).clamp(12, NAME_MAX)
}

/// The rows of a group, in as many parts as the columns need.
fn table(page: &mut Page, title: &str, matrix: &Matrix, rows: &[&Row]) {
    let name_width = name_columns(rows);
    let shown = ((page.width - name_width) / CELL).max(1);
    let all: Vec<usize> = (0..matrix.columns.len()).collect();
    for part in all.chunks(shown) {
        let heads: String = part
            .iter()
            .map(|at| padded(&format!("{:>6}", at + 1), CELL))
            .collect();
        let head = page.inked(
            Ink::Dim,
            &format!(
                "{}{heads}",
                padded(cut(&clean(title), name_width), name_width)
            ),
        );
        page.line(&head);
        for row in rows {
            let cells: String = part
                .iter()
                .map(|&at| {
                    let cell = &row.cells[at + 1];
                    let text = format!("{:>6}{}", cell.value, padded(cell.sign, 2));
                    let interval = padded(&cell.interval, CELL - VALUE);
                    page.inked(ink_of(cell), &text) + &page.inked(Ink::Dim, &interval)
                })
                .collect();
            let name = clean(&row.cells[0].value);
            page.line(&format!(
                "{}{cells}",
                padded(cut(&name, name_width), name_width)
            ));
        }
    }
}

/// The sums of a group, a line for each contender.
fn sums(page: &mut Page, matrix: &Matrix, sums: &[&Row]) {
    let heads: String = SUMS
        .iter()
        .map(|(_, head, columns)| padded(head, *columns))
        .collect();
    let head = page.inked(Ink::Dim, &format!("{}{heads}", " ".repeat(NUMBER)));
    page.line(&head);
    for at in 0..matrix.columns.len() {
        let cells: String = SUMS
            .iter()
            .map(|(row, _, columns)| padded(&sums[*row].cells[at + 1].value, *columns))
            .collect();
        page.line(&format!("{:>2}  {cells}", at + 1));
    }
}
