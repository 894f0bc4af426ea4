//! Memory of servers and load process in each workload, as matrices of the same shape as those of throughput.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Figure, Measures};

use super::{Column, Matrix, named_groups};
use crate::view::figures::how;
use crate::view::table::Cell;
use crate::{number_of, words};

/// Takes one figure out of the measures.
type Pick = fn(&Measures) -> &Figure;

/// Processes with a matrix, and a word for each.
const SHOWN: [(&str, Pick); 2] = [
    ("server", |one| &one.server_memory_bytes_max),
    ("load process", |one| &one.client_memory_bytes_max),
];

/// A matrix for the servers and one for the load process, where the record has readings.
pub(super) fn matrices(summary: &Summary) -> Vec<Matrix> {
    let all = SHOWN.iter();
    all.filter_map(|(whose, pick)| matrix(summary, whose, *pick))
        .collect()
}

fn matrix(summary: &Summary, whose: &str, pick: Pick) -> Option<Matrix> {
    let columns = summary.contenders.iter().map(|facts| Column {
        contender: facts.name.clone(),
        number: number_of(summary, &facts.name),
        against: String::new(),
    });
    let columns: Vec<Column> = columns.collect();
    let suite = summary.suite.as_ref()?;
    let groups = named_groups(summary, suite, &columns, |duel, column| {
        cell(duel, column, pick)
    });
    largest(summary, pick).next()?;
    let note = "Largest reading within a slice or at its end. Memory that a workload allocated may stay resident in the next ones. The \
               kernel's own peak since the start of a process is in readings.csv of the record (resident_peak_bytes).";
    let title = format!("Largest resident memory of the {whose}");
    Some(Matrix::new(title, note.to_owned(), columns, groups))
}

fn cell(duel: &Duel, column: &Column, pick: Pick) -> Cell {
    let mut all = duel.contenders.iter();
    let figure = all.find(|one| one.contender == column.contender).map(pick);
    figure.map_or_else(Cell::default, |figure| Cell {
        hover: format!("{}, {}: {}", duel.label, column.contender, how(figure)),
        ..Cell::from(words::value(figure, words::bytes_of))
    })
}

/// The largest memory of each contender in any workload.
fn largest(summary: &Summary, pick: Pick) -> impl Iterator<Item = (&str, f64)> {
    summary.contenders.iter().filter_map(move |facts| {
        let measures = summary.duels.iter().flat_map(|duel| &duel.contenders);
        let own = measures.filter(|one| one.contender == facts.name);
        let largest = own.filter_map(|one| pick(one).value()).reduce(f64::max)?;
        Some((facts.name.as_str(), largest))
    })
}

/// The largest memory of each server and of the load process; empty where the record has no readings.
pub(super) fn sentence(summary: &Summary) -> String {
    let [(_, server), (_, client)] = SHOWN;
    let mut parts: Vec<String> = largest(summary, server)
        .map(|(name, bytes)| format!("{name} {}", words::bytes_of(bytes)))
        .collect();
    let client = largest(summary, client).map(|(_, bytes)| bytes);
    parts.extend(
        client
            .reduce(f64::max)
            .map(|bytes| format!("load process {}", words::bytes_of(bytes))),
    );
    match parts.is_empty() {
        true => String::new(),
        false => format!("Largest resident memory: {}.", parts.join(", ")),
    }
}
