//! The rows of a statement, kept until the next one on the same connection.

use dbduel_driver::{Row, Sink};

/// The result sets of one statement.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Distinguishes results of this statement from those of earlier ones.
    generation: u32,
    sets: Vec<Set>,
    /// Index of the set being read.
    current: usize,
    bytes_max: usize,
    bytes: usize,
    freed: bool,
}

#[derive(Debug, Default)]
struct Set {
    columns: usize,
    rows: usize,
    /// All values, concatenated.
    values: Vec<u8>,
    /// End of each value; `None` for NULL.
    ends: Vec<Option<usize>>,
    next: usize,
    /// Index of the next row's first value.
    at: usize,
}

/// Shape of the result set being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) generation: u32,
}

impl Rows {
    /// Discards the rows of the previous statement; keeps at most `bytes_max` of the next one's.
    pub(super) fn begin(&mut self, bytes_max: usize) {
        self.generation = self.generation.wrapping_add(1);
        self.sets.clear();
        self.current = 0;
        self.bytes = 0;
        self.bytes_max = bytes_max;
        self.freed = false;
    }

    /// True when rows were left out.
    pub(super) fn overflowed(&self) -> bool {
        self.bytes > self.bytes_max
    }

    pub(super) fn shape(&self) -> Option<Shape> {
        let set = self.sets.get(self.current).filter(|_| !self.freed)?;
        Some(Shape {
            columns: set.columns,
            rows: set.rows,
            generation: self.generation,
        })
    }

    /// Sets the result of a statement whose rows were counted and not kept; returns its generation.
    #[inline]
    pub(super) fn skip(&mut self) -> u32 {
        if let [only] = self.sets.as_mut_slice()
            && only.columns == 0
        {
            // As the last one was.
            self.generation = self.generation.wrapping_add(1);
            self.freed = false;
        } else {
            self.begin(0);
            self.sets.push(Set::default());
        }
        self.generation
    }

    pub(super) fn has_more_sets(&self) -> bool {
        self.current + 1 < self.sets.len()
    }

    /// Advances to the next result set.
    pub(super) fn next_set(&mut self) -> Option<Shape> {
        if !self.has_more_sets() {
            return None;
        }
        self.current += 1;
        self.shape()
    }

    /// Frees the rows. False when they are already gone.
    pub(super) fn free(&mut self, generation: u32) -> bool {
        let is_there = generation == self.generation && self.shape().is_some();
        if is_there {
            self.freed = true;
        }
        is_there
    }

    /// The values of the next row, if the result still exists; `None` after the last.
    pub(super) fn next_row<'a>(
        &'a mut self,
        generation: u32,
        mut value: impl FnMut(usize, Option<&'a [u8]>),
    ) -> Result<bool, &'static str> {
        if generation != self.generation || self.shape().is_none() {
            return Err("attempt to fetch row from an invalid result set");
        }
        let Some(set) = self.sets.get_mut(self.current) else {
            return Ok(false);
        };
        if set.next >= set.rows || set.columns == 0 {
            return Ok(false);
        }
        let first = set.next * set.columns;
        let ends = &set.ends[first..first + set.columns];
        for (column, end) in ends.iter().enumerate() {
            value(
                column,
                end.map(|end| &set.values[std::mem::replace(&mut set.at, end)..end]),
            );
        }
        set.next += 1;
        Ok(true)
    }
}

impl Sink for Rows {
    fn wants_columns(&self) -> bool {
        false
    }

    fn result_set(&mut self, columns: usize) {
        self.sets.push(Set {
            columns,
            ..Set::default()
        });
    }

    fn row(&mut self, row: &Row<'_>) {
        self.bytes += row.payload().len() + row.len() * size_of::<Option<usize>>();
        let overflowed = self.overflowed();
        let Some(set) = self.sets.last_mut().filter(|_| !overflowed) else {
            return;
        };
        let before = (set.values.len(), set.ends.len());
        for value in row.values() {
            match value.map(|value| value.as_bytes()) {
                Ok(Some(bytes)) => {
                    set.values.extend_from_slice(bytes);
                    set.ends.push(Some(set.values.len()));
                }
                Ok(None) => set.ends.push(None),
                Err(_) => {
                    // Half a row is none.
                    set.values.truncate(before.0);
                    set.ends.truncate(before.1);
                    return;
                }
            }
        }
        set.rows += 1;
    }
}
