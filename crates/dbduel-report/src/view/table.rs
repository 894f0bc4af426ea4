//! A table as all formats show it. Each format has one renderer of it: `templates/table.html`, `templates/table.md`, and
//! [`Page::table`](crate::terminal::Page::table).

use serde::Serialize;

/// Class of a column of figures, aligned to the right.
pub const NUMBER: &str = "n";
/// Class of a column of names.
pub const NAME: &str = "name";
/// Class of a column of texts.
pub const TEXT: &str = "value";
/// Class of a column of load levels.
pub const LEVEL: &str = "level";
/// Class of a column of figures with a sign and a colour.
pub const MATRIX: &str = "n cell";
/// Class of a row that sums up those above it.
pub const SUMS: &str = "sums";
/// Class of a table whose rows narrow windows show as lines, without headings.
pub const STACK: &str = "stack";
/// Class of a table with long headings of groups, which stay in view.
pub const PAIRS: &str = "pairs";

/// The formats of a column that only one of them has.
pub const PAGE: &str = "page";
pub const MARKDOWN: &str = "markdown";

#[derive(Debug, Clone, Default, Serialize)]
pub struct Table {
    /// CSS class; empty for most.
    pub class: &'static str,
    pub columns: Vec<Column>,
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Column {
    pub head: String,
    /// CSS class of the cells.
    pub class: &'static str,
    /// Whether Markdown and terminals align the cells to the right.
    pub is_number: bool,
    /// Whether the page sets the values as small print below those of the column before.
    pub is_below: bool,
    /// [`PAGE`] or [`MARKDOWN`] where only that has the column, else empty.
    pub only: &'static str,
    /// Number of the contender whose shape precedes the heading.
    pub number: Option<usize>,
    pub hover: String,
}

/// Rows below a heading of their own.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Group {
    /// Heading; empty for none.
    pub head: String,
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Row {
    /// CSS class; empty for most.
    pub class: &'static str,
    /// A cell for each column.
    pub cells: Vec<Cell>,
    /// Texts about the whole row.
    pub details: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Cell {
    pub value: String,
    pub is_code: bool,
    /// Small print below the value: its interval, or why there is none.
    pub note: String,
    /// CSS class of an answer: `faster`, `undecided` …; empty for other values.
    pub answer: &'static str,
    /// Number of the contender whose shape precedes the value.
    pub number: Option<usize>,
    /// Letter before the value; empty for none.
    pub letter: String,
    /// Sign after the value, which tells the answer without colour; empty for none.
    pub sign: &'static str,
    /// Remark after the value; empty for none.
    pub tag: &'static str,
    /// Values below each other in place of one.
    pub lines: Vec<String>,
    /// Tooltip; empty for none.
    pub hover: String,
    /// Heading that [`STACK`] repeats before the value; empty for none.
    pub label: &'static str,
    /// Address on the page to which the value links; empty for none.
    pub link: String,
    /// Strength of the colour in a matrix, from 0 to 1.
    pub strength: f64,
    /// Interval that only terminals show, beside the value; empty for none.
    pub interval: String,
}

impl Table {
    /// A table without groups.
    pub fn new(columns: Vec<Column>, rows: impl IntoIterator<Item = Row>) -> Self {
        let rows = rows.into_iter().collect();
        let head = String::new();
        Self {
            columns,
            groups: vec![Group { head, rows }],
            ..Self::default()
        }
    }

    /// The rows of all groups.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }
}

impl Column {
    /// The column of a contender.
    pub fn of_contender(class: &'static str, number: usize, name: &str) -> Self {
        Self {
            number: Some(number),
            ..Self::from((class, name))
        }
    }
}

/// The column of a class and with a heading.
impl From<(&'static str, &str)> for Column {
    fn from((class, head): (&'static str, &str)) -> Self {
        Self {
            head: head.to_owned(),
            is_number: class.split(' ').any(|one| one == NUMBER),
            class,
            ..Self::default()
        }
    }
}

impl FromIterator<Cell> for Row {
    fn from_iter<C: IntoIterator<Item = Cell>>(cells: C) -> Self {
        Self {
            cells: cells.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(value: T) -> Self {
        Self {
            value: value.into(),
            ..Self::default()
        }
    }
}

impl Cell {
    /// The name of a contender.
    pub fn of_contender(number: usize, name: &str) -> Self {
        Self {
            number: Some(number),
            ..Self::from(name)
        }
    }

    /// A name or value of a setting.
    pub fn code(value: impl Into<String>) -> Self {
        Self {
            is_code: true,
            ..Self::from(value)
        }
    }

    /// An answer with its small print.
    pub fn answer(answer: &'static str, value: String, note: String) -> Self {
        Self {
            answer,
            note,
            ..Self::from(value)
        }
    }
}
