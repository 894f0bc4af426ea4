//! The statements by session, and the transactions that they make.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use dbduel_sql::Kind;

use super::columns::{
    Column, FillableFile, GrowingFile, MappedFile, NO_NUMBER, NO_PLACE, NO_TIME, is_error_code,
    number, outcome_code,
};
use super::sessions::{SessionTable, Transaction, TransactionBegin, TransactionEnd};
use super::write::column_path;
use crate::effect::Effect;
use crate::entry::Outcome;
use crate::store::read::SentAs;

/// Statements and sessions between two looks at whether the import shall end.
const CHECK_EVERY: usize = 1 << 18;
/// Bytes that are shifted at once; a multiple of eight.
const CHUNK: usize = 1 << 20;
/// Errors of MySQL that roll back the whole transaction: deadlock, table of locks full, XA deadlock and timeout.
const ROLLBACK_ERRORS: [u16; 4] = [1213, 1206, 1614, 1613];

/// Called now and then; its error stops the import.
pub(super) type Check<'a> = dyn FnMut() -> io::Result<()> + 'a;

/// Transactions by their kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TransactionCounts {
    pub(super) all: u64,
    pub(super) explicit: u64,
    pub(super) torn: u64,
}

/// What the statements make when they are arranged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Arranged {
    pub(super) transactions: TransactionCounts,
    /// Latest end of the statements whose start was moved, since `base`.
    pub(super) last_moved_end: Option<i64>,
}

/// Subtracts `base` from all known starts in the column.
pub(super) fn shift_starts(dir: &Path, base: i64, check: &mut Check<'_>) -> io::Result<()> {
    let path = column_path(dir, Column::Start);
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < length {
        check()?;
        let left = usize::try_from(length - at).unwrap_or(CHUNK).min(CHUNK);
        let buffer = &mut buffer[..left];
        file.read_exact_at(buffer, at)?;
        for value in buffer.chunks_exact_mut(8) {
            let start = number(value, 0).map_or(NO_TIME, i64::from_le_bytes);
            if start != NO_TIME {
                value.copy_from_slice(&relative(start, base).to_le_bytes());
            }
        }
        file.write_all_at(buffer, at)?;
        at += left as u64;
    }
    Ok(())
}

/// A time since `base`; never the value that stands for an unknown one.
fn relative(time: i64, base: i64) -> i64 {
    time.saturating_sub(base).max(NO_TIME + 1)
}

/// Writes the order of the statements, the transactions, and what sessions know of both. Within a session the order is that of the
/// log, and starts do not decrease. Times of sessions are shifted by `base`.
pub(super) fn arrange(
    dir: &Path,
    statements: usize,
    sessions: &mut SessionTable,
    base: i64,
    is_mysql: bool,
    check: &mut Check<'_>,
) -> io::Result<Arranged> {
    let open = |column| MappedFile::open(&column_path(dir, column));
    let session_of = open(Column::Session)?;
    let durations = open(Column::Duration)?;
    let mut starts = FillableFile::open(&column_path(dir, Column::Start))?;
    let mut order = FillableFile::create(&dir.join("order.u32"), 4 * statements as u64)?;
    let firsts = group(&session_of, statements, sessions.count(), &mut order, check)?;
    let mut walk = Walk {
        kinds: open(Column::Kind)?,
        effects: open(Column::Effect)?,
        outcomes: open(Column::Outcome)?,
        protocols: open(Column::Protocol)?,
        transaction_of: FillableFile::create(
            &column_path(dir, Column::Transaction),
            4 * statements as u64,
        )?,
        transactions: GrowingFile::create(&dir.join("transactions.bin"))?,
        counts: TransactionCounts::default(),
        is_mysql,
    };
    let mut last_moved_end = None;
    let since_base = |time: &mut Option<i64>| *time = time.map(|time| relative(time, base));
    for session in 0..sessions.count() {
        if (session as usize).is_multiple_of(CHECK_EVERY) {
            check()?;
        }
        let Some(known) = sessions.get(session) else {
            continue;
        };
        let (first, end) = (
            firsts[session as usize] as usize,
            firsts[session as usize + 1] as usize,
        );
        let places = &order.bytes()[4 * first..4 * end];
        let moved_end = make_monotone(places, starts.bytes(), &durations);
        last_moved_end = last_moved_end.max(moved_end);
        let first_transaction = walk.counts.all;
        let facts = SessionFacts {
            session,
            first: first as u32,
            is_whole: known.is_whole,
            has_ended: known.has_ended,
            places,
        };
        let prefix = walk.session(&facts)?;
        let transactions = walk.counts.all - first_transaction;
        sessions.change(session, |known, _| {
            known.first = first as u32;
            known.count = (end - first) as u32;
            known.settings_prefix = prefix;
            // As many as statements at most, which fit.
            known.first_transaction = first_transaction as u32;
            known.transactions = transactions as u32;
            since_base(&mut known.begin);
            since_base(&mut known.end);
            since_base(&mut known.last);
            known.last = known.last.max(moved_end);
        })?;
    }
    walk.transactions.finish()?;
    Ok(Arranged {
        transactions: walk.counts,
        last_moved_end,
    })
}

