//! The small language in which the fact tables say how a fact follows from what a server shows.
//!
//! ```text
//! min(innodb_page_cleaners, fact.pool.instances)
//! if(switch(log_bin), sync_binlog, 'no log')
//! first(status.innodb_redo_log_capacity_resized, innodb_redo_log_capacity)
//! ```
//!
//! A name is a global variable; a prefix says where else to look (`status.`, `session.`, `host.`, `fact.` …). An
//! unknown name makes the whole expression unknown, except inside `first` and `known`. The language has no loops and
//! every evaluation ends.

mod parse;

use super::value::Value;

pub use parse::parse;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A number, a word in quotes, `on` or `off`.
    Literal(Value),
    /// Something to be looked up.
    Name(String),
    /// A function and what it is applied to.
    Call(Function, Vec<Expression>),
    /// Two expressions and what joins them.
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// The opposite of a switch.
    Not(Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The first that is known.
    First,
    /// The smallest number.
    Min,
    /// The largest number.
    Max,
    /// The largest whole number that is not larger.
    Floor,
    /// `ON`, 1, `YES` as a switch.
    Switch,
    /// Whether the value is known.
    Known,
    /// `if(condition, then, otherwise)`; without the third it is unknown otherwise.
    If,
    /// `case(value, 'a', for a, 'b', for b, otherwise)`; without the last the value itself.
    Case,
    /// A list as a sorted set.
    Set,
    /// Whether a text contains a word.
    Has,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `and`
    And,
    /// `or`
    Or,
}

/// Evaluates `expression`; `look_up` answers for names.
pub fn evaluate(
    expression: &Expression,
    look_up: &mut dyn FnMut(&str) -> Option<Value>,
) -> Option<Value> {
    match expression {
        Expression::Literal(value) => Some(value.clone()),
        Expression::Name(name) => look_up(name),
        Expression::Not(inner) => Some(Value::Switch(!evaluate(inner, look_up)?.switch()?)),
        Expression::Binary(operator, left, right) => binary(*operator, left, right, look_up),
        Expression::Call(function, arguments) => call(*function, arguments, look_up),
    }
}

/// Every name that the expression mentions.
pub fn names(expression: &Expression) -> Vec<&str> {
    match expression {
        Expression::Literal(_) => Vec::new(),
        Expression::Name(name) => vec![name],
        Expression::Not(inner) => names(inner),
        Expression::Binary(_, left, right) => [names(left), names(right)].concat(),
        Expression::Call(_, arguments) => arguments.iter().flat_map(names).collect(),
    }
}

fn binary(
    operator: Operator,
    left: &Expression,
    right: &Expression,
    look_up: &mut dyn FnMut(&str) -> Option<Value>,
) -> Option<Value> {
    let left = evaluate(left, look_up)?;
    match operator {
        Operator::And if !left.switch()? => return Some(Value::Switch(false)),
        Operator::Or if left.switch()? => return Some(Value::Switch(true)),
        _ => {}
    }
    let right = evaluate(right, look_up)?;
    let number = |of: fn(f64, f64) -> f64| {
        let result = of(left.number()?, right.number()?);
        result.is_finite().then_some(Value::Number(result))
    };
    // Values of different kinds have no order; they are certainly not equal.
    let order = left.order(&right);
    match operator {
        Operator::Add => number(|a, b| a + b),
        Operator::Subtract => number(|a, b| a - b),
        Operator::Multiply => number(|a, b| a * b),
        Operator::Divide => number(|a, b| a / b),
        Operator::Equal => Some(Value::Switch(order.is_some_and(std::cmp::Ordering::is_eq))),
        Operator::Unequal => Some(Value::Switch(!order.is_some_and(std::cmp::Ordering::is_eq))),
        Operator::Less => Some(Value::Switch(order?.is_lt())),
        Operator::AtMost => Some(Value::Switch(order?.is_le())),
        Operator::More => Some(Value::Switch(order?.is_gt())),
        Operator::AtLeast => Some(Value::Switch(order?.is_ge())),
        Operator::And | Operator::Or => Some(Value::Switch(right.switch()?)),
    }
}

