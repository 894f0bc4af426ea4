//! What stands before a statement in the slow log of MySQL, Percona Server and MariaDB.

use super::mysql_header::login_name;
use super::text::{LogTime, find, long_time, number, seconds_ns, short_time, without_line_end};

/// The lines before a statement. Buffers are used again for the next entry.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Line of the log at which they begin.
    pub(super) line: u64,
    /// Number of the connection.
    pub(super) id: Option<u64>,
    pub(super) user: Vec<u8>,
    /// `# Time`, which some servers leave out while it does not change.
    pub(super) time: Option<LogTime>,
    /// `Start:`, with `log_slow_extra`.
    pub(super) start: Option<LogTime>,
    /// `SET timestamp`, seconds since 1970.
    pub(super) timestamp: Option<i64>,
    pub(super) duration_ns: Option<u64>,
    pub(super) rows_sent: Option<u64>,
    pub(super) rows_affected: Option<u64>,
    pub(super) error: Option<u16>,
    /// `Schema:`, the session's database, which only MariaDB and Percona Server write.
    pub(super) schema: SchemaName,
    /// `use`, the session's database where it is another than that of the entry before.
    pub(super) used: SchemaName,
    /// Whether it has what only MariaDB writes.
    pub(super) is_mariadb: bool,
    /// Whether it says that the log is a sample.
    pub(super) is_of_sample: bool,
    /// Whether warnings are among its lines, whose texts may have line breaks.
    has_warnings: bool,
}

/// A database's name, empty for none, if it is known.
#[derive(Debug, Default)]
pub(super) struct SchemaName {
    pub(super) is_known: bool,
    pub(super) name: Vec<u8>,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadLine {
    Head,
    /// The last one: the statement follows.
    Last,
    /// The first of the statement.
    Text,
}

impl Head {
    /// Empties it for the entry at this line.
    pub(super) fn reset(&mut self, line: u64) {
        let (mut user, mut schema, mut used) = (
            std::mem::take(&mut self.user),
            std::mem::take(&mut self.schema),
            std::mem::take(&mut self.used),
        );
        user.clear();
        schema.is_known = false;
        used.is_known = false;
        *self = Self {
            line,
            user,
            schema,
            used,
            ..Self::default()
        };
    }

    /// Reads a line; times without a zone are this far east of UTC, seconds.
    pub(super) fn read_line(&mut self, line: &[u8], offset_s: i32) -> HeadLine {
        let trimmed = without_line_end(line);
        if line.starts_with(b"#") && !line.starts_with(b"# administrator command: ") {
            self.read_comment(trimmed, offset_s);
            return HeadLine::Head;
        }
        if let Some(name) = trimmed.strip_prefix(b"use ")
            && let Some(name) = name.strip_suffix(b";")
        {
            self.used.set_quoted(name);
            return HeadLine::Head;
        }
        if let Some(seconds) = timestamp_of(trimmed) {
            self.timestamp = Some(seconds);
            return HeadLine::Last;
        }
        if self.has_warnings {
            return HeadLine::Head;
        }
        HeadLine::Text
    }

    fn read_comment(&mut self, line: &[u8], offset_s: i32) {
        let after = |prefix: &[u8]| line.strip_prefix(prefix);
        if let Some(account) = after(b"# User@Host: ") {
            self.set_account(account);
        } else if let Some(time) = after(b"# Time: ") {
            let short = || short_time(time, offset_s);
            let time = long_time(time, b'T', offset_s).or_else(short);
            self.time = time.map(|(time, _)| time);
        } else if after(b"# Thread_id: ").is_some() || after(b"# Schema: ").is_some() {
            self.read_schema(&line[2..], offset_s);
        } else if [
            &b"# Query_time: "[..],
            b"# Rows_affected: ",
            b"# Log_slow_rate",
        ]
        .iter()
        .any(|prefix| line.starts_with(prefix))
        {
            self.read_pairs(&line[2..], offset_s);
        } else if line == b"# Warnings" {
            self.has_warnings = true;
        }
    }

    /// `root[root] @ localhost []  Id:     3`; MariaDB's ends before `Id`.
    fn set_account(&mut self, account: &[u8]) {
        if let Some(at) = memchr::memmem::rfind(account, b" Id:") {
            self.id = number(account[at + 4..].trim_ascii());
        }
        self.user.clear();
        self.user.extend(login_name(account));
    }

