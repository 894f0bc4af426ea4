//! A capture with other values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::statement::{Dropped, Rewriter};
use super::values::Replacer;
use crate::entry::{Outcome, Request};
use crate::import::{Classes, Counted};
use crate::logs::LogProduct;
use crate::store::manifest::{Anonymised, Counts, LogFile, Manifest, Replaced, unescaped};
use crate::store::read::{SentAs, StoredStatement};
use crate::store::write::{CaptureWriter, Row};
use crate::store::{Capture, StoreError};

/// Statements between two calls of `check`.
const CHECK_EVERY: usize = 1 << 14;
/// Errors of statements that the server does not understand either: syntax, unknown columns. What stands there for a word may be a value.
const SYNTAX_NUMBERS: [u16; 3] = [1064, 1149, 1054];
/// The same of PostgreSQL: the class of errors in syntax and names.
const SYNTAX_STATES: &[u8; 2] = b"42";
/// Why these are dropped.
const SYNTAX: Dropped = Dropped("a statement with an error in its syntax or names");

/// Where the anonymous capture is written, and what is called meanwhile.
pub struct Destination<'a> {
    /// Its directory, which must not exist.
    pub target: &'a Path,
    /// Called now and then with the statements so far; its error ends the work.
    pub check: &'a mut dyn FnMut(u64) -> io::Result<()>,
}

/// Writes a capture with the replacer's values, and returns its manifest. Names of databases, tables and columns stay; users, files and
/// comments do not.
///
/// # Errors
/// When the capture is damaged or the other one cannot be written; nothing of it remains then.
pub fn anonymise(
    capture: &Capture,
    replacer: &mut Replacer,
    destination: Destination<'_>,
) -> Result<Manifest, StoreError> {
    let Destination { target, check } = destination;
    for schema in &capture.manifest().schemas {
        replacer.keep(&unescaped(schema));
    }
    let mut copy = Copy {
        capture,
        writer: CaptureWriter::create(target)?,
        classes: Classes::new(capture.syntax()),
        rewriter: Rewriter::new(replacer, capture.syntax()),
        base: 0,
        latest: None,
        counts: Counts::default(),
        dropped: BTreeMap::new(),
        text: Vec::new(),
    };
    // The date of the log moves as the dates in it.
    let start = capture.manifest().span.start_unix_ns.unwrap_or_default();
    copy.base = start.saturating_add(copy.rewriter.replacer().offset_ns());
    copy.rows(check)
        .map_err(StoreError::file("write", target))?;
    copy.finish(check)
}

/// A capture that is being copied.
struct Copy<'c, 'r> {
    capture: &'c Capture,
    writer: CaptureWriter,
    classes: Classes,
    rewriter: Rewriter<'r>,
    /// What times are counted from, since 1970.
    base: i64,
    latest: Option<i64>,
    counts: Counts,
    dropped: BTreeMap<Dropped, u64>,
    text: Vec<u8>,
}

