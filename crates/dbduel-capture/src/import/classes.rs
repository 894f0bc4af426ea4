//! Classes of statements during an import, and what follows from a statement's text.

use std::borrow::Cow;
use std::collections::HashMap;

use dbduel_sql::{Class, ClassId, Kind, Lexer, Syntax, TokenKind, kind_of, replayable, statements};

use crate::effect::{Effect, kind_of_several};
use crate::entry::Request;
use crate::store::manifest::{ClassRow, Refusal, escaped};
use crate::store::texts::hash;
use crate::store::write::Analysis;

/// Classes of a capture; the statements of further ones are of one class together.
const CLASSES_MAX: usize = 200_000;
/// Longest text of a class, bytes.
const TEXT_MAX: usize = 4 << 10;
/// The same once the texts of all classes have [`TEXTS_MAX`] bytes.
const SHORT_TEXT_MAX: usize = 200;
/// Bytes of texts of classes before they are shortened.
const TEXTS_MAX: usize = 64 << 20;
/// Reasons that a column of bytes distinguishes.
const REFUSALS_MAX: usize = 254;
/// Tokens at the beginning of a statement among which the word is that says that it defines a routine.
const COMPOUND_TOKENS: usize = 24;
/// What has a body with semicolons.
const ROUTINES: [&str; 6] = [
    "PROCEDURE",
    "FUNCTION",
    "TRIGGER",
    "EVENT",
    "PACKAGE",
    "ATOMIC",
];
/// The reason for statements with another one beyond [`REFUSALS_MAX`].
const FURTHER_REFUSALS: &str = "further reasons";
/// Text of the class for statements beyond `CLASSES_MAX`.
pub const FURTHER_CLASSES: &str = "(statements of further classes)";

/// Places for recent classes; a power of two.
const RECENT: usize = 1 << 10;
/// Longer texts of classes are not compared with recent ones, bytes.
const RECENT_TEXT_MAX: usize = 4 << 10;

/// Recent classes by their texts: identities are slow hashes, and most statements are of few classes. A table without chains, as that
/// of recent texts.
#[derive(Debug)]
struct RecentClasses(Vec<(Vec<u8>, u32)>);

impl RecentClasses {
    fn new() -> Self {
        RecentClasses(vec![(Vec::new(), 0); RECENT])
    }

    fn slot(text: &[u8]) -> usize {
        hash(text) as usize % RECENT
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        let (known, place) = &self.0[Self::slot(text)];
        (known == text && !text.is_empty()).then_some(*place)
    }

    fn keep(&mut self, text: &[u8], place: u32) {
        if text.len() <= RECENT_TEXT_MAX {
            let (known, known_place) = &mut self.0[Self::slot(text)];
            known.clear();
            known.extend_from_slice(text);
            *known_place = place;
        }
    }
}

/// What a text says about its statement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Judged {
    kind: Kind,
    effect: Effect,
    refused: Option<Cow<'static, str>>,
    /// True where statements of the class may differ in it, because it is in a value.
    depends_on_values: bool,
}

#[derive(Debug)]
struct ClassStats {
    id: ClassId,
    text: String,
    kind: Kind,
    analysis: Analysis,
    depends_on_values: bool,
    statements: u64,
    with_duration: u64,
    duration_ns: u64,
    failed: u64,
    refused: u64,
    refused_why: u8,
    first_statement: u64,
    first_line: u64,
}

/// A statement as its class counts it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) analysis: Analysis,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) is_failed: bool,
    pub(crate) statement: u64,
    pub(crate) line: u64,
}

/// The classes of an import.
#[derive(Debug)]
pub(crate) struct Classes {
    syntax: Syntax,
    buffer: Vec<u8>,
    recent: RecentClasses,
    places: HashMap<ClassId, u32>,
    rows: Vec<ClassStats>,
    text_bytes: usize,
    refusals: Vec<(Cow<'static, str>, u64)>,
    further: Option<u32>,
}

impl Classes {
    pub(crate) fn new(syntax: Syntax) -> Self {
        Classes {
            syntax,
            buffer: Vec::new(),
            recent: RecentClasses::new(),
            places: HashMap::new(),
            rows: Vec::new(),
            text_bytes: 0,
            refusals: Vec::new(),
            further: None,
        }
    }

