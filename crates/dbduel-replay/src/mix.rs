//! What clients draw: the transactions of a capture that a replay runs, as places in its columns.
//!
//! A statement outside of any transaction that asks about the schema counts as one. Nothing of a statement is copied: 20 bytes per
//! transaction.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dbduel_capture::effect::Effect;
use dbduel_capture::import::Permission;
use dbduel_capture::store::Capture;
use dbduel_capture::store::read::{
    SentAs, Session, Transaction, TransactionBegin, TransactionEnd, read_manifest,
};
use dbduel_client::tally::Class;
use dbduel_record::captured::is_trace;
use dbduel_record::plan::{Parameters, Resolved};
use dbduel_record::statement_classes::StatementClass;

use super::classes::{ClassFacts, Names, Role, has_parameters, id};
use super::coverage::{Amount, Coverage};
use super::draws::Draws;
use super::last::LastMade;
use super::statements::StatementClasses;
use super::states::{StateFinder, StateId, States, TOO_MANY};
use super::{CAPTURE, CAPTURE_DIGEST, DRAW};

/// Class of the transactions when clients draw sessions.
const SESSION: &str = "session";

/// The mix of the last capture of this process, which all its contenders share.
static LAST: LastMade<Source, Mix> = LastMade::none();

/// What a mix follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    capture: String,
    digest: String,
    order: Order,
}

/// What is kept of the capture's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// That within transactions, which clients draw.
    Transactions,
    /// That within sessions, which clients draw.
    Sessions,
    /// That within and between sessions: a trace.
    Trace,
}

impl Source {
    fn of(parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        Source {
            capture: resolved.text(CAPTURE).to_owned(),
            digest: resolved.text(CAPTURE_DIGEST).to_owned(),
            order: match resolved.text(DRAW) {
                _ if is_trace(parameters) => Order::Trace,
                "sessions" => Order::Sessions,
                _ => Order::Transactions,
            },
        }
    }
}

/// How a client ends a transaction where none of its statements does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its own statements do.
    Own,
    /// The capture has a statement that commits implicitly.
    Commit,
    /// The session ended.
    Rollback,
}

/// A transaction that clients draw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayTransaction {
    /// Place of its first statement in the order of the capture.
    pub(crate) first: u32,
    /// Its statements.
    pub(crate) count: u32,
    /// The settings of its session before it.
    pub(crate) state: StateId,
    /// Class of its costliest statement, and in the highest bits what follows it.
    packed: u32,
}

impl ReplayTransaction {
    const COMMITS: u32 = 1 << 31;
    const ROLLS_BACK: u32 = 1 << 30;
    const SETS: u32 = 1 << 29;

    fn class(&self) -> usize {
        (self.packed & (Self::SETS - 1)) as usize
    }

    /// How its transaction ends.
    pub(crate) fn ending(&self) -> Ending {
        match self.packed {
            packed if packed & Self::COMMITS != 0 => Ending::Commit,
            packed if packed & Self::ROLLS_BACK != 0 => Ending::Rollback,
            _ => Ending::Own,
        }
    }

    /// True where it sets something for its session.
    pub(crate) fn changes_state(&self) -> bool {
        self.packed & Self::SETS != 0
    }
}

/// The transactions of a capture that clients draw.
#[derive(Debug)]
pub(crate) struct Mix {
    capture: Capture,
    classes: Vec<ClassFacts>,
    states: States,
    transactions: Vec<ReplayTransaction>,
    /// Transactions of each session, where sessions are drawn or run in their order.
    sessions: Option<Vec<Range<u32>>>,
    /// Places of the transactions in the order of the log, where clients draw transactions.
    in_log_order: Vec<u32>,
    draws: Draws,
    names: Names,
    statement_classes: StatementClasses,
    coverage: Coverage,
}

impl Mix {
    /// The mix for these resolved parameters. It is found once per capture and process.
    pub(crate) fn of(parameters: &Parameters) -> Result<Arc<Self>, String> {
        LAST.or_make(Source::of(parameters), || Self::build(parameters))
    }

