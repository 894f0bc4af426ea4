//! Tokens of SQL text.

/// What decides where a token ends: quotes, escapes and comments of a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syntax {
    /// A backslash escapes the next byte of a string (MySQL without NO_BACKSLASH_ESCAPES; in PostgreSQL strings with the prefix E
    /// only).
    pub backslash_escapes: bool,
    /// Double quotes are around names (PostgreSQL, SQLite, MySQL with ANSI_QUOTES) and not strings.
    pub double_quotes_name: bool,
    /// Backquotes are around names (MySQL, SQLite).
    pub backquotes_name: bool,
    /// `$tag$ … $tag$` is a string, `$1` a parameter, comments nest (PostgreSQL).
    pub is_postgresql: bool,
    /// `#` begins a comment, `--` only with a blank after it, `/*! … */` and `/*M! … */` are executed (MySQL, MariaDB).
    pub is_mysql: bool,
}

impl Syntax {
    /// MySQL and MariaDB with their default `sql_mode`.
    pub const MYSQL: Self = Self {
        backslash_escapes: true,
        double_quotes_name: false,
        backquotes_name: true,
        is_postgresql: false,
        is_mysql: true,
    };
    /// PostgreSQL with `standard_conforming_strings`.
    pub const POSTGRESQL: Self = Self {
        backslash_escapes: false,
        double_quotes_name: true,
        backquotes_name: false,
        is_postgresql: true,
        is_mysql: false,
    };
    /// SQLite.
    pub const SQLITE: Self = Self {
        backslash_escapes: false,
        double_quotes_name: true,
        backquotes_name: true,
        is_postgresql: false,
        is_mysql: false,
    };
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A keyword or an unquoted name.
    Word,
    /// A quoted name, quotes included.
    Name,
    /// A string or a literal of bits or bytes, with its quotes and a prefix such as `E`, `x` or `N`.
    String,
    /// A number without a sign.
    Number,
    /// A place for a value: `?`, `$1`, `:name` of SQLite; `@name` is a [`TokenKind::Word`].
    Parameter,
    /// A comment for the optimiser, `/*+ … */`.
    Hint,
    /// A comment that MySQL or MariaDB executes, `/*! … */`, whole.
    Executed,
    /// One or more bytes of an operator or of punctuation.
    Sign,
    /// A semicolon.
    Terminator,
}

/// A token: bytes `start..end` of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Token {
    /// Its bytes.
    #[must_use]
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start..self.end]
    }
}

/// The tokens of a text, without blanks and comments. Never fails: what is not closed goes to the end of the text, and what is
/// no token of SQL is a sign.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    text: &'a [u8],
    syntax: Syntax,
    at: usize,
    /// True after a string of PostgreSQL with the prefix E: its parts on further lines have escapes, too.
    escapes_go_on: bool,
}

impl<'a> Lexer<'a> {
    /// The tokens of `text`.
    #[must_use]
    pub fn new(text: &'a [u8], syntax: Syntax) -> Self {
        Self {
            text,
            syntax,
            at: 0,
            escapes_go_on: false,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    /// Passes blanks and comments; comments that mean something stop it.
    fn skip(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match (byte, self.byte(self.at + 1)) {
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, _) => self.at += 1,
                (b'#', _) if self.syntax.is_mysql => self.skip_line(),
                (b'-', b'-') if !self.syntax.is_mysql || self.is_blank(self.at + 2) => {
                    self.skip_line();
                }
                (b'/', b'*') if self.byte(self.at + 2) != b'+' && !self.is_executed() => {
                    self.at = self.comment_end();
                }
                _ => return,
            }
        }
    }

    /// True at a comment that a server executes: `/*! … */` of both, `/*M! … */` of MariaDB.
    fn is_executed(&self) -> bool {
        let mark = [self.byte(self.at + 2), self.byte(self.at + 3)];
        self.syntax.is_mysql && (mark[0] == b'!' || mark == *b"M!")
    }

