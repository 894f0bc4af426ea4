//! Takes the entries of a log and writes them to a capture.

use std::collections::BTreeSet;
use std::io;

use dbduel_sql::{Kind, Syntax};

use super::ImportError;
use super::classes::{Classes, Counted};
use super::names::Names;
use crate::effect::used_schema;
use crate::entry::{Entry, Lack, Outcome, Protocol, Request, Sink, Statement, UnixNs};
use crate::store::manifest::{LISTED_MAX, Manifest, Unreadable, UnreadablePart};
use crate::store::read::SentAs;
use crate::store::write::{CaptureWriter, Row};

/// A sink that writes a capture.
#[derive(Debug)]
pub(super) struct Importer {
    writer: CaptureWriter,
    is_mysql: bool,
    classes: Classes,
    schemas: Names,
    users: Names,
    /// Default database of sessions whose log does not say it.
    given_schema: Option<u32>,
    lacks: BTreeSet<Lack>,
    unreadable: Unreadable,
    latest: Option<UnixNs>,
    step_ns: u32,
    without_start: u64,
    with_duration: u64,
    with_outcome: u64,
    failed: u64,
    refused: u64,
}

impl Importer {
    pub(super) fn new(writer: CaptureWriter, is_mysql: bool, schema: Option<&[u8]>) -> Self {
        let syntax = match is_mysql {
            true => Syntax::MYSQL,
            false => Syntax::POSTGRESQL,
        };
        let mut schemas = Names::default();
        let given_schema = schema.and_then(|schema| schemas.place(schema));
        Importer {
            writer,
            is_mysql,
            classes: Classes::new(syntax),
            schemas,
            users: Names::default(),
            given_schema,
            lacks: BTreeSet::new(),
            unreadable: Unreadable::default(),
            latest: None,
            step_ns: 0,
            without_start: 0,
            with_duration: 0,
            with_outcome: 0,
            failed: 0,
            refused: 0,
        }
    }

    /// Writes the capture.
    pub(super) fn finish(
        self,
        mut manifest: Manifest,
        check: &mut dyn FnMut() -> io::Result<()>,
    ) -> Result<Manifest, ImportError> {
        if self.writer.statements() == 0 {
            let first = self.unreadable.listed.first();
            return Err(ImportError::NoStatements {
                lines: manifest.log.lines,
                unreadable: self.unreadable.lines,
                first: first.map_or_else(String::new, |part| {
                    format!(", first {}: {}", manifest.position(part.line), part.why)
                }),
            });
        }
        let (classes, refusals) = self.classes.finish();
        let counts = &mut manifest.counts;
        counts.statements = self.writer.statements() as u64;
        counts.classes = classes.len() as u64;
        counts.without_start = self.without_start;
        counts.with_duration = self.with_duration;
        counts.with_outcome = self.with_outcome;
        counts.failed = self.failed;
        counts.refused = self.refused;
        let span = &mut manifest.span;
        span.start_unix_ns = self.writer.earliest();
        span.step_ns = self.step_ns;
        if let (Some(earliest), Some(latest)) = (self.writer.earliest(), self.latest) {
            span.length_ns = u64::try_from(latest.saturating_sub(earliest)).unwrap_or(0);
        }
        manifest.lacks = self.lacks.into_iter().collect();
        manifest.unreadable = self.unreadable;
        manifest.refusals = refusals;
        manifest.schemas = self.schemas.list();
        manifest.users = self.users.list();
        Ok(self
            .writer
            .finish(manifest, &classes, self.is_mysql, check)?)
    }

