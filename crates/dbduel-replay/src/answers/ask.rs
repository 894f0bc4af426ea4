//! Asks one contender: its sessions' settings first, then the statements, then the statements again in other sessions as a control.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_capture::store::read::SentAs;
use dbduel_driver::introspection::{beyond_rollback, end_session};
use dbduel_driver::{Connection, Dialect, QueryError, ServerError, Sink, Summary};
use dbduel_record::answers::{Answer, Refusal, RefusedSetting, Rows};
use dbduel_sql::{Kind, Lexer, TokenKind, kind_of};

use super::STATEMENT_MAX;
use super::digest::{Digester, OrderColumns, with_order_columns};
use super::questions::{Example, Question, Questions};
use crate::classes::id;
use crate::states::{INITIAL, StateId};

/// Why a statement was not asked any more.
pub(crate) const LATE: &str = "the time for all statements was over";
/// Why a statement was not asked: its transactions fail.
pub(super) const NO_STATE: &str = "a setting of its session was refused";
/// Why a write was not asked.
const BEYOND_ROLLBACK: &str = "a rollback would not restore what it changes";

/// How a contender is reached.
pub struct Access<'a> {
    /// Logs in to the account of the load, with a session as the load begins it. The error is a phrase.
    pub connect: &'a mut dyn FnMut() -> Result<Connection, String>,
    /// True when no further statement may be asked.
    pub is_over: &'a mut dyn FnMut() -> bool,
    /// Key of the digests, the same for all contenders, and for no other record.
    pub key: [u8; 32],
}

/// The answers of one contender, in the order of the classes and their examples.
#[derive(Debug, Default)]
pub struct ContenderAnswers {
    pub(crate) first: Vec<Vec<Answer>>,
    /// Shorter where the time was over.
    pub(crate) second: Vec<Vec<Answer>>,
    pub(crate) refused: Vec<RefusedSetting>,
}

/// Asks a contender everything.
#[must_use]
pub fn ask(questions: &Questions, access: &mut Access<'_>) -> ContenderAnswers {
    let mut asking = Asking::new(questions, access);
    asking.find_refused();
    asking.find_beyond_rollback();
    let first = asking.all();
    asking.connection = None;
    let second = match asking.is_over() {
        true => Vec::new(),
        false => asking.all(),
    };
    let refused = asking.refused_settings();
    ContenderAnswers {
        first,
        second,
        refused,
    }
}

/// The present session with a contender, and what is known of its server.
pub(super) struct Asking<'q, 'a, 'b> {
    pub(super) questions: &'q Questions,
    access: &'a mut Access<'b>,
    connection: Option<Connection>,
    /// Settings of the connection; `None` where they are unknown.
    state: Option<StateId>,
    /// Settings that the server refused, by place.
    refused: BTreeMap<u32, Refusal>,
    /// Names, in lower case, of tables that a rollback does not restore.
    kept: BTreeSet<Vec<u8>>,
    /// True where views or triggers may stand for such a table.
    is_kept_hidden: bool,
    /// Why no session could be opened: no further one is tried.
    lost: Option<String>,
}

/// Why a session has not the settings that a statement needs.
pub(super) enum Unreached {
    Refused,
    Lost(String),
}

impl<'q, 'a, 'b> Asking<'q, 'a, 'b> {
    pub(super) fn new(questions: &'q Questions, access: &'a mut Access<'b>) -> Self {
        Asking {
            questions,
            access,
            connection: None,
            state: None,
            refused: BTreeMap::new(),
            kept: BTreeSet::new(),
            is_kept_hidden: false,
            lost: None,
        }
    }
}

