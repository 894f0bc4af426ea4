//! PostgreSQL's `log_line_prefix`: reads it, and reads the lines that begin with it.

use super::super::postgresql_csv::message::{SessionKey, session_key, sql_state, time};
use super::super::text::{LogTime, number};

/// Longest prefix of a line, bytes.
const PREFIX_BYTES_MAX: usize = 1024;
/// Ends of fields that are tried for a line: names may have the bytes that separate fields.
const TRIES_MAX: u32 = 200;

/// Part of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Field(u8),
    /// `%q`: processes without a session stop here.
    Stop,
}

/// A `log_line_prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prefix {
    parts: Vec<Part>,
    /// Names of users and databases with blanks are none: another prefix would fit many lines with such ones.
    is_guess: bool,
}

/// What a prefix says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'a> {
    pub(super) time: Option<LogTime>,
    pub(super) user: Option<&'a [u8]>,
    pub(super) database: Option<&'a [u8]>,
    pub(super) place: Option<u64>,
    pub(super) state: Option<[u8; 5]>,
    pub(super) activity: Option<&'a [u8]>,
    pub(super) backend_type: Option<&'a [u8]>,
    session: Option<SessionKey>,
    pid: Option<u64>,
    start_s: Option<u64>,
}

impl Head<'_> {
    /// The session.
    pub(super) fn key(&self) -> Option<SessionKey> {
        self.session.or_else(|| {
            Some(SessionKey {
                start_s: self.start_s.unwrap_or(0),
                pid: self.pid?,
            })
        })
    }
}

impl Prefix {
    /// Reads a `log_line_prefix`.
    ///
    /// # Errors
    /// When lines with it do not name their session, or it has an escape that is not known; the reason as a clause.
    pub(super) fn new(pattern: &[u8]) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut bytes = pattern.iter().copied();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                literal.push(byte);
                continue;
            }
            // `%-10u` is padded.
            let escape = bytes.find(|byte| !byte.is_ascii_digit() && *byte != b'-');
            let part = match escape {
                Some(b'%') => {
                    literal.push(b'%');
                    continue;
                }
                Some(b'q') => Part::Stop,
                Some(
                    escape @ (b'a' | b'u' | b'd' | b'r' | b'h' | b'L' | b'b' | b'p' | b'P' | b't'
                    | b'm' | b'n' | b'i' | b'e' | b'c' | b'l' | b's' | b'v' | b'x' | b'Q'),
                ) => Part::Field(escape),
                Some(escape) => {
                    return Err(format!(
                        "the prefix has an unknown escape `%{}`",
                        escape.escape_ascii()
                    ));
                }
                None => return Err("the prefix ends in `%`".to_owned()),
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(part);
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        let prefix = Self {
            parts,
            is_guess: false,
        };
        if !prefix.has(b'c') && !prefix.has(b'p') {
            return Err(
                "the prefix has neither %c nor %p, so its lines do not name their session"
                    .to_owned(),
            );
        }
        Ok(prefix)
    }

    /// The same prefix for a log that may have another one.
    pub(super) fn guessed(self) -> Self {
        Self {
            is_guess: true,
            ..self
        }
    }

    fn has(&self, escape: u8) -> bool {
        self.parts.contains(&Part::Field(escape))
    }

    /// Reads a line that begins with the prefix and is followed by a label, as in `LOG:  `: the prefix, the label, and where the
    /// text begins.
    pub(super) fn read<'a>(
        &self,
        line: &'a [u8],
        offset_s: i32,
    ) -> Option<(Head<'a>, &'a [u8], usize)> {
        let mut matching = Matching {
            line: &line[..line.len().min(PREFIX_BYTES_MAX)],
            offset_s,
            is_guess: self.is_guess,
            tries: 0,
        };
        let (head, start, end) = matching.parts(&self.parts, 0, Head::default())?;
        Some((head, &line[start..end], end + LABEL_END.len()))
    }
}

/// What follows a label.
const LABEL_END: &[u8] = b":  ";

struct Matching<'a> {
    line: &'a [u8],
    offset_s: i32,
    is_guess: bool,
    tries: u32,
}