    /// `Thread_id: N  Schema: NAME  QC_hit: No`, in Percona Server `Schema: NAME  Last_errno: N`: the name may have blanks.
    fn read_schema(&mut self, line: &[u8], offset_s: i32) {
        let mark = b"Schema: ";
        let Some(at) = find(line, mark) else {
            return self.read_pairs(line, offset_s);
        };
        let (before, schema) = (&line[..at], &line[at + mark.len()..]);
        let end = memchr::memmem::rfind(schema, b"  QC_hit: ")
            .or_else(|| memchr::memmem::rfind(schema, b"  Last_errno: "))
            .unwrap_or(schema.len());
        self.schema.set(&schema[..end]);
        self.read_pairs(before, offset_s);
        self.read_pairs(&schema[end..], offset_s);
    }

    /// `Query_time: 0.000070  Lock_time: 0.000000 Rows_sent: 0 …`.
    fn read_pairs(&mut self, line: &[u8], offset_s: i32) {
        let mut words = line
            .split(|byte| *byte == b' ')
            .filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let Some(key) = word.strip_suffix(b":") else {
                continue;
            };
            let Some(value) = words.next() else {
                break;
            };
            match key {
                b"Query_time" => self.duration_ns = seconds_ns(value),
                b"Rows_sent" => self.rows_sent = number(value),
                b"Rows_affected" => self.rows_affected = number(value),
                b"Thread_id" => self.id = number(value),
                b"Errno" | b"Last_errno" => {
                    self.error = number(value).and_then(|value| value.try_into().ok());
                }
                b"Start" => self.start = long_time(value, b'T', offset_s).map(|(time, _)| time),
                b"QC_hit" => self.is_mariadb = true,
                b"Log_slow_rate_limit" => {
                    self.is_of_sample |= number(value).is_some_and(|limit| limit > 1);
                }
                _ => {}
            }
        }
    }
}

impl SchemaName {
    fn set(&mut self, name: &[u8]) {
        self.is_known = true;
        self.name.clear();
        self.name.extend(name);
    }

    /// Takes the name of a `use`, which MariaDB quotes.
    fn set_quoted(&mut self, name: &[u8]) {
        let quoted = name.strip_prefix(b"`");
        let Some(mut rest) = quoted.and_then(|name| name.strip_suffix(b"`")) else {
            return self.set(name);
        };
        self.set(b"");
        while let Some(at) = find(rest, b"``") {
            self.name.extend(&rest[..=at]);
            rest = &rest[at + 2..];
        }
        self.name.extend(rest);
    }
}

/// Seconds in `SET timestamp=1795823079;` and `SET last_insert_id=1,insert_id=2,timestamp=1795823079;`.
fn timestamp_of(line: &[u8]) -> Option<i64> {
    let line = line.strip_prefix(b"SET ")?.strip_suffix(b";")?;
    let mut seconds = None;
    for assignment in line.split(|byte| *byte == b',') {
        let (name, value) = assignment.split_at(memchr::memchr(b'=', assignment)?);
        match name {
            b"timestamp" => seconds = number(&value[1..]),
            b"last_insert_id" | b"insert_id" => {}
            _ => return None,
        }
    }
    seconds?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_before_a_statement_has_nothing_else() {
        assert_eq!(
            timestamp_of(b"SET timestamp=1795823079;"),
            Some(1_795_823_079)
        );
        let with_ids = b"SET last_insert_id=1,insert_id=2,timestamp=5;";
        assert_eq!(timestamp_of(with_ids), Some(5));
        for line in [
            "SET insert_id=1;",
            "SET timestamp=x;",
            "SET NAMES utf8mb4;",
            "SET timestamp=1,sql_mode=2;",
        ] {
            assert_eq!(timestamp_of(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn names_of_databases_may_have_blanks_and_quotes() {
        let mut head = Head::default();
        head.read_line(b"# Thread_id: 5  Schema: a  Rows_sent: 9  QC_hit: No\n", 0);
        assert_eq!(head.schema.name, b"a  Rows_sent: 9");
        assert_eq!(
            (head.id, head.rows_sent, head.is_mariadb),
            (Some(5), None, true)
        );
        head.read_line(b"use `a``b```;\n", 0);
        assert_eq!(head.used.name, b"a`b`");
        head.read_line(b"use shop;\n", 0);
        assert_eq!(head.used.name, b"shop");
    }
}
