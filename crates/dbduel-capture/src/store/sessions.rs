//! Sessions and transactions as records of fixed width.

use std::io;
use std::path::Path;

use super::columns::{FillableFile, NO_PLACE, NO_TIME, number};

/// Bytes of a session's record.
pub(super) const SESSION_BYTES: usize = 64;
/// Bytes of a transaction's record.
pub(super) const TRANSACTION_BYTES: usize = 16;
/// Sessions for which room is made at first.
const ROOM: u64 = 1 << 10;
/// Sessions of one capture.
const SESSIONS_MAX: u32 = 1 << 31;

const IS_PRESENT: u32 = 1;
const IS_WHOLE: u32 = 2;
const HAS_ENDED: u32 = 4;

/// A session of a capture. Times are nanoseconds since the capture's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// When it begins or is first seen.
    pub begin: Option<i64>,
    /// When it ends, where the log has that.
    pub end: Option<i64>,
    /// Last known instant: the end of its last statement, or the start where ends are unknown.
    pub last: Option<i64>,
    /// Place of its first statement in `order.u32`.
    pub first: u32,
    /// Its statements.
    pub count: u32,
    /// Statements at its beginning that change settings or the default database, before any other.
    pub settings_prefix: u32,
    /// Place of its user in the manifest; `None` where the log does not say.
    pub user: Option<u32>,
    /// Place of its default database at its beginning; `None` where that is unknown.
    pub schema: Option<u32>,
    /// The same at its end.
    pub schema_at_end: Option<u32>,
    /// Place of its first transaction in `transactions.bin`.
    pub first_transaction: u32,
    /// Its transactions.
    pub transactions: u32,
    /// True where the log has its begin.
    pub is_whole: bool,
    /// True where the log has its end.
    pub has_ended: bool,
}

impl Session {
    const UNKNOWN: Self = Session {
        begin: None,
        end: None,
        last: None,
        first: 0,
        count: 0,
        settings_prefix: 0,
        user: None,
        schema: None,
        schema_at_end: None,
        first_transaction: 0,
        transactions: 0,
        is_whole: false,
        has_ended: false,
    };

    /// The session of a record; `None` for a record of zeros, whose number no session has.
    pub(super) fn read(record: &[u8]) -> Option<Self> {
        let time = |at| number(record, at).map(i64::from_le_bytes);
        let count = |at| number(record, at).map_or(0, u32::from_le_bytes);
        let known = |time: Option<i64>| time.filter(|time| *time != NO_TIME);
        let place = |at| Some(count(at)).filter(|place| *place != NO_PLACE);
        let flags = count(14);
        (flags & IS_PRESENT != 0).then(|| Session {
            begin: known(time(0)),
            end: known(time(1)),
            last: known(time(2)),
            first: count(6),
            count: count(7),
            settings_prefix: count(8),
            user: place(9),
            schema: place(10),
            schema_at_end: place(11),
            first_transaction: count(12),
            transactions: count(13),
            is_whole: flags & IS_WHOLE != 0,
            has_ended: flags & HAS_ENDED != 0,
        })
    }

    pub(super) fn write(&self, record: &mut [u8]) {
        let mut bytes = [0; SESSION_BYTES];
        for (place, time) in [self.begin, self.end, self.last].into_iter().enumerate() {
            let time = time.unwrap_or(NO_TIME);
            bytes[8 * place..][..8].copy_from_slice(&time.to_le_bytes());
        }
        let flags = IS_PRESENT
            | if self.is_whole { IS_WHOLE } else { 0 }
            | if self.has_ended { HAS_ENDED } else { 0 };
        let numbers = [
            self.first,
            self.count,
            self.settings_prefix,
            self.user.unwrap_or(NO_PLACE),
            self.schema.unwrap_or(NO_PLACE),
            self.schema_at_end.unwrap_or(NO_PLACE),
            self.first_transaction,
            self.transactions,
            flags,
        ];
        for (place, value) in numbers.into_iter().enumerate() {
            bytes[24 + 4 * place..][..4].copy_from_slice(&value.to_le_bytes());
        }
        record[..SESSION_BYTES].copy_from_slice(&bytes);
    }
}

/// How a transaction ends. The number is its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TransactionEnd {
    /// By `COMMIT`, or with its only statement where each commits by itself.
    Commit = 0,
    /// By `ROLLBACK`.
    Rollback = 1,
    /// By a statement that commits what is open, such as a definition in MySQL.
    ImplicitCommit = 2,
    /// By the server, as after a deadlock, or by a reset of the session.
    Aborted = 3,
    /// With its session.
    SessionEnd = 4,
    /// Not within the log.
    LogEnd = 5,
}

impl TransactionEnd {
    const ALL: [Self; 6] = [
        Self::Commit,
        Self::Rollback,
        Self::ImplicitCommit,
        Self::Aborted,
        Self::SessionEnd,
        Self::LogEnd,
    ];
}

