//! From the text of an expression to its tree.

use super::{Expression, Function, Operator};
use crate::value::Value;

/// Expressions nested deeper than this are refused.
const DEPTH_MAX: usize = 40;

/// Parses an expression.
///
/// # Errors
/// What is wrong and at which character.
pub fn parse(text: &str) -> Result<Expression, String> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
    };
    let expression = parser.either()?;
    match parser.tokens.get(parser.at) {
        None => Ok(expression),
        Some(token) => Err(format!("`{text}`: {token:?} is more than expected")),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Quoted(String),
    Name(String),
    Sign(&'static str),
}

const SIGNS: &[&str] = &[
    "!=", "<=", ">=", "+", "-", "*", "/", "=", "<", ">", "(", ")", ",",
];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '\'' {
            let end = rest[1..]
                .find('\'')
                .ok_or_else(|| format!("`{text}`: a quote is not closed"))?;
            tokens.push(Token::Quoted(rest[1..=end].to_owned()));
            end + 2
        } else if first.is_ascii_digit() {
            let end = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(rest.len());
            let number = rest[..end]
                .parse()
                .map_err(|_| format!("`{text}`: `{}` is not a number", &rest[..end]))?;
            tokens.push(Token::Number(number));
            end
        } else if first.is_ascii_lowercase() {
            let in_name =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
            let end = rest.find(|c| !in_name(c)).unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..end].to_owned()));
            end
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            sign.len()
        } else {
            return Err(format!("`{text}`: `{first}` has no meaning here"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn take(&mut self, token: &Token) -> bool {
        let is_next = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn take_name(&mut self, name: &str) -> bool {
        self.take(&Token::Name(name.to_owned()))
    }

    fn take_sign(&mut self, signs: &[(&'static str, Operator)]) -> Option<Operator> {
        signs
            .iter()
            .find(|(sign, _)| self.take(&Token::Sign(sign)))
            .map(|(_, operator)| *operator)
    }

    fn either(&mut self) -> Result<Expression, String> {
        let mut left = self.both()?;
        while self.take_name("or") {
            left = Expression::Binary(Operator::Or, Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression, String> {
        let mut left = self.comparison()?;
        while self.take_name("and") {
            left = Expression::Binary(Operator::And, Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        const SIGNS: &[(&str, Operator)] = &[
            ("=", Operator::Equal),
            ("!=", Operator::Unequal),
            ("<", Operator::Less),
            ("<=", Operator::AtMost),
            (">", Operator::More),
            (">=", Operator::AtLeast),
        ];
        let left = self.sum()?;
        match self.take_sign(SIGNS) {
            Some(operator) => Ok(Expression::Binary(
                operator,
                Box::new(left),
                Box::new(self.sum()?),
            )),
            None => Ok(left),
        }
    }

    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        while let Some(operator) =
            self.take_sign(&[("+", Operator::Add), ("-", Operator::Subtract)])
        {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.primary()?;
        while let Some(operator) =
            self.take_sign(&[("*", Operator::Multiply), ("/", Operator::Divide)])
        {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.primary()?));
        }
        Ok(left)
    }

    fn primary(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("nested deeper than {DEPTH_MAX}"));
        }
        let token = self
            .tokens
            .get(self.at)
            .cloned()
            .ok_or("something is missing at the end")?;
        self.at += 1;
        let expression = match token {
            Token::Number(number) => Expression::Literal(Value::Number(number)),
            Token::Quoted(word) => Expression::Literal(Value::Word(word)),
            Token::Sign("(") => {
                let inner = self.either()?;
                self.close()?;
                inner
            }
            Token::Sign(sign) => return Err(format!("`{sign}` stands where a value is expected")),
            Token::Name(name) => self.name(name)?,
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn name(&mut self, name: String) -> Result<Expression, String> {
        match name.as_str() {
            "not" => return Ok(Expression::Not(Box::new(self.primary()?))),
            "on" => return Ok(Expression::Literal(Value::Switch(true))),
            "off" => return Ok(Expression::Literal(Value::Switch(false))),
            _ => {}
        }
        if !self.take(&Token::Sign("(")) {
            return Ok(Expression::Name(name));
        }
        let function = function(&name)?;
        let mut arguments = vec![self.either()?];
        while self.take(&Token::Sign(",")) {
            arguments.push(self.either()?);
        }
        self.close()?;
        Ok(Expression::Call(function, arguments))
    }

    fn close(&mut self) -> Result<(), String> {
        if self.take(&Token::Sign(")")) {
            Ok(())
        } else {
            Err("a bracket is not closed".to_owned())
        }
    }
}

fn function(name: &str) -> Result<Function, String> {
    Ok(match name {
        "first" => Function::First,
        "min" => Function::Min,
        "max" => Function::Max,
        "floor" => Function::Floor,
        "switch" => Function::Switch,
        "known" => Function::Known,
        "if" => Function::If,
        "case" => Function::Case,
        "set" => Function::Set,
        "has" => Function::Has,
        _ => return Err(format!("there is no function `{name}`")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_expressions_are_errors() {
        let deep = "(".repeat(100);
        for text in [
            "", "1 +", "(1", "f(1)", "'open", "1 2", "A", "min()", "1.2.3", ")", &deep,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
