//! What the answer of a statement depends on beside the data, and what its `ORDER BY` demands: read from tokens.

use std::ops::Range;

use crate::kind::{Kind, kind_of};
use crate::lexer::{Lexer, Syntax, Token, TokenKind};

/// Why equal data may give different answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// On the time.
    Time,
    /// On chance.
    Chance,
    /// On earlier statements or on the session.
    Session,
    /// On the server: its version, its settings, how it describes the schema.
    Server,
    /// On which rows come first: `LIMIT` without `ORDER BY`.
    FirstRows,
    /// On the order in which rows are put together: an aggregate without `ORDER BY`.
    AggregateOrder,
}

impl Dependence {
    /// What the answer depends on.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Chance => "chance",
            Self::Session => "session",
            Self::Server => "server",
            Self::FirstRows => "order of rows under LIMIT",
            Self::AggregateOrder => "order of rows in an aggregate",
        }
    }
}

/// Words that are calls without parentheses, too.
const BARE: [(&str, Dependence); 13] = [
    ("current_timestamp", Dependence::Time),
    ("current_date", Dependence::Time),
    ("current_time", Dependence::Time),
    ("localtime", Dependence::Time),
    ("localtimestamp", Dependence::Time),
    ("utc_date", Dependence::Time),
    ("utc_time", Dependence::Time),
    ("utc_timestamp", Dependence::Time),
    ("current_user", Dependence::Session),
    ("session_user", Dependence::Session),
    ("current_role", Dependence::Session),
    ("information_schema", Dependence::Server),
    ("performance_schema", Dependence::Server),
];

/// Functions, called with parentheses.
const CALLS: [(&str, Dependence); 42] = [
    ("now", Dependence::Time),
    ("sysdate", Dependence::Time),
    ("curdate", Dependence::Time),
    ("curtime", Dependence::Time),
    ("clock_timestamp", Dependence::Time),
    ("statement_timestamp", Dependence::Time),
    ("transaction_timestamp", Dependence::Time),
    ("timeofday", Dependence::Time),
    ("rand", Dependence::Chance),
    ("random", Dependence::Chance),
    ("random_normal", Dependence::Chance),
    ("random_bytes", Dependence::Chance),
    ("gen_random_bytes", Dependence::Chance),
    ("gen_random_uuid", Dependence::Chance),
    ("uuid", Dependence::Chance),
    ("uuid_short", Dependence::Chance),
    ("uuid_v4", Dependence::Chance),
    ("uuid_v7", Dependence::Chance),
    ("uuidv4", Dependence::Chance),
    ("uuidv7", Dependence::Chance),
    ("uuid_generate_v4", Dependence::Chance),
    ("sys_guid", Dependence::Chance),
    ("connection_id", Dependence::Session),
    ("pg_backend_pid", Dependence::Session),
    ("txid_current", Dependence::Session),
    ("pg_current_xact_id", Dependence::Session),
    ("found_rows", Dependence::Session),
    ("row_count", Dependence::Session),
    ("last_insert_id", Dependence::Session),
    ("lastval", Dependence::Session),
    ("currval", Dependence::Session),
    ("nextval", Dependence::Session),
    ("setval", Dependence::Session),
    ("user", Dependence::Session),
    ("system_user", Dependence::Session),
    ("database", Dependence::Session),
    ("schema", Dependence::Session),
    ("current_database", Dependence::Session),
    ("current_schema", Dependence::Session),
    ("current_schemas", Dependence::Session),
    ("version", Dependence::Server),
    ("current_setting", Dependence::Server),
];

/// Aggregates whose value has rows in their order.
const ORDERED_AGGREGATES: [&str; 9] = [
    "group_concat",
    "string_agg",
    "array_agg",
    "xmlagg",
    "json_agg",
    "jsonb_agg",
    "json_arrayagg",
    "json_objectagg",
    "json_object_agg",
];

/// Words after which the list of an `ORDER BY` has ended.
const AFTER_ORDER: [&str; 9] = [
    "limit",
    "offset",
    "fetch",
    "for",
    "lock",
    "into",
    "procedure",
    "window",
    "rows",
];

/// A reason why equal data may give different answers, and the word that gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// What the answer depends on.
    pub on: Dependence,
    /// A name or a keyword of the statement in capital letters, no value.
    pub word: String,
}

