//! Plans of captured statements, without their values: the same examples of each class that are asked, explained by each contender in
//! sessions with the settings of their captured ones.
//!
//! A server's `EXPLAIN` repeats literals of the statement, so what is kept passes [`without_values`] first; names of tables, accesses
//! and keys stay.

use dbduel_driver::introspection::explain_verb;
use dbduel_driver::{Column, Dialect, QueryError, Row, Sink};
use dbduel_record::statements::{ExplainedStatement, StatementExample};
use dbduel_sql::{Kind, Lexer, Syntax, TokenKind, kind_of};

use super::ask::{Access, Asking, LATE, NO_STATE, Unreached, refusal};
use super::questions::{Example, Question, Questions};

/// Columns of MySQL's and MariaDB's `EXPLAIN` that hold names and words of the server alone.
const NAMES: [&str; 6] = [
    "select_type",
    "table",
    "partitions",
    "type",
    "possible_keys",
    "key",
];

/// The plans of one contender, in the order of the classes and their examples.
#[derive(Debug, Default)]
pub struct ContenderPlans(Vec<Vec<Explained>>);

/// A contender's plan of an example, or why there is none.
#[derive(Debug, Clone, Default)]
struct Explained {
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
    because: Option<String>,
}

/// Has a contender explain the examples of every class that reads or changes rows. Nothing is executed but what an old server's `EXPLAIN`
/// executes of a subquery.
#[must_use]
pub fn explain(questions: &Questions, access: &mut Access<'_>) -> ContenderPlans {
    let mut asking = Asking::new(questions, access);
    let classes = questions.classes.iter();
    let of_class = |question: &Question| {
        let examples = question.examples.iter();
        let explained = examples.map(|example| match asking.plan(example) {
            Ok(explained) => explained,
            Err(why) => Explained {
                because: Some(why),
                ..Explained::default()
            },
        });
        explained.collect()
    };
    ContenderPlans(classes.map(of_class).collect())
}

/// What the record keeps of each contender: a statement per class, the same one of all. It is the first one that most contenders explain
/// with a table, as an answer known to be empty has no plan.
#[must_use]
pub fn plans_of(
    questions: &Questions,
    contenders: &[ContenderPlans],
) -> Vec<Vec<ExplainedStatement>> {
    let chosen: Vec<Option<usize>> = (0..questions.classes.len())
        .map(|place| choose(questions, place, contenders))
        .collect();
    let of_contender = |plans: &ContenderPlans| {
        let places = chosen.iter().enumerate();
        let statements = places.filter_map(|(place, example)| {
            let question = &questions.classes[place];
            let explained = plans.0.get(place)?.get((*example)?)?.clone();
            Some(ExplainedStatement {
                example: StatementExample {
                    class: question.text.clone(),
                    id: Some(question.id.clone()),
                    number: None,
                    text: None,
                },
                columns: explained.columns,
                rows: explained.rows,
                because: explained.because,
            })
        });
        statements.collect()
    };
    contenders.iter().map(of_contender).collect()
}

/// The example of a class whose plan is kept; `None` for a class that servers do not explain.
fn choose(questions: &Questions, place: usize, contenders: &[ContenderPlans]) -> Option<usize> {
    let question = &questions.classes[place];
    let capture = questions.mix.capture();
    let first = capture.text(question.examples.first()?.statement)?;
    if !matches!(kind_of(first, capture.syntax()), Kind::Read | Kind::Write) {
        return None;
    }
    let telling = |example: usize| {
        let plans = contenders.iter();
        let plans = plans.filter_map(|plans| plans.0.get(place)?.get(example));
        plans.filter(|plan| plan.has_table()).count()
    };
    let examples = 0..question.examples.len();
    // Of equals the first one.
    examples.rev().max_by_key(|example| telling(*example))
}

impl Explained {
    /// True for a plan that reads or changes a table.
    fn has_table(&self) -> bool {
        match self.columns.iter().position(|column| column == "table") {
            Some(table) => self.rows.iter().any(|row| {
                let name = row.get(table);
                name.is_some_and(Option::is_some)
            }),
            None => !self.rows.is_empty(),
        }
    }
}

