//! Tables in memory: typed columns, cells that may be missing.

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Whole,
    /// Numbers.
    Real,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    /// A whole number; counts of the record fit into it.
    Whole(i64),
    /// A number.
    Real(f64),
    /// Not measured, or no value can be given.
    Missing,
}

impl Cell {
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Text(_) => Some(Kind::Text),
            Self::Whole(_) => Some(Kind::Whole),
            Self::Real(_) => Some(Kind::Real),
            Self::Missing => None,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Whole(i64::from(value))
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Whole(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Some(value).into()
    }
}

/// Missing when it is absent or infinite.
impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value
            .filter(|value| value.is_finite())
            .map_or(Self::Missing, Self::Real)
    }
}

/// A column of a table about rows of this type: its name, its kind, and the cell of a row.
pub type Column<R> = (&'static str, Kind, fn(&R) -> Cell);

/// A table: every row has as many cells as there are columns, each of its column's kind or missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name, without an ending.
    pub name: &'static str,
    /// Names and kinds of the columns.
    pub columns: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(name: &'static str, columns: &[(&str, Kind)]) -> Self {
        let columns = columns
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), *kind));
        Self {
            name,
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    /// A table of these rows.
    pub fn of<R>(
        name: &'static str,
        rows: impl IntoIterator<Item = R>,
        columns: &[Column<R>],
    ) -> Self {
        let names: Vec<(&str, Kind)> = columns
            .iter()
            .map(|(name, kind, _)| (*name, *kind))
            .collect();
        let mut table = Self::new(name, &names);
        for row in rows {
            table.push(columns.iter().map(|(_, _, cell)| cell(&row)).collect());
        }
        table
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row of `{}`", self.name);
        debug_assert!(
            row.iter()
                .zip(&self.columns)
                .all(|(cell, (_, kind))| cell.kind().is_none_or(|of| of == *kind)),
            "a row of `{}`: {row:?}",
            self.name
        );
        self.rows.push(row);
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }
}
