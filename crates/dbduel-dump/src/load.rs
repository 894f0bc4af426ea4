//! Runs a dump statement by statement over one connection.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;

use dbduel_driver::{Connection, Dialect, ErrorClass, QueryError};

use crate::input::open;
use crate::reader::{CopyRows, Piece, Reader};
use crate::rules::{
    Applications, Applied, CLIENT_COMMAND, DATABASE, NAMES_OF_DATABASES, RESTRICT, Refused,
    SANDBOX, Verdict, head, judge, refuse_other_than_storage,
};
use crate::{DumpError, Format, Product, Target};

/// Bytes of a packet beside the statement in it.
const PACKET_MARGIN: u64 = 1 << 10;

/// Progress of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows that were sent by COPY, or that the server reported as inserted.
    pub rows: u64,
    /// Bytes of the file that were read, compressed as they are there.
    pub bytes: u64,
    /// Its size; `None` for an archive, which another program reads.
    pub bytes_total: Option<u64>,
}

/// Result of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Rows that were sent by COPY, or that the server reported as inserted.
    pub rows: u64,
    /// Statements that were run.
    pub statements: u64,
    /// Rules that were applied, in the order of the lines.
    pub applied: Vec<Applied>,
}

/// Why a statement did not run.
#[derive(Debug)]
pub enum Refusal {
    /// The server's error: its name, and what to do where that is known. Its text may have values of the dump.
    Server(String),
    /// The connection broke, or the time is up.
    Lost(io::Error),
    /// The rows cannot be read.
    Content(io::Error),
}

/// Where statements run.
pub trait Destination {
    /// Runs a statement; returns the rows that it changed.
    ///
    /// # Errors
    /// [`Refusal`].
    fn execute(&mut self, sql: &[u8]) -> Result<u64, Refusal>;

    /// Runs a `COPY … FROM stdin` with these rows.
    ///
    /// # Errors
    /// [`Refusal`].
    fn copy(&mut self, sql: &str, rows: &mut dyn Read) -> Result<(), Refusal>;

    /// Longest request, bytes; `None` without a limit.
    ///
    /// # Errors
    /// [`Refusal`].
    fn request_bytes_max(&mut self) -> Result<Option<u64>, Refusal>;
}

impl Destination for Connection {
    fn execute(&mut self, sql: &[u8]) -> Result<u64, Refusal> {
        let summary = self.execute_bytes(sql)?;
        Ok(summary.affected_rows)
    }

    fn copy(&mut self, sql: &str, rows: &mut dyn Read) -> Result<(), Refusal> {
        self.load(sql, rows)?;
        Ok(())
    }

    fn request_bytes_max(&mut self) -> Result<Option<u64>, Refusal> {
        if self.dialect() != Dialect::MySql {
            return Ok(None);
        }
        let answer = self.query("SELECT @@max_allowed_packet")?;
        Ok(answer.text(0, 0).and_then(|text| text.parse().ok()))
    }
}

impl From<QueryError> for Refusal {
    /// Without the statement and the server's text, which have values.
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Refused { error, .. } => {
                let hint = match error.name().as_str() {
                    "1419 (HY000)" => {
                        "; set `log_bin_trust_function_creators = ON` for this contender, or dump without triggers and routines"
                    }
                    name if name.starts_with("1227 ") || name == "42501" => {
                        "; dumps are loaded by an account without privileges beyond its own database: remove the statement from the dump"
                    }
                    _ if error.class == ErrorClass::TableExists => {
                        "; is the dump's table there twice, or the database not empty?"
                    }
                    _ => "",
                };
                Refusal::Server(format!("error {}{hint}", error.name()))
            }
            QueryError::Content { source, .. } => Refusal::Content(source),
            QueryError::Broken { source, .. } => Refusal::Lost(source),
            QueryError::Protocol { source, .. } | QueryError::Values { source, .. } => {
                Refusal::Lost(io::Error::other(source))
            }
            QueryError::TooMuch { .. } => {
                Refusal::Lost(io::Error::other("the server's answer is too long"))
            }
        }
    }
}

/// Loads a dump over a connection, whose account and database are the caller's choice. `observe` is called after each statement
/// and between pieces of rows; the load ends when it returns false.
///
/// # Errors
/// [`DumpError`]. What was loaded until then stays.
pub fn load(
    path: &Path,
    connection: &mut Connection,
    observe: &mut dyn FnMut(Progress) -> bool,
) -> Result<Loaded, DumpError> {
    let Some(target) = Target::of(connection) else {
        return Err(DumpError::Format {
            path: path.to_owned(),
            why: "dumps are loaded into MySQL, MariaDB and PostgreSQL".to_owned(),
        });
    };
    load_into(path, &target, connection, observe)
}

