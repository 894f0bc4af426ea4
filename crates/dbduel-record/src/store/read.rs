//! Lenient reading: a part that cannot be parsed is left out, with a complaint. Bytes that an interrupted write left
//! at the end of a file are left out without a complaint, since nothing is lost with them. A file that is not a
//! regular file of bounded length makes the whole record unreadable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::ends::{Ends, kept_of_journal};
use super::plan_file::{extend, read_plan};
use super::{
    ANSWERS, COMMITS, Complaint, ERRORS, EVENTS, HOST, LATENCY, PROOF, READINGS, RecordError,
    SECONDS, SELFTEST, SLICES, STACKS, STATEMENT_CLASSES, STATEMENT_ROWS, STATEMENTS, STATUS_AFTER,
    STATUS_BEFORE, TICKS, contender_dir, stacks_file, stints,
};
use crate::answers::Answers;
use crate::bounds::Bounded;
use crate::commits::{CommitRange, CommitRow};
use crate::event::{Event, SliceId, Stamped};
use crate::facts::{Build, Conditions, Connection, Host, Proof, SelfTest, Size};
use crate::foreign::{self, DOCUMENT_BYTES_MAX, TABLE_BYTES_MAX};
use crate::latency::{self, Interval};
use crate::manifest::{self, MANIFEST};
use crate::plan::Plan;
use crate::rows::{ErrorRow, ReadingRow, SecondRow, SliceRow, TickRow};
use crate::statement_classes::{StatementClasses, StatementRow};
use crate::statements::ContenderStatements;
use crate::tsv::unescape;

/// Maximum number of complaints about one file that are kept.
const COMPLAINTS_MAX: usize = 100;

/// Files about one contender.
#[derive(Debug, Clone, Default)]
pub struct ContenderFiles {
    /// `build.json`.
    pub build: Option<Build>,
    /// `size.json`.
    pub size: Option<Size>,
    /// `conditions.before.json`: the workload's conditions on its tables, before the first transaction.
    pub conditions_before: Option<Conditions>,
    /// `conditions.after.json`: the same after the last slice.
    pub conditions_after: Option<Conditions>,
    /// `proof.json`: proof of durability: counts of power cuts before the contest; absent where it was not asked for.
    pub proof: Option<Proof>,
    /// `variables.before.tsv`: global variables when the first slice began.
    pub variables_before: BTreeMap<String, String>,
    /// `variables.after.tsv`: global variables after the last slice.
    pub variables_after: BTreeMap<String, String>,
    /// `status.before.tsv`: counters when the first stint of the server began.
    pub status_before: BTreeMap<String, String>,
    /// `status.after.tsv`: counters when that stint ended; empty when the server died before.
    pub status_after: BTreeMap<String, String>,
    /// Counters of the stints after the first: after a crash, or when the contest was resumed.
    pub later_stints: Vec<Stint>,
    /// `session.tsv`: session variables of a connection of the load.
    pub session: BTreeMap<String, String>,
    /// `stacks-LEVEL.folded`: its sampled stacks under the load of a level.
    pub stacks: BTreeMap<usize, String>,
    /// `connection.json`: how the load connects to the server.
    pub connection: Option<Connection>,
    /// `statements.json`: plans of a suite's statements; absent in records up to format 3.1.
    pub statements: Option<ContenderStatements>,
}

/// A server's counters at both ends of a stint, a stretch in which it was one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stint {
    /// When it began.
    pub status_before: BTreeMap<String, String>,
    /// When it ended; empty when the server died before.
    pub status_after: BTreeMap<String, String>,
}