    /// Syntax of the statements.
    pub(crate) fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// What follows from a statement's text; a new class is added.
    pub(crate) fn analyse(&mut self, text: &[u8]) -> Analysis {
        Class::text_into(&mut self.buffer, text, self.syntax);
        if let Some(place) = self.recent.find(&self.buffer) {
            return self.of_class(place, text);
        }
        let id = ClassId::of(&self.buffer);
        let known = self.places.get(&id).copied().or_else(|| {
            let is_full = self.rows.len() >= CLASSES_MAX;
            self.further.filter(|_| is_full)
        });
        if let Some(place) = known {
            self.recent.keep(&self.buffer, place);
            return self.of_class(place, text);
        }
        let judged = judge(text, self.syntax);
        if self.rows.len() < CLASSES_MAX {
            let text = self.class_text();
            let place = self.add(id, text, judged);
            self.places.insert(id, place);
            self.rows[place as usize].analysis
        } else {
            let all = Judged {
                depends_on_values: true,
                ..judged
            };
            let place = self.add(ClassId(0), FURTHER_CLASSES.to_owned(), all);
            self.further = Some(place);
            self.rows[place as usize].analysis
        }
    }

    /// What follows from the text of a statement of a known class.
    fn of_class(&mut self, place: u32, text: &[u8]) -> Analysis {
        let row = &self.rows[place as usize];
        match row.depends_on_values {
            true => self.analysis(place, judge(text, self.syntax)),
            false => row.analysis,
        }
    }

    /// What follows from a request that changes a session.
    pub(crate) fn request(&mut self, request: Request) -> Analysis {
        // Numbers that no hash of a text has but by chance.
        let (number, text, kind, effect) = match request {
            Request::InitDb => (1, "(request: default database)", Kind::Use, Effect::None),
            Request::ChangeUser => (2, "(request: change user)", Kind::Use, Effect::Resets),
            Request::Reset => (3, "(request: reset session)", Kind::Other, Effect::Resets),
        };
        // Distinct in the first digits, by which users name classes.
        let id = ClassId(number << 56);
        if let Some(place) = self.places.get(&id) {
            return self.rows[*place as usize].analysis;
        }
        let judged = Judged {
            kind,
            effect,
            refused: None,
            depends_on_values: false,
        };
        let place = self.add(id, text.to_owned(), judged);
        self.places.insert(id, place);
        self.rows[place as usize].analysis
    }