    /// True at a blank or a control byte, and at the end.
    fn is_blank(&self, at: usize) -> bool {
        let byte = self.text.get(at);
        byte.is_none_or(|byte| *byte <= b' ' || *byte == 0x7f)
    }

    /// Passes a comment that ends with its line; PostgreSQL ends lines at a carriage return, too.
    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        let is_end = |byte: &u8| *byte == b'\n' || (self.syntax.is_postgresql && *byte == b'\r');
        let line = rest.iter().position(is_end);
        self.at += line.map_or(rest.len(), |end| end + 1);
    }

    /// The end of the comment that begins here; PostgreSQL's nest.
    fn comment_end(&self) -> usize {
        let (mut at, mut depth) = (self.at + 2, 1_usize);
        while at < self.text.len() {
            match (self.text[at], self.byte(at + 1)) {
                (b'*', b'/') => {
                    at += 2;
                    depth -= 1;
                    if depth == 0 {
                        return at;
                    }
                }
                (b'/', b'*') if self.syntax.is_postgresql => {
                    at += 2;
                    depth += 1;
                }
                _ => at += 1,
            }
        }
        self.text.len()
    }

    /// The end of what the quote at `open` opens. A doubled quote does not close.
    fn quote_end(&self, open: usize, has_escapes: bool) -> usize {
        let quote = self.text[open];
        let mut at = open + 1;
        while at < self.text.len() {
            match self.text[at] {
                b'\\' if has_escapes => at += 2,
                byte if byte == quote => match self.byte(at + 1) == quote {
                    true => at += 2,
                    false => return at + 1,
                },
                _ => at += 1,
            }
        }
        self.text.len()
    }

    /// The end of the dollar quote that begins here; `None` where none does.
    fn dollar_quote_end(&self) -> Option<usize> {
        let is_tag = |byte: &u8| is_word_byte(*byte) && *byte != b'$';
        let after = &self.text[self.at + 1..];
        let tag = after.iter().position(|byte| !is_tag(byte))?;
        if after[tag] != b'$' || after.first().is_some_and(u8::is_ascii_digit) {
            return None;
        }
        let mark = &self.text[self.at..=self.at + 1 + tag];
        let mut at = self.at + mark.len();
        while let Some(next) = position(&self.text[at..], b'$') {
            at += next;
            if self.text[at..].starts_with(mark) {
                return Some(at + mark.len());
            }
            at += 1;
        }
        Some(self.text.len())
    }

    /// What begins with a digit, and its end: a number, or in MySQL a name such as `2fa_tokens`.
    fn number_or_name(&self) -> (TokenKind, usize) {
        let end = self.word_end(self.at);
        let run = &self.text[self.at..end];
        let digits = run.iter().take_while(|byte| is_digit(**byte)).count();
        if digits == run.len() {
            return (TokenKind::Number, self.fraction_end(end));
        }
        let rest = &run[digits..];
        let is_based = digits == 1
            && run[0] == b'0'
            && matches!(rest[0], b'x' | b'X' | b'b' | b'B' | b'o' | b'O')
            && rest.len() > 1
            && rest[1..]
                .iter()
                .all(|byte| byte.is_ascii_hexdigit() || *byte == b'_');
        if is_based {
            return (TokenKind::Number, end);
        }
        let after_digits = self.at + digits;
        match self.exponent_end(after_digits) {
            Some(exponent) if exponent >= end => (TokenKind::Number, exponent),
            _ if self.syntax.is_mysql => (TokenKind::Word, end),
            _ => (TokenKind::Number, after_digits),
        }
    }

    /// The end of a number after its whole digits, which end at `at`: a point, digits, an exponent.
    fn fraction_end(&self, mut at: usize) -> usize {
        if self.byte(at) == b'.' {
            at += 1;
            while is_digit(self.byte(at)) {
                at += 1;
            }
        }
        self.exponent_end(at).unwrap_or(at)
    }

    /// The end of the exponent that begins at `at`.
    fn exponent_end(&self, at: usize) -> Option<usize> {
        let is_exponent = matches!(self.byte(at), b'e' | b'E');
        let first = at + 1 + usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
        let mut end = first;
        while is_digit(self.byte(end)) {
            end += 1;
        }
        (is_exponent && end > first).then_some(end)
    }

    fn word_end(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        let end = rest.iter().position(|byte| !is_word_byte(*byte));
        end.map_or(self.text.len(), |end| from + end)
    }

    /// True where a word is the prefix of a string whose quote follows at once.
    fn is_prefix(&self, word: &[u8]) -> bool {
        match word {
            [b'x' | b'X' | b'b' | b'B' | b'n' | b'N'] => true,
            [b'e' | b'E'] => self.syntax.is_postgresql,
            // _utf8mb4'a' names a character set.
            [b'_', ..] => self.syntax.is_mysql,
            _ => false,
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip();
        let start = self.at;
        let first = *self.text.get(start)?;
        let second = self.byte(start + 1);
        let (kind, end) = match first {
            b'\'' => (
                TokenKind::String,
                self.quote_end(start, self.syntax.backslash_escapes || self.escapes_go_on),
            ),
            b'"' if self.syntax.double_quotes_name => {
                (TokenKind::Name, self.quote_end(start, false))
            }
            b'"' => (
                TokenKind::String,
                self.quote_end(start, self.syntax.backslash_escapes),
            ),
            b'`' if self.syntax.backquotes_name => (TokenKind::Name, self.quote_end(start, false)),
            b';' => (TokenKind::Terminator, start + 1),
            b'?' if !self.syntax.is_postgresql => (TokenKind::Parameter, start + 1),
            b'/' if second == b'*' => {
                let kind = match self.byte(start + 2) {
                    b'+' => TokenKind::Hint,
                    _ => TokenKind::Executed,
                };
                (kind, self.comment_end())
            }
            b'$' if self.syntax.is_postgresql && second.is_ascii_digit() => {
                (TokenKind::Parameter, self.word_end(start + 1))
            }
            b'$' if self.syntax.is_postgresql => match self.dollar_quote_end() {
                Some(end) => (TokenKind::String, end),
                None => (TokenKind::Sign, start + 1),
            },
            b'0'..=b'9' => self.number_or_name(),
            b'.' if second.is_ascii_digit() && !self.follows_name() => {
                (TokenKind::Number, self.fraction_end(start))
            }
            // A name or a string with escapes.
            b'u' | b'U'
                if self.syntax.is_postgresql && second == b'&' && self.is_quote(start + 2) =>
            {
                let kind = match self.byte(start + 2) {
                    b'"' => TokenKind::Name,
                    _ => TokenKind::String,
                };
                (kind, self.quote_end(start + 2, false))
            }
            // Between the user and the host of an account, as in 'a'@'b'.
            b'@' if self.follows_quote() => (TokenKind::Sign, start + 1),
            // A user variable or a system variable; its name may be quoted.
            b'@' if self.syntax.is_mysql => (TokenKind::Word, self.variable_end()),
            byte if is_word_byte(byte) => {
                let end = self.word_end(start);
                let quote = self.byte(end);
                let is_string = quote == b'\'' && self.is_prefix(&self.text[start..end]);
                match is_string {
                    true => {
                        let is_escaping =
                            matches!(first, b'e' | b'E') || self.syntax.backslash_escapes;
                        (TokenKind::String, self.quote_end(end, is_escaping))
                    }
                    false => (TokenKind::Word, end),
                }
            }
            // Two signs that belong together would make two classes of one statement if a blank were between them; no SQL has that.
            _ => (TokenKind::Sign, start + 1),
        };
        self.at = end.min(self.text.len());
        let is_part = first == b'\'' && self.escapes_go_on;
        self.escapes_go_on = self.syntax.is_postgresql
            && kind == TokenKind::String
            && (is_part || matches!(first, b'e' | b'E'));
        Some(Token {
            kind,
            start,
            end: self.at,
        })
    }
}

