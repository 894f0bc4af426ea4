//! Walks a TOML document with the position of every value.
//!
//! Errors are collected, so that one pass reports every mistake in a file.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use dbduel_text::{nearest, shortened};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{home_of, normalised_name};

/// Most characters shown of a text in the file.
const SHOWN_CHARACTERS: usize = 100;

/// A value with its byte range in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its byte range.
    pub span: Range<usize>,
}

/// One error in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl Trouble {
    /// An error at a byte offset of `text`.
    #[must_use]
    pub fn at(text: &str, offset: usize, message: String) -> Self {
        let mut place = Place::default();
        place.advance(text, offset);
        Self {
            line: place.line,
            column: place.column,
            message,
        }
    }
}

/// All errors in a file; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Troubles {
    /// The file.
    pub path: PathBuf,
    /// In the order of the text.
    pub list: Vec<Trouble>,
}

impl fmt::Display for Troubles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, trouble) in self.list.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            let Trouble {
                line,
                column,
                message,
            } = trouble;
            write!(
                out,
                "{separator}{}:{line}:{column}: {message}",
                self.path.display()
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Troubles {}

/// Collects the errors of one text.
#[derive(Debug)]
pub struct Report<'t> {
    path: &'t Path,
    text: &'t str,
    troubles: RefCell<Vec<(usize, String)>>,
    /// Keys of each table that refuses unknown ones.
    tables: RefCell<Vec<(String, Vec<&'static str>)>>,
}

impl<'t> Report<'t> {
    /// A report without errors.
    #[must_use]
    pub fn new(path: &'t Path, text: &'t str) -> Self {
        Self {
            path,
            text,
            troubles: RefCell::default(),
            tables: RefCell::default(),
        }
    }

    /// Titles of the tables that know `key`, among those that were read.
    pub(super) fn tables_with(&self, key: &str) -> Vec<String> {
        let key = normalised_name(key);
        let tables = self.tables.borrow();
        let with = tables
            .iter()
            .filter(|(_, keys)| keys.iter().any(|known| *known == key));
        with.map(|(title, _)| title.clone()).collect()
    }

    /// Adds an error at `span`.
    pub fn add(&self, span: &Range<usize>, message: impl Into<String>) {
        self.troubles
            .borrow_mut()
            .push((span.start, message.into()));
    }

    /// Returns the errors, or `value` when there is none.
    ///
    /// # Errors
    /// When anything was added.
    pub fn finish<T>(self, value: T) -> Result<T, Troubles> {
        let mut troubles = self.troubles.into_inner();
        if troubles.is_empty() {
            return Ok(value);
        }
        troubles.sort();
        // Contenders that are like another one would repeat what is wrong with it.
        troubles.dedup();
        let mut place = Place::default();
        let list = troubles
            .into_iter()
            .map(|(offset, message)| {
                place.advance(self.text, offset);
                Trouble {
                    line: place.line,
                    column: place.column,
                    message,
                }
            })
            .collect();
        Err(Troubles {
            path: self.path.to_owned(),
            list,
        })
    }
}

/// A position in a text that only moves forward, so that many positions need one pass.
struct Place {
    offset: usize,
    line: usize,
    column: usize,
}

impl Default for Place {
    fn default() -> Self {
        Place {
            offset: 0,
            line: 1,
            column: 1,
        }
    }
}

impl Place {
    /// Moves to a byte offset at or after the present one; one within a character counts as its end.
    fn advance(&mut self, text: &str, offset: usize) {
        let passed = text.get(self.offset..).unwrap_or_default();
        for character in passed.chars() {
            if self.offset >= offset {
                break;
            }
            self.offset += character.len_utf8();
            if character == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
    }
}

/// Parses `text` as TOML.
///
/// # Errors
/// The parser's error with its position.
pub fn parse<'t>(path: &Path, text: &'t str) -> Result<Spanned<DeTable<'t>>, Troubles> {
    DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let trouble = Trouble::at(text, offset, format!("not valid TOML: {}", error.message()));
        Troubles {
            path: path.to_owned(),
            list: vec![trouble],
        }
    })
}

/// A table whose keys are read one by one; the remaining ones are unknown.
#[derive(Debug)]
pub struct Section<'t, 'd> {
    report: &'d Report<'t>,
    /// Name of the table in messages, for example `[load]`.
    title: String,
    span: Range<usize>,
    table: &'d DeTable<'t>,
    known: RefCell<Vec<&'static str>>,
}