impl Unsettled {
    /// As a phrase: ``time (`NOW`)``.
    #[must_use]
    pub fn phrase(&self) -> String {
        format!("{} (`{}`)", self.on.name(), self.word)
    }
}

/// What the rows of an answer are ordered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderKey {
    /// The column of the answer at this position, from 0.
    Column(usize),
    /// A name alone, in lower case: of a column of the answer, or of a table's.
    Name(Vec<u8>),
    /// Another expression.
    Expression,
}

/// An element of an `ORDER BY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderElement {
    /// What it names.
    pub key: OrderKey,
    /// Its bytes in the text, without the direction.
    pub bytes: Range<usize>,
}

/// The outermost `ORDER BY` and `LIMIT` of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ordering {
    /// Elements of the `ORDER BY`; empty without one.
    pub elements: Vec<OrderElement>,
    /// True where a limit cuts the rows.
    pub has_limit: bool,
    /// Where further columns can be added: the position of the outermost `FROM`. `None` where they would change the rows: under
    /// `DISTINCT`, and of several queries together.
    pub columns_end: Option<usize>,
}

/// Why equal data may give a statement different answers; `None` where nothing shows that.
#[must_use]
pub fn unsettled(text: &[u8], syntax: Syntax) -> Option<Unsettled> {
    let tokens: Vec<Token> = Lexer::new(text, syntax).collect();
    let lower = |place: usize| -> Option<String> {
        let token = tokens.get(place)?;
        let is_word = token.kind == TokenKind::Word;
        is_word.then(|| String::from_utf8_lossy(token.of(text)).to_ascii_lowercase())
    };
    let is_sign = |place: usize, sign: &[u8]| {
        let token = tokens.get(place);
        token.is_some_and(|token| token.of(text) == sign)
    };
    if kind_of(text, syntax) == Kind::Show {
        return Some(found(Dependence::Server, &lower(0).unwrap_or_default()));
    }
    let mut frames = vec![Frame::default()];
    for place in 0..tokens.len() {
        if is_sign(place, b"(") {
            let called = place.checked_sub(1).and_then(&lower);
            let aggregate = ORDERED_AGGREGATES
                .into_iter()
                .find(|name| called.as_deref() == Some(name));
            frames.push(Frame {
                aggregate,
                ..Frame::default()
            });
            continue;
        }
        if is_sign(place, b")") && frames.len() > 1 {
            let unsettled = frames.pop().and_then(|frame| frame.unsettled());
            if unsettled.is_some() {
                return unsettled;
            }
            continue;
        }
        let Some(word) = lower(place) else { continue };
        if place > 0 && is_sign(place - 1, b".") {
            continue;
        }
        if word.starts_with("@@") {
            return Some(found(Dependence::Server, "@@"));
        }
        let is_called = is_sign(place + 1, b"(");
        // With a value it converts that.
        let is_clock = word == "unix_timestamp" && is_called && is_sign(place + 2, b")");
        if is_clock {
            return Some(found(Dependence::Time, &word));
        }
        if word == "tablesample" {
            return Some(found(Dependence::Chance, &word));
        }
        let calls = CALLS.iter().filter(|_| is_called);
        let mut known = BARE.iter().chain(calls);
        if let Some((name, on)) = known.find(|(name, _)| *name == word) {
            return Some(found(*on, name));
        }
        if let Some(frame) = frames.last_mut() {
            frame.take(&word, lower(place + 1).as_deref());
        }
    }
    frames.into_iter().find_map(|frame| frame.unsettled())
}

fn found(on: Dependence, word: &str) -> Unsettled {
    Unsettled {
        on,
        word: word.to_ascii_uppercase(),
    }
}

/// What is between two parentheses, or outside of all.
#[derive(Default)]
struct Frame {
    aggregate: Option<&'static str>,
    is_ordered: bool,
    limit: Option<&'static str>,
}

impl Frame {
    fn take(&mut self, word: &str, next: Option<&str>) {
        match (word, next) {
            ("order", Some("by")) => self.is_ordered = true,
            ("limit", _) => self.limit = Some("limit"),
            ("fetch", Some("first" | "next")) => self.limit = Some("fetch first"),
            _ => {}
        }
    }

