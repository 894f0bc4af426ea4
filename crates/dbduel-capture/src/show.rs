//! A capture in figures: what it holds, what a replay leaves out, what its log lacks.

use dbduel_sql::Kind;
use jiff::Timestamp;
use serde::Serialize;

use crate::entry::{Lack, Outcome};
use crate::store::Capture;
use crate::store::manifest::{
    Anonymised, ClassRow, Counts, LogDescription, Manifest, Refusal, Unreadable, escaped,
};

/// Parts of the span for which concurrency is given.
const PARTS: usize = 10;
/// Examples of a class.
const EXAMPLES: usize = 3;
/// Longest text of an example, bytes.
const EXAMPLE_BYTES_MAX: usize = 4 << 10;

/// A capture in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// The log.
    pub log: LogDescription,
    /// First start, RFC 3339; `None` where the log has no times.
    pub start: Option<String>,
    /// Seconds from the first start to the last known instant.
    pub length_s: f64,
    /// Resolution of starts, nanoseconds.
    pub step_ns: u32,
    /// False where the log's times name no zone whose offset is known.
    pub names_zone: bool,
    /// Counts.
    pub counts: Counts,
    /// Statements by what they do.
    pub groups: Vec<GroupShare>,
    /// Tenths of the span; empty where the log has no times.
    pub concurrency: Vec<Concurrency>,
    /// True where classes are ranked by time, false where by count, since durations are unknown.
    pub is_by_time: bool,
    /// Classes, the largest share first.
    pub classes: Vec<ClassShare>,
    /// What is not replayed, the most statements first.
    pub left_out: Vec<Refusal>,
    /// What was not understood.
    pub unreadable: Unreadable,
    /// What the log cannot say, and what follows.
    pub lacks: Vec<LackText>,
    /// What was done to the values, if they are not those of the log.
    pub anonymised: Option<Anonymised>,
}

/// A thing that a log cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LackText {
    /// Its name.
    pub name: Lack,
    /// In words.
    pub text: &'static str,
}

/// What statements do, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindGroup {
    /// They read.
    Read,
    /// They change rows.
    Write,
    /// They begin or end transactions.
    TransactionControl,
    /// Settings, questions about the schema, definitions and all else.
    Other,
}

impl KindGroup {
    /// All groups.
    pub const ALL: [Self; 4] = [
        Self::Read,
        Self::Write,
        Self::TransactionControl,
        Self::Other,
    ];

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KindGroup::Read => "read",
            KindGroup::Write => "write",
            KindGroup::TransactionControl => "transaction control",
            KindGroup::Other => "other",
        }
    }

    fn of(kind: &str) -> Self {
        let kind = Kind::ALL.iter().find(|known| known.name() == kind);
        match kind {
            Some(Kind::Read) => KindGroup::Read,
            Some(Kind::Write) => KindGroup::Write,
            Some(Kind::Begin | Kind::Commit | Kind::Rollback | Kind::Savepoint) => {
                KindGroup::TransactionControl
            }
            _ => KindGroup::Other,
        }
    }
}

/// The statements of a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GroupShare {
    /// The group.
    pub group: KindGroup,
    /// Statements.
    pub statements: u64,
    /// Their share of all statements.
    pub share: f64,
    /// Their share of the time of all statements; `None` where durations are unknown.
    pub share_of_time: Option<f64>,
}

/// A tenth of the span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Concurrency {
    /// Where it begins, seconds since the start.
    pub from_s: f64,
    /// Mean number of open sessions.
    pub open_sessions: f64,
    /// Statements that begin in it, per second.
    pub statements_per_s: f64,
    /// Mean number of statements that run; `None` where durations are unknown.
    pub running: Option<f64>,
}

/// A class and its share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassShare {
    /// The class.
    #[serde(flatten)]
    pub class: ClassRow,
    /// Share of all statements.
    pub share: f64,
    /// Share of the time of all statements; `None` where durations are unknown.
    pub share_of_time: Option<f64>,
    /// Mean duration, microseconds.
    pub mean_us: Option<f64>,
}