/// A record as far as it could be read.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where it was read from.
    pub dir: PathBuf,
    /// The plan; without one there is no record.
    pub plan: Plan,
    /// The machine.
    pub host: Host,
    /// The lab's resolution on it, when it was known.
    pub self_test: Option<SelfTest>,
    /// `answers.json`: answers to captured statements; absent for other workloads.
    pub answers: Option<Answers>,
    /// The journal.
    pub events: Vec<Stamped>,
    /// Rows of finished slices.
    pub slices: Vec<SliceRow>,
    /// Ticks of finished slices.
    pub ticks: Vec<TickRow>,
    /// Readings of finished slices.
    pub readings: Vec<ReadingRow>,
    /// Readings of finished slices, second by second.
    pub seconds: Vec<SecondRow>,
    /// Errors of finished slices.
    pub errors: Vec<ErrorRow>,
    /// Latencies of finished slices.
    pub latencies: Vec<Interval>,
    /// Rows of single statements of finished slices, by class; empty unless the workload measures these.
    pub statements: Vec<StatementRow>,
    /// `statement-classes.json`: the classes of these rows.
    pub statement_classes: StatementClasses,
    /// Commits that servers acknowledged, including those of lost slices and warm-ups.
    pub commits: Vec<CommitRow>,
    /// Files about the contenders, in the plan's order.
    pub contenders: Vec<ContenderFiles>,
    /// Digest of the manifest, if there is one; [`crate::manifest::check`] compares it with the files.
    pub manifest_digest: Option<String>,
    /// Parts that could not be read.
    pub complaints: Vec<Complaint>,
}

impl Record {
    /// Reads the record in `dir`.
    ///
    /// # Errors
    /// Only when there is no plan, or none that this version can read.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        let mut plan = read_plan(dir)?;
        foreign::check_entries(dir)?;
        let mut complaints = Complaints::default();
        let events = read_events(dir, &mut complaints)?;
        extend(&mut plan, &events, &mut complaints);
        let ends = Ends::of(dir, &events);
        let finished: BTreeSet<SliceId> = finished_slices(&events).collect();
        let counts = |block, position| finished.contains(&SliceId { block, position });

        let mut slices: Vec<SliceRow> = read_table(dir, SLICES, &ends, &mut complaints)?;
        slices.retain(|row| counts(row.block, row.position));
        let mut ticks: Vec<TickRow> = read_table(dir, TICKS, &ends, &mut complaints)?;
        ticks.retain(|row| counts(row.block, row.position));
        let mut readings: Vec<ReadingRow> = read_table(dir, READINGS, &ends, &mut complaints)?;
        readings.retain(|row| counts(row.block, row.position));
        let mut seconds: Vec<SecondRow> = read_table(dir, SECONDS, &ends, &mut complaints)?;
        seconds.retain(|row| counts(row.block, row.position));
        let mut errors: Vec<ErrorRow> = read_table(dir, ERRORS, &ends, &mut complaints)?;
        errors.retain(|row| counts(row.block, row.position));
        let mut statements: Vec<StatementRow> =
            read_table(dir, STATEMENT_ROWS, &ends, &mut complaints)?;
        statements.retain(|row| counts(row.block, row.position));
        let commits = read_table(dir, COMMITS, &ends, &mut complaints)?;
        let mut latencies = read_latencies(dir, &ends, &mut complaints)?;
        latencies.retain(|interval| counts(interval.block, interval.position));

        let host = read_json(&dir.join(HOST), HOST, &mut complaints)?.unwrap_or_default();
        let path = dir.join(STATEMENT_CLASSES);
        let statement_classes =
            read_json(&path, STATEMENT_CLASSES, &mut complaints)?.unwrap_or_default();
        let self_test = read_json(&dir.join(SELFTEST), SELFTEST, &mut complaints)?;
        let answers = read_json(&dir.join(ANSWERS), ANSWERS, &mut complaints)?;
        let contenders: Result<Vec<ContenderFiles>, RecordError> = plan
            .contenders
            .iter()
            .map(|contender| read_contender(dir, &plan, &contender.name, &mut complaints))
            .collect();
        let contenders = contenders?;
        let manifest = foreign::read(&dir.join(MANIFEST), TABLE_BYTES_MAX).ok();
        let dir = dir.to_owned();
        Ok(Self {
            dir,
            manifest_digest: manifest.map(|bytes| manifest::digest(&bytes)),
            plan,
            host,
            self_test,
            answers,
            events,
            slices,
            ticks,
            readings,
            seconds,
            errors,
            latencies,
            statements,
            statement_classes,
            commits,
            contenders,
            complaints: complaints.list,
        })
    }

    /// Commits that the contender's server acknowledged since its present data were put in place.
    #[must_use]
    pub fn commits_of(&self, contender: &str) -> Vec<CommitRange> {
        let placed_ms = self
            .events
            .iter()
            .rev()
            .find_map(|event| match &event.what {
                Event::DatasetReady { contender: of, .. } if of == contender => Some(event.at_ms),
                _ => None,
            });
        self.commits
            .iter()
            .filter(|row| row.contender == contender && Some(row.at_ms) >= placed_ms)
            .map(CommitRow::range)
            .collect()
    }

    /// Slices that the journal says are finished.
    pub fn finished_slices(&self) -> impl Iterator<Item = SliceId> + '_ {
        finished_slices(&self.events)
    }

    /// The blocks that were begun, completed or not; none is begun twice.
    #[must_use]
    pub fn begun_blocks(&self) -> BTreeSet<u32> {
        let begun = self.events.iter().filter_map(|event| match &event.what {
            Event::SliceStarted { slice, .. } => Some(slice.block),
            _ => None,
        });
        begun.collect()
    }
}