impl Lexer<'_> {
    /// True at a point directly after a name: `t.1` has no number.
    fn follows_name(&self) -> bool {
        let before = self
            .at
            .checked_sub(1)
            .map_or(b' ', |before| self.text[before]);
        is_word_byte(before) || matches!(before, b'`' | b'"')
    }

    fn is_quote(&self, at: usize) -> bool {
        matches!(self.byte(at), b'\'' | b'"')
    }

    /// True directly after a closing quote.
    fn follows_quote(&self) -> bool {
        let before = self.at.checked_sub(1).map(|before| self.text[before]);
        before.is_some_and(|before| matches!(before, b'\'' | b'`' | b'"'))
    }

    /// The end of `@name`, `@@global.name` or `` @`name` ``.
    fn variable_end(&self) -> usize {
        let mut at = self.at;
        while self.byte(at) == b'@' {
            at += 1;
        }
        match self.byte(at) {
            b'`' => self.quote_end(at, false),
            b'\'' | b'"' => self.quote_end(at, self.syntax.backslash_escapes),
            _ => {
                let is_part = |byte: &u8| is_word_byte(*byte) || *byte == b'.';
                let rest = &self.text[at..];
                let end = rest.iter().position(|byte| !is_part(byte));
                end.map_or(self.text.len(), |end| at + end)
            }
        }
    }
}