/// A class in detail.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassDetail {
    /// The class.
    #[serde(flatten)]
    pub share: ClassShare,
    /// Quantiles of durations, microseconds: 50 %, 95 %, 99 %, 100 %.
    pub quantiles_us: Option<[f64; 4]>,
    /// Mean rows returned, where known.
    pub mean_rows_sent: Option<f64>,
    /// Mean rows changed, where known.
    pub mean_rows_affected: Option<f64>,
    /// Sessions with a statement of the class.
    pub sessions: u64,
    /// The first statements.
    pub examples: Vec<Example>,
}

/// A statement as an example of its class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// File and line of the log.
    pub position: String,
    /// Text; what is not UTF-8 is escaped, and a long one ends with `…`.
    pub text: String,
    /// Values of a prepared statement; `null` is NULL.
    pub parameters: Vec<Option<String>>,
    /// How it ended, where the log says so: `ok`, an error's number, a SQLSTATE.
    pub outcome: Option<String>,
}

/// Why a class was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoClass {
    /// None begins so.
    #[error("no class has an identity that begins with `{0}`")]
    Unknown(String),
    /// Several begin so.
    #[error("{1} classes have identities that begin with `{0}`; give more digits")]
    Ambiguous(String, usize),
}

/// A capture in figures, with its `classes_max` largest classes.
#[must_use]
pub fn overview(capture: &Capture, classes_max: usize) -> Overview {
    let manifest = capture.manifest();
    let shares = Shares::of(capture);
    let mut classes: Vec<&ClassRow> = capture.classes().iter().collect();
    let by_count = |class: &ClassRow| (class.statements, 0);
    let by_time = |class: &ClassRow| (class.duration_ns, class.statements);
    classes.sort_by_key(|class| {
        let key = match shares.is_by_time {
            true => by_time(class),
            false => by_count(class),
        };
        std::cmp::Reverse(key)
    });
    classes.truncate(classes_max);
    let mut left_out = manifest.refusals.clone();
    left_out.sort_by_key(|refusal| std::cmp::Reverse(refusal.statements));
    Overview {
        log: manifest.log.clone(),
        start: manifest.span.start_unix_ns.and_then(instant),
        length_s: seconds(manifest.span.length_ns),
        step_ns: manifest.span.step_ns,
        names_zone: manifest.span.names_zone,
        counts: manifest.counts.clone(),
        groups: groups(capture, &shares),
        concurrency: concurrency(capture),
        is_by_time: shares.is_by_time,
        classes: classes
            .into_iter()
            .map(|class| shares.class(class))
            .collect(),
        left_out,
        unreadable: manifest.unreadable.clone(),
        lacks: lacks(manifest),
        anonymised: manifest.anonymised.clone(),
    }
}

/// The classes with statements that are not replayed, the most such statements first.
#[must_use]
pub fn left_out_classes(capture: &Capture) -> Vec<ClassShare> {
    let shares = Shares::of(capture);
    let mut classes: Vec<&ClassRow> = capture.classes().iter().collect();
    classes.retain(|class| class.refused > 0);
    classes.sort_by_key(|class| std::cmp::Reverse(class.refused));
    classes
        .into_iter()
        .map(|class| shares.class(class))
        .collect()
}