impl<'t, 'd> Section<'t, 'd> {
    /// The section of a table.
    #[must_use]
    pub fn new(
        report: &'d Report<'t>,
        title: impl Into<String>,
        span: Range<usize>,
        table: &'d DeTable<'t>,
    ) -> Self {
        Self {
            report,
            title: title.into(),
            span,
            table,
            known: RefCell::default(),
        }
    }

    /// Position of the table.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The raw value of `key`, if present.
    pub fn value(&self, key: &'static str) -> Option<&'d Spanned<DeValue<'t>>> {
        self.known.borrow_mut().push(key);
        self.table.get(key)
    }

    /// Every key with its value, for tables with arbitrary keys.
    pub fn entries(
        &self,
    ) -> impl Iterator<Item = (Located<String>, &'d Spanned<DeValue<'t>>)> + '_ {
        self.table.iter().map(|(key, value)| {
            (
                Located {
                    value: key.get_ref().to_string(),
                    span: key.span(),
                },
                value,
            )
        })
    }

    /// The value of `key`, parsed by `read`; an error of `read` is reported at its position.
    pub fn get<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'t>) -> Result<T, String>,
    ) -> Option<Located<T>> {
        let value = self.value(key)?;
        match read(value.get_ref()) {
            Ok(read) => Some(Located {
                value: read,
                span: value.span(),
            }),
            Err(message) => {
                self.report.add(
                    &value.span(),
                    format!("`{key}` in {}: {message}", self.title),
                );
                None
            }
        }
    }

    /// The table under `key`.
    pub fn section(&self, key: &'static str) -> Option<Section<'t, 'd>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Section::new(
                self.report,
                format!("[{key}]"),
                value.span(),
                table,
            )),
            other => {
                let message = format!("expected a table `[{key}]`, found {}", describe(other));
                self.report.add(&value.span(), message);
                None
            }
        }
    }

    /// Reports every unknown key, with the nearest known one and the table that knows it. Returns false when there was
    /// one.
    pub fn refuse_unknown_keys(&self) -> bool {
        let known = self.known.borrow();
        let tables = &self.report.tables;
        tables
            .borrow_mut()
            .push((self.title.clone(), known.clone()));
        let mut is_all_known = true;
        for (key, _) in self.table {
            let name = key.get_ref();
            if known.iter().any(|known| known == name) {
                continue;
            }
            let hint = match (nearest(name, known.iter().copied()), home_of(name)) {
                (Some(near), None) => format!("; did you mean `{near}`?"),
                (Some(near), Some(home)) => {
                    format!("; did you mean `{near}`? A key `{name}` belongs {home}")
                }
                (None, Some(home)) => format!("; it belongs {home}"),
                (None, None) => format!(
                    "; known here: {}",
                    known
                        .iter()
                        .map(|key| format!("`{key}`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            };
            self.report.add(
                &key.span(),
                format!("unknown key `{name}` in {}{hint}", self.title),
            );
            is_all_known = false;
        }
        is_all_known
    }
}

/// Description of a value for messages: `the number 7`, `the string "x"`.
#[must_use]
pub fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string {:?}", shortened(text, SHOWN_CHARACTERS)),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => format!("`{value}`"),
        DeValue::Datetime(time) => format!("the time {time}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Reads a string.
///
/// # Errors
/// Describes the value found instead.
pub fn string(value: &DeValue<'_>) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("expected a string, found {}", describe(value)))
}

/// Reads a boolean.
///
/// # Errors
/// Describes the value found instead.
pub fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| format!("expected true or false, found {}", describe(value)))
}

/// Reads a whole number within `range`.
///
/// # Errors
/// Describes the value found instead.
pub fn integer(value: &DeValue<'_>, range: std::ops::RangeInclusive<i64>) -> Result<i64, String> {
    let number = value
        .as_integer()
        .and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok());
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            format!(
                "expected a whole number from {} to {}, found {}",
                range.start(),
                range.end(),
                describe(value)
            )
        })
}

/// Reads a number, integer or not.
///
/// # Errors
/// Describes the value found instead.
pub fn number(value: &DeValue<'_>) -> Result<f64, String> {
    let text = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return Err(format!("expected a number, found {}", describe(other))),
    };
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
        .ok_or_else(|| format!("expected a finite number, found {}", describe(value)))
}