    /// Finds the transactions.
    pub(crate) fn build(parameters: &Parameters) -> Result<Self, String> {
        let source = Source::of(parameters);
        let path = Path::new(&source.capture);
        let (_, digest) = read_manifest(path).map_err(|error| error.to_string())?;
        if digest != source.digest {
            return Err(format!(
                "capture `{}` cannot be replayed: its manifest now has the BLAKE3 {digest}, but the plan was made for {}; restore that capture, or plan the contest again",
                source.capture, source.digest
            ));
        }
        let capture = Capture::open(path).map_err(|error| error.to_string())?;
        let classes: Vec<ClassFacts> = capture
            .classes()
            .iter()
            .map(|row| ClassFacts::of(&capture, row))
            .collect();
        let mut walk = Walk::new(&capture, &classes, source.order);
        for (_, session) in capture.sessions() {
            walk.session(&session);
        }
        let Walk {
            states,
            transactions,
            sessions,
            amounts,
            coverage,
            ..
        } = walk;
        let states = states.finish();
        if transactions.is_empty() {
            return Err(format!(
                "`{}` has nothing that a replay can run{}: {}",
                source.capture,
                if source.order == Order::Sessions {
                    " as whole sessions; draw transactions"
                } else {
                    ""
                },
                coverage.claim()
            ));
        }
        let names = match source.order {
            Order::Sessions => Names::one(SESSION, classes.len()),
            Order::Transactions | Order::Trace => Names::of(capture.classes(), &amounts),
        };
        let in_log_order = match source.order {
            Order::Transactions => in_log_order(&capture, &transactions),
            Order::Sessions | Order::Trace => Vec::new(),
        };
        let drawn = sessions.as_ref().map_or(in_log_order.len(), Vec::len);
        Ok(Mix {
            draws: Draws::of(drawn),
            in_log_order,
            statement_classes: StatementClasses::of(capture.classes(), &classes),
            classes,
            states,
            transactions,
            sessions,
            names,
            coverage,
            capture,
        })
    }

    /// The capture.
    pub(crate) fn capture(&self) -> &Capture {
        &self.capture
    }

    /// The states of sessions.
    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    /// Names of the classes of transactions.
    pub(crate) fn names(&self) -> &[String] {
        &self.names.names
    }

    /// The classes of single statements.
    pub(crate) fn statement_classes(&self) -> &StatementClasses {
        &self.statement_classes
    }

    /// What the capture says about the classes of single statements.
    pub(crate) fn captured_statements(&self) -> Vec<StatementClass> {
        let classes = &self.statement_classes;
        classes.captured(&self.capture, &self.transactions)
    }

    /// What is replayed and what is left out.
    pub(crate) fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// All transactions, session by session.
    pub(crate) fn all(&self) -> &[ReplayTransaction] {
        &self.transactions
    }

    /// Transactions of each session, as places in [`Mix::all`]; empty where clients draw transactions.
    pub(crate) fn sessions(&self) -> &[Range<u32>] {
        self.sessions.as_deref().unwrap_or_default()
    }

    /// Reads the capture's texts, so that the load finds them in memory.
    pub(crate) fn read_ahead(&self) {
        self.capture.read_ahead();
    }

    /// The order of draws, and how far servers are in it.
    pub(crate) fn draws(&self) -> &Draws {
        &self.draws
    }

    /// The transactions that a draw of this number runs, in order.
    pub(crate) fn drawn(&self, number: u64) -> Range<u32> {
        let number = number as usize;
        let drawn = match &self.sessions {
            Some(sessions) => sessions.get(number).cloned(),
            None => self.in_log_order.get(number).map(|one| *one..*one + 1),
        };
        drawn.unwrap_or(0..0)
    }

    /// The class of drawn transactions.
    pub(crate) fn class(&self, drawn: &Range<u32>) -> Class {
        let first = self.transactions.get(drawn.start as usize);
        let place = first.and_then(|first| self.names.places.get(first.class()));
        Class(place.copied().unwrap_or(0).into())
    }

    /// The place of a statement's class and what is known of it.
    pub(crate) fn facts(&self, statement: usize) -> Option<(u32, ClassFacts)> {
        let class = self.capture.class_place(statement)?;
        Some((class, *self.classes.get(class as usize)?))
    }

