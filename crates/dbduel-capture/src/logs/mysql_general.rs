//! The general log of MySQL and MariaDB, as a file.
//!
//! An entry is `TIME⇥ID COMMAND⇥ARGUMENT`, in older versions and MariaDB with a tab in place of a time that did not change. It ends
//! where a line begins like an entry: nothing is escaped and no length is given. So a literal with a line break can forge entries,
//! and no reader can tell these from others, unless the form of their times is another.

use std::io::BufRead;

use super::mysql_header::{HeaderFinder, LogServer};
use super::mysql_sessions::{Command, LoggedCommand, Sessions};
use super::text::{
    CUT_OFF, Lacks, LineRead, Lines, LogTime, TOO_LONG, is_full, long_time, number, offset_s,
    short_time,
};
use super::{LogOptions, LogProduct, ReadError};
use crate::entry::{Lack, Sink};

/// Longest name of a command that is looked for, bytes.
const COMMAND_BYTES_MAX: usize = 48;

/// Reads a general log to its end.
///
/// # Errors
/// When it cannot be read, when the sink refuses an entry, or when nothing in it is an entry.
pub fn read(
    input: &mut dyn BufRead,
    options: &LogOptions,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let mut reader = Reader {
        sink,
        sessions: Sessions::default(),
        lacks: Lacks::default(),
        product: options.product,
        offset_s: offset_s(options),
        time: None,
        form: None,
    };
    reader.read(&mut Lines::new(input))
}

struct Reader<'s> {
    sink: &'s mut dyn Sink,
    sessions: Sessions,
    lacks: Lacks,
    product: Option<LogProduct>,
    offset_s: i32,
    /// Time of the last entry that had one.
    time: Option<LogTime>,
    /// Form of the times since the last header.
    form: Option<TimeForm>,
}

/// How a server writes times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeForm {
    /// `YYMMDD HH:MM:SS`, left out while it does not change.
    Short,
    /// `YYYY-MM-DDTHH:MM:SS.ffffffZ`, in every entry: MySQL since 5.7.
    Long,
}

/// What stands before the argument of an entry.
#[derive(Debug, Clone, Copy)]
struct EntryHead {
    /// `None` where the time is left out.
    form: Option<TimeForm>,
    time: Option<LogTime>,
    id: u64,
    /// `None` for a name that is not known.
    command: Option<Command>,
    /// Where the argument begins.
    argument: usize,
}

/// An entry whose argument is being read.
#[derive(Debug, Clone, Copy)]
struct OpenEntry {
    head: EntryHead,
    line: u64,
    is_too_long: bool,
}