/// Fills `order` with the statements of each session in the order of the log. Returns the place of each session's first statement,
/// and behind them the number of statements.
fn group(
    session_of: &MappedFile,
    statements: usize,
    sessions: u32,
    order: &mut FillableFile,
    check: &mut Check<'_>,
) -> io::Result<Vec<u32>> {
    let mut next = vec![0_u32; sessions as usize + 1];
    let session = |statement: usize| {
        let session = session_of.u32(statement).map(|session| session as usize);
        session.ok_or_else(|| io::Error::other("a column is shorter than the others"))
    };
    for statement in 0..statements {
        next[session(statement)? + 1] += 1;
    }
    for place in 1..next.len() {
        next[place] += next[place - 1];
    }
    let firsts = next.clone();
    let bytes = order.bytes();
    for statement in 0..statements {
        if statement.is_multiple_of(CHECK_EVERY) {
            check()?;
        }
        let place = &mut next[session(statement)?];
        let number = (statement as u32).to_le_bytes();
        bytes[4 * *place as usize..][..4].copy_from_slice(&number);
        *place += 1;
    }
    Ok(firsts)
}

/// The statements of a part of `order.u32`.
fn statements_at(places: &[u8]) -> impl Iterator<Item = usize> {
    let places = places.chunks_exact(4);
    places.map(|place| number(place, 0).map_or(0, u32::from_le_bytes) as usize)
}

/// Moves the start of each statement of a session that precedes the start before it to that one, and returns the latest end of the
/// moved statements. The log has the statements of a session in order, and its times need not: MySQL 5.6 logs the second of the end,
/// and clocks are set back.
fn make_monotone(places: &[u8], starts: &mut [u8], durations: &MappedFile) -> Option<i64> {
    let mut last = NO_TIME;
    let mut moved_end = None;
    for statement in statements_at(places) {
        let value = &mut starts[8 * statement..][..8];
        let start = number(value, 0).map_or(NO_TIME, i64::from_le_bytes);
        if start == NO_TIME {
            continue;
        }
        if start >= last {
            last = start;
            continue;
        }
        value.copy_from_slice(&last.to_le_bytes());
        let duration = durations.u64(statement);
        let duration = duration.filter(|duration| *duration != NO_NUMBER);
        let end = last.saturating_add_unsigned(duration.unwrap_or(0));
        moved_end = moved_end.max(Some(end));
    }
    moved_end
}

/// What is known of a session before its statements are walked through.
struct SessionFacts<'a> {
    session: u32,
    first: u32,
    is_whole: bool,
    has_ended: bool,
    /// Its part of `order.u32`.
    places: &'a [u8],
}

impl SessionFacts<'_> {
    fn statements(&self) -> impl Iterator<Item = usize> {
        statements_at(self.places)
    }
}

/// A transaction that is open: the place of its first statement within the session, and how it began.
type OpenTransaction = Option<(usize, TransactionBegin)>;

struct Walk {
    kinds: MappedFile,
    effects: MappedFile,
    outcomes: MappedFile,
    protocols: MappedFile,
    transaction_of: FillableFile,
    transactions: GrowingFile,
    counts: TransactionCounts,
    is_mysql: bool,
}