    /// Drawn transactions.
    pub(crate) fn transactions(&self, drawn: &Range<u32>) -> &[ReplayTransaction] {
        let drawn = drawn.start as usize..drawn.end as usize;
        self.transactions.get(drawn).unwrap_or_default()
    }

    /// True for a statement that a replay never sends: a choice of the default database.
    pub(crate) fn is_silent(&self, statement: usize) -> bool {
        let class = self.capture.class_place(statement).unwrap_or(u32::MAX);
        let facts = self.classes.get(class as usize);
        facts.is_none_or(ClassFacts::is_silent)
    }

    /// The digits by which `dbduel capture show --class` finds the class of a statement.
    pub(crate) fn class_id(&self, statement: usize) -> &str {
        let class = self.capture.class_place(statement).unwrap_or(u32::MAX);
        self.capture.classes().get(class as usize).map_or("", id)
    }
}

/// Places of transactions in the order in which their first statements are in the log.
fn in_log_order(capture: &Capture, transactions: &[ReplayTransaction]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut places = vec![NONE; capture.statements()];
    for (transaction, place) in transactions.iter().zip(0..) {
        let statement = capture.ordered(transaction.first, 1).next();
        if let Some(own) = statement.and_then(|statement| places.get_mut(statement)) {
            *own = place;
        }
    }
    places.retain(|place| *place != NONE);
    places.shrink_to_fit();
    places
}

/// A walk through the sessions of a capture.
struct Walk<'c> {
    capture: &'c Capture,
    classes: &'c [ClassFacts],
    /// The default database of most statements, where there are several.
    main_schema: Option<u32>,
    states: StateFinder<'c>,
    transactions: Vec<ReplayTransaction>,
    sessions: Option<Vec<Range<u32>>>,
    /// True where a session is replayed only as a whole.
    needs_whole_sessions: bool,
    /// Transactions and their time for each class of statements.
    amounts: Vec<Amount>,
    coverage: Coverage,
    /// Why the remaining transactions of the session are left out.
    session_left_out: Option<&'static str>,
    /// Place of a statement that sets something for the transaction after it.
    upcoming: Option<u32>,
    /// Statements that no session had so far.
    unseen: u32,
}

/// Statements that may become a transaction of the mix.
struct Candidate {
    first: u32,
    count: u32,
    ending: Ending,
    left_out: Option<&'static str>,
}

impl<'c> Walk<'c> {
    fn new(capture: &'c Capture, classes: &'c [ClassFacts], order: Order) -> Self {
        let keeps_sessions = order != Order::Transactions;
        Walk {
            capture,
            classes,
            main_schema: main_schema(capture),
            states: StateFinder::new(capture.syntax()),
            // Memory that is not touched takes none.
            transactions: Vec::with_capacity(capture.statements()),
            sessions: keeps_sessions.then(Vec::new),
            needs_whole_sessions: order == Order::Sessions,
            amounts: vec![Amount::default(); classes.len()],
            coverage: Coverage {
                sessions: keeps_sessions.then_some(0),
                ..Coverage::default()
            },
            session_left_out: None,
            upcoming: None,
            // A capture with more is refused.
            unseen: u32::try_from(capture.statements()).unwrap_or(u32::MAX),
        }
    }

    /// The statements of a session, transaction by transaction.
    fn session(&mut self, session: &Session) {
        self.states.clear();
        self.upcoming = None;
        let is_torn = self.needs_whole_sessions && !session.is_whole;
        self.session_left_out = is_torn.then_some("of a session whose begin is not in the log");
        let first = self.transactions.len() as u32;
        let capture = self.capture;
        let places = (0..session.transactions)
            .map_while(|number| session.first_transaction.checked_add(number));
        let mut transactions = places
            .map_while(|place| capture.transaction(place))
            .peekable();
        // A damaged capture may give the same statements to several sessions.
        let count = session.count.min(self.unseen);
        self.unseen -= count;
        let end = session.first.saturating_add(count);
        let mut place = session.first;
        while place < end {
            while transactions.next_if(|one| one.first < place).is_some() {}
            match transactions.next_if(|one| one.first == place && one.count > 0) {
                Some(transaction) => {
                    let count = transaction.count.min(end - place);
                    self.transaction(&transaction, count);
                    place += count;
                }
                None => {
                    self.outside(place);
                    place += 1;
                }
            }
        }
        let own = first..self.transactions.len() as u32;
        if let Some(sessions) = &mut self.sessions
            && !own.is_empty()
        {
            sessions.push(own);
            self.coverage.sessions = Some(sessions.len() as u64);
        }
    }