/// As [`load`], into any destination.
///
/// # Errors
/// [`DumpError`].
pub fn load_into(
    path: &Path,
    target: &Target,
    destination: &mut dyn Destination,
    observe: &mut dyn FnMut(Progress) -> bool,
) -> Result<Loaded, DumpError> {
    let bytes = Cell::new(0);
    let mut count = |read| {
        bytes.set(read);
        Ok(())
    };
    let (format, input) = open(path, &mut count)?;
    let is_postgresql = format != Format::MySql;
    if is_postgresql != (target.product == Product::PostgreSql) {
        let source = match is_postgresql {
            true => "PostgreSQL",
            false => "MySQL or MariaDB",
        };
        return Err(DumpError::Format {
            path: path.to_owned(),
            why: format!(
                "it is a dump of {source}; {} does not understand its statements",
                target.name()
            ),
        });
    }
    let size = path.metadata().ok().map(|metadata| metadata.len());
    let bytes_total = size.filter(|_| format != Format::PostgreSqlArchive);
    let mut reader = Reader::new(path, input, target.syntax());
    let mut report = |rows| {
        observe(Progress {
            rows,
            bytes: bytes.get(),
            bytes_total,
        })
    };
    run_all(&mut reader, target, destination, &mut report, None)
}

/// Runs statements that change how the tables of a loaded dump are stored: `CREATE INDEX`, `DROP INDEX` and `ALTER TABLE`, by the rules
/// for dumps. Messages call the text `ddl`.
///
/// # Errors
/// [`DumpError`], also for any other statement. What ran until then stays.
pub fn define(
    ddl: &str,
    target: &Target,
    destination: &mut dyn Destination,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Loaded, DumpError> {
    // The last statement need not be ended.
    let text = format!("{ddl}\n;\n");
    let mut reader = Reader::new(Path::new("ddl"), Box::new(text.as_bytes()), target.syntax());
    run_all(
        &mut reader,
        target,
        destination,
        &mut |_| go_on(),
        Some(refuse_other_than_storage),
    )
}

/// Refuses some statements beyond what the rules refuse.
type Objection = fn(&[u8], &Target) -> Result<(), Refused>;

/// Runs all statements of a reader. `report` gets the rows so far and stops the load where it returns false.
fn run_all(
    reader: &mut Reader<'_>,
    target: &Target,
    destination: &mut dyn Destination,
    report: &mut dyn FnMut(u64) -> bool,
    objection: Option<Objection>,
) -> Result<Loaded, DumpError> {
    let mut load = Load {
        target,
        request_bytes_max: destination
            .request_bytes_max()
            .map_err(|refusal| failed(refusal, reader.path(), (1, 1), ""))?,
        destination,
        report,
        applications: Applications::default(),
        database: None,
        rows: 0,
        statements: 0,
    };
    while let Some(piece) = reader.advance()? {
        if let Some(objection) = objection {
            objection(reader.text(), target)
                .map_err(|Refused { rule, why }| reader.unfit(rule, &why))?;
        }
        load.piece(piece, reader)?;
        if !(load.report)(load.rows) {
            return Err(DumpError::Cancelled);
        }
    }
    if load.statements == 0 {
        return Err(DumpError::Format {
            path: reader.path().to_owned(),
            why: "it has no statement that is loaded".to_owned(),
        });
    }
    Ok(Loaded {
        rows: load.rows,
        statements: load.statements,
        applied: load.applications.into_list(),
    })
}

/// The error of a statement.
fn failed(refusal: Refusal, path: &Path, (line, column): (u64, u64), head: &str) -> DumpError {
    let path = path.to_owned();
    match refusal {
        Refusal::Server(why) => DumpError::Server {
            path,
            line,
            column,
            head: head.to_owned(),
            why,
        },
        Refusal::Lost(source) => DumpError::Lost {
            path,
            line,
            column,
            head: head.to_owned(),
            source,
        },
        Refusal::Content(source) => DumpError::Read { path, source },
    }
}

/// A load at work.
struct Load<'l> {
    target: &'l Target,
    request_bytes_max: Option<u64>,
    destination: &'l mut dyn Destination,
    report: &'l mut dyn FnMut(u64) -> bool,
    applications: Applications,
    /// The database that the dump names.
    database: Option<Vec<u8>>,
    rows: u64,
    statements: u64,
}