/// How a transaction begins. The number is its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TransactionBegin {
    /// It is one statement, which commits by itself.
    Autocommit = 0,
    /// By `BEGIN` or `START TRANSACTION`.
    Explicit = 1,
    /// By the first statement under `autocommit=0`.
    Implied = 2,
    /// Before the log begins: the first statements are missing.
    BeforeLog = 3,
}

impl TransactionBegin {
    const ALL: [Self; 4] = [
        Self::Autocommit,
        Self::Explicit,
        Self::Implied,
        Self::BeforeLog,
    ];
}

/// A transaction of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// Its session.
    pub session: u32,
    /// Place of its first statement in `order.u32`.
    pub first: u32,
    /// Its statements, those that begin and end it included.
    pub count: u32,
    /// How it begins.
    pub begin: TransactionBegin,
    /// How it ends.
    pub end: TransactionEnd,
}

impl Transaction {
    pub(super) fn read(record: &[u8]) -> Option<Self> {
        let count = |at| number(record, at).map(u32::from_le_bytes);
        Some(Transaction {
            session: count(0)?,
            first: count(1)?,
            count: count(2)?,
            end: *TransactionEnd::ALL.get(usize::from(*record.get(12)?))?,
            begin: *TransactionBegin::ALL.get(usize::from(*record.get(13)?))?,
        })
    }

    pub(super) fn bytes(&self) -> [u8; TRANSACTION_BYTES] {
        let mut bytes = [0; TRANSACTION_BYTES];
        for (place, value) in [self.session, self.first, self.count]
            .into_iter()
            .enumerate()
        {
            bytes[4 * place..][..4].copy_from_slice(&value.to_le_bytes());
        }
        bytes[12] = self.end as u8;
        bytes[13] = self.begin as u8;
        bytes
    }

    /// True where the log has all of it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.begin != TransactionBegin::BeforeLog && self.end != TransactionEnd::LogEnd
    }
}

/// The sessions while they are written: records in a mapped file, so that what no longer changes can leave memory.
#[derive(Debug)]
pub(super) struct SessionTable {
    file: FillableFile,
    count: u32,
}

impl SessionTable {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = FillableFile::create(path, ROOM * SESSION_BYTES as u64)?;
        Ok(SessionTable { file, count: 0 })
    }

    /// One more than the greatest number of a session.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Changes a session, which is made if there is none of this number.
    pub(super) fn change(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut Session, bool),
    ) -> io::Result<()> {
        if number >= SESSIONS_MAX {
            return Err(io::Error::other("the log has too many sessions"));
        }
        let needed = (u64::from(number) + 1) * SESSION_BYTES as u64;
        if needed > self.file.length() {
            self.file.resize(needed.next_power_of_two())?;
        }
        self.count = self.count.max(number + 1);
        let start = number as usize * SESSION_BYTES;
        let record = &mut self.file.bytes()[start..start + SESSION_BYTES];
        let found = Session::read(record);
        let is_new = found.is_none();
        let mut session = found.unwrap_or(Session::UNKNOWN);
        change(&mut session, is_new);
        session.write(record);
        Ok(())
    }

    pub(super) fn get(&mut self, number: u32) -> Option<Session> {
        let start = number as usize * SESSION_BYTES;
        let bytes = self.file.bytes();
        Session::read(bytes.get(start..start + SESSION_BYTES)?)
    }

    /// Cuts the file behind the last session.
    pub(super) fn trim(&mut self) -> io::Result<()> {
        self.file
            .resize(u64::from(self.count) * SESSION_BYTES as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_come_back_and_gaps_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = SessionTable::create(&dir.path().join("sessions.bin")).unwrap();
        let wanted = Session {
            begin: Some(-5),
            last: Some(i64::MAX),
            first: 3,
            count: 4,
            settings_prefix: 1,
            user: Some(0),
            schema_at_end: Some(9),
            first_transaction: 7,
            transactions: 2,
            is_whole: true,
            ..Session::UNKNOWN
        };
        for number in [2, 5000] {
            let change = |session: &mut Session, is_new: bool| {
                assert!(is_new);
                *session = wanted;
            };
            table.change(number, change).unwrap();
        }
        table
            .change(2, |session, is_new| {
                assert!(!is_new);
                session.has_ended = true;
            })
            .unwrap();
        table.trim().unwrap();
        assert_eq!(table.count(), 5001);
        assert_eq!(table.get(5000), Some(wanted));
        let ended = Session {
            has_ended: true,
            ..wanted
        };
        assert_eq!(table.get(2), Some(ended));
        assert_eq!((table.get(3), table.get(9000)), (None, None));
        assert!(table.change(u32::MAX, |_, _| {}).is_err());
    }

    #[test]
    fn transactions_come_back() {
        let transaction = Transaction {
            session: 1,
            first: 2,
            count: u32::MAX,
            begin: TransactionBegin::Implied,
            end: TransactionEnd::LogEnd,
        };
        assert_eq!(Transaction::read(&transaction.bytes()), Some(transaction));
        assert_eq!(Transaction::read(&[9; TRANSACTION_BYTES]), None);
        assert_eq!(Transaction::read(&[]), None);
    }
}