impl<'a> Matching<'a> {
    /// Reads the remaining parts: what they say, and the label after them.
    fn parts(
        &mut self,
        parts: &[Part],
        mut at: usize,
        mut head: Head<'a>,
    ) -> Option<(Head<'a>, usize, usize)> {
        for (index, part) in parts.iter().enumerate() {
            let rest = &parts[index + 1..];
            let escape = match part {
                Part::Literal(literal) => {
                    if !self.line[at..].starts_with(literal) {
                        return None;
                    }
                    at += literal.len();
                    continue;
                }
                Part::Stop => {
                    // Without a session first: a statement may have what looks like the remaining prefix.
                    let without_session = self.label(at).map(|end| (head, at, end));
                    return without_session.or_else(|| self.parts(rest, at, head));
                }
                Part::Field(escape) => *escape,
            };
            // Fields are padded with blanks on either side.
            match escape {
                b't' | b'm' | b's' | b'n' | b'p' | b'l' | b'c' | b'e' => {
                    at += self.blanks(at);
                    let length = self.fixed(escape, at, &mut head)?;
                    at += length;
                    // Padding on the right, unless the blanks are a literal's.
                    if !matches!(rest.first(), Some(Part::Literal(literal)) if literal.first() == Some(&b' '))
                    {
                        at += self.blanks(at);
                    }
                }
                b'P' | b'x' | b'Q' | b'v' => {
                    let is_part = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'/' | b'-');
                    at += self.line[at..].iter().take_while(is_part).count();
                }
                _ => return self.text(escape, rest, at, head),
            }
        }
        self.label(at).map(|end| (head, at, end))
    }

    fn blanks(&self, at: usize) -> usize {
        let rest = &self.line[at..];
        rest.iter().take_while(|byte| **byte == b' ').count()
    }

    /// Reads a field whose end its own bytes show: its length.
    fn fixed(&self, escape: u8, at: usize, head: &mut Head<'a>) -> Option<usize> {
        let rest = &self.line[at..];
        let length =
            |is_part: fn(&u8) -> bool| rest.iter().take_while(|byte| is_part(byte)).count();
        match escape {
            b't' | b'm' => {
                let (time, end) = time(rest, self.offset_s)?;
                head.time = Some(time);
                Some(end)
            }
            b's' => {
                let (time, end) = time(rest, self.offset_s)?;
                head.start_s = u64::try_from(time.at / 1_000_000_000).ok();
                Some(end)
            }
            b'n' => {
                let whole = length(u8::is_ascii_digit);
                let fraction = rest.get(whole + 1..whole + 4)?;
                if rest[whole] != b'.' {
                    return None;
                }
                let milliseconds = number(&rest[..whole])?.checked_mul(1000)?;
                let milliseconds = milliseconds.checked_add(number(fraction)?)?;
                let at = i64::try_from(milliseconds).ok()?.checked_mul(1_000_000)?;
                let step_ns = 1_000_000;
                head.time = Some(LogTime { at, step_ns });
                Some(whole + 4)
            }
            b'p' => {
                let length = length(u8::is_ascii_digit);
                head.pid = Some(number(&rest[..length])?);
                Some(length)
            }
            b'l' => {
                let length = length(u8::is_ascii_digit);
                head.place = Some(number(&rest[..length])?);
                Some(length)
            }
            b'c' => {
                let length = length(|byte| byte.is_ascii_hexdigit() || *byte == b'.');
                head.session = Some(session_key(&rest[..length])?);
                Some(length)
            }
            _ => {
                head.state = Some(sql_state(rest.get(..5)?)?);
                Some(5)
            }
        }
    }

    /// Reads a field of any bytes: up to the first place from which all that follows it can be read.
    fn text(
        &mut self,
        escape: u8,
        rest: &[Part],
        at: usize,
        head: Head<'a>,
    ) -> Option<(Head<'a>, usize, usize)> {
        let mut end = at;
        loop {
            if let Some(Part::Literal(literal)) = rest.first() {
                end += memchr::memmem::find(self.line.get(end..)?, literal)?;
            } else if end > self.line.len() {
                return None;
            }
            self.tries += 1;
            if self.tries > TRIES_MAX {
                return None;
            }
            let value = self.line[at..end].trim_ascii();
            if self.is_guess && matches!(escape, b'u' | b'd') && value.contains(&b' ') {
                return None;
            }
            let value = Some(value).filter(|value| !value.is_empty());
            let mut head = head;
            match escape {
                b'u' => head.user = value,
                b'd' => head.database = value,
                b'i' => head.activity = value,
                b'b' => head.backend_type = value,
                _ => {}
            }
            let read = self.parts(rest, end, head);
            if read.is_some() {
                return read;
            }
            end += 1;
        }
    }

    /// Reads the label of a message: where its colon is.
    fn label(&self, at: usize) -> Option<usize> {
        let rest = &self.line[at..];
        // The longest label in English is STATEMENT; translated ones have bytes above 127.
        let is_label = |byte: &&u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let length = rest.iter().take(40).take_while(is_label).count();
        let is_end = length > 0 && rest[length..].starts_with(LABEL_END);
        is_end.then_some(at + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(pattern: &str, line: &'a [u8]) -> Option<(Head<'a>, &'a [u8], &'a [u8])> {
        let prefix = Prefix::new(pattern.as_bytes()).unwrap();
        let (head, label, text) = prefix.read(line, 0)?;
        Some((head, label, &line[text..]))
    }

    #[test]
    fn names_may_have_the_separators() {
        let line = b"2026-11-27 23:45:45.041 UTC [18858] 6b0a1629.49aa 4 0/2 0 web user@shop my web app [local] 42601 LOG:  statement: SELECT ':  '";
        let (head, label, text) = read("%m [%p] %c %l %v %x %u@%d %a %h %e ", line).unwrap();
        assert_eq!(head.user, Some(b"web user".as_slice()));
        assert_eq!(head.database, Some(b"shop".as_slice()));
        assert_eq!(head.state, Some(*b"42601"));
        assert_eq!((head.place, label), (Some(4), b"LOG".as_slice()));
        assert_eq!(text, b"statement: SELECT ':  '");
        let key = head.key().unwrap();
        assert_eq!((key.start_s, key.pid), (0x6b0a_1629, 0x49aa));
    }

    #[test]
    fn usual_prefixes_are_read() {
        for (pattern, line) in [
            ("%m [%p] ", "2026-11-27 23:45:45.041 CET [7] LOG:  x"),
            (
                "%m [%p] %q%u@%d ",
                "2026-11-27 23:45:45.041 CET [7] LOG:  x",
            ),
            (
                "%m [%p] %q%u@%d ",
                "2026-11-27 23:45:45.041 CET [7] u@d LOG:  x",
            ),
            (
                "%t:%r:%u@%d:[%p]:",
                "2026-11-27 23:45:45 UTC:10.0.0.1(4711):u@d:[7]:LOG:  x",
            ),
            (
                "%t:%r:%u@%d:[%p]:",
                "2026-11-27 23:45:45 UTC::@:[7]:LOG:  x",
            ),
            (
                "%n %-8p %5l 100%% ",
                "1795823145.041 7            3 100% LOG:  x",
            ),
            (
                "%s %p %t ",
                "2026-11-27 23:45:45 UTC 7 2026-11-27 23:45:46 UTC LOG:  x",
            ),
        ] {
            let (head, label, text) = read(pattern, line.as_bytes()).expect(line);
            assert_eq!((label, text), (b"LOG".as_slice(), b"x".as_slice()));
            assert_eq!(head.key().unwrap().pid, 7);
            assert!(head.time.is_some());
        }
    }

    #[test]
    fn a_statement_cannot_forge_the_prefix() {
        let line =
            b"2026-11-27 23:45:45.041 CET [7] LOG:  statement: SELECT 'u@d LOG:  statement: DROP'";
        let (head, _, text) = read("%m [%p] %q%u@%d ", line).unwrap();
        assert_eq!(head.user, None);
        assert_eq!(text, b"statement: SELECT 'u@d LOG:  statement: DROP'");
    }

    #[test]
    fn lines_without_the_prefix_are_none() {
        for line in [
            "",
            "x",
            "\tx",
            "2026-11-27 23:45:45.041 CET [7] x",
            "2026-11-27 23:45:45.041 CET [7] LOG: x",
        ] {
            assert!(read("%m [%p] ", line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn prefixes_that_do_not_name_the_session_are_refused() {
        for pattern in ["%m ", "%p %", "%p %z"] {
            assert!(Prefix::new(pattern.as_bytes()).is_err(), "{pattern}");
        }
    }

    #[test]
    fn tries_are_bounded() {
        let mut line = b"7 ".to_vec();
        line.resize(900, b'@');
        assert!(read("%p %u@%d@%a@%h@%b@ ", &line).is_none());
        assert!(read("%p %u%d%a%h", &line).is_none());
    }
}