impl Asking<'_, '_, '_> {
    /// The server's plan of an example. The error says why there is none, without the server's text.
    fn plan(&mut self, example: &Example) -> Result<Explained, String> {
        if self.is_over() {
            return Err(LATE.to_owned());
        }
        self.reach(example.state)
            .map_err(|unreached| match unreached {
                Unreached::Refused => NO_STATE.to_owned(),
                Unreached::Lost(why) => why,
            })?;
        let capture = self.questions.mix.capture();
        let syntax = capture.syntax();
        let text = capture.text(example.statement).unwrap_or_default();
        let dialect = match syntax.is_postgresql {
            true => Dialect::PostgreSql,
            false => Dialect::MySql,
        };
        let sql = [explain_verb(dialect).as_bytes(), b" ", text].concat();
        self.begin()?;
        let (outcome, rows) = self.replay(example.statement, &sql, PlanRows::new(syntax));
        let explained = match outcome {
            Ok(_) => Explained {
                columns: rows.columns,
                rows: rows.rows,
                because: None,
            },
            Err(QueryError::Refused { error, .. }) => Explained {
                because: Some(format!("error {}", refusal(&error).name)),
                ..Explained::default()
            },
            Err(error) => return Err(self.give_up(&error)),
        };
        self.rollback()?;
        Ok(explained)
    }
}

/// Takes the rows of an `EXPLAIN`.
struct PlanRows {
    syntax: Syntax,
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

impl PlanRows {
    fn new(syntax: Syntax) -> Self {
        Self {
            syntax,
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }
}

impl Sink for PlanRows {
    fn column(&mut self, column: &Column<'_>) {
        let name = String::from_utf8_lossy(column.name);
        self.columns.push(name.into_owned());
    }

    fn row(&mut self, row: &Row<'_>) {
        let cells = row.values().zip(&self.columns).map(|(value, column)| {
            let value = value.ok()?;
            let bytes = value.as_bytes()?;
            Some(match NAMES.contains(&column.as_str()) {
                true => String::from_utf8_lossy(bytes).into_owned(),
                false => without_values(bytes, self.syntax),
            })
        });
        self.rows.push(cells.collect());
    }
}

/// A text of a plan with `?` in place of every literal. What is between two tokens and no blank is left out: a comment may hold anything.
fn without_values(text: &[u8], syntax: Syntax) -> String {
    let mut kept = Vec::with_capacity(text.len());
    let mut end = 0;
    for token in Lexer::new(text, syntax) {
        let between = text.get(end..token.start).unwrap_or_default();
        match between.iter().all(u8::is_ascii_whitespace) {
            true => kept.extend_from_slice(between),
            false => kept.push(b' '),
        }
        match token.kind {
            TokenKind::String | TokenKind::Number | TokenKind::Hint | TokenKind::Executed => {
                kept.push(b'?');
            }
            TokenKind::Word
            | TokenKind::Name
            | TokenKind::Parameter
            | TokenKind::Sign
            | TokenKind::Terminator => kept.extend_from_slice(token.of(text)),
        }
        end = token.end;
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_keep_names_and_lose_literals() {
        for (syntax, text, expected) in [
            (
                Syntax::POSTGRESQL,
                "        ->  Index Scan using item_pkey on item i",
                "        ->  Index Scan using item_pkey on item i",
            ),
            (
                Syntax::POSTGRESQL,
                "  Filter: ((mail = 'ada@example.org'::text) AND (id = 4711) AND (tags = ANY ('{a,b}'::text[])))",
                "  Filter: ((mail = ?::text) AND (id = ?) AND (tags = ANY (?::text[])))",
            ),
            (
                Syntax::POSTGRESQL,
                "  Filter: (\"Secret Name\" = E'it\\\\''s')",
                "  Filter: (\"Secret Name\" = ?)",
            ),
            (
                Syntax::MYSQL,
                "Using where; Using index",
                "Using where; Using index",
            ),
            (
                Syntax::MYSQL,
                "-> Filter: (t.mail = 'ada')  (cost=0.35 rows=1)",
                "-> Filter: (t.mail = ?)  (cost=? rows=?)",
            ),
            (Syntax::MYSQL, "x = \"ada\" /* ada */ and y", "x = ? and y"),
        ] {
            assert_eq!(without_values(text.as_bytes(), syntax), expected);
        }
    }
}