/// True for a byte of an unquoted name: letters, digits, `_`, `$`, and bytes of other characters than ASCII.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// True for a digit, or an underscore between digits.
fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|byte| *byte == wanted)
}

/// The statements of a request, separated by semicolons outside of quotes and comments: byte ranges without the semicolons,
/// from the first token of a statement to its last. Empty statements are left out.
pub fn statements(
    text: &[u8],
    syntax: Syntax,
) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let mut tokens = Lexer::new(text, syntax);
    std::iter::from_fn(move || {
        let first = tokens.find(|token| token.kind != TokenKind::Terminator)?;
        let mut end = first.end;
        for token in tokens.by_ref() {
            if token.kind == TokenKind::Terminator {
                break;
            }
            end = token.end;
        }
        Some(first.start..end)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(sql: &str, syntax: Syntax) -> Vec<&str> {
        let tokens = Lexer::new(sql.as_bytes(), syntax);
        tokens.map(|token| &sql[token.start..token.end]).collect()
    }

    fn kinds(sql: &str, syntax: Syntax) -> Vec<TokenKind> {
        Lexer::new(sql.as_bytes(), syntax)
            .map(|token| token.kind)
            .collect()
    }

    #[test]
    fn quotes_and_comments_follow_the_dialect() {
        let mysql: [(&str, &[&str]); 15] = [
            (r"select 'it\'s'", &["select", r"'it\'s'"]),
            (r"select 'it''s', 1", &["select", "'it''s'", ",", "1"]),
            (
                "select \"a\" -- b\n, `c` # d\n",
                &["select", "\"a\"", ",", "`c`"],
            ),
            ("select 5--4", &["select", "5", "-", "-", "4"]),
            ("/* a /* b */ select 1", &["select", "1"]),
            ("select /*+ MRR(t) */ a", &["select", "/*+ MRR(t) */", "a"]),
            ("/*!50000 x */ y", &["/*!50000 x */", "y"]),
            (
                "set @a := @@session.sql_mode, @`b c` = 0x0F",
                &[
                    "set",
                    "@a",
                    ":",
                    "=",
                    "@@session.sql_mode",
                    ",",
                    "@`b c`",
                    "=",
                    "0x0F",
                ],
            ),
            (
                "select _utf8mb4'a', x'61', N'b', t1x2.`id`, 1.5e-3, .5",
                &[
                    "select",
                    "_utf8mb4'a'",
                    ",",
                    "x'61'",
                    ",",
                    "N'b'",
                    ",",
                    "t1x2",
                    ".",
                    "`id`",
                    ",",
                    "1.5e-3",
                    ",",
                    ".5",
                ],
            ),
            ("select 0xe-5", &["select", "0xe", "-", "5"]),
            (
                "select 1.into outfile",
                &["select", "1.", "into", "outfile"],
            ),
            (
                "select 1e5, 1e+5, 2fa_tokens, 2024_shop.t",
                &[
                    "select",
                    "1e5",
                    ",",
                    "1e+5",
                    ",",
                    "2fa_tokens",
                    ",",
                    "2024_shop",
                    ".",
                    "t",
                ],
            ),
            (r"select @'a\'', 1", &["select", r"@'a\''", ",", "1"]),
            ("select 1 --\u{7f} x", &["select", "1"]),
            ("drop user 'a'@'b'", &["drop", "user", "'a'", "@", "'b'"]),
        ];
        for (sql, expected) in mysql {
            assert_eq!(texts(sql, Syntax::MYSQL), expected, "{sql}");
        }
        let postgresql: [(&str, &[&str]); 10] = [
            (r"select 'a\', 1", &["select", r"'a\'", ",", "1"]),
            (r"select E'a\', 1'", &["select", r"E'a\', 1'"]),
            (
                "select $1, $tag$ it's $ $tag$, $$x$$",
                &["select", "$1", ",", "$tag$ it's $ $tag$", ",", "$$x$$"],
            ),
            ("/* a /* b */ c */ d", &["d"]),
            ("a--b\nc", &["a", "c"]),
            ("a --\r, b", &["a", ",", "b"]),
            (
                r#"U&"\0061", u&'\0062', 123abc"#,
                &[r#"U&"\0061""#, ",", r"u&'\0062'", ",", "123", "abc"],
            ),
            ("/*! x */ y", &["y"]),
            (
                "d @> '{}' and d ? 'k' # e",
                &["d", "@", ">", "'{}'", "and", "d", "?", "'k'", "#", "e"],
            ),
            (
                "select \"a\"\"b\"::int",
                &["select", "\"a\"\"b\"", ":", ":", "int"],
            ),
        ];
        for (sql, expected) in postgresql {
            assert_eq!(texts(sql, Syntax::POSTGRESQL), expected, "{sql}");
        }
        let marks = [
            TokenKind::Word,
            TokenKind::Parameter,
            TokenKind::Sign,
            TokenKind::String,
        ];
        assert_eq!(kinds("a ? , 'b'", Syntax::MYSQL), marks);
        assert_eq!(
            kinds("\"a\" 'b'", Syntax::SQLITE),
            [TokenKind::Name, TokenKind::String]
        );
    }

    #[test]
    fn a_request_is_split_at_semicolons_outside_of_quotes() {
        let split = |sql: &str, syntax| -> Vec<String> {
            let ranges = statements(sql.as_bytes(), syntax);
            ranges.map(|range| sql[range].to_owned()).collect()
        };
        assert_eq!(
            split(" ;BEGIN; SELECT ';' /* ; */ FROM t -- ;\n;;", Syntax::MYSQL),
            ["BEGIN", "SELECT ';' /* ; */ FROM t"]
        );
        assert_eq!(
            split("DO $$ a; b $$; c", Syntax::POSTGRESQL),
            ["DO $$ a; b $$", "c"]
        );
        assert!(split("-- nothing", Syntax::MYSQL).is_empty());
    }

    proptest! {
        #[test]
        fn tokens_of_any_bytes_are_in_order_and_within_the_text(
            text in proptest::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"'\"`\\$/*-#;a1 .e\n".to_vec())], 0..200),
        ) {
            for syntax in [Syntax::MYSQL, Syntax::POSTGRESQL, Syntax::SQLITE] {
                let mut at = 0;
                for token in Lexer::new(&text, syntax) {
                    prop_assert!(at <= token.start && token.start < token.end && token.end <= text.len());
                    at = token.end;
                }
            }
        }
    }
}