fn finished_slices(events: &[Stamped]) -> impl Iterator<Item = SliceId> + '_ {
    events.iter().filter_map(|event| match &event.what {
        Event::SliceFinished { slice, .. } => Some(*slice),
        _ => None,
    })
}

/// Complaints about files, at most [`COMPLAINTS_MAX`] of each.
#[derive(Default)]
pub(super) struct Complaints {
    list: Vec<Complaint>,
    by_file: BTreeMap<String, usize>,
}

impl Complaints {
    pub(super) fn add(&mut self, file: &str, line: usize, why: impl Into<String>) {
        let count = self.by_file.entry(file.to_owned()).or_default();
        *count += 1;
        if *count <= COMPLAINTS_MAX {
            self.list.push(Complaint {
                file: file.to_owned(),
                line,
                why: why.into(),
            });
        } else if *count == COMPLAINTS_MAX + 1 {
            self.list.push(Complaint {
                file: file.to_owned(),
                line: 0,
                why: "further lines cannot be parsed either".to_owned(),
            });
        }
    }
}

/// The text of a file, empty without the file.
fn read_text(
    path: &Path,
    file: &str,
    limit: u64,
    complaints: &mut Complaints,
) -> Result<String, RecordError> {
    read_start(path, file, limit, <[u8]>::len, complaints)
}

/// The text of the first bytes of a file that count, empty without the file.
fn read_start(
    path: &Path,
    file: &str,
    limit: u64,
    kept: impl FnOnce(&[u8]) -> usize,
    complaints: &mut Complaints,
) -> Result<String, RecordError> {
    match foreign::read(path, limit) {
        Ok(mut bytes) => {
            bytes.truncate(kept(&bytes));
            Ok(String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) if foreign::is_unfit(&source) => Err(RecordError::File {
            action: "read",
            path: path.to_owned(),
            source,
        }),
        Err(error) => {
            complaints.add(file, 0, error.to_string());
            Ok(String::new())
        }
    }
}

fn read_events(dir: &Path, complaints: &mut Complaints) -> Result<Vec<Stamped>, RecordError> {
    let kept = |bytes: &[u8]| kept_of_journal(dir, bytes);
    let text = read_start(&dir.join(EVENTS), EVENTS, TABLE_BYTES_MAX, kept, complaints)?;
    let mut events = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let event = serde_json::from_str(line).map_err(|error| error.to_string());
        match event.and_then(|event: Stamped| event.check().map(|()| event)) {
            Ok(event) => events.push(event),
            Err(why) => complaints.add(EVENTS, index + 1, why),
        }
    }
    Ok(events)
}

fn read_table<T: DeserializeOwned + Bounded>(
    dir: &Path,
    file: &str,
    ends: &Ends,
    complaints: &mut Complaints,
) -> Result<Vec<T>, RecordError> {
    let kept = |bytes: &[u8]| ends.kept(file, bytes);
    let text = read_start(&dir.join(file), file, TABLE_BYTES_MAX, kept, complaints)?;
    let mut table = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    let line_of = |position: Option<&csv::Position>| {
        let line = position.map_or(0, csv::Position::line);
        usize::try_from(line).unwrap_or(usize::MAX)
    };
    let headers = table.headers().cloned().unwrap_or_default();
    let mut record = csv::StringRecord::new();
    loop {
        match table.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                let row = record
                    .deserialize::<T>(Some(&headers))
                    .map_err(|error| error.to_string());
                match row.and_then(|row| row.check().map(|()| row)) {
                    Ok(row) => rows.push(row),
                    Err(why) => complaints.add(file, line_of(record.position()), why),
                }
            }
            Err(error) => complaints.add(file, line_of(error.position()), error.to_string()),
        }
    }
    Ok(rows)
}