impl Reader<'_> {
    fn read(&mut self, lines: &mut Lines<'_>) -> Result<(), ReadError> {
        let mut buffer = Vec::new();
        let mut entry: Option<OpenEntry> = None;
        let mut header = HeaderFinder::default();
        // Lines that belong to no entry: first and count.
        let mut strays: (u64, u64) = (1, 0);
        let mut is_fit = false;
        let mut last = LineRead::Whole;
        loop {
            if entry.is_none() || is_full(&buffer) {
                if let Some(entry) = &mut entry {
                    entry.is_too_long = true;
                }
                buffer.clear();
                header.buffer_emptied();
            }
            let at = buffer.len();
            let Some(read) = lines.append(&mut buffer)? else {
                break;
            };
            last = read;
            if let Some(head) = self.entry_head(&buffer[at..]) {
                match entry {
                    Some(entry) => self.finish(entry, &buffer[..at], lines.number())?,
                    None => self.report_strays(&mut strays),
                }
                buffer.drain(..at + head.argument);
                header = HeaderFinder::default();
                self.time = head.time;
                self.form = self.form.or(head.form);
                is_fit = true;
                entry = Some(OpenEntry {
                    head,
                    line: lines.number(),
                    is_too_long: read == LineRead::Cut,
                });
                continue;
            }
            if let Some((begin, server)) = header.push(&buffer[at..], at) {
                match entry.take() {
                    Some(entry) => self.finish(entry, &buffer[..begin], lines.number() - 2)?,
                    None => {
                        // Its first two lines were counted.
                        strays.1 = strays.1.saturating_sub(2);
                        self.report_strays(&mut strays);
                    }
                }
                strays = (lines.number() + 1, 0);
                is_fit = true;
                self.open_header(server)?;
                continue;
            }
            match &mut entry {
                Some(entry) => entry.is_too_long |= read == LineRead::Cut,
                None => strays.1 += 1,
            }
        }
        if !is_fit {
            return Err(ReadError::Unfit {
                line: 1,
                why: "no line is an entry of a general log".to_owned(),
            });
        }
        match entry {
            Some(entry) if last == LineRead::Unended => {
                let count = lines.number() + 1 - entry.line;
                self.sink.unreadable(entry.line, count, CUT_OFF);
            }
            Some(entry) => self.finish(entry, &buffer, lines.number() + 1)?,
            None => self.report_strays(&mut strays),
        }
        Ok(())
    }

    /// Reads what stands before an argument, if the line begins an entry.
    fn entry_head(&self, line: &[u8]) -> Option<EntryHead> {
        let (time, end, form) = match line.first()? {
            b'\t' if self.form != Some(TimeForm::Long) => (self.time, 1, None),
            b'0'..=b'9' if line.get(6) == Some(&b' ') => {
                let (time, end) = short_time(line, self.offset_s)?;
                (Some(time), end, Some(TimeForm::Short))
            }
            b'0'..=b'9' => {
                let (time, end) = long_time(line, b'T', self.offset_s)?;
                (Some(time), end, Some(TimeForm::Long))
            }
            _ => return None,
        };
        let is_of_form = self.form.is_none() || form.is_none() || form == self.form;
        is_of_form.then(|| entry_head(line, end, time, form))?
    }

    fn report_strays(&mut self, strays: &mut (u64, u64)) {
        let (first, count) = std::mem::take(strays);
        if count > 0 {
            self.sink.unreadable(first, count, "before the first entry");
        }
    }

    /// A server opened the log here.
    fn open_header(&mut self, server: LogServer) -> Result<(), ReadError> {
        self.product = Some(server.product);
        self.form = None;
        self.sessions.log_opened(server, &mut *self.sink)
    }

    /// Takes an entry that is complete; the next one begins at line `next`.
    fn finish(&mut self, entry: OpenEntry, argument: &[u8], next: u64) -> Result<(), ReadError> {
        let OpenEntry { head, line, .. } = entry;
        if entry.is_too_long {
            self.sink.unreadable(line, next - line, TOO_LONG);
            return Ok(());
        }
        let Some(command) = head.command else {
            let why = "a command that is not known";
            self.sink.unreadable(line, next - line, why);
            return Ok(());
        };
        self.note_lacks(head.time);
        let lines = next - line;
        if !command.has_text() && lines > 1 {
            let why = "lines after a command that has only one";
            self.sink.unreadable(line + 1, lines - 1, why);
        }
        let logged = LoggedCommand {
            id: head.id,
            at: head.time.map(|time| time.at),
            step_ns: head.time.map_or(0, |time| time.step_ns),
            command,
            argument: argument.strip_suffix(b"\n").unwrap_or(argument),
            user: b"",
            line,
        };
        self.sessions
            .command(&logged, &mut self.lacks, &mut *self.sink)
    }

    fn note_lacks(&mut self, time: Option<LogTime>) {
        let sink = &mut *self.sink;
        for lack in [Lack::Durations, Lack::Errors, Lack::Rows] {
            self.lacks.report(lack, sink);
        }
        if self.product == Some(LogProduct::Mysql) {
            self.lacks.report(Lack::SyntaxErrors, sink);
        }
        if time.is_some_and(LogTime::is_coarse) {
            self.lacks.report(Lack::FractionsOfSeconds, sink);
        }
    }
}