    fn transaction(&mut self, transaction: &Transaction, count: u32) {
        let mut candidate = Candidate {
            first: transaction.first,
            count,
            ending: match transaction.end {
                TransactionEnd::Commit | TransactionEnd::Rollback => Ending::Own,
                TransactionEnd::ImplicitCommit => Ending::Commit,
                TransactionEnd::Aborted | TransactionEnd::SessionEnd | TransactionEnd::LogEnd => {
                    Ending::Rollback
                }
            },
            left_out: (!transaction.is_whole()).then_some("torn transaction"),
        };
        if transaction.begin != TransactionBegin::Autocommit {
            let capture = self.capture;
            let effect = |place: u32| {
                let statement = capture.ordered(place, 1).next()?;
                Some(capture.statement(statement)?.effect)
            };
            let last = candidate.first + (count - 1);
            let chains = [Effect::CommitsAndChains, Effect::RollsBackAndChains];
            if effect(last).is_some_and(|effect| chains.contains(&effect)) {
                candidate.ending = Ending::Rollback;
            }
            let is_begun = effect(candidate.first) == Some(Effect::Begins);
            if transaction.begin == TransactionBegin::Explicit && !is_begun {
                candidate.left_out = candidate
                    .left_out
                    .or(Some("transaction begun by AND CHAIN"));
            }
        }
        self.add(&candidate);
    }

    /// A statement outside of any transaction.
    fn outside(&mut self, place: u32) {
        let Some((statement, class, facts)) = self.at(place) else {
            return;
        };
        let objection = match facts.role {
            Role::Setting => self.set(statement, class, &facts),
            Role::OfTransaction => {
                let objection = self.objection(statement, &facts);
                self.upcoming = objection.is_none().then_some(place);
                objection
            }
            Role::Reset => {
                self.states.clear();
                None
            }
            Role::Schema => None,
            Role::Begin => Some("BEGIN that begins no transaction"),
            Role::Savepoint => Some("savepoint outside of a transaction"),
            Role::Show | Role::Work | Role::End | Role::TemporaryTable => {
                return self.add(&Candidate {
                    first: place,
                    count: 1,
                    ending: Ending::Own,
                    left_out: None,
                });
            }
        };
        let amount = self.amount(statement);
        match objection {
            Some(why) => self.leave_out(why, amount),
            None => self.coverage.settings.add(amount),
        }
    }

    /// Adds a transaction, or counts why it is left out.
    fn add(&mut self, candidate: &Candidate) {
        let state = self.states.state();
        let mut left_out = candidate.left_out.or(self.session_left_out);
        let mut all = Amount::default();
        let mut costliest: Option<(u64, u32)> = None;
        let mut first_class = 0;
        let mut sets = false;
        for place in candidate.first..candidate.first.saturating_add(candidate.count) {
            let Some((statement, class, facts)) = self.at(place) else {
                left_out = left_out.or(Some("damaged entry of the capture"));
                continue;
            };
            let amount = self.amount(statement);
            if all.count == 0 {
                first_class = class;
            }
            all.add(amount);
            let objection = match facts.role {
                Role::Setting => {
                    sets = true;
                    self.set(statement, class, &facts)
                }
                Role::Reset => {
                    sets = true;
                    self.states.clear();
                    None
                }
                Role::TemporaryTable => {
                    self.session_left_out = Some("after a temporary table of its session");
                    self.objection(statement, &facts)
                }
                _ => self.objection(statement, &facts),
            };
            left_out = left_out.or(objection);
            let is_work = matches!(facts.role, Role::Work | Role::Show | Role::TemporaryTable);
            let costs_more = costliest.is_none_or(|(cost, _)| amount.duration_ns > cost);
            if is_work && costs_more {
                costliest = Some((amount.duration_ns, class));
            }
        }
        let state = match (left_out, state) {
            (None, Some(state)) => state,
            (why, _) => return self.leave_out(why.unwrap_or(TOO_MANY), all),
        };
        let class = costliest.map_or(first_class, |(_, class)| class);
        self.amounts[class as usize].add(Amount { count: 1, ..all });
        self.coverage.replayed.add(all);
        self.coverage.transactions += 1;
        let upcoming = self.upcoming.filter(|place| place + 1 == candidate.first);
        let before = u32::from(upcoming.is_some());
        let ending = match candidate.ending {
            Ending::Own => 0,
            Ending::Commit => ReplayTransaction::COMMITS,
            Ending::Rollback => ReplayTransaction::ROLLS_BACK,
        };
        self.transactions.push(ReplayTransaction {
            first: candidate.first - before,
            count: candidate.count + before,
            state,
            // A file of classes has far fewer than these bits can count.
            packed: class | ending | if sets { ReplayTransaction::SETS } else { 0 },
        });
    }