impl Walk {
    /// Finds the transactions of a session. Returns the length of its prefix of settings.
    fn session(&mut self, facts: &SessionFacts<'_>) -> io::Result<u32> {
        let mut prefix = None;
        let mut autocommit = self.begins_with_autocommit(facts);
        let mut open = match autocommit {
            true => self.torn(facts),
            // Whether its first statement begins a transaction is in the log of before.
            false => Some((0, TransactionBegin::BeforeLog)),
        };
        for (place, statement) in facts.statements().enumerate() {
            let transaction = &mut self.transaction_of.bytes()[4 * statement..][..4];
            transaction.copy_from_slice(&NO_PLACE.to_le_bytes());
            if prefix.is_none() && !self.is_setting(statement) {
                prefix = Some(place as u32);
            }
            let outcome = self.outcomes.u32(statement).unwrap_or_default();
            let effect = match self.effect(statement) {
                effect if !is_error_code(outcome) || effect == Effect::Runs => effect,
                effect => {
                    if self.aborts_where_it_fails(statement, effect) {
                        self.end(facts, &mut open, place + 1, TransactionEnd::Aborted)?;
                    }
                    Effect::None
                }
            };
            match effect {
                Effect::None => {}
                Effect::Runs if open.is_some() => {}
                Effect::Runs if autocommit => {
                    let mut single = Some((place, TransactionBegin::Autocommit));
                    self.end(facts, &mut single, place + 1, TransactionEnd::Commit)?;
                }
                Effect::Runs => open = Some((place, TransactionBegin::Implied)),
                // In PostgreSQL a warning; in MySQL it commits.
                Effect::Begins if open.is_some() && !self.is_mysql => {}
                Effect::Begins => {
                    self.end(facts, &mut open, place, TransactionEnd::ImplicitCommit)?;
                    open = Some((place, TransactionBegin::Explicit));
                }
                Effect::Commits => self.end(facts, &mut open, place + 1, TransactionEnd::Commit)?,
                Effect::RollsBack => {
                    self.end(facts, &mut open, place + 1, TransactionEnd::Rollback)?;
                }
                Effect::CommitsAndChains | Effect::RollsBackAndChains => {
                    let end = match effect {
                        Effect::CommitsAndChains => TransactionEnd::Commit,
                        _ => TransactionEnd::Rollback,
                    };
                    self.end(facts, &mut open, place + 1, end)?;
                    open = Some((place + 1, TransactionBegin::Explicit));
                }
                Effect::CommitsImplicitly => {
                    self.end(facts, &mut open, place, TransactionEnd::ImplicitCommit)?;
                    let mut single = Some((place, TransactionBegin::Autocommit));
                    self.end(facts, &mut single, place + 1, TransactionEnd::Commit)?;
                }
                Effect::AutocommitOff => autocommit = false,
                Effect::AutocommitOn => {
                    if !autocommit {
                        self.end(facts, &mut open, place + 1, TransactionEnd::ImplicitCommit)?;
                    }
                    autocommit = true;
                }
                Effect::Resets => {
                    self.end(facts, &mut open, place, TransactionEnd::Aborted)?;
                    autocommit = true;
                }
            }
            if self.is_mysql && is_rolled_back(outcome) {
                self.end(facts, &mut open, place + 1, TransactionEnd::Aborted)?;
            }
        }
        let count = facts.places.len() / 4;
        let end = match facts.has_ended {
            true => TransactionEnd::SessionEnd,
            false => TransactionEnd::LogEnd,
        };
        self.end(facts, &mut open, count, end)?;
        Ok(prefix.unwrap_or(count as u32))
    }

    /// Ends the transaction that is open, if there is one, before the place `to`.
    fn end(
        &mut self,
        facts: &SessionFacts<'_>,
        open: &mut OpenTransaction,
        to: usize,
        end: TransactionEnd,
    ) -> io::Result<()> {
        match open.take() {
            Some((from, begin)) if from < to => self.close(facts, from..to, begin, end),
            _ => Ok(()),
        }
    }

