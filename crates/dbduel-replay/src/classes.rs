//! What the statements of a class mean to a replay, and the classes by which its transactions are counted.

use std::collections::HashSet;

use dbduel_capture::import::{FURTHER_CLASSES, Permission};
use dbduel_capture::store::Capture;
use dbduel_capture::store::manifest::ClassRow;
use dbduel_capture::store::read::SentAs;
use dbduel_sql::{Kind, Lexer, Syntax, TokenKind};
use dbduel_text::{shortened, visible};

use super::coverage::Amount;

/// Class of the transactions of no class of their own.
pub(crate) const OTHER: &str = "other";
/// Classes of transactions, the one of the others included.
const NAMES_MAX: usize = 60;
/// Least share of the transactions, or of their time, of a class of its own.
const SHARE_MIN: f64 = 0.01;
/// Digits of a class's identity in names.
const ID_DIGITS: usize = 8;
/// Characters of a class's text in names.
const TEXT_CHARACTERS: usize = 60;
/// Functions whose locks outlive a transaction.
const SESSION_LOCKS: [&str; 3] = ["GET_LOCK", "PG_ADVISORY_LOCK", "PG_TRY_ADVISORY_LOCK"];

/// Words one of which every statement with a table has.
const WORDS_OF_TABLES: [&str; 8] = [
    "FROM", "INTO", "INSERT", "REPLACE", "UPDATE", "DELETE", "TABLE", "CALL",
];

/// What a statement is to a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Work on the data.
    Work,
    /// A question about the server or the schema; runs outside of transactions, too.
    Show,
    /// Begins a transaction.
    Begin,
    /// Ends one.
    End,
    /// Sets, releases or rolls back to a savepoint.
    Savepoint,
    /// Sets something for the session.
    Setting,
    /// Sets something for the next or the present transaction.
    OfTransaction,
    /// Resets the session, or changes its user.
    Reset,
    /// Chooses a default database. There is one only, so it is never sent.
    Schema,
    /// Makes or drops a temporary table.
    TemporaryTable,
}

/// What is known of all statements of a class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassFacts {
    pub(crate) role: Role,
    /// Why they are left out, with the transactions that they are in.
    pub(crate) left_out: Option<&'static str>,
    /// True where each must be asked whether a replay may run it.
    pub(crate) depends_on_values: bool,
    /// True where they may have a table, and so depend on the default database.
    pub(crate) has_table: bool,
    /// True where they change rows.
    pub(crate) writes: bool,
}

impl ClassFacts {
    pub(crate) fn of(capture: &Capture, row: &ClassRow) -> Self {
        let syntax = capture.syntax();
        // A place beyond the statements has no text.
        let first = usize::try_from(row.first_statement).unwrap_or(usize::MAX);
        let text = capture.text(first).unwrap_or_default();
        let mut kinds = Kind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.name() == row.kind);
        let kind = kind.unwrap_or(Kind::Other);
        let sent_as = capture.sent_as(first);
        if sent_as.is_some_and(SentAs::is_request) {
            return ClassFacts {
                role: match sent_as {
                    Some(SentAs::InitDb) => Role::Schema,
                    _ => Role::Reset,
                },
                left_out: None,
                depends_on_values: false,
                has_table: false,
                writes: false,
            };
        }
        let permission = Permission::of(text, syntax);
        let upper = row.text.to_ascii_uppercase();
        let refused = permission.refused.filter(|_| !permission.depends_on_values);
        let refused = match row.text == FURTHER_CLASSES {
            true => Some("class beyond the limit of a capture"),
            false => refused,
        };
        ClassFacts {
            role: role(kind, &upper, syntax),
            left_out: refused
                .or_else(|| left_out(kind, &upper, syntax))
                .or_else(|| {
                    names_database(text, syntax, &capture.manifest().schemas)
                        .then_some("names a database")
                }),
            depends_on_values: permission.depends_on_values,
            writes: kind == Kind::Write,
            has_table: Lexer::new(text, syntax).any(|token| {
                let word = token.of(text);
                let mut words = WORDS_OF_TABLES.into_iter();
                words.any(|one| word.eq_ignore_ascii_case(one.as_bytes()))
            }),
        }
    }
}

impl ClassFacts {
    /// True where a replay sends statements of the class.
    pub(crate) fn is_sent(&self) -> bool {
        self.left_out.is_none() && !self.is_silent()
    }

    /// True where a replay never sends them, although it draws their transactions: choices of the default database.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.role, Role::Schema | Role::Reset)
    }
}

