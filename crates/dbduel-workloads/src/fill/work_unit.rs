//! Division of work among connections: the missing chunks of all tables in units, one for each connection.
//!
//! Every unit is of consecutive chunks, and there are hardly more units than connections: rows that arrive in the
//! order of the primary key fill its pages, rows from several places at once split them. Chunks of different tables
//! take different amounts of work, so they are weighted.

use std::ops::Range;

use crate::Table;

/// Chunks in one transaction. Fewer mean more commits; more would make an interruption costlier, which loses at most
/// one such batch per connection.
pub(super) const BATCH_CHUNKS: u64 = 4;

/// Chunks of one table.
pub(super) struct WorkUnit<'a> {
    pub table: &'a Table,
    /// Weight of one of its chunks.
    weight: u64,
    /// Runs of chunks, one transaction each.
    pub batches: Vec<Range<u64>>,
}

impl WorkUnit<'_> {
    fn chunks(&self) -> u64 {
        self.batches.iter().map(|run| run.end - run.start).sum()
    }

    fn weight(&self) -> u64 {
        self.chunks() * self.weight
    }
}

/// Divides the missing runs of chunks among connections, heaviest units first. `weigh` returns the weight of a chunk
/// of a table.
pub(super) fn units<'a>(
    missing: impl IntoIterator<Item = (&'a Table, Vec<Range<u64>>)>,
    connections: u32,
    weigh: impl Fn(&Table) -> u64,
) -> Vec<WorkUnit<'a>> {
    let size = |runs: &[Range<u64>]| -> u64 { runs.iter().map(|run| run.end - run.start).sum() };
    let missing: Vec<_> = missing
        .into_iter()
        .filter(|(_, runs)| !runs.is_empty())
        .map(|(table, runs)| (table, weigh(table).max(1), runs))
        .collect();
    let all: u64 = missing
        .iter()
        .map(|(_, weight, runs)| weight * size(runs))
        .sum();
    let share = all.div_ceil(u64::from(connections.max(1))).max(1);
    let mut units = Vec::new();
    for (table, weight, runs) in missing {
        // Equal parts, none heavier than a connection's share.
        let parts = (weight * size(&runs)).div_ceil(share).max(1);
        let part = size(&runs).div_ceil(parts).max(1);
        let mut unit = WorkUnit {
            table,
            weight,
            batches: Vec::new(),
        };
        for run in runs {
            let mut first = run.start;
            while first < run.end {
                let room = part - unit.chunks();
                let behind = run.end.min(first + BATCH_CHUNKS.min(room));
                unit.batches.push(first..behind);
                first = behind;
                if unit.chunks() == part {
                    let batches = std::mem::take(&mut unit.batches);
                    units.push(WorkUnit {
                        table,
                        weight,
                        batches,
                    });
                }
            }
        }
        if !unit.batches.is_empty() {
            units.push(unit);
        }
    }
    units.sort_by_key(|unit| std::cmp::Reverse(unit.weight()));
    units
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "a list of runs may have only one"
)]
mod tests {
    use super::super::rows::tests::table;
    use super::*;

    /// The batches of each unit, for tables with these missing runs.
    fn divided(missing: &[&[Range<u64>]], connections: u32) -> Vec<Vec<Range<u64>>> {
        let table = table(1);
        let missing = missing.iter().map(|runs| (&table, runs.to_vec()));
        let units = units(missing, connections, |_| 7);
        units.into_iter().map(|unit| unit.batches).collect()
    }

    #[test]
    fn as_many_tables_as_connections_are_filled_one_by_each() {
        assert_eq!(divided(&[&[0..3], &[0..3]], 2), [[0..3], [0..3]]);
        assert_eq!(divided(&[&[0..10]], 1), [[0..4, 4..8, 8..10]]);
    }

    #[test]
    fn a_table_is_divided_when_there_are_more_connections() {
        assert_eq!(divided(&[&[0..8]], 3), [[0..3], [3..6], [6..8]]);
        assert_eq!(divided(&[&[0..1], &[0..1]], 8).len(), 2);
    }

    #[test]
    fn a_large_table_is_shared_and_comes_first() {
        let units = divided(&[&[0..1], &[0..9]], 2);
        assert_eq!(units, [vec![0..4, 4..5], vec![5..9], vec![0..1]]);
    }

    #[test]
    fn heavy_chunks_are_divided_further_and_come_first() {
        let (mut light, mut heavy) = (table(1), table(1));
        light.name = "light".to_owned();
        heavy.name = "heavy".to_owned();
        let missing = vec![(&light, vec![0..8]), (&heavy, vec![0..4])];
        let weigh = |table: &Table| if table.name == "heavy" { 6 } else { 1 };
        let units = units(missing, 2, weigh);
        let found: Vec<_> = units
            .iter()
            .map(|unit| (unit.table.name.as_str(), unit.batches.as_slice()))
            .collect();
        assert_eq!(
            found,
            [
                ("heavy", &[0..2][..]),
                ("heavy", &[2..4][..]),
                ("light", &[0..4, 4..8][..])
            ]
        );
    }

    #[test]
    fn gaps_are_filled_and_nothing_else() {
        assert_eq!(divided(&[&[0..2, 5..6]], 1), [[0..2, 5..6]]);
        assert_eq!(divided(&[&[0..2, 5..6]], 3), [[0..1], [1..2], [5..6]]);
        assert!(divided(&[&[]], 3).is_empty());
    }
}
