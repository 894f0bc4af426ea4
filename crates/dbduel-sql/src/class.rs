//! Classes of statements: what remains of a text without its values.
//!
//! Servers have digests of their own, which agree neither between products nor between versions, so a capture has its own. Two
//! statements are of one class when they differ in values, comments, blanks, the case of unquoted words, the quotes of names,
//! the length of a list after `IN`, or the number of further rows after the first one of `VALUES`.

use super::kind::executed;
use super::lexer::{Lexer, Syntax, Token, TokenKind};

/// Identity of a class: the first 64 bits of the BLAKE3 hash of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u64);

impl ClassId {
    /// The identity of the class with this text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let hash = blake3::hash(text);
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_bytes()[..8]);
        ClassId(u64::from_le_bytes(first))
    }
}

impl std::fmt::Display for ClassId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A class of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its identity.
    pub id: ClassId,
    /// Its text: values are `?`, a list after `IN` is `?+`, further rows are `, …`.
    pub text: Vec<u8>,
}

impl Class {
    /// The class of a statement.
    #[must_use]
    pub fn of(text: &[u8], syntax: Syntax) -> Self {
        let mut class = Vec::with_capacity(text.len());
        Self::text_into(&mut class, text, syntax);
        Self {
            id: ClassId::of(&class),
            text: class,
        }
    }

    /// Replaces what is in `buffer` by the text of a statement's class. Allocates nothing once the buffer is long enough.
    pub fn text_into(buffer: &mut Vec<u8>, text: &[u8], syntax: Syntax) {
        buffer.clear();
        Writer::new(buffer, text, syntax).write();
    }
}

/// What was written last: decides about a blank, about a sign and about lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    /// A word after which a value may follow at once, so a sign belongs to the value.
    Keyword,
    /// `IS` or `NOT`, after which `NULL` is no value.
    Is,
    /// `IN`, after which a list may follow.
    In,
    /// `VALUES`, after which rows follow.
    Values,
    Word,
    Value,
    Open,
    Close,
    Comma,
    Point,
    Sign,
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    text: &'a [u8],
    syntax: Syntax,
    tokens: std::iter::Peekable<Lexer<'a>>,
    last: Last,
    /// True inside of an executed comment; such comments do not nest.
    is_inner: bool,
}

impl<'a> Writer<'a> {
    fn new(out: &'a mut Vec<u8>, text: &'a [u8], syntax: Syntax) -> Self {
        Self {
            out,
            text,
            syntax,
            tokens: Lexer::new(text, syntax).peekable(),
            last: Last::Nothing,
            is_inner: false,
        }
    }

    fn write(mut self) {
        while let Some(token) = self.tokens.next() {
            match token.kind {
                // One at the end is none of the statement's.
                TokenKind::Terminator if self.tokens.peek().is_none() => {}
                TokenKind::Terminator => self.sign(b';'),
                TokenKind::String | TokenKind::Number | TokenKind::Parameter => {
                    self.value(token.kind);
                }
                TokenKind::Word => self.word(token.of(self.text)),
                TokenKind::Name => self.name(token.of(self.text)),
                TokenKind::Hint | TokenKind::Executed => self.comment(token),
                TokenKind::Sign => self.any_sign(token),
            }
        }
    }

    /// A comment that means something. What a server may execute is written without its values.
    fn comment(&mut self, token: Token) {
        self.blank();
        let comment = token.of(self.text);
        if token.kind == TokenKind::Executed && !self.is_inner {
            self.out.extend_from_slice(b"/*!");
            let mut writer = Writer::new(self.out, executed(comment), self.syntax);
            (writer.last, writer.is_inner) = (Last::Word, true);
            writer.write();
            self.out.extend_from_slice(b" */");
        } else {
            self.out.extend_from_slice(comment);
        }
        self.last = Last::Word;
    }

    /// A blank before a word or a value, except after an opening parenthesis or a point.
    fn blank(&mut self) {
        if !matches!(self.last, Last::Nothing | Last::Open | Last::Point) {
            self.out.push(b' ');
        }
    }

    fn value(&mut self, kind: TokenKind) {
        // 'a' 'b' is one string.
        if kind == TokenKind::String && self.last == Last::Value {
            return;
        }
        self.blank();
        self.out.push(b'?');
        self.last = Last::Value;
    }

    fn word(&mut self, word: &[u8]) {
        let is_value = word.eq_ignore_ascii_case(b"NULL");
        if is_value && self.last != Last::Is && self.last != Last::Point {
            return self.value(TokenKind::Number);
        }
        self.blank();
        let from = self.out.len();
        self.out.extend_from_slice(word);
        let folded = &mut self.out[from..];
        folded.make_ascii_lowercase();
        self.last = match &*folded {
            b"in" => Last::In,
            b"is" | b"not" => Last::Is,
            b"values" => Last::Values,
            // A sign after these belongs to the number that follows.
            b"select" | b"where" | b"and" | b"or" | b"xor" | b"then" | b"else" | b"when"
            | b"case" | b"limit" | b"offset" | b"like" | b"between" | b"by" | b"on" | b"set"
            | b"interval" | b"return" | b"having" | b"div" | b"mod" | b"regexp" | b"default"
            | b"to" => Last::Keyword,
            _ => Last::Word,
        };
    }