impl Copy<'_, '_> {
    fn rows(&mut self, check: &mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<()> {
        for (number, session) in self.capture.sessions() {
            let since_1970 = |time: Option<i64>| time.map(|time| time.saturating_add(self.base));
            let (begin, end, last) = (
                since_1970(session.begin),
                since_1970(session.end),
                since_1970(session.last),
            );
            self.writer.change_session(number, |known, _| {
                *known = session;
                (known.begin, known.end, known.last) = (begin, end, last);
            })?;
        }
        for index in 0..self.capture.statements() {
            if index.is_multiple_of(CHECK_EVERY) {
                check(index as u64)?;
            }
            let damaged = || io::Error::other("the capture is damaged");
            let statement = self.capture.statement(index).ok_or_else(damaged)?;
            if self.capture.session(statement.session).is_none() {
                return Err(damaged());
            }
            let mut text = std::mem::take(&mut self.text);
            text.clear();
            match self.rewrite(&statement, &mut text) {
                Ok(()) => self.statement(index, &statement, &text)?,
                Err(why) => *self.dropped.entry(why).or_default() += 1,
            }
            self.text = text;
        }
        Ok(())
    }

    fn rewrite(
        &mut self,
        statement: &StoredStatement<'_>,
        text: &mut Vec<u8>,
    ) -> Result<(), Dropped> {
        let is_syntax_error = match &statement.outcome {
            Some(Outcome::Number(number)) => SYNTAX_NUMBERS.contains(number),
            Some(Outcome::State(state)) => state.starts_with(SYNTAX_STATES),
            Some(Outcome::Ok) | None => false,
        };
        match statement.sent_as {
            _ if is_syntax_error => Err(SYNTAX),
            SentAs::Text | SentAs::Prepared | SentAs::PreparedInline => {
                self.rewriter.rewrite(statement.text, text)
            }
            // The name of a database stays, that of a user does not.
            SentAs::InitDb => {
                text.extend_from_slice(statement.text);
                Ok(())
            }
            SentAs::ChangeUser | SentAs::Reset => Ok(()),
        }
    }

    fn statement(
        &mut self,
        index: usize,
        statement: &StoredStatement<'_>,
        text: &[u8],
    ) -> io::Result<()> {
        let values = self.values(index, statement.sent_as);
        let row = Row {
            start: statement.start.map(|start| start.saturating_add(self.base)),
            duration_ns: statement.duration_ns,
            session: statement.session,
            schema: statement.schema,
            outcome: statement.outcome.as_ref(),
            rows_sent: statement.rows_sent,
            rows_affected: statement.rows_affected,
            line: statement.line,
            sent_as: statement.sent_as,
            parameters: values.as_deref(),
        };
        let place = self.writer.statements() as u64;
        let classes = &mut self.classes;
        let request = match statement.sent_as {
            SentAs::Text | SentAs::Prepared | SentAs::PreparedInline => None,
            SentAs::InitDb => Some(Request::InitDb),
            SentAs::ChangeUser => Some(Request::ChangeUser),
            SentAs::Reset => Some(Request::Reset),
        };
        let analysis = self.writer.statement(&row, text, |text| match request {
            Some(request) => classes.request(request),
            None => classes.analyse(text),
        })?;
        let is_failed = !matches!(statement.outcome, None | Some(Outcome::Ok));
        classes.count(&Counted {
            analysis,
            duration_ns: statement.duration_ns,
            is_failed,
            statement: place,
            line: statement.line,
        });
        let duration = statement.duration_ns.unwrap_or(0);
        let end = row
            .start
            .map(|start| start.saturating_add_unsigned(duration));
        self.latest = self.latest.max(end);
        let counts = &mut self.counts;
        counts.without_start += u64::from(statement.start.is_none());
        counts.with_duration += u64::from(statement.duration_ns.is_some());
        counts.with_outcome += u64::from(statement.outcome.is_some());
        counts.failed += u64::from(is_failed);
        counts.refused += u64::from(analysis.refused > 0);
        Ok(())
    }

    /// The values of a prepared statement.
    fn values(&mut self, index: usize, sent_as: SentAs) -> Option<Vec<Option<Cow<'static, [u8]>>>> {
        if sent_as != SentAs::Prepared {
            return None;
        }
        let replacer = self.rewriter.replacer();
        let replaced = |value: &[u8]| {
            let mut out = Vec::with_capacity(value.len());
            replacer.value(value, &mut out);
            Cow::Owned(out)
        };
        let mut replaced = replaced;
        let values = self.capture.parameters(index);
        Some(values.map(|value| value.map(&mut replaced)).collect())
    }

    fn finish(self, check: &mut dyn FnMut(u64) -> io::Result<()>) -> Result<Manifest, StoreError> {
        let is_mysql = self.capture.manifest().log.product != LogProduct::Postgresql;
        let (classes, refusals) = self.classes.finish();
        let mut manifest = without_names(self.capture.manifest());
        let statements = self.writer.statements() as u64;
        manifest.counts = Counts {
            statements,
            classes: classes.len() as u64,
            ..self.counts
        };
        manifest.refusals = refusals;
        manifest.span.start_unix_ns = self.writer.earliest();
        if let (Some(earliest), Some(latest)) = (self.writer.earliest(), self.latest) {
            manifest.span.length_ns = u64::try_from(latest.saturating_sub(earliest)).unwrap_or(0);
        }
        let listed = |(what, count): (&str, &u64)| Replaced {
            what: what.to_owned(),
            count: *count,
        };
        let dropped = self
            .dropped
            .iter()
            .map(|(why, count)| listed((why.0, count)));
        let mut rewriter = self.rewriter;
        let notes = rewriter.replacer().notes().iter();
        manifest.anonymised = Some(Anonymised {
            dropped: dropped.collect(),
            notes: notes.map(|(what, count)| listed((what, count))).collect(),
        });
        let mut check = || check(statements);
        self.writer.finish(manifest, &classes, is_mysql, &mut check)
    }
}

/// The manifest without the names of users and files, and without texts of the log.
fn without_names(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    let numbered = |what: &str, place: usize| format!("{what}-{}", place + 1);
    let files = manifest.log.files.iter().enumerate();
    manifest.log.files = files
        .map(|(place, file)| LogFile {
            path: numbered("log", place),
            first_line: file.first_line,
        })
        .collect();
    let users = 0..manifest.users.len();
    manifest.users = users.map(|place| numbered("user", place)).collect();
    manifest.options.prefix = None;
    // What was not understood may be cited there.
    for part in &mut manifest.unreadable.listed {
        "removed".clone_into(&mut part.why);
    }
    manifest.files.clear();
    manifest
}