impl Load<'_> {
    fn piece(&mut self, piece: Piece, reader: &mut Reader<'_>) -> Result<(), DumpError> {
        match piece {
            Piece::Sandbox => {
                let text = || head(reader.text(), self.target.syntax());
                self.applications.count(&SANDBOX, reader.position().0, text);
                Ok(())
            }
            Piece::Command => self.command(reader),
            Piece::Statement | Piece::Copy => {
                let verdict = self.judge(reader)?;
                match piece {
                    _ if verdict.is_dropped => Ok(()),
                    Piece::Copy => self.copy(reader),
                    _ => self.run(reader, &verdict),
                }
            }
        }
    }

    /// A command of a client: the delimiter of MySQL's, and of psql those that dumps have.
    fn command(&mut self, reader: &mut Reader<'_>) -> Result<(), DumpError> {
        if self.target.product != Product::PostgreSql {
            return reader.set_delimiter();
        }
        let line = String::from_utf8_lossy(reader.text()).into_owned();
        let mut words = line.split_whitespace();
        let command = words.next().unwrap_or_default();
        let rule = match (command, words.next(), words.next()) {
            ("\\restrict" | "\\unrestrict", ..) => &RESTRICT,
            ("\\connect" | "\\c", Some(name), None) => {
                self.choose(name.trim_matches('"').as_bytes(), reader)?;
                &DATABASE
            }
            _ => {
                let why = format!("{}: {}", CLIENT_COMMAND.found, CLIENT_COMMAND.reason);
                return Err(reader.unfit(CLIENT_COMMAND.name, &why));
            }
        };
        let text = || head(reader.text(), self.target.syntax());
        self.applications.count(rule, reader.position().0, text);
        Ok(())
    }

    /// What is done with the current statement; its rules are counted.
    fn judge(&mut self, reader: &Reader<'_>) -> Result<Verdict, DumpError> {
        let verdict = judge(reader.text(), self.target)
            .map_err(|Refused { rule, why }| reader.unfit(rule, &why))?;
        for &rule in &verdict.rules {
            let text = || head(reader.text(), self.target.syntax());
            self.applications.count(rule, reader.position().0, text);
        }
        if let Some(name) = &verdict.database {
            self.choose(name, reader)?;
        }
        Ok(verdict)
    }

    /// Refuses a second database.
    fn choose(&mut self, name: &[u8], reader: &Reader<'_>) -> Result<(), DumpError> {
        let first = self.database.get_or_insert_with(|| name.to_vec());
        if *first == name {
            return Ok(());
        }
        let [first, name] =
            [first.as_slice(), name].map(|name| String::from_utf8_lossy(name).into_owned());
        let why = format!(
            "the dump has the databases `{}` and `{}`; {}",
            dbduel_text::visible(&first),
            dbduel_text::visible(&name),
            NAMES_OF_DATABASES.reason
        );
        Err(reader.unfit(NAMES_OF_DATABASES.name, &why))
    }

    fn run(&mut self, reader: &Reader<'_>, verdict: &Verdict) -> Result<(), DumpError> {
        let rewritten = verdict.rewritten(reader.text());
        let sql = rewritten.as_deref().unwrap_or_else(|| reader.text());
        let needed = sql.len() as u64 + PACKET_MARGIN;
        if let Some(limit) = self.request_bytes_max.filter(|limit| *limit < needed) {
            let why = format!(
                "a statement of {} is longer than the server's max_allowed_packet of {}; raise that setting for this contender, or dump with a smaller `--net-buffer-length`",
                dbduel_text::bytes(sql.len() as u64),
                dbduel_text::bytes(limit)
            );
            return Err(reader.unfit("packet", &why));
        }
        let changed = self.destination.execute(sql).map_err(|refusal| {
            let head = head(reader.text(), self.target.syntax());
            failed(refusal, reader.path(), reader.position(), &head)
        })?;
        if verdict.brings_rows {
            self.rows += changed;
        }
        self.statements += 1;
        Ok(())
    }

    fn copy(&mut self, reader: &mut Reader<'_>) -> Result<(), DumpError> {
        let position = reader.position();
        let head = head(reader.text(), self.target.syntax());
        let Ok(sql) = String::from_utf8(reader.text().to_vec()) else {
            return Err(reader.unfit(
                "encoding",
                "names in COPY must be UTF-8; dump with `--encoding=UTF8`",
            ));
        };
        let path = reader.path().to_owned();
        let mut rows = WatchedRows {
            rows: reader.rows(),
            rows_before: self.rows,
            report: &mut *self.report,
            is_cancelled: false,
        };
        let mut outcome = self.destination.copy(&sql, &mut rows);
        if outcome.is_ok() && !rows.rows.is_ended() {
            let rest = io::copy(&mut rows, &mut io::sink());
            outcome = rest.map(drop).map_err(Refusal::Content);
        }
        let (count, is_cancelled) = (rows.rows.count(), rows.is_cancelled);
        if is_cancelled {
            return Err(DumpError::Cancelled);
        }
        outcome.map_err(|refusal| failed(refusal, &path, position, &head))?;
        self.rows += count;
        self.statements += 1;
        Ok(())
    }
}

/// Rows of a COPY that report progress as they are read.
struct WatchedRows<'r, 'a, 'p> {
    rows: CopyRows<'r, 'a>,
    rows_before: u64,
    report: &'p mut dyn FnMut(u64) -> bool,
    is_cancelled: bool,
}

impl Read for WatchedRows<'_, '_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !(self.report)(self.rows_before + self.rows.count()) {
            self.is_cancelled = true;
            return Err(io::Error::other("cancelled"));
        }
        self.rows.read(out)
    }
}