impl Asking<'_, '_, '_> {
    pub(super) fn is_over(&mut self) -> bool {
        (self.access.is_over)()
    }

    /// A new session.
    fn connect(&mut self) -> Result<&mut Connection, String> {
        self.connection = None;
        self.state = None;
        if let Some(why) = &self.lost {
            return Err(why.clone());
        }
        match (self.access.connect)() {
            Ok(connection) => {
                self.state = Some(INITIAL);
                Ok(self.connection.insert(connection))
            }
            Err(why) => {
                self.lost = Some(why.clone());
                Err(why)
            }
        }
    }

    /// Sends every setting of every state once, most used states first; what a state sets after a refused one is asked, too.
    fn find_refused(&mut self) {
        let questions = self.questions;
        let states = questions.mix.states();
        let mut asked: BTreeSet<u32> = BTreeSet::new();
        for (state, _) in &questions.states {
            let settings = states.change(Some(INITIAL), *state).settings;
            if settings.iter().all(|one| asked.contains(one)) {
                continue;
            }
            if self.is_over() || self.connect().is_err() {
                return;
            }
            for setting in settings {
                asked.insert(*setting);
                let Some(statement) = states.statement(*setting) else {
                    continue;
                };
                match self.send(statement) {
                    Ok(()) => {}
                    Err(QueryError::Refused { error, .. }) => {
                        self.refused.insert(*setting, refusal(&error));
                    }
                    Err(_) => break,
                }
            }
        }
        self.connection = None;
    }

    fn find_beyond_rollback(&mut self) {
        let Ok(connection) = self.connect() else {
            return;
        };
        let Some(query) = beyond_rollback(connection.dialect()) else {
            return;
        };
        let Ok(found) = connection.query(query) else {
            // Not known: no write is safe.
            self.is_kept_hidden = true;
            return;
        };
        let mut others = 0;
        for row in 0..found.rows.len() {
            let name = found.text(row, 0).unwrap_or_default();
            match found.text(row, 1).as_deref() {
                Some("table") => {
                    self.kept.insert(name.to_ascii_lowercase().into_bytes());
                }
                _ => others += 1,
            }
        }
        self.is_kept_hidden = others > 0 && !self.kept.is_empty();
    }

    fn all(&mut self) -> Vec<Vec<Answer>> {
        let classes = self.questions.classes.iter();
        let of_class = |question: &Question| {
            let examples = question.examples.iter();
            let answers = examples.map(|example| self.answer(question, example));
            answers.collect()
        };
        classes.map(of_class).collect()
    }

    fn answer(&mut self, question: &Question, example: &Example) -> Answer {
        let missing = |why: &str| Answer::Missing(why.to_owned());
        if self.is_over() {
            return missing(LATE);
        }
        let capture = self.questions.mix.capture();
        let text = capture.text(example.statement).unwrap_or_default();
        let kind = kind_of(text, capture.syntax());
        if !matches!(kind, Kind::Read | Kind::Show) && self.is_beyond_rollback(text) {
            return missing(BEYOND_ROLLBACK);
        }
        match self.reach(example.state) {
            Ok(()) => {}
            Err(Unreached::Refused) => return missing(NO_STATE),
            Err(Unreached::Lost(why)) => return missing(&why),
        }
        let answer = self.in_transaction(question, example, kind == Kind::Read);
        answer.unwrap_or_else(Answer::Missing)
    }

    /// True for a write that may change a table which a rollback does not restore.
    fn is_beyond_rollback(&self, text: &[u8]) -> bool {
        let syntax = self.questions.mix.capture().syntax();
        let mut tokens = Lexer::new(text, syntax);
        self.is_kept_hidden
            || (!self.kept.is_empty()
                && tokens.any(|token| {
                    let name = token.of(text).to_ascii_lowercase();
                    let name = match token.kind {
                        TokenKind::Word => name.as_slice(),
                        TokenKind::Name => name.get(1..name.len() - 1).unwrap_or_default(),
                        _ => return false,
                    };
                    self.kept.contains(name)
                }))
    }

    /// Gives the session the settings of a captured one; a session that must lose settings is a new one.
    pub(super) fn reach(&mut self, state: StateId) -> Result<(), Unreached> {
        let states = self.questions.mix.states();
        let all = states.change(Some(INITIAL), state).settings;
        if all.iter().any(|setting| self.refused.contains_key(setting)) {
            return Err(Unreached::Refused);
        }
        let is_usable = self.connection.as_ref().is_some_and(|own| !own.is_broken());
        if !is_usable || states.change(self.state, state).resets {
            self.connect().map_err(Unreached::Lost)?;
        }
        let settings = states.change(self.state, state).settings;
        self.state = None;
        for setting in settings {
            let Some(statement) = states.statement(*setting) else {
                continue;
            };
            match self.send(statement) {
                Ok(()) => {}
                Err(QueryError::Refused { error, .. }) => {
                    self.refused.insert(*setting, refusal(&error));
                    return Err(Unreached::Refused);
                }
                Err(error) => return Err(Unreached::Lost(self.give_up(&error))),
            }
        }
        self.state = Some(state);
        Ok(())
    }

    /// The answer to a statement whose effects are rolled back.
    fn in_transaction(
        &mut self,
        question: &Question,
        example: &Example,
        is_read: bool,
    ) -> Result<Answer, String> {
        let key = self.access.key;
        let elements = &question.ordering.elements;
        self.begin()?;
        let first = Digester::new(&key, self.is_postgresql(), OrderColumns::Named(elements));
        let capture = self.questions.mix.capture();
        let text = capture.text(example.statement).unwrap_or_default();
        let (outcome, first) = self.replay(example.statement, text, first);
        let answer = match outcome {
            Ok(summary) => {
                let mut keys = first.order_keys().filter(|_| !elements.is_empty());
                if keys.is_none() && is_read {
                    keys = self.order_keys(question, example.statement, &first.names)?;
                }
                match first.finish(&summary) {
                    Some(rows) => Answer::Done(Box::new(Rows { keys, ..rows })),
                    None => Answer::Missing("an answer that cannot be read".to_owned()),
                }
            }
            Err(QueryError::Refused { error, .. }) => Answer::Refused(refusal(&error)),
            Err(error) => return Err(self.give_up(&error)),
        };
        self.rollback()?;
        Ok(answer)
    }

    /// Digest of what orders the rows, from the statement with these columns added. `None` where the server refuses that.
    fn order_keys(
        &mut self,
        question: &Question,
        statement: usize,
        names: &[Vec<u8>],
    ) -> Result<Option<String>, String> {
        let capture = self.questions.mix.capture();
        let text = capture.text(statement).unwrap_or_default();
        // That of this statement: positions differ within a class.
        let ordering = dbduel_sql::answers::ordering(text, capture.syntax());
        let elements = &ordering.elements;
        let longer = with_order_columns(text, elements, ordering.columns_end, names);
        let Some(longer) = longer.filter(|_| !question.ordering.elements.is_empty()) else {
            return Ok(None);
        };
        let key = self.access.key;
        let order = OrderColumns::Added(elements, names.len());
        let digester = Digester::new(&key, self.is_postgresql(), order);
        match self.replay(statement, &longer, digester) {
            (Ok(_), digester) => Ok(digester.order_keys()),
            (Err(QueryError::Refused { .. }), _) => Ok(None),
            (Err(error), _) => Err(self.give_up(&error)),
        }
    }

    fn is_postgresql(&self) -> bool {
        self.questions.mix.capture().syntax().is_postgresql
    }

    /// Sends a statement as it was captured and skips its rows.
    fn send(&mut self, statement: usize) -> Result<(), QueryError> {
        let key = self.access.key;
        let digester = Digester::new(&key, self.is_postgresql(), OrderColumns::Named(&[]));
        let capture = self.questions.mix.capture();
        let text = capture.text(statement).unwrap_or_default();
        self.replay(statement, text, digester).0.map(drop)
    }

    /// Sends a text with the values of a statement, and hands the rows to `sink`.
    pub(super) fn replay<S: Sink>(
        &mut self,
        statement: usize,
        text: &[u8],
        mut sink: S,
    ) -> (Result<Summary, QueryError>, S) {
        let capture = self.questions.mix.capture();
        let Some(connection) = &mut self.connection else {
            let source = std::io::Error::from(std::io::ErrorKind::NotConnected);
            let sql = String::new();
            return (Err(QueryError::Broken { sql, source }), sink);
        };
        let is_prepared = capture.sent_as(statement) == Some(SentAs::Prepared);
        let values: Option<Vec<Option<&[u8]>>> = (is_prepared
            && connection.dialect() == Dialect::PostgreSql)
            .then(|| capture.parameters(statement).collect());
        let outcome = connection.replay_into(text, values.as_deref(), &mut sink);
        (outcome, sink)
    }

    /// Begins a transaction.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        self.execute(Dialect::begin)
    }

    /// Takes back what the transaction changed.
    pub(super) fn rollback(&mut self) -> Result<(), String> {
        self.execute(|_, _| "ROLLBACK")
    }

    fn execute(&mut self, sql: impl FnOnce(Dialect, bool) -> &'static str) -> Result<(), String> {
        let Some(connection) = &mut self.connection else {
            return Err("no connection".to_owned());
        };
        let sql = sql(connection.dialect(), true);
        let outcome = connection.execute(sql).map(drop);
        outcome.map_err(|error| self.give_up(&error))
    }

    /// Leaves a session that gave no answer, and ends it on the server. Returns why there is none, without the server's text.
    pub(super) fn give_up(&mut self, error: &QueryError) -> String {
        let why = match error {
            QueryError::Refused { error, .. } => {
                // Its transaction must not be committed by the next one.
                self.connection = None;
                return format!("error {} outside of the statement", error.name());
            }
            QueryError::Broken { source, .. } if source.kind() == std::io::ErrorKind::TimedOut => {
                format!("no answer within {} s", STATEMENT_MAX.as_secs())
            }
            QueryError::Broken { .. }
            | QueryError::Protocol { .. }
            | QueryError::TooMuch { .. }
            | QueryError::Values { .. }
            | QueryError::Content { .. } => "the connection was lost".to_owned(),
        };
        let left = self.connection.take();
        if let Some(left) = left
            && let Some(end) = end_session(left.dialect(), left.id())
            && let Ok(connection) = self.connect()
        {
            // It may have ended meanwhile.
            let _ = connection.execute(&end);
        }
        why
    }

    /// The refused settings by class and error, with the transactions that need one.
    fn refused_settings(&self) -> Vec<RefusedSetting> {
        let mix = &self.questions.mix;
        let mut groups: BTreeMap<(u32, &Refusal), BTreeSet<u32>> = BTreeMap::new();
        for (setting, refusal) in &self.refused {
            let statement = mix.states().statement(*setting);
            if let Some((class, _)) = statement.and_then(|statement| mix.facts(statement)) {
                groups.entry((class, refusal)).or_default().insert(*setting);
            }
        }
        let groups = groups.into_iter().map(|((class, refusal), settings)| {
            let states = self.questions.states.iter();
            let needs = |state: StateId| {
                let own = mix.states().change(Some(INITIAL), state).settings;
                own.iter().any(|setting| settings.contains(setting))
            };
            let transactions = states.filter(|(state, _)| needs(*state));
            let capture = mix.capture();
            let row = capture.classes().get(class as usize);
            let first = settings
                .first()
                .and_then(|setting| mix.states().statement(*setting));
            let line = first.and_then(|first| Some(capture.statement(first)?.line));
            RefusedSetting {
                contender: 0,
                id: row.map_or("", id).to_owned(),
                text: row.map_or_else(String::new, |row| {
                    dbduel_text::visible(&row.text).into_owned()
                }),
                position: line.map_or_else(String::new, |line| capture.manifest().position(line)),
                refusal: refusal.clone(),
                settings: settings.len() as u64,
                transactions: transactions.map(|(_, count)| count).sum(),
            }
        });
        groups.collect()
    }
}

pub(super) fn refusal(error: &ServerError) -> Refusal {
    Refusal { name: error.name() }
}