/// Reads what stands before an argument from the tab before the id on, if the line begins an entry.
fn entry_head(
    line: &[u8],
    mut at: usize,
    time: Option<LogTime>,
    form: Option<TimeForm>,
) -> Option<EntryHead> {
    if line.get(at) != Some(&b'\t') {
        return None;
    }
    at += 1;
    let blanks = line[at..].iter().take_while(|byte| **byte == b' ').count();
    at += blanks;
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let digits = digits.take(20).count();
    let id = number(&line[at..at + digits])?;
    at += digits;
    if line.get(at) != Some(&b' ') {
        return None;
    }
    at += 1;
    let rest = &line[at..];
    let end = memchr::memchr(b'\t', &rest[..rest.len().min(COMMAND_BYTES_MAX)])?;
    let name = &rest[..end];
    let command = Command::named(name);
    // Indented SQL may begin with a number and a word; with a time before it, it is an entry of a kind that is not known.
    let is_name = || {
        name.iter()
            .all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_'))
    };
    if command.is_none() && !(form.is_some() && is_name()) {
        return None;
    }
    Some(EntryHead {
        form,
        time,
        id,
        command,
        argument: at + end + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        MYSQL_TEXTS, Notes, assert_buffer_changes_nothing, assert_is_unfit,
    };
    use super::*;

    const MYSQL_5_6: &[u8] = include_bytes!("../../tests/data/general-mysql-5.6.log");
    const MYSQL_8_0: &[u8] = include_bytes!("../../tests/data/general-mysql-8.0.log");
    const MYSQL_9_7: &[u8] = include_bytes!("../../tests/data/general-mysql-9.7.log");
    const MARIADB_10_11: &[u8] = include_bytes!("../../tests/data/general-mariadb-10.11.log");
    const MARIADB_11_8: &[u8] = include_bytes!("../../tests/data/general-mariadb-11.8.log");
    const FORGED_MYSQL: &[u8] = include_bytes!("../../tests/data/general-forged-mysql-8.0.log");
    const FORGED_MARIADB: &[u8] =
        include_bytes!("../../tests/data/general-forged-mariadb-10.11.log");

    fn notes_of(log: &[u8]) -> Notes {
        Notes::of(read, log, &LogOptions::default())
    }

    #[test]
    fn all_servers_have_the_same_sessions() {
        // The connections to a missing database, and the refused login, sent nothing.
        for log in [MYSQL_5_6, MYSQL_8_0, MYSQL_9_7, MARIADB_10_11, MARIADB_11_8] {
            let notes = notes_of(log);
            assert_eq!(notes.sessions(), 3);
            assert!(notes.unreadable.is_empty(), "{:?}", notes.unreadable);
            assert_eq!(notes.of_session(1)[0], "begins root on  whole");
            assert_eq!(notes.of_session(2)[0], "begins root on shop whole");
            assert_eq!(notes.of_session(3)[0], "begins root on  whole");
            assert_eq!(*notes.of_session(2).last().unwrap(), "ends");
            assert!(notes.of_session(1).contains(&"[init] shop"));
            assert!(notes.of_session(3).contains(&"set global general_log=0"));
        }
    }

    #[test]
    fn statements_are_as_the_client_sent_them() {
        for log in [MYSQL_5_6, MYSQL_8_0, MYSQL_9_7, MARIADB_10_11, MARIADB_11_8] {
            let notes = notes_of(log);
            notes.assert_has(&MYSQL_TEXTS);
            notes.assert_has(&[
                b"INSERT INTO item (name, blobby) VALUES ('bin', '\\0\x01\xff\\n\\r\\'\\\\')",
                b"INSERT INTO item (name, blobby) VALUES ('raw', _binary'\xff\xfe\x01raw')",
            ]);
        }
    }

    #[test]
    fn counts_agree_with_the_samples() {
        // Lines with Query and Execute, less a statement EXECUTE, whose Execute stays, and in MariaDB the empty query.
        for (log, count_of_statements) in [
            (MYSQL_5_6, 31 + 4 - 1),
            (MYSQL_8_0, 31 + 4 - 1),
            (MYSQL_9_7, 31 + 4 - 1),
            (MARIADB_10_11, 32 + 4 - 2),
            (MARIADB_11_8, 32 + 4 - 2),
        ] {
            assert_eq!(notes_of(log).texts.len(), count_of_statements);
        }
    }

    #[test]
    fn prepared_statements_have_their_values_in_the_text() {
        for log in [MYSQL_9_7, MARIADB_10_11] {
            let notes = notes_of(log);
            let second = notes.of_session(2);
            let inline = second.iter().filter(|entry| entry.starts_with("[inline]"));
            assert_eq!(inline.count(), 3);
            assert!(second.contains(&"SELECT 41 + 1") && !second.contains(&"EXECUTE p1 USING @v"));
        }
    }

    #[test]
    fn times_are_those_of_the_log() {
        let mysql = notes_of(MYSQL_8_0);
        assert_eq!(
            mysql.times[0],
            (Some(1_795_824_902_935_590_000), 1000, None)
        );
        let mariadb = notes_of(MARIADB_10_11);
        let second = 1_000_000_000;
        let expected = (Some(1_795_824_901 * 1_000_000_000), second, None);
        assert_eq!(mariadb.times[0], expected);
        assert!(mariadb.times.iter().all(|(start, ..)| start.is_some()));
    }

    #[test]
    fn what_a_log_lacks_is_reported() {
        let mysql = notes_of(MYSQL_8_0);
        for lack in [
            Lack::Durations,
            Lack::Errors,
            Lack::Rows,
            Lack::SyntaxErrors,
            Lack::PreparedText,
            Lack::ParameterTypes,
        ] {
            assert!(mysql.lacks.contains(&lack), "{lack:?}");
        }
        assert!(!mysql.lacks.contains(&Lack::FractionsOfSeconds));
        let mariadb = notes_of(MARIADB_10_11);
        assert!(mariadb.lacks.contains(&Lack::FractionsOfSeconds));
        assert!(!mariadb.lacks.contains(&Lack::SyntaxErrors));
        assert!(!mariadb.lacks.contains(&Lack::PreparedText));
    }

    #[test]
    fn a_forged_entry_is_taken_for_one() {
        // The literal of `SELECT 'forged…'` has two lines in the form of an entry, one of them with the other form of time. Nothing
        // in the log says that session 99 never was: a log that begins later than its sessions has such ones too.
        let other_form = [
            (FORGED_MYSQL, "\\n\\t\\t    99 Query\\tDROP TABLE shop.item"),
            (FORGED_MARIADB, ""),
        ];
        for (log, kept) in other_form {
            let notes = notes_of(log);
            let ends = |end: &str| {
                notes
                    .entries
                    .iter()
                    .filter(|entry| entry.ends_with(end))
                    .count()
            };
            assert_eq!(ends(&format!(" select \\'forged{kept}")), 1);
            let forged = notes
                .entries
                .iter()
                .filter(|entry| entry.contains(" DROP TABLE shop.item\\n"));
            assert_eq!(forged.count(), 1);
            assert_eq!(notes.sessions(), 7);
            assert!(notes.unreadable.is_empty(), "{:?}", notes.unreadable);
        }
    }

    #[test]
    fn sessions_survive_flush_logs_and_end_at_a_start() {
        let header = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: S\nTime                 Id Command    Argument\n";
        let at = "2026-11-28T00:15:02.784329Z\t   ";
        let log = format!(
            "{header}{at}8 Connect\troot@localhost on shop using Socket\n{at}8 Query\tSELECT 1\n{at}9 Connect\troot@localhost on x\n{at}9 Query\tSELECT 2\n\
             {header}{at}8 Query\tSELECT 'flushed'\n{at}10 Connect\troot@localhost on x\n{at}10 Query\tSELECT 3\n\
             {header}{at}8 Connect\troot@localhost on x\n{at}8 Query\tSELECT 'started'\n"
        );
        let notes = notes_of(log.as_bytes());
        assert_eq!(
            notes.of_session(1),
            [
                "begins root on shop whole",
                "SELECT 1",
                "SELECT \\'flushed\\'",
                "ended"
            ]
        );
        assert_eq!(*notes.of_session(2).last().unwrap(), "ended");
        assert_eq!(*notes.of_session(3).last().unwrap(), "ended");
        assert_eq!(notes.of_session(4)[1], "SELECT \\'started\\'");
    }

    #[test]
    fn sql_that_looks_like_an_entry_is_none() {
        let log = "2026-11-28T00:15:02.784329Z\t    8 Query\tSELECT\n\t\t1 AS\tx,\n\t\t2 Query AS q,\n2026-11-28 is\n261128 0\n\t\t\n";
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.texts.len(), 1);
        assert!(notes.texts[0].ends_with(b"\n261128 0\n\t\t"));
    }

    #[test]
    fn lines_before_the_first_entry_and_a_cut_end_are_unreadable() {
        let log = "WHERE id = 1\n-- x\n\t\t    8 Query\tSELECT 1\n261128  0:15:02\t    8 Strange thing\tx\ny\n\t\t    8 Query\tDELETE FROM item";
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.texts, [b"SELECT 1"]);
        assert_eq!(
            notes.unreadable,
            [
                (1, 2, "before the first entry".to_owned()),
                (4, 2, "a command that is not known".to_owned()),
                (6, 1, CUT_OFF.to_owned()),
            ]
        );
    }

    #[test]
    fn lines_behind_a_command_without_a_text_are_unreadable() {
        let at = "2026-11-28T00:00:01.000000Z\t    ";
        let log = format!(
            "{at}7 Connect\tann@localhost on shop\nof another program\n{at}7 Query\tSELECT\n1\n{at}7 Quit\t\nof another program\n\n"
        );
        let notes = notes_of(log.as_bytes());
        let why = "lines after a command that has only one".to_owned();
        assert_eq!(notes.unreadable, [(2, 1, why.clone()), (6, 2, why)]);
        assert_eq!(notes.texts, [b"SELECT\n1"]);
    }

    #[test]
    fn an_entry_that_is_too_long_is_counted_and_left_out() {
        let mut log = b"\t\t    8 Query\tSELECT '".to_vec();
        log.resize(super::super::ENTRY_BYTES_MAX + 100, b'x');
        log.extend(b"\ny'\n\t\t    8 Query\tSELECT 1\n\t\t    8 Query\tSELECT '");
        for _ in 0..(66 << 20) / 64 {
            log.extend([b'z'; 63]);
            log.push(b'\n');
        }
        log.extend(b"'\n\t\t    8 Query\tSELECT 2\n");
        let notes = notes_of(&log);
        assert_eq!(notes.texts, [b"SELECT 1", b"SELECT 2"]);
        assert_eq!(
            notes.unreadable,
            [
                (1, 2, TOO_LONG.to_owned()),
                (4, (66 << 20) / 64 + 1, TOO_LONG.to_owned()),
            ]
        );
    }

    #[test]
    fn what_is_no_general_log_is_refused() {
        assert_is_unfit(read, b"one\ntwo\n", &LogOptions::default());
    }

    #[test]
    fn a_small_buffer_changes_nothing() {
        assert_buffer_changes_nothing(read, MYSQL_9_7, &LogOptions::default());
    }
}