    /// A quoted name as if it were not quoted; where quotes keep the case, capital letters keep the quotes.
    fn name(&mut self, quoted: &[u8]) {
        let inner = quoted
            .get(1..quoted.len().saturating_sub(1))
            .unwrap_or_default();
        let is_plain = !inner.is_empty()
            && inner
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80);
        let keeps_case = self.syntax.is_postgresql && inner.iter().any(u8::is_ascii_uppercase);
        self.blank();
        match is_plain && !keeps_case {
            true => {
                let from = self.out.len();
                self.out.extend_from_slice(inner);
                self.out[from..].make_ascii_lowercase();
            }
            false => self.out.extend_from_slice(quoted),
        }
        self.last = Last::Word;
    }

    fn any_sign(&mut self, token: Token) {
        let byte = self.text[token.start];
        match byte {
            b'(' if self.list() => {}
            b'(' if self.last == Last::Values => {
                self.sign(b'(');
                self.rows();
            }
            byte => self.sign_of_expression(byte),
        }
    }

    fn sign_of_expression(&mut self, byte: u8) {
        match byte {
            // The sign of a number belongs to it.
            b'-' | b'+' if self.is_before_value() && self.is_number_next() => {}
            byte => self.sign(byte),
        }
    }

    fn sign(&mut self, byte: u8) {
        let last = match byte {
            b'(' => Last::Open,
            b')' => Last::Close,
            b',' => Last::Comma,
            b'.' => Last::Point,
            _ => Last::Sign,
        };
        // Signs of one operator, such as `<=`, stand together.
        if last == Last::Sign && !matches!(self.last, Last::Sign | Last::Nothing | Last::Open) {
            self.out.push(b' ');
        }
        self.out.push(byte);
        self.last = last;
    }

    fn is_before_value(&self) -> bool {
        !matches!(
            self.last,
            Last::Word | Last::Value | Last::Close | Last::Point
        )
    }

    fn is_number_next(&mut self) -> bool {
        let next = self.tokens.peek();
        next.is_some_and(|next| matches!(next.kind, TokenKind::Number | TokenKind::Parameter))
    }

    /// Writes a list of values after `IN` and its opening parenthesis, and passes it. Returns false, with nothing done, where no `IN`
    /// precedes or the list has anything else.
    fn list(&mut self) -> bool {
        if self.last != Last::In {
            return false;
        }
        let mut ahead = self.tokens.clone();
        let mut expects_value = true;
        for token in ahead.by_ref() {
            let word = token.of(self.text);
            match token.kind {
                TokenKind::String | TokenKind::Number | TokenKind::Parameter => {
                    expects_value = false;
                }
                TokenKind::Word if word.eq_ignore_ascii_case(b"NULL") => expects_value = false,
                TokenKind::Sign if word == b"," && !expects_value => expects_value = true,
                TokenKind::Sign if matches!(word, b"-" | b"+") && expects_value => {}
                TokenKind::Sign if word == b")" && !expects_value => {
                    self.tokens = ahead;
                    self.out.extend_from_slice(b"(?+)");
                    self.last = Last::Close;
                    return true;
                }
                _ => return false,
            }
        }
        false
    }

    /// Writes the rest of the first row of `VALUES` and passes the further ones.
    fn rows(&mut self) {
        let mut depth = 1_usize;
        while depth > 0
            && let Some(token) = self.tokens.next()
        {
            match token.of(self.text) {
                b"(" if self.list() => continue,
                b"(" => depth += 1,
                b")" => depth -= 1,
                _ => {}
            }
            match token.kind {
                TokenKind::String | TokenKind::Number | TokenKind::Parameter => {
                    self.value(token.kind);
                }
                TokenKind::Word => self.word(token.of(self.text)),
                TokenKind::Name => self.name(token.of(self.text)),
                TokenKind::Sign | TokenKind::Terminator => {
                    self.sign_of_expression(self.text[token.start]);
                }
                TokenKind::Hint | TokenKind::Executed => self.comment(token),
            }
        }
        let mut has_more = false;
        while self.plain_row() {
            has_more = true;
        }
        if has_more {
            self.out.extend_from_slice(", …".as_bytes());
        }
        self.last = Last::Close;
    }

    /// Passes a further row if all of it are values; any other has parts that may decide what the statement does.
    fn plain_row(&mut self) -> bool {
        let mut ahead = self.tokens.clone();
        let begins = [b",", b"("].into_iter().all(|sign| {
            let next = ahead.next();
            next.is_some_and(|token| token.of(self.text) == sign)
        });
        if !begins {
            return false;
        }
        for token in ahead.by_ref() {
            let word = token.of(self.text);
            let is_keyword = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
            match token.kind {
                TokenKind::String | TokenKind::Number | TokenKind::Parameter => {}
                TokenKind::Word if is_keyword(b"NULL") || is_keyword(b"DEFAULT") => {}
                TokenKind::Sign if matches!(word, b"," | b"-" | b"+") => {}
                TokenKind::Sign if word == b")" => {
                    self.tokens = ahead;
                    return true;
                }
                _ => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(sql: &str, syntax: Syntax) -> String {
        String::from_utf8(Class::of(sql.as_bytes(), syntax).text).unwrap()
    }

    #[test]
    fn a_class_has_no_values() {
        for (sql, expected) in [
            (
                "SELECT * FROM `wp_2_posts` WHERE ID = 5;",
                "select * from wp_2_posts where id = ?",
            ),
            (
                "select a.`b`,c from t where x=-5 and y = a-5",
                "select a.b, c from t where x = ? and y = a - ?",
            ),
            (
                "SELECT 1 FROM t WHERE a IN (1)",
                "select ? from t where a in(?+)",
            ),
            (
                "SELECT 1 FROM t WHERE a IN(1,-2,'x' , NULL)",
                "select ? from t where a in(?+)",
            ),
            (
                "SELECT 1 FROM t WHERE a IN (SELECT 5)",
                "select ? from t where a in(select ?)",
            ),
            ("SELECT f(1, 2), f(1)", "select f(?, ?), f(?)"),
            (
                "INSERT INTO t(a, b) VALUES (1, NULL)",
                "insert into t(a, b) values(?, ?)",
            ),
            (
                "insert into t (a,b) values (1,now()), (2,')'), (-3,NULL) on duplicate key update a=values(a)",
                "insert into t(a, b) values(?, now()), … on duplicate key update a = values(a)",
            ),
            (
                "insert into t values (1),(f(2))",
                "insert into t values(?),(f(?))",
            ),
            (
                "insert into t values (1, a in (1, 2, (3)), b in (4, 5), (select 1 from u where c in (6))), (2, 3, 4, 5)",
                "insert into t values(?, a in(?, ?,(?)), b in(?+),(select ? from u where c in(?+))), …",
            ),
            ("select /*!50000 'secret', */ a", "select /*! ?, */ a"),
            (
                "SELECT a FROM t WHERE b IS NOT NULL AND c <= 4 OR d<>0x1f",
                "select a from t where b is not null and c <= ? or d <> ?",
            ),
            ("SELECT 'a' 'b', N'c', _utf8mb4'd'", "select ?, ?, ?"),
            (
                "SELECT /* trace 7 */ /*+ MRR(t) */ 1 -- x",
                "select /*+ MRR(t) */ ?",
            ),
            ("SET NAMES utf8mb4", "set names utf8mb4"),
            ("SET SESSION sql_mode='ANSI'", "set session sql_mode = ?"),
            (
                "SELECT COUNT( * ), t . a FROM t",
                "select count(*), t.a from t",
            ),
        ] {
            assert_eq!(class(sql, Syntax::MYSQL), expected, "{sql}");
        }
        for (sql, expected) in [
            (
                "SELECT \"a\", \"B\" FROM public.t WHERE x = $1 AND j ? 'k'",
                "select a, \"B\" from public.t where x = ? and j ? ?",
            ),
            ("SELECT $$it's$$, E'\\'', 1::int", "select ?, ?, ? :: int"),
            ("SELECT \"x\" FROM t", "select x from t"),
        ] {
            assert_eq!(class(sql, Syntax::POSTGRESQL), expected, "{sql}");
        }
    }

    #[test]
    fn spacing_case_and_comments_make_no_class() {
        let one = Class::of(b"SELECT a FROM t WHERE b>=3 AND c IN (1,2)", Syntax::MYSQL);
        let other = Class::of(
            b"select  a\nfrom/**/t where b >= 4\tand C in( 7 )",
            Syntax::MYSQL,
        );
        assert_eq!(one, other);
    }

    proptest! {
        #[test]
        fn a_class_of_any_bytes_exists_and_is_its_own(
            text in proptest::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"'\"`(),;? in values-1a".to_vec())], 0..120),
        ) {
            for syntax in [Syntax::MYSQL, Syntax::POSTGRESQL] {
                let class = Class::of(&text, syntax);
                prop_assert_eq!(&Class::of(&text, syntax), &class);
                prop_assert!(class.text.len() <= 3 * text.len() + 8);
            }
        }
    }
}