/// The class whose identity begins with `id`, in detail.
///
/// # Errors
/// When there is none, or several.
pub fn class_detail(capture: &Capture, id: &str) -> Result<ClassDetail, NoClass> {
    let wanted = id.to_ascii_lowercase();
    let classes = capture.classes().iter().enumerate();
    let found: Vec<(usize, &ClassRow)> = classes
        .filter(|(_, class)| class.id.starts_with(&wanted))
        .collect();
    let (place, class) = match found.as_slice() {
        [one] => *one,
        [] => return Err(NoClass::Unknown(id.to_owned())),
        several => return Err(NoClass::Ambiguous(id.to_owned(), several.len())),
    };
    let mut durations = Vec::new();
    let (mut sent, mut affected) = (Mean::default(), Mean::default());
    let mut sessions = std::collections::HashSet::new();
    let mut examples = Vec::new();
    for index in 0..capture.statements() {
        if capture.class_place(index) != Some(place as u32) {
            continue;
        }
        let Some(statement) = capture.statement(index) else {
            continue;
        };
        durations.extend(statement.duration_ns);
        sent.add(statement.rows_sent);
        affected.add(statement.rows_affected);
        sessions.insert(statement.session);
        if examples.len() < EXAMPLES {
            examples.push(example(capture, index));
        }
    }
    durations.sort_unstable();
    let at = |share: f64| {
        let place = (share * durations.len() as f64).ceil() as usize;
        durations[place.clamp(1, durations.len()) - 1] as f64 / 1e3
    };
    Ok(ClassDetail {
        share: Shares::of(capture).class(class),
        quantiles_us: (!durations.is_empty()).then(|| [0.5, 0.95, 0.99, 1.0].map(at)),
        mean_rows_sent: sent.value(),
        mean_rows_affected: affected.value(),
        sessions: sessions.len() as u64,
        examples: examples.into_iter().flatten().collect(),
    })
}

fn example(capture: &Capture, index: usize) -> Option<Example> {
    let statement = capture.statement(index)?;
    let parameters = capture.parameters(index);
    Some(Example {
        position: capture.manifest().position(statement.line),
        text: shortened(statement.text),
        parameters: parameters
            .map(|value| value.map(shortened))
            .take(1000)
            .collect(),
        outcome: statement.outcome.map(|outcome| match outcome {
            Outcome::Ok => "ok".to_owned(),
            Outcome::Number(number) => number.to_string(),
            Outcome::State(state) => String::from_utf8_lossy(&state).into_owned(),
        }),
    })
}

fn shortened(bytes: &[u8]) -> String {
    match bytes.len() > EXAMPLE_BYTES_MAX {
        true => escaped(&bytes[..EXAMPLE_BYTES_MAX], false) + "…",
        false => escaped(bytes, false),
    }
}

#[derive(Debug, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: Option<u64>) {
        if let Some(value) = value {
            self.sum += value as f64;
            self.count += 1;
        }
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// What shares are of.
struct Shares {
    statements: u64,
    duration_ns: u64,
    is_by_time: bool,
}

impl Shares {
    fn of(capture: &Capture) -> Self {
        let durations = capture.classes().iter().map(|class| class.duration_ns);
        let duration_ns = durations.fold(0, u64::saturating_add);
        let counts = &capture.manifest().counts;
        Shares {
            statements: counts.statements,
            duration_ns,
            // A log with the durations of slow statements alone is ranked by count.
            is_by_time: 2 * counts.with_duration > counts.statements && duration_ns > 0,
        }
    }

    fn time(&self, duration_ns: u64) -> Option<f64> {
        self.is_by_time
            .then(|| share(duration_ns, self.duration_ns))
    }

