//! A definition as a list of tokens, and the questions that rules ask about it.

use std::ops::Range;

use dbduel_sql::TokenKind;

use super::Refused;
use super::reach::reaches_out;
use super::table::SERVER_FILE;
use crate::Target;
use crate::tokens::Tokens;

/// A token of a definition.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// Its bytes, without the quotes of a name.
    pub text: &'a [u8],
    /// Where it is in the statement, with quotes.
    pub start: usize,
    /// The byte after it.
    pub end: usize,
    /// Parentheses around it.
    pub depth: u32,
}

impl Item<'_> {
    /// True for this keyword.
    pub fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    /// True for one of these keywords.
    pub fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// True for this sign.
    pub fn is_sign(&self, sign: u8) -> bool {
        self.kind == TokenKind::Sign && self.text == [sign]
    }

    /// True for a name, quoted or not.
    pub fn is_name(&self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Name)
    }
}

/// The tokens of a statement that a server executes.
pub struct Definition<'a> {
    /// Those tokens.
    pub items: Vec<Item<'a>>,
    /// Words in executed comments that the server skips.
    pub skipped: Vec<&'a [u8]>,
    /// The statement.
    pub text: &'a [u8],
}

impl<'a> Definition<'a> {
    /// The tokens of `text` for a server.
    ///
    /// # Errors
    /// When it has a command of a client, several statements, or comments in comments.
    pub fn of(text: &'a [u8], target: &Target) -> Result<Self, Refused> {
        let mut found = Self {
            items: Vec::new(),
            skipped: Vec::new(),
            text,
        };
        let mut depth = 0_u32;
        let mut is_over = false;
        let mut tokens = Tokens::new(text, target.syntax());
        for token in &mut tokens {
            let (token, mark) = (token.token, token.mark);
            let bytes = token.of(text);
            if mark.is_some_and(|mark| !target.executes(mark)) {
                if token.kind == TokenKind::Word {
                    found.skipped.push(bytes);
                }
                continue;
            }
            match (token.kind, bytes) {
                (TokenKind::Executed, _) => {
                    return Err(Refused::unlisted("an executed comment in another one"));
                }
                (TokenKind::Sign, b"\\") => {
                    return Err(Refused::by(&super::CLIENT_COMMAND));
                }
                // In the body of a routine of MySQL they end statements, within parentheses the actions of a rule of PostgreSQL.
                (TokenKind::Terminator, _) if target.syntax().is_postgresql && depth == 0 => {
                    is_over = true;
                }
                _ if is_over => return Err(Refused::unlisted("a request of several statements")),
                (TokenKind::Sign, b")") => depth = depth.saturating_sub(1),
                _ => {}
            }
            let inner = match token.kind {
                TokenKind::Name => bytes.get(1..bytes.len() - 1).unwrap_or_default(),
                _ => bytes,
            };
            found.items.push(Item {
                kind: token.kind,
                text: inner,
                start: token.start,
                end: token.end,
                depth,
            });
            depth += u32::from(token.kind == TokenKind::Sign && bytes == b"(");
        }
        let mut ambiguous = tokens.ambiguous().iter();
        if ambiguous.any(|mark| !target.executes(*mark)) {
            return Err(Refused::unlisted(
                "a comment that this server skips, with `*/` in a string or a comment in it,",
            ));
        }
        Ok(found)
    }

    /// The item at an index, and an empty sign beyond the last.
    pub fn at(&self, index: usize) -> Item<'a> {
        let beyond = Item {
            kind: TokenKind::Sign,
            text: b"",
            start: self.text.len(),
            end: self.text.len(),
            depth: 0,
        };
        self.items.get(index).copied().unwrap_or(beyond)
    }

    /// True for these keywords from an index on.
    pub fn has_at(&self, index: usize, words: &[&str]) -> bool {
        let mut numbered = (index..).zip(words);
        numbered.all(|(index, word)| self.at(index).is(word))
    }

    /// Indices at which these keywords begin.
    pub fn places<'d>(&'d self, words: &'d [&str]) -> impl Iterator<Item = usize> + 'd {
        (0..self.items.len()).filter(|index| self.has_at(*index, words))
    }

    /// True when it has these keywords in a row.
    pub fn has(&self, words: &[&str]) -> bool {
        self.places(words).next().is_some()
    }

    /// The kind of object that a CREATE, ALTER or DROP is about, in capital letters and without what stands before it, and the
    /// index after it. Two words where one does not say enough.
    pub fn object(&self, modifiers: &[&str]) -> (String, usize) {
        let mut index = 1;
        loop {
            let item = self.at(index);
            // ALGORITHM = UNDEFINED, DEFINER = account
            if item.is("ALGORITHM") && self.at(index + 1).is_sign(b'=') {
                index += 3;
            } else if item.is("DEFINER") && self.at(index + 1).is_sign(b'=') {
                index = self.account(index + 2).1;
            } else if self.has_at(index, &["SQL", "SECURITY"]) {
                index += 3;
            } else if item.is_any(modifiers) {
                index += 1;
            } else {
                break;
            }
        }
        let upper =
            |index: usize| String::from_utf8_lossy(self.at(index).text).to_ascii_uppercase();
        let (first, second) = (upper(index), upper(index + 1));
        match (first.as_str(), second.as_str()) {
            ("MATERIALIZED", "VIEW")
            | ("EVENT", "TRIGGER")
            | ("FOREIGN", "TABLE" | "DATA")
            | ("TEXT", "SEARCH")
            | ("ACCESS", "METHOD")
            | ("USER", "MAPPING")
            | ("DEFAULT", "PRIVILEGES")
            | ("LARGE", "OBJECT") => (format!("{first} {second}"), index + 2),
            _ => (first, index + 1),
        }
    }

    /// The bytes of an account and the index after it: `` `a`@`b` ``, `'a'@'b'`, `a@b`.
    pub fn account(&self, index: usize) -> (Range<usize>, usize) {
        let start = self.at(index).start;
        let mut last = index;
        if self.at(index + 1).is_sign(b'@') {
            last = index + 2;
        } else if self.at(index + 1).text.starts_with(b"@") {
            last = index + 1;
        }
        (start..self.at(last).end, last + 1)
    }

    /// A name, its schema left out, and the index after it.
    pub fn name(&self, mut index: usize) -> (&'a [u8], usize) {
        for (words, length) in [(&["IF", "NOT", "EXISTS"][..], 3), (&["IF", "EXISTS"], 2)] {
            if self.has_at(index, words) {
                index += length;
            }
        }
        while self.at(index + 1).is_sign(b'.') {
            index += 2;
        }
        (self.at(index).text, index + 1)
    }

    /// Refuses what reaches files of the server, also in bodies of routines.
    ///
    /// # Errors
    /// By rule `server-file`.
    pub fn refuse_files(&self) -> Result<(), Refused> {
        let calls = self.items.windows(2).any(|pair| {
            pair[0].is_name()
                && pair[1].is_sign(b'(')
                && reaches_out(&String::from_utf8_lossy(pair[0].text))
        });
        let clauses: [&[&str]; 8] = [
            &["INTO", "OUTFILE"],
            &["INTO", "DUMPFILE"],
            &["LOAD", "DATA"],
            &["LOAD", "XML"],
            &["DATA", "DIRECTORY"],
            &["INDEX", "DIRECTORY"],
            &["SONAME"],
            &["INSTALL", "PLUGIN"],
        ];
        match calls || clauses.iter().any(|words| self.has(words)) {
            true => Err(Refused::by(&SERVER_FILE)),
            false => Ok(()),
        }
    }
}
