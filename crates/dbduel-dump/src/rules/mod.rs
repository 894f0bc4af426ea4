//! Rules that fit the statements of a dump to a server: what is rewritten, dropped, reported and refused.
//!
//! What may run is a list of kinds of statements that dumps contain. Anything else is refused by name, because a list of what
//! may not run would have gaps.

mod definition;
mod mysql;
mod postgresql;
mod reach;
mod rows;
mod table;

use std::ops::Range;

use dbduel_sql::{Class, Syntax};
use dbduel_text::{shortened, visible};

use crate::{Product, Target};
use definition::Definition;
pub use table::RULES;
pub(crate) use table::{CLIENT_COMMAND, DATABASE, NAMES_OF_DATABASES, RESTRICT, SANDBOX};

/// Characters of an example.
const EXAMPLE_CHARACTERS: usize = 80;
/// Bytes of a statement from which its example is made.
const EXAMPLE_BYTES: usize = 1024;
/// Longest statement other than one that inserts rows, bytes. It is looked at as a whole.
const DEFINITION_BYTES_MAX: usize = 2 << 20;

/// What is done with what a rule finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A part is replaced or removed.
    Rewritten,
    /// The statement is not run.
    Dropped,
    /// It runs as it is, with an effect that differs from the source's.
    Reported,
    /// The load ends.
    Refused,
}

impl Action {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Action::Rewritten => "rewritten",
            Action::Dropped => "dropped",
            Action::Reported => "kept",
            Action::Refused => "refused",
        }
    }
}

/// A rule about statements of dumps.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable name.
    pub name: &'static str,
    /// What it finds, as a noun phrase.
    pub found: &'static str,
    /// Servers that it is for.
    pub targets: &'static str,
    /// What is done.
    pub action: Action,
    /// What replaces it, why, or what to do, as a clause.
    pub reason: &'static str,
}

/// Applications of a rule in one load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The rule.
    pub rule: &'static Rule,
    /// Statements to which it was applied.
    pub count: u64,
    /// Line of the first one, from 1.
    pub line: u64,
    /// The first one, cut, with `?` in place of values.
    pub example: String,
}

impl Applied {
    /// One sentence: what was done, how often, from which line on, why.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Rule {
            name,
            found,
            action,
            reason,
            ..
        } = self.rule;
        let times = match self.count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        format!(
            "{found}: {} {times}, first on line {} (`{}`): {reason} [{name}]",
            action.name(),
            self.line,
            self.example
        )
    }
}

/// A list of applications, one entry per rule.
#[derive(Debug, Default)]
pub(crate) struct Applications(Vec<Applied>);

impl Applications {
    /// Counts an application to the statement that begins on this line.
    pub(crate) fn count(
        &mut self,
        rule: &'static Rule,
        line: u64,
        example: impl FnOnce() -> String,
    ) {
        match self.0.iter_mut().find(|applied| applied.rule == rule) {
            Some(applied) => applied.count += 1,
            None => self.0.push(Applied {
                rule,
                count: 1,
                line,
                example: example(),
            }),
        }
    }

    pub(crate) fn into_list(self) -> Vec<Applied> {
        self.0
    }
}

/// A statement that is not run, which ends the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) rule: &'static str,
    /// What is refused and what to do.
    pub(crate) why: String,
}

impl Refused {
    /// By a rule of the table.
    fn by(rule: &'static Rule) -> Self {
        Self {
            rule: rule.name,
            why: format!("{}: {}", rule.found, rule.reason),
        }
    }

    /// Not on the list of what may run.
    fn unlisted(what: &str) -> Self {
        Self {
            rule: "not-on-the-list",
            why: format!("{what} is not among the statements that are loaded from dumps"),
        }
    }
}

/// What is done with a statement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Rules that apply.
    pub(crate) rules: Vec<&'static Rule>,
    /// Parts of the text and what replaces them, in order.
    pub(crate) edits: Vec<(Range<usize>, Vec<u8>)>,
    /// True for an INSERT.
    pub(crate) brings_rows: bool,
    /// True when it is not run.
    pub(crate) is_dropped: bool,
    /// The database that it names, if it creates or chooses one.
    pub(crate) database: Option<Vec<u8>>,
}

impl Verdict {
    fn dropped(rule: &'static Rule) -> Self {
        Self {
            rules: vec![rule],
            is_dropped: true,
            ..Self::default()
        }
    }

    fn note(&mut self, rule: &'static Rule) {
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    fn replace(&mut self, rule: &'static Rule, range: Range<usize>, by: &[u8]) {
        self.note(rule);
        self.edits.push((range, by.to_vec()));
    }

    /// The statement as it is run; `None` where it is run unchanged.
    pub(crate) fn rewritten(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.edits.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        for (range, by) in &self.edits {
            out.extend_from_slice(&text[at..range.start]);
            out.extend_from_slice(by);
            at = range.end;
        }
        out.extend_from_slice(&text[at..]);
        Some(out)
    }
}

/// What is done with a statement of a dump for a server.
pub(crate) fn judge(text: &[u8], target: &Target) -> Result<Verdict, Refused> {
    if let Some(outcome) = rows::judge(text, target) {
        return outcome;
    }
    if text.len() > DEFINITION_BYTES_MAX {
        return Err(Refused {
            rule: "long",
            why: format!(
                "a statement of {} that inserts no rows; the limit is {}",
                dbduel_text::bytes(text.len() as u64),
                dbduel_text::bytes(DEFINITION_BYTES_MAX as u64)
            ),
        });
    }
    match target.product {
        Product::PostgreSql => postgresql::judge(text, target),
        Product::MySql | Product::MariaDb => mysql::judge(text, target),
    }
}

/// Refuses a statement that does more than change how a table is stored.
pub(crate) fn refuse_other_than_storage(text: &[u8], target: &Target) -> Result<(), Refused> {
    let definition = Definition::of(text, target)?;
    let (object, _) = definition.object(&["UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE", "OFFLINE"]);
    let verb = definition.at(0);
    let is_of_storage = match object.as_str() {
        "INDEX" => verb.is_any(&["CREATE", "DROP"]),
        "TABLE" => verb.is("ALTER"),
        _ => false,
    };
    match is_of_storage || definition.items.is_empty() {
        true => Ok(()),
        false => Err(Refused {
            rule: "ddl",
            why: "only CREATE INDEX, DROP INDEX and ALTER TABLE belong in `ddl`; change anything else in the dump, for all contenders"
                .to_owned(),
        }),
    }
}

/// The beginning of a statement on one line, with `?` in place of values.
pub(crate) fn head(text: &[u8], syntax: Syntax) -> String {
    let class = Class::of(&text[..text.len().min(EXAMPLE_BYTES)], syntax);
    let text = String::from_utf8_lossy(&class.text);
    shortened(&visible(&text), EXAMPLE_CHARACTERS).into_owned()
}