fn call(
    function: Function,
    arguments: &[Expression],
    look_up: &mut dyn FnMut(&str) -> Option<Value>,
) -> Option<Value> {
    let (subject, rest) = arguments.split_first()?;
    match function {
        Function::First => arguments
            .iter()
            .find_map(|argument| evaluate(argument, look_up)),
        Function::Known => Some(Value::Switch(evaluate(subject, look_up).is_some())),
        Function::Switch => Some(Value::Switch(evaluate(subject, look_up)?.switch()?)),
        Function::Min | Function::Max => {
            let mut best = evaluate(subject, look_up)?.number()?;
            for argument in rest {
                let next = evaluate(argument, look_up)?.number()?;
                best = if function == Function::Min {
                    best.min(next)
                } else {
                    best.max(next)
                };
            }
            Some(Value::Number(best))
        }
        Function::Floor => {
            let number = evaluate(subject, look_up)?.number()?;
            Some(Value::Number(number.floor()))
        }
        Function::If => {
            let branch = if evaluate(subject, look_up)?.switch()? {
                rest.first()
            } else {
                rest.get(1)
            };
            evaluate(branch?, look_up)
        }
        Function::Case => {
            let subject = evaluate(subject, look_up)?;
            let (pairs, otherwise) = rest.as_chunks::<2>();
            for [when, then] in pairs {
                if evaluate(when, look_up).is_some_and(|when| when.is_same(&subject)) {
                    return evaluate(then, look_up);
                }
            }
            otherwise
                .first()
                .map_or(Some(subject), |otherwise| evaluate(otherwise, look_up))
        }
        Function::Set => {
            let text = evaluate(subject, look_up)?.to_string();
            let mut parts: Vec<&str> = text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect();
            parts.sort_unstable();
            parts.dedup();
            Some(Value::Word(parts.join(",")))
        }
        Function::Has => {
            let text = evaluate(subject, look_up)?.to_string().to_ascii_lowercase();
            let word = evaluate(rest.first()?, look_up)?
                .to_string()
                .to_ascii_lowercase();
            Some(Value::Switch(text.contains(&word)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let expression = parse(text).unwrap();
        let mut look_up = |name: &str| match name {
            "log_bin" => Some(Value::word("ON")),
            "sync_binlog" => Some(Value::Number(1.0)),
            "method" => Some(Value::word("O_DIRECT")),
            "status.lsn" => Some(Value::Number(40.0)),
            "sql_mode" => Some(Value::word("b,a,b")),
            _ => None,
        };
        let found = evaluate(&expression, &mut look_up)
            .map_or("unknown".to_owned(), |value| value.to_string());
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn numbers_are_computed_with_the_usual_precedence() {
        check("1 + 2 * 3", "7");
        check("(1 + 2) * 3 - 4 / 2", "7");
        check("min(status.lsn, 3, 5)", "3");
        check("floor(7 / 2)", "3");
        check("1 / 0", "unknown");
    }

    #[test]
    fn what_is_unknown_spreads_except_through_first_and_known() {
        check("missing + 1", "unknown");
        check("first(missing, 2)", "2");
        check("known(missing)", "off");
        check("if(missing, 1, 2)", "unknown");
        check("min(1, missing)", "unknown");
    }

    #[test]
    fn words_and_switches_are_compared_by_meaning() {
        check("switch(log_bin)", "on");
        check(
            "if(switch(log_bin) and sync_binlog = 1, 'safe', 'unsafe')",
            "safe",
        );
        check(
            "case(method, 'fsync', 'buffered', 'o_direct', 'direct')",
            "direct",
        );
        check("case(method, 'fsync', 1, 9)", "9");
        check("case(sync_binlog, 5, 1)", "1");
        check("not switch(log_bin) or sync_binlog >= 1", "on");
        check("method != 'fsync'", "on");
        check("set(sql_mode)", "a,b");
        check("has(method, 'direct')", "on");
    }

    #[test]
    fn a_short_cut_does_not_ask_for_the_rest() {
        check("off and missing", "off");
        check("on or missing", "on");
    }

    #[test]
    fn every_name_is_found() {
        let expression = parse("if(switch(a), min(b, fact.c), first(status.d, 1)) + e").unwrap();
        assert_eq!(names(&expression), ["a", "b", "fact.c", "status.d", "e"]);
    }
}