    /// The transaction that was open when the log began, if the first statement of the session about a transaction ends one.
    fn torn(&self, facts: &SessionFacts<'_>) -> OpenTransaction {
        if facts.is_whole {
            return None;
        }
        let mut effects = facts.statements().map(|statement| self.effect(statement));
        let first = effects.find(|effect| !matches!(effect, Effect::None | Effect::Runs));
        let is_end = first.is_some_and(Effect::is_end);
        is_end.then_some((0, TransactionBegin::BeforeLog))
    }

    /// False for a session of MySQL that was open before the log began and shows that its statements did not commit by themselves
    /// then: a second time it ends a transaction that no `BEGIN` began, or it sets `autocommit=1` after statements of a transaction
    /// that nothing else ends. Without such a sign statements commit by themselves, which is the servers' default; so a log without
    /// logins, as the slow log is, keeps the transactions of one statement.
    fn begins_with_autocommit(&self, facts: &SessionFacts<'_>) -> bool {
        if facts.is_whole || !self.is_mysql {
            return true;
        }
        let (mut is_begun, mut runs, mut has_ended) = (false, false, false);
        for statement in facts.statements() {
            let effect = self.effect(statement);
            match effect {
                Effect::None => {}
                Effect::Runs => runs = true,
                Effect::AutocommitOff | Effect::Resets => return true,
                Effect::AutocommitOn => return is_begun || !runs,
                _ => {
                    if effect.is_end() && !is_begun && runs && has_ended {
                        return false;
                    }
                    // The first one may end what was begun before the log.
                    has_ended |= effect.is_end();
                    runs = false;
                    is_begun = matches!(
                        effect,
                        Effect::Begins | Effect::CommitsAndChains | Effect::RollsBackAndChains
                    );
                }
            }
        }
        true
    }

    fn effect(&self, statement: usize) -> Effect {
        Effect::of_code(self.effects.u8(statement).unwrap_or_default())
    }

    fn kind(&self, statement: usize) -> Option<Kind> {
        let kind = self.kinds.u8(statement).map(usize::from);
        kind.and_then(|kind| Kind::ALL.get(kind)).copied()
    }

    /// True for a statement whose failure ends the transaction: `COMMIT`, `ROLLBACK` and `PREPARE TRANSACTION` of PostgreSQL, as
    /// after a serialization failure or with a deferred constraint. In a request with other statements one of those may have
    /// failed, and then the transaction stays open.
    fn aborts_where_it_fails(&self, statement: usize, effect: Effect) -> bool {
        let kind = self.kind(statement);
        let is_control = matches!(kind, Some(Kind::Commit | Kind::Rollback | Kind::Prepare));
        !self.is_mysql && effect.is_end() && is_control
    }

    /// True for a statement that changes settings or the default database.
    fn is_setting(&self, statement: usize) -> bool {
        let kind = self.kind(statement);
        let protocol = self.protocols.u8(statement).unwrap_or_default();
        matches!(kind, Some(Kind::Set | Kind::Use)) || SentAs::of_code(protocol).is_request()
    }

    /// Writes the transaction of the statements at these places of the session.
    fn close(
        &mut self,
        facts: &SessionFacts<'_>,
        within: std::ops::Range<usize>,
        begin: TransactionBegin,
        end: TransactionEnd,
    ) -> io::Result<()> {
        // As many as statements at most, which fit.
        let number_of_it = (self.counts.all as u32).to_le_bytes();
        let transaction = Transaction {
            session: facts.session,
            first: facts.first + within.start as u32,
            count: within.len() as u32,
            begin,
            end,
        };
        self.transactions.push(&transaction.bytes())?;
        self.counts.all += 1;
        self.counts.explicit += u64::from(begin != TransactionBegin::Autocommit);
        self.counts.torn += u64::from(!transaction.is_whole());
        let column = self.transaction_of.bytes();
        for statement in statements_at(&facts.places[4 * within.start..4 * within.end]) {
            column[4 * statement..][..4].copy_from_slice(&number_of_it);
        }
        Ok(())
    }
}

/// True for the outcome of a statement with which MySQL rolls back the transaction.
fn is_rolled_back(outcome: u32) -> bool {
    let code = |error: u16| outcome_code(Some(&Outcome::Number(error)));
    is_error_code(outcome) && ROLLBACK_ERRORS.iter().any(|error| code(*error) == outcome)
}