    fn class_text(&mut self) -> String {
        let limit = match self.text_bytes < TEXTS_MAX {
            true => TEXT_MAX,
            false => SHORT_TEXT_MAX,
        };
        // Not within a character.
        let mut end = self.buffer.len().min(limit);
        while end < self.buffer.len() && end > 0 && self.buffer[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        let mut text = escaped(&self.buffer[..end], false);
        if end < self.buffer.len() {
            text.push('…');
        }
        self.text_bytes += text.len();
        text
    }

    fn add(&mut self, id: ClassId, text: String, judged: Judged) -> u32 {
        let place = self.rows.len() as u32;
        let (kind, depends_on_values) = (judged.kind, judged.depends_on_values);
        let analysis = self.analysis(place, judged);
        self.rows.push(ClassStats {
            id,
            text,
            kind,
            analysis,
            depends_on_values,
            statements: 0,
            with_duration: 0,
            duration_ns: 0,
            failed: 0,
            refused: 0,
            refused_why: 0,
            first_statement: 0,
            first_line: 0,
        });
        place
    }

    fn analysis(&mut self, class: u32, judged: Judged) -> Analysis {
        Analysis {
            class,
            kind: judged.kind as u8,
            effect: judged.effect,
            refused: judged.refused.map_or(0, |why| self.refusal(why)),
        }
    }

    fn refusal(&mut self, why: Cow<'static, str>) -> u8 {
        let known = self.refusals.iter().position(|(known, _)| *known == why);
        let place = known.unwrap_or_else(|| {
            match self.refusals.len() + 1 {
                next if next < REFUSALS_MAX => self.refusals.push((why, 0)),
                REFUSALS_MAX => self.refusals.push((FURTHER_REFUSALS.into(), 0)),
                _ => {}
            }
            self.refusals.len() - 1
        });
        place as u8 + 1
    }

    /// Counts a statement.
    pub(crate) fn count(&mut self, counted: &Counted) {
        let refused = counted.analysis.refused;
        if let Some(place) = refused.checked_sub(1) {
            self.refusals[usize::from(place)].1 += 1;
        }
        let row = &mut self.rows[counted.analysis.class as usize];
        if row.statements == 0 {
            row.first_statement = counted.statement;
            row.first_line = counted.line;
        }
        row.statements += 1;
        row.failed += u64::from(counted.is_failed);
        row.refused += u64::from(refused > 0);
        if row.refused_why == 0 {
            row.refused_why = refused;
        }
        if let Some(duration) = counted.duration_ns {
            row.with_duration += 1;
            row.duration_ns = row.duration_ns.saturating_add(duration);
        }
    }

    /// The classes and the reasons why statements are not replayed.
    pub(crate) fn finish(self) -> (Vec<ClassRow>, Vec<Refusal>) {
        let why = |place: u8| {
            let place = place.checked_sub(1)?;
            let (what, _) = self.refusals.get(usize::from(place))?;
            Some(what.clone().into_owned())
        };
        let rows = self.rows.iter().map(|row| ClassRow {
            id: row.id.to_string(),
            text: row.text.clone(),
            kind: row.kind.name().to_owned(),
            statements: row.statements,
            with_duration: row.with_duration,
            duration_ns: row.duration_ns,
            failed: row.failed,
            refused: row.refused,
            refused_why: why(row.refused_why),
            first_statement: row.first_statement,
            first_line: row.first_line,
        });
        let rows = rows.collect();
        let refusals = self.refusals.into_iter().map(|(what, statements)| Refusal {
            what: what.into_owned(),
            statements,
        });
        (rows, refusals.collect())
    }
}

/// Whether a replay may run a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// Why not, as a noun phrase without names; `None` where it may.
    pub refused: Option<&'static str>,
    /// True where other requests of the class may get another answer, because it depends on values.
    pub depends_on_values: bool,
}

impl Permission {
    /// The permission of a request, which may have several statements.
    #[must_use]
    pub fn of(text: &[u8], syntax: Syntax) -> Self {
        let judged = judge(text, syntax);
        Permission {
            refused: judged.refused.map(|why| match why {
                Cow::Borrowed(why) => why,
                // It names the function.
                Cow::Owned(_) => "function that is not known to be harmless",
            }),
            depends_on_values: judged.depends_on_values,
        }
    }
}

fn judge(text: &[u8], syntax: Syntax) -> Judged {
    let mut kinds = Vec::new();
    let mut effects = Vec::new();
    let mut refused = None;
    let mut depends_on_values = false;
    let mut parts = statements(text, syntax).map(|part| &text[part]).peekable();
    if parts.peek().is_none() {
        // A comment alone, or nothing.
        return judge_one(text, syntax);
    }
    for part in parts {
        let judged = judge_one(part, syntax);
        kinds.push(judged.kind);
        effects.push(judged.effect);
        depends_on_values |= judged.depends_on_values;
        refused = refused.or(judged.refused);
    }
    if kinds.len() > 1 && is_compound(text, syntax) {
        let whole = judge_one(text, syntax);
        // What follows the body, if anything, is judged as well.
        let refused = whole.refused.or(refused);
        return Judged { refused, ..whole };
    }
    Judged {
        kind: kind_of_several(&kinds),
        effect: Effect::of_several(&effects),
        refused,
        depends_on_values,
    }
}

fn judge_one(text: &[u8], syntax: Syntax) -> Judged {
    let (kind, refused) = match replayable(text, syntax) {
        Ok(kind) => (kind, None),
        Err(refused) => (kind_of(text, syntax), Some(refused.what)),
    };
    Judged {
        kind,
        effect: Effect::of(text, syntax, kind),
        refused,
        depends_on_values: has_meaning_in_values(kind) || has_executed_comment(text, syntax),
    }
}

/// True for a statement with semicolons in its body: one that defines a routine, or a block of MariaDB.
fn is_compound(text: &[u8], syntax: Syntax) -> bool {
    let tokens = Lexer::new(text, syntax).take(COMPOUND_TOKENS);
    let words: Vec<&[u8]> = tokens
        .filter(|token| token.kind == TokenKind::Word)
        .map(|token| token.of(text))
        .collect();
    let is = |word: &[u8], wanted: &str| word.eq_ignore_ascii_case(wanted.as_bytes());
    match words.as_slice() {
        [first, second, ..] if is(first, "BEGIN") => is(second, "NOT"),
        [first, rest @ ..] if is(first, "CREATE") || is(first, "ALTER") => {
            let defines = |word: &&&[u8]| ROUTINES.iter().any(|routine| is(word, routine));
            rest.iter().find(defines).is_some()
        }
        _ => false,
    }
}

/// `SET autocommit = 0`, `PREPARE p FROM 'text'`: what such a statement does is in a value.
fn has_meaning_in_values(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Set | Kind::Prepare | Kind::Execute | Kind::Other
    )
}