    fn unsettled(&self) -> Option<Unsettled> {
        if self.is_ordered {
            return None;
        }
        let limit = self.limit.map(|word| (Dependence::FirstRows, word));
        let aggregate = self
            .aggregate
            .map(|word| (Dependence::AggregateOrder, word));
        limit.or(aggregate).map(|(on, word)| found(on, word))
    }
}

/// The outermost `ORDER BY` and `LIMIT` of a statement.
#[must_use]
pub fn ordering(text: &[u8], syntax: Syntax) -> Ordering {
    let mut reader = OrderingReader {
        found: Ordering::default(),
        is_plain: true,
        is_in_list: false,
        element: Vec::new(),
    };
    let mut depth = 0_usize;
    let mut tokens = Lexer::new(text, syntax).peekable();
    while let Some(token) = tokens.next() {
        let bytes = token.of(text);
        let is_outermost = depth == 0;
        match bytes {
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !is_outermost || token.kind == TokenKind::Terminator {
            reader.push(token);
            continue;
        }
        let word = match token.kind {
            TokenKind::Word => bytes.to_ascii_lowercase(),
            _ => Vec::new(),
        };
        match word.as_slice() {
            b"from" if reader.found.columns_end.is_none() => {
                reader.found.columns_end = Some(token.start);
            }
            b"distinct" | b"distinctrow" | b"union" | b"intersect" | b"except" | b"minus" => {
                reader.is_plain = false;
                // The list before belongs to one of the queries.
                reader.found.elements.clear();
                reader.is_in_list = false;
            }
            b"order"
                if tokens
                    .peek()
                    .is_some_and(|next| next.of(text).eq_ignore_ascii_case(b"by")) =>
            {
                tokens.next();
                reader.found.elements.clear();
                reader.is_in_list = true;
            }
            word if AFTER_ORDER.iter().any(|after| after.as_bytes() == word) => {
                reader.end_element(text);
                reader.is_in_list = false;
                reader.found.has_limit |= matches!(word, b"limit" | b"fetch");
            }
            _ if bytes == b"," => reader.end_element(text),
            _ => reader.push(token),
        }
    }
    reader.end_element(text);
    if !reader.is_plain {
        reader.found.columns_end = None;
    }
    reader.found
}

/// Reads the list of an `ORDER BY`.
struct OrderingReader {
    found: Ordering,
    is_plain: bool,
    /// True within the list.
    is_in_list: bool,
    /// Tokens of the present element.
    element: Vec<Token>,
}

impl OrderingReader {
    fn push(&mut self, token: Token) {
        if self.is_in_list && token.kind != TokenKind::Terminator {
            self.element.push(token);
        }
    }

    fn end_element(&mut self, text: &[u8]) {
        let mut tokens = std::mem::take(&mut self.element);
        if !self.is_in_list {
            return;
        }
        let is_direction = |token: &Token| {
            let words = [&b"asc"[..], b"desc", b"nulls", b"first", b"last"];
            let word = token.of(text);
            words.into_iter().any(|one| word.eq_ignore_ascii_case(one))
        };
        // A column of that name stands alone.
        while tokens.len() > 1 && tokens.last().is_some_and(is_direction) {
            tokens.pop();
        }
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            return;
        };
        let bytes = first.start..last.end;
        let key = match (tokens.len(), first.kind) {
            (1, TokenKind::Number) => {
                let number = std::str::from_utf8(first.of(text)).unwrap_or_default();
                let position = number.parse::<usize>().ok();
                position
                    .and_then(|position| position.checked_sub(1))
                    .map_or(OrderKey::Expression, OrderKey::Column)
            }
            (1, TokenKind::Word) => OrderKey::Name(first.of(text).to_ascii_lowercase()),
            (1, TokenKind::Name) => {
                OrderKey::Name(crate::functions::unquoted(first.of(text)).to_ascii_lowercase())
            }
            _ => OrderKey::Expression,
        };
        self.found.elements.push(OrderElement { key, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(text: &str, syntax: Syntax) -> String {
        unsettled(text.as_bytes(), syntax).map_or_else(String::new, |found| found.phrase())
    }

    #[test]
    fn what_depends_on_more_than_the_data_is_named() {
        for (text, expected) in [
            ("SELECT NOW()", "time (`NOW`)"),
            ("SELECT 'NOW()' FROM t WHERE now = 1 AND t.user = 2", ""),
            (
                "INSERT INTO t VALUES (current_timestamp)",
                "time (`CURRENT_TIMESTAMP`)",
            ),
            ("SELECT unix_timestamp()", "time (`UNIX_TIMESTAMP`)"),
            ("SELECT unix_timestamp('2020-01-01')", ""),
            ("SELECT a FROM t ORDER BY rand() LIMIT 5", "chance (`RAND`)"),
            ("SELECT `rand` FROM t /* NOW() */", ""),
            ("SELECT FOUND_ROWS()", "session (`FOUND_ROWS`)"),
            ("SELECT @@SESSION.sql_mode", "server (`@@`)"),
            ("SHOW FULL COLUMNS FROM t", "server (`SHOW`)"),
            (
                "SELECT a FROM t LIMIT 1",
                "order of rows under LIMIT (`LIMIT`)",
            ),
            ("SELECT a FROM t ORDER BY a LIMIT 1", ""),
            (
                "SELECT a FROM (SELECT a FROM t LIMIT 3) x ORDER BY a",
                "order of rows under LIMIT (`LIMIT`)",
            ),
            (
                "UPDATE t SET a = 1 LIMIT 2",
                "order of rows under LIMIT (`LIMIT`)",
            ),
            (
                "SELECT GROUP_CONCAT(a) FROM t ORDER BY b",
                "order of rows in an aggregate (`GROUP_CONCAT`)",
            ),
            ("SELECT GROUP_CONCAT(a ORDER BY a) FROM t", ""),
        ] {
            assert_eq!(phrase(text, Syntax::MYSQL), expected, "{text}");
        }
        for (text, expected) in [
            ("SELECT clock_timestamp()", "time (`CLOCK_TIMESTAMP`)"),
            (
                "SELECT * FROM t TABLESAMPLE bernoulli (1)",
                "chance (`TABLESAMPLE`)",
            ),
            (
                "SELECT a FROM t FETCH FIRST 3 ROWS ONLY",
                "order of rows under LIMIT (`FETCH FIRST`)",
            ),
            ("SELECT array_agg(a ORDER BY b) FROM t", ""),
            ("SELECT \"now\"() FROM t", ""),
        ] {
            assert_eq!(phrase(text, Syntax::POSTGRESQL), expected, "{text}");
        }
    }

    /// Elements of the order as text, with what each names.
    fn elements(text: &str) -> Vec<(&str, OrderKey)> {
        let found = ordering(text.as_bytes(), Syntax::MYSQL).elements;
        let own = found.into_iter();
        own.map(|one| (&text[one.bytes], one.key)).collect()
    }

    #[test]
    fn the_outermost_order_has_its_elements() {
        let text = "SELECT a, (SELECT b FROM u ORDER BY c LIMIT 1) n FROM t ORDER BY n DESC, 2, t.d, FIELD(a, 1, 2) ASC LIMIT 3";
        let found = ordering(text.as_bytes(), Syntax::MYSQL);
        assert!(found.has_limit);
        assert_eq!(&text[found.columns_end.unwrap()..][..6], "FROM t");
        assert_eq!(
            elements(text),
            [
                ("n", OrderKey::Name(b"n".to_vec())),
                ("2", OrderKey::Column(1)),
                ("t.d", OrderKey::Expression),
                ("FIELD(a, 1, 2)", OrderKey::Expression),
            ]
        );
        assert_eq!(
            elements("SELECT `A` FROM t ORDER BY `A` FOR UPDATE"),
            [("`A`", OrderKey::Name(b"a".to_vec()))]
        );
        assert_eq!(elements("SELECT a FROM (SELECT 1 a ORDER BY 1) x"), []);
    }

    #[test]
    fn columns_are_added_to_one_query_only() {
        for (text, is_plain, order) in [
            ("SELECT a FROM t ORDER BY b", true, 1),
            ("SELECT DISTINCT a FROM t ORDER BY b", false, 1),
            ("SELECT a FROM t UNION SELECT b FROM u ORDER BY 1", false, 1),
            ("SELECT COUNT(DISTINCT a) FROM t ORDER BY b;", true, 1),
            ("SELECT 1", false, 0),
        ] {
            let found = ordering(text.as_bytes(), Syntax::MYSQL);
            assert_eq!(found.columns_end.is_some(), is_plain, "{text}");
            assert_eq!(found.elements.len(), order, "{text}");
            assert!(!found.has_limit);
        }
    }
}
