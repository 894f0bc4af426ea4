//! Which statements are asked: some of each class, spread over the replay, in the state of their session.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use dbduel_record::plan::Parameters;
use dbduel_sql::answers::{Ordering, ordering, unsettled};
use dbduel_text::visible;

use super::{CLASSES_MAX, EXAMPLES_MAX};
use crate::classes::{Role, id};
use crate::mix::Mix;
use crate::states::StateId;

/// Places of a class that are looked at for each of its statements that is asked: many have the same text.
const LOOKED_AT: u64 = 8;

/// The statements of a capture that contenders are asked.
#[derive(Debug)]
pub struct Questions {
    pub(crate) mix: Arc<Mix>,
    /// The classes with most statements first.
    pub(crate) classes: Vec<Question>,
    pub(crate) classes_beyond: u32,
    /// Transactions of the replay in each state of a session, most first.
    pub(crate) states: Vec<(StateId, u64)>,
    pub(crate) statements: u64,
    pub(crate) transactions: u64,
}

/// A class of statements.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) statements: u64,
    pub(crate) unsettled: Option<String>,
    /// That of its first example: of a class all have the same.
    pub(crate) ordering: Ordering,
    pub(crate) examples: Vec<Example>,
}

/// A statement that is asked.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) statement: usize,
    pub(crate) state: StateId,
    pub(crate) position: String,
    pub(crate) bytes: u64,
}

impl Questions {
    /// The statements of the replay with these resolved parameters.
    ///
    /// # Errors
    /// Why the capture cannot be used.
    pub fn of(parameters: &Parameters) -> Result<Self, String> {
        let mix = Mix::of(parameters)?;
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        each_statement(&mix, |class, _, _| *counts.entry(class).or_default() += 1);
        let mut largest: Vec<(u32, u64)> = counts
            .iter()
            .map(|(class, count)| (*class, *count))
            .collect();
        // Stable: the same capture has the same questions.
        largest.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let beyond = largest.split_off(largest.len().min(CLASSES_MAX));
        let mut examples = find_examples(&mix, &largest);
        let classes = largest.iter().map(|(class, statements)| {
            let own = examples.remove(class).unwrap_or_default();
            question(&mix, *class, *statements, &own)
        });
        Ok(Questions {
            classes: classes.collect(),
            classes_beyond: beyond.len() as u32,
            states: states(&mix),
            statements: counts.values().sum(),
            transactions: mix.all().len() as u64,
            mix,
        })
    }

    /// Statements that are asked.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.classes
            .iter()
            .map(|class| class.examples.len() as u64)
            .sum()
    }
}

/// Calls `visit` with the class of every statement of the replay that works on data or asks, the statement, and the state of its session.
fn each_statement(mix: &Mix, mut visit: impl FnMut(u32, usize, StateId)) {
    for transaction in mix.all() {
        for statement in mix.capture().ordered(transaction.first, transaction.count) {
            match mix.facts(statement) {
                Some((class, facts)) if matches!(facts.role, Role::Work | Role::Show) => {
                    visit(class, statement, transaction.state);
                }
                _ => {}
            }
        }
    }
}

/// The first statements of each class and others spread evenly over its statements, without repetitions.
fn find_examples(mix: &Mix, classes: &[(u32, u64)]) -> BTreeMap<u32, Vec<(usize, StateId)>> {
    let strides: BTreeMap<u32, u64> = classes
        .iter()
        .map(|(class, count)| (*class, count.div_ceil(LOOKED_AT * EXAMPLES_MAX as u64)))
        .collect();
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    let mut found: BTreeMap<u32, Vec<(usize, StateId)>> = BTreeMap::new();
    each_statement(mix, |class, statement, state| {
        let Some(stride) = strides.get(&class) else {
            return;
        };
        let number = seen.entry(class).or_default();
        if number.is_multiple_of(*stride) {
            found.entry(class).or_default().push((statement, state));
        }
        *number += 1;
    });
    for own in found.values_mut() {
        let capture = mix.capture();
        let mut texts = HashSet::new();
        own.retain(|(statement, state)| {
            let values: Vec<Option<&[u8]>> = capture.parameters(*statement).collect();
            texts.insert((capture.text(*statement), values, *state))
        });
        let step = own.len().div_ceil(EXAMPLES_MAX).max(1);
        let mut number = 0;
        own.retain(|_| {
            number += 1;
            (number - 1) % step == 0
        });
    }
    found
}

fn question(mix: &Mix, class: u32, statements: u64, found: &[(usize, StateId)]) -> Question {
    let capture = mix.capture();
    let row = capture.classes().get(class as usize);
    let first = found.first().map_or(&[][..], |(statement, _)| {
        capture.text(*statement).unwrap_or_default()
    });
    let syntax = capture.syntax();
    let examples = found.iter().map(|(statement, state)| Example {
        statement: *statement,
        state: *state,
        position: capture
            .statement(*statement)
            .map_or_else(String::new, |one| capture.manifest().position(one.line)),
        bytes: capture.text(*statement).unwrap_or_default().len() as u64,
    });
    Question {
        id: row.map_or("", id).to_owned(),
        text: row.map_or_else(String::new, |row| {
            visible(&row.text).replace(['\n', '\t'], " ")
        }),
        statements,
        unsettled: unsettled(first, syntax).map(|found| found.phrase()),
        ordering: ordering(first, syntax),
        examples: examples.collect(),
    }
}

fn states(mix: &Mix) -> Vec<(StateId, u64)> {
    let mut counts: BTreeMap<StateId, u64> = BTreeMap::new();
    for transaction in mix.all() {
        *counts.entry(transaction.state).or_default() += 1;
    }
    let mut states: Vec<(StateId, u64)> = counts.into_iter().collect();
    states.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    states
}