    fn statement(&mut self, statement: &Statement<'_>) -> io::Result<()> {
        let end = statement.start.map(|start| {
            let duration = statement.duration_ns.unwrap_or(0);
            start.saturating_add_unsigned(duration)
        });
        let named = statement.schema.as_deref();
        let named = named.and_then(|schema| self.schemas.place(schema));
        let is_request = matches!(statement.protocol, Protocol::Request(_));
        let given = self.given_schema;
        let mut schema = None;
        self.writer
            .change_session(statement.session.0, |session, is_new| {
                session.begin = session.begin.or(statement.start);
                if is_new {
                    session.schema = given;
                    session.schema_at_end = given;
                }
                session.last = session.last.max(end);
                // That of a request is the one that it chooses.
                if named.is_some() && !is_request {
                    session.schema_at_end = named;
                }
                schema = session.schema_at_end;
            })?;
        let (sent_as, request) = match &statement.protocol {
            Protocol::Text => (SentAs::Text, None),
            Protocol::Prepared(_) => (SentAs::Prepared, None),
            Protocol::PreparedInline => (SentAs::PreparedInline, None),
            Protocol::Request(request) => (sent_as(*request), Some(*request)),
        };
        let parameters = match &statement.protocol {
            Protocol::Prepared(values) => Some(values.as_slice()),
            _ => None,
        };
        let row = Row {
            start: statement.start,
            duration_ns: statement.duration_ns,
            session: statement.session.0,
            schema,
            outcome: statement.outcome.as_ref(),
            rows_sent: statement.rows_sent,
            rows_affected: statement.rows_affected,
            line: statement.line,
            sent_as,
            parameters,
        };
        let place = self.writer.statements() as u64;
        let classes = &mut self.classes;
        let text = &statement.text;
        let analysis = self.writer.statement(&row, text, |text| match request {
            Some(request) => classes.request(request),
            None => classes.analyse(text),
        })?;
        let is_failed = !matches!(statement.outcome, None | Some(Outcome::Ok));
        self.classes.count(&Counted {
            analysis,
            duration_ns: statement.duration_ns,
            is_failed,
            statement: place,
            line: statement.line,
        });
        self.latest = self.latest.max(end);
        match statement.start {
            Some(_) => self.step_ns = self.step_ns.max(statement.start_step_ns),
            None => self.without_start += 1,
        }
        self.with_duration += u64::from(statement.duration_ns.is_some());
        self.with_outcome += u64::from(statement.outcome.is_some());
        self.failed += u64::from(is_failed);
        self.refused += u64::from(analysis.refused > 0);
        if analysis.kind == Kind::Use as u8 && !is_failed {
            self.choose_schema(statement, named)?;
        }
        Ok(())
    }

    /// The default database after a statement or request that chooses one.
    fn choose_schema(&mut self, statement: &Statement<'_>, named: Option<u32>) -> io::Result<()> {
        let chosen = match &statement.protocol {
            Protocol::Request(Request::InitDb) => self.schemas.place(&statement.text),
            Protocol::Request(_) => named,
            _ if !self.is_mysql => return Ok(()),
            _ => {
                let schema = used_schema(&statement.text, self.classes.syntax());
                schema.and_then(|schema| self.schemas.place(&schema))
            }
        };
        self.writer
            .change_session(statement.session.0, |session, _| {
                session.schema_at_end = chosen;
            })
    }
}

fn sent_as(request: Request) -> SentAs {
    match request {
        Request::InitDb => SentAs::InitDb,
        Request::ChangeUser => SentAs::ChangeUser,
        Request::Reset => SentAs::Reset,
    }
}

impl Sink for Importer {
    fn entry(&mut self, entry: Entry<'_>) -> io::Result<()> {
        match entry {
            Entry::SessionBegun {
                session,
                at,
                user,
                schema,
                is_whole,
            } => {
                let user = self.users.place(&user);
                let schema = match schema {
                    Some(schema) => self.schemas.place(&schema),
                    None => self.given_schema,
                };
                self.writer.change_session(session.0, |known, _| {
                    known.begin = at;
                    known.last = known.last.max(at);
                    known.user = user;
                    known.schema = schema;
                    known.schema_at_end = schema;
                    known.is_whole = is_whole;
                })
            }
            Entry::SessionEnded { session, at } => {
                self.writer.change_session(session.0, |known, _| {
                    known.end = at;
                    known.last = known.last.max(at);
                    known.has_ended = true;
                })
            }
            Entry::Statement(statement) => self.statement(&statement),
        }
    }

    fn unreadable(&mut self, line: u64, lines: u64, why: &str) {
        self.unreadable.parts += 1;
        self.unreadable.lines = self.unreadable.lines.saturating_add(lines);
        if self.unreadable.listed.len() < LISTED_MAX {
            let why = why.chars().take(200).collect();
            let part = UnreadablePart { line, lines, why };
            self.unreadable.listed.push(part);
        }
    }

    fn lacks(&mut self, lack: Lack) {
        self.lacks.insert(lack);
    }
}