fn read_latencies(
    dir: &Path,
    ends: &Ends,
    complaints: &mut Complaints,
) -> Result<Vec<Interval>, RecordError> {
    let kept = |bytes: &[u8]| ends.kept(LATENCY, bytes);
    let text = read_start(
        &dir.join(LATENCY),
        LATENCY,
        TABLE_BYTES_MAX,
        kept,
        complaints,
    )?;
    let mut intervals = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match latency::parse_line(line) {
            Ok(interval) => intervals.extend(interval),
            Err(why) => complaints.add(LATENCY, index + 1, why),
        }
    }
    Ok(intervals)
}

fn read_json<T: DeserializeOwned + Bounded>(
    path: &Path,
    file: &str,
    complaints: &mut Complaints,
) -> Result<Option<T>, RecordError> {
    let text = read_text(path, file, DOCUMENT_BYTES_MAX, complaints)?;
    if text.is_empty() {
        return Ok(None);
    }
    let value = serde_json::from_str(&text).map_err(|error| (error.line(), error.to_string()));
    match value.and_then(|value: T| value.check().map(|()| value).map_err(|why| (0, why))) {
        Ok(value) => Ok(Some(value)),
        Err((line, why)) => {
            complaints.add(file, line, why);
            Ok(None)
        }
    }
}

fn read_contender(
    dir: &Path,
    plan: &Plan,
    name: &str,
    complaints: &mut Complaints,
) -> Result<ContenderFiles, RecordError> {
    let stints = stints(dir, name);
    let dir = contender_dir(dir, name);
    let mut named = |file: &str| -> Result<BTreeMap<String, String>, RecordError> {
        let text = read_text(&dir.join(file), file, DOCUMENT_BYTES_MAX, complaints)?;
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        Ok(lines.map(|(k, v)| (k.to_owned(), unescape(v))).collect())
    };
    let variables_before = named("variables.before.tsv")?;
    let variables_after = named("variables.after.tsv")?;
    let status_before = named(STATUS_BEFORE)?;
    let status_after = named(STATUS_AFTER)?;
    let session = named("session.tsv")?;
    let mut later_stints = Vec::new();
    for stint in 1..stints {
        later_stints.push(Stint {
            status_before: named(&format!("stint-{stint}/{STATUS_BEFORE}"))?,
            status_after: named(&format!("stint-{stint}/{STATUS_AFTER}"))?,
        });
    }
    let levels = 0..plan.levels.len();
    let files = levels.map(|level| (level, stacks_file(level)));
    let heaviest = plan.heaviest_level();
    let earlier = heaviest.map(|level| (level, STACKS.to_owned()));
    let mut stacks = BTreeMap::new();
    for (level, file) in earlier.into_iter().chain(files) {
        let text = read_text(&dir.join(&file), &file, DOCUMENT_BYTES_MAX, complaints)?;
        if !text.is_empty() {
            stacks.insert(level, text);
        }
    }
    Ok(ContenderFiles {
        later_stints,
        stacks,
        session,
        connection: json(&dir, "connection.json", complaints)?,
        conditions_before: json(&dir, "conditions.before.json", complaints)?,
        conditions_after: json(&dir, "conditions.after.json", complaints)?,
        build: json(&dir, "build.json", complaints)?,
        size: json(&dir, "size.json", complaints)?,
        proof: json(&dir, PROOF, complaints)?,
        statements: json(&dir, STATEMENTS, complaints)?,
        variables_before,
        variables_after,
        status_before,
        status_after,
    })
}

/// A JSON file in a contender's directory.
fn json<T: DeserializeOwned + Bounded>(
    dir: &Path,
    file: &str,
    complaints: &mut Complaints,
) -> Result<Option<T>, RecordError> {
    read_json(&dir.join(file), file, complaints)
}