fn role(kind: Kind, text: &str, syntax: Syntax) -> Role {
    let begins = |start: &str| text.starts_with(start);
    match kind {
        Kind::Set if begins("DISCARD ALL") || begins("RESET ALL") => Role::Reset,
        Kind::Set if begins("SET TRANSACTION") || begins("SET CONSTRAINTS") => Role::OfTransaction,
        Kind::Set if begins("SET LOCAL") && syntax.is_postgresql => Role::OfTransaction,
        Kind::Set => Role::Setting,
        Kind::Use => Role::Schema,
        Kind::Show => Role::Show,
        Kind::Begin => Role::Begin,
        Kind::Commit | Kind::Rollback => Role::End,
        Kind::Savepoint => Role::Savepoint,
        // Others are refused.
        Kind::Definition => Role::TemporaryTable,
        Kind::Read
        | Kind::Write
        | Kind::Call
        | Kind::Prepare
        | Kind::Execute
        | Kind::Deallocate
        | Kind::Lock
        | Kind::Other => Role::Work,
    }
}

/// Why statements that may run make no sense in another order than that of the capture.
fn left_out(kind: Kind, text: &str, syntax: Syntax) -> Option<&'static str> {
    let locks_session = SESSION_LOCKS.iter().any(|lock| text.contains(lock));
    match kind {
        Kind::Prepare | Kind::Execute | Kind::Deallocate => Some("prepared statement in SQL"),
        Kind::Lock if syntax.is_mysql => Some("LOCK TABLES"),
        Kind::Definition => Some("temporary table"),
        _ if locks_session => Some("lock that outlives its transaction"),
        _ => None,
    }
}

/// True when a statement of MySQL qualifies a table by one of these databases: the tables of a replay are in another one. A name that
/// also stands alone is a table or an alias, whose columns are qualified.
fn names_database(text: &[u8], syntax: Syntax, schemas: &[String]) -> bool {
    if !syntax.is_mysql {
        return false;
    }
    let tokens: Vec<(TokenKind, &[u8])> = Lexer::new(text, syntax)
        .map(|token| (token.kind, token.of(text)))
        .collect();
    let is_dot = |place: Option<usize>| {
        place
            .and_then(|place| tokens.get(place))
            .is_some_and(|(_, bytes)| *bytes == b".")
    };
    let (mut qualifies, mut alone) = (HashSet::new(), HashSet::new());
    for (place, (kind, bytes)) in tokens.iter().enumerate() {
        let name = match kind {
            TokenKind::Word => *bytes,
            TokenKind::Name => bytes.get(1..bytes.len() - 1).unwrap_or_default(),
            _ => continue,
        };
        let is_schema = schemas.iter().any(|schema| schema.as_bytes() == name);
        if !is_schema || is_dot(place.checked_sub(1)) {
            continue;
        }
        match is_dot(Some(place + 1)) {
            true => qualifies.insert(name),
            false => alone.insert(name),
        };
    }
    qualifies.difference(&alone).next().is_some()
}

/// True for a text with a place for a value, such as `$1`.
pub(crate) fn has_parameters(text: &[u8], syntax: Syntax) -> bool {
    Lexer::new(text, syntax).any(|token| token.kind == TokenKind::Parameter)
}

/// The classes of the transactions of a replay.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) names: Vec<String>,
    /// Place in `names` for each class of statements.
    pub(crate) places: Vec<u16>,
}

impl Names {
    /// One class for everything.
    pub(crate) fn one(name: &str, classes: usize) -> Self {
        Names {
            names: vec![name.to_owned()],
            places: vec![0; classes],
        }
    }

    /// Classes from those of the costliest statements: `amounts` has transactions and their time for each class of statements.
    pub(crate) fn of(rows: &[ClassRow], amounts: &[Amount]) -> Self {
        let all = amounts
            .iter()
            .fold(Amount::default(), |sum, one| sum.plus(*one));
        let share = |amount: &Amount| amount.share_of(&all).max(amount.share_of_time(&all));
        let mut large: Vec<usize> = (0..amounts.len().min(rows.len()))
            .filter(|class| share(&amounts[*class]) >= SHARE_MIN)
            .collect();
        // Stable, so that the same capture has the same classes in the same order.
        large.sort_by(|one, other| share(&amounts[*other]).total_cmp(&share(&amounts[*one])));
        large.truncate(NAMES_MAX - 1);
        let mut names: Vec<String> = large.iter().map(|class| name(&rows[*class])).collect();
        let others = names.len() as u16;
        let mut places = vec![others; amounts.len()];
        for (place, class) in large.into_iter().enumerate() {
            places[class] = place as u16;
        }
        let used = amounts.iter().zip(&places);
        if used
            .filter(|(_, place)| **place == others)
            .any(|(amount, _)| amount.count > 0)
        {
            names.push(OTHER.to_owned());
        }
        Names { names, places }
    }
}

/// Identity and text of a class, which has no values.
fn name(row: &ClassRow) -> String {
    let text = visible(&row.text).replace(['\n', '\t'], " ");
    format!("{} {}", id(row), shortened(&text, TEXT_CHARACTERS))
}

/// The digits by which a class is named.
pub(crate) fn id(row: &ClassRow) -> &str {
    row.id.get(..ID_DIGITS).unwrap_or(&row.id)
}