    fn class(&self, class: &ClassRow) -> ClassShare {
        let mean_us = class.duration_ns as f64 / 1e3 / class.with_duration as f64;
        ClassShare {
            class: class.clone(),
            share: share(class.statements, self.statements),
            share_of_time: self.time(class.duration_ns),
            mean_us: (class.with_duration > 0).then_some(mean_us),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

fn groups(capture: &Capture, shares: &Shares) -> Vec<GroupShare> {
    let groups = KindGroup::ALL.into_iter().map(|group| {
        let classes = capture.classes().iter();
        let of_it = classes.filter(|class| KindGroup::of(&class.kind) == group);
        let (statements, duration_ns) = of_it.fold((0_u64, 0_u64), |(count, time), class| {
            (
                count.saturating_add(class.statements),
                time.saturating_add(class.duration_ns),
            )
        });
        GroupShare {
            group,
            statements,
            share: share(statements, shares.statements),
            share_of_time: shares.time(duration_ns),
        }
    });
    groups.collect()
}

/// Adds what of an interval lies in each part of the span; all in nanoseconds since the start.
fn spread(parts: &mut [f64; PARTS], from: f64, to: f64, part_ns: f64) {
    let place = |at: f64| (at / part_ns).clamp(0.0, PARTS as f64);
    let (first, last) = (place(from), place(to));
    for (part, sum) in parts.iter_mut().enumerate() {
        let begin = first.max(part as f64);
        let end = last.min((part + 1) as f64);
        *sum += (end - begin).max(0.0);
    }
}

fn concurrency(capture: &Capture) -> Vec<Concurrency> {
    let manifest = capture.manifest();
    let length = manifest.span.length_ns as f64;
    if manifest.span.start_unix_ns.is_none() || length <= 0.0 {
        return Vec::new();
    }
    let part_ns = length / PARTS as f64;
    let mut begun = [0_u64; PARTS];
    let mut running = [0.0; PARTS];
    for index in 0..capture.statements() {
        let Some(start) = capture.start(index) else {
            continue;
        };
        let place = (start as f64 / part_ns) as usize;
        begun[place.min(PARTS - 1)] += 1;
        if let Some(duration) = capture.duration_ns(index) {
            let start = start as f64;
            spread(&mut running, start, start + duration as f64, part_ns);
        }
    }
    let has_ends = !manifest.lacks.contains(&Lack::SessionEnds);
    // Where no session is whole the log has no begins at all, as the slow logs of MySQL: sessions count from their first statement.
    let is_open_before_log = has_ends && manifest.counts.whole_sessions > 0;
    let mut open = [0.0; PARTS];
    for (_, session) in capture.sessions() {
        let Some(begin) = session.begin else {
            continue;
        };
        // A session without an end stays open, unless the log has no ends at all.
        let end = match has_ends && !session.has_ended {
            true => length,
            false => session.end.or(session.last).unwrap_or(begin) as f64,
        };
        let begin = match is_open_before_log && !session.is_whole {
            true => 0.0,
            false => begin as f64,
        };
        spread(&mut open, begin, end, part_ns);
    }
    let has_durations = manifest.counts.with_duration > 0;
    let parts = (0..PARTS).map(|part| Concurrency {
        from_s: part as f64 * part_ns / 1e9,
        open_sessions: open[part],
        statements_per_s: begun[part] as f64 / (part_ns / 1e9),
        running: has_durations.then_some(running[part]),
    });
    parts.collect()
}

fn lacks(manifest: &Manifest) -> Vec<LackText> {
    let lacks = manifest.lacks.iter().map(|lack| LackText {
        name: *lack,
        text: lack.text(),
    });
    lacks.collect()
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn instant(unix_ns: i64) -> Option<String> {
    let instant = Timestamp::from_nanosecond(i128::from(unix_ns)).ok()?;
    Some(instant.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_spread_over_the_parts_that_they_touch() {
        let mut parts = [0.0; PARTS];
        spread(&mut parts, 5.0, 25.0, 10.0);
        assert_eq!(parts[..4], [0.5, 1.0, 0.5, 0.0]);
        spread(&mut parts, -50.0, 1e9, 10.0);
        assert_eq!(parts[0], 1.5);
        assert_eq!(parts[9], 1.0);
        spread(&mut parts, 30.0, 20.0, 10.0);
        assert_eq!(parts[2], 1.5);
    }

    #[test]
    fn kinds_are_in_groups() {
        let groups = ["read", "write", "savepoint", "set", "what"].map(KindGroup::of);
        use KindGroup::*;
        assert_eq!(groups, [Read, Write, TransactionControl, Other, Other]);
    }
}