    /// The statement at a place of the order, its class, and what is known of the class.
    fn at(&self, place: u32) -> Option<(usize, u32, ClassFacts)> {
        let statement = self.capture.ordered(place, 1).next()?;
        let class = self.capture.class_place(statement)?;
        let facts = self.classes.get(class as usize)?;
        Some((statement, class, *facts))
    }

    fn amount(&self, statement: usize) -> Amount {
        Amount {
            count: 1,
            duration_ns: self.capture.duration_ns(statement).unwrap_or(0),
        }
    }

    fn leave_out(&mut self, why: &'static str, amount: Amount) {
        self.coverage.left_out.entry(why).or_default().add(amount);
    }

    /// Adds a setting to the session's state; returns why it cannot be.
    fn set(&mut self, statement: usize, class: u32, facts: &ClassFacts) -> Option<&'static str> {
        // What a setting that failed would set is not set.
        if self.capture.has_failed(statement) {
            return Some(FAILED);
        }
        if let Some(why) = facts.left_out {
            return Some(why);
        }
        let text = self.capture.text(statement)?;
        self.states.set(class, statement, text).err()
    }

    /// Why a statement cannot be replayed, with the transaction that it is in.
    fn objection(&self, statement: usize, facts: &ClassFacts) -> Option<&'static str> {
        let capture = self.capture;
        if facts.left_out.is_some() {
            return facts.left_out;
        }
        if facts.depends_on_values {
            let text = capture.text(statement).unwrap_or_default();
            let refused = Permission::of(text, capture.syntax()).refused;
            if refused.is_some() {
                return refused;
            }
        }
        if capture.has_failed(statement) {
            return Some(FAILED);
        }
        let schema = self.main_schema.and(capture.schema_place(statement));
        let schemas = &capture.manifest().schemas;
        let name = schema.and_then(|place| schemas.get(place as usize));
        // Sessions without a default database, before their USE, work on no table.
        let is_any = name.is_some_and(String::is_empty) && !facts.has_table;
        if schema.is_some() && schema != self.main_schema && !is_any {
            return Some("of another default database");
        }
        let lacks_values = capture.sent_as(statement) == Some(SentAs::Prepared)
            && capture.parameters(statement).next().is_none()
            && has_parameters(
                capture.text(statement).unwrap_or_default(),
                capture.syntax(),
            );
        lacks_values.then_some("prepared statement without its values in the log")
    }
}

/// Reason of statements that failed when they were captured.
const FAILED: &str = "failed when captured";

/// The default database of most statements; `None` where there is one at most.
fn main_schema(capture: &Capture) -> Option<u32> {
    let schemas = capture.manifest().schemas.len();
    if schemas < 2 {
        return None;
    }
    let mut counts = vec![0_u64; schemas];
    for statement in 0..capture.statements() {
        let place = capture.schema_place(statement);
        if let Some(count) = place.and_then(|place| counts.get_mut(place as usize)) {
            *count += 1;
        }
    }
    let most = (0..schemas).rev().max_by_key(|schema| counts[*schema]);
    most.map(|schema| schema as u32)
}