/// Whether a string in such a comment goes on behind it depends on the string.
fn has_executed_comment(text: &[u8], syntax: Syntax) -> bool {
    Lexer::new(text, syntax).any(|token| token.kind == TokenKind::Executed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_values_is_judged_for_each_statement() {
        let mut classes = Classes::new(Syntax::MYSQL);
        let off = classes.analyse(b"SET autocommit=0");
        let on = classes.analyse(b"SET autocommit=1");
        assert_eq!(off.class, on.class);
        assert_eq!(
            (off.effect, on.effect),
            (Effect::AutocommitOff, Effect::AutocommitOn)
        );
    }

    #[test]
    fn what_may_be_replayed_is_judged_for_each_text() {
        let mut classes = Classes::new(Syntax::MYSQL);
        for (fine, refused) in [
            ("SET sql_mode = ''", "SET sql_mode = 'ANSI_QUOTES'"),
            ("/*!50000 SELECT 'a' */", "/*!50000 SELECT '*/# ' */"),
        ] {
            let (fine, refused) = (
                classes.analyse(fine.as_bytes()),
                classes.analyse(refused.as_bytes()),
            );
            assert_eq!(fine.class, refused.class);
            assert_eq!(fine.refused, 0);
            assert!(refused.refused > 0);
        }
        // No value of this class makes it another statement.
        for text in [
            r"INSERT INTO p (b) VALUES ('it\'s fun (really)')",
            "INSERT INTO p (b) VALUES ('fun')",
        ] {
            assert_eq!(classes.analyse(text.as_bytes()).refused, 0, "{text}");
        }
    }

    #[test]
    fn a_request_is_refused_for_any_of_its_statements() {
        let mut classes = Classes::new(Syntax::MYSQL);
        let fine = classes.analyse(b"select 1; select 2");
        assert_eq!(fine.refused, 0);
        let refused = classes.analyse(b"select 1; shutdown");
        assert!(refused.refused > 0);
        for (analysis, line) in [(fine, 1), (refused, 2), (refused, 3)] {
            classes.count(&Counted {
                analysis,
                duration_ns: Some(5),
                is_failed: false,
                statement: line,
                line,
            });
        }
        let (rows, refusals) = classes.finish();
        assert_eq!((rows[1].statements, rows[1].refused), (2, 2));
        assert_eq!((rows[1].duration_ns, rows[1].first_line), (10, 2));
        assert_eq!(refusals.len(), 1);
        assert_eq!(refusals[0].statements, 2);
        assert_eq!(rows[1].refused_why.as_ref(), Some(&refusals[0].what));
    }

    #[test]
    fn reasons_beyond_the_limit_are_one() {
        let mut classes = Classes::new(Syntax::MYSQL);
        for function in 0..300 {
            let analysis = classes.analyse(format!("SELECT f{function}()").as_bytes());
            classes.count(&Counted {
                analysis,
                duration_ns: None,
                is_failed: false,
                statement: 0,
                line: 1,
            });
        }
        let (rows, refusals) = classes.finish();
        assert_eq!(refusals.len(), REFUSALS_MAX);
        let last = refusals.last().unwrap();
        assert_eq!(
            (last.what.as_str(), last.statements),
            (FURTHER_REFUSALS, 47)
        );
        let first = "calls the function `f0`, which is not known to be harmless";
        assert_eq!(rows[0].refused_why.as_deref(), Some(first));
        assert_eq!(rows[299].refused_why.as_deref(), Some(FURTHER_REFUSALS));
    }

    #[test]
    fn the_body_of_a_routine_is_no_statement_of_the_request() {
        let mut classes = Classes::new(Syntax::MYSQL);
        for text in [
            "CREATE PROCEDURE p() BEGIN SELECT 1; UPDATE t SET a = 3; END",
            "CREATE DEFINER=`a`@`b` TRIGGER x BEFORE INSERT ON t FOR EACH ROW BEGIN SET @a = 1; END",
        ] {
            let analysis = classes.analyse(text.as_bytes());
            assert_eq!(analysis.kind, Kind::Definition as u8, "{text}");
            assert_eq!(analysis.effect, Effect::CommitsImplicitly, "{text}");
        }
        let block = classes.analyse(b"BEGIN NOT ATOMIC SELECT 1; UPDATE t SET a = 3; END");
        assert_eq!(block.effect, Effect::Runs);
        // A table of such a name hides nothing.
        let hidden = classes.analyse(b"CREATE TEMPORARY TABLE event (a INT); SHUTDOWN");
        assert!(hidden.refused > 0);
        let fine = classes.analyse(b"CREATE TEMPORARY TABLE event (a INT)");
        assert_eq!(fine.refused, 0);
    }

    #[test]
    fn kinds_are_stored_by_their_places() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut classes = Classes::new(Syntax::MYSQL);
        let mut text = b"select a".to_vec();
        text.extend("ü".repeat(TEXT_MAX).bytes());
        classes.analyse(&text);
        let text = &classes.rows[0].text;
        assert!(text.ends_with("ü…"), "{}", &text[text.len() - 20..]);
        assert!(text.len() < TEXT_MAX + 8);
    }
}
