//! Answers of contenders to captured statements, outside of any measured time: some statements of each class are executed on equal
//! data, each in a session with the settings of its captured one and in a transaction that is rolled back.
//!
//! ```text
//! mix ─► questions (statements of each class) ─► ask, contender by contender ─► together (for the record)
//!                       │                         └─ digest (what is kept of an answer)
//!                       └─ plans (the server's EXPLAIN of the same statements)
//! ```

mod ask;
mod digest;
mod plans;
mod questions;

use std::time::Duration;

use dbduel_record::answers::{Answer, Answers, AskedClass, AskedStatement, RefusedSetting};

pub use ask::{Access, ContenderAnswers, ask};
pub use plans::{ContenderPlans, explain, plans_of};
pub use questions::Questions;

/// Statements of a class that are asked at most.
const EXAMPLES_MAX: usize = 4;
/// Classes of statements that are asked at most.
const CLASSES_MAX: usize = 200;
/// Longest time of one statement.
pub const STATEMENT_MAX: Duration = Duration::from_secs(10);
/// Longest time of all statements of one contender, those asked a second time included.
pub const CONTENDER_MAX: Duration = Duration::from_secs(60);

/// What the record keeps of the answers of all contenders, in the plan's order.
#[must_use]
pub fn together(questions: &Questions, contenders: Vec<ContenderAnswers>) -> Answers {
    let classes = questions.classes.iter().enumerate();
    let classes = classes.map(|(place, class)| {
        let examples = class.examples.iter().enumerate();
        let examples = examples.map(|(number, example)| {
            let own = |answers: &[Vec<Answer>]| answers.get(place)?.get(number).cloned();
            let mut asked = AskedStatement {
                position: example.position.clone(),
                bytes: example.bytes,
                answers: Vec::new(),
                first: Vec::new(),
                second: Vec::new(),
            };
            for contender in &contenders {
                let first = own(&contender.first);
                let first = first.unwrap_or_else(|| Answer::Missing(ask::LATE.to_owned()));
                let first = position(&mut asked.answers, first);
                asked.first.push(first);
                let second = own(&contender.second);
                let second = second.map(|answer| position(&mut asked.answers, answer));
                asked.second.push(second);
            }
            asked
        });
        AskedClass {
            id: class.id.clone(),
            text: class.text.clone(),
            statements: class.statements,
            unsettled: class.unsettled.clone(),
            is_ordered: !class.ordering.elements.is_empty(),
            is_limited: class.ordering.has_limit,
            examples: examples.collect(),
        }
    });
    let classes = classes.collect();
    let refused = contenders.into_iter().enumerate();
    let refused = refused.flat_map(|(contender, answers)| {
        let own = answers.refused.into_iter();
        own.map(move |one| RefusedSetting { contender, ..one })
    });
    Answers {
        examples_max: EXAMPLES_MAX as u32,
        contender_ms_max: CONTENDER_MAX.as_millis() as u64,
        statement_ms_max: STATEMENT_MAX.as_millis() as u64,
        statements: questions.statements,
        transactions: questions.transactions,
        classes,
        classes_beyond: questions.classes_beyond,
        refused: refused.collect(),
        because: None,
    }
}

/// Place of an answer among the different ones.
fn position(answers: &mut Vec<Answer>, answer: Answer) -> usize {
    match answers.iter().position(|known| *known == answer) {
        Some(place) => place,
        None => {
            answers.push(answer);
            answers.len() - 1
        }
    }
}

#[cfg(test)]
mod tests;
