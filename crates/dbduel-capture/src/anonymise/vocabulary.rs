//! What definitions name and list: it is part of the schema, and stays in data, too.

use dbduel_sql::{Kind, Lexer, Syntax, TokenKind, executed, kind_of};

use super::context::{Context, StatementForm};
use super::literals::Literal;
use super::statement::first_words;
use super::values::Replacer;

/// Words at the beginning of a part of a table's definition that is no column.
const NO_COLUMNS: [&str; 12] = [
    "primary",
    "key",
    "unique",
    "constraint",
    "index",
    "fulltext",
    "foreign",
    "check",
    "spatial",
    "period",
    "exclude",
    "like",
];
/// Words before the name of a table.
const BEFORE_TABLE: [&str; 5] = ["if", "not", "exists", "only", "table"];

/// Has a replacer keep the names of tables and columns in a definition, and the values that its types and conditions list.
pub fn learn(text: &[u8], syntax: Syntax, replacer: &mut Replacer) {
    if kind_of(text, syntax) != Kind::Definition {
        return;
    }
    let mut words = Vec::new();
    first_words(text, syntax, &mut words);
    if StatementForm::of(Kind::Definition, &words) != StatementForm::Table {
        return;
    }
    let mut definition = Definition {
        context: Context::new(StatementForm::Table),
        syntax,
        is_at_table: false,
        is_behind_table: false,
        is_at_column: false,
    };
    definition.tokens(text, true, replacer);
}

struct Definition {
    context: Context,
    syntax: Syntax,
    /// True behind `TABLE`, where its name is.
    is_at_table: bool,
    /// True behind a part of that name.
    is_behind_table: bool,
    /// True at the beginning of a part in the outer parentheses.
    is_at_column: bool,
}

impl Definition {
    fn tokens(&mut self, text: &[u8], opens_comments: bool, replacer: &mut Replacer) {
        for token in Lexer::new(text, self.syntax) {
            let bytes = token.of(text);
            match token.kind {
                TokenKind::Word => self.name(bytes, false, replacer),
                TokenKind::Name => {
                    let inner = bytes.get(1..bytes.len() - 1).unwrap_or_default();
                    self.name(inner, true, replacer);
                }
                TokenKind::String => {
                    if self.context.lists_values()
                        && let Ok(Literal::Text { value, .. }) =
                            Literal::read(bytes, self.syntax, false)
                    {
                        replacer.keep(&value);
                    }
                    self.context.other();
                }
                TokenKind::Executed if opens_comments => {
                    self.tokens(executed(bytes), false, replacer);
                }
                TokenKind::Sign => {
                    self.context.sign(bytes[0]);
                    self.is_at_table = self.is_behind_table && bytes == b".";
                    self.is_behind_table = false;
                    self.is_at_column = matches!(bytes, b"(" | b",") && self.context.depth() == 1;
                }
                TokenKind::Number
                | TokenKind::Parameter
                | TokenKind::Hint
                | TokenKind::Executed
                | TokenKind::Terminator => self.context.other(),
            }
        }
    }

    fn name(&mut self, name: &[u8], is_quoted: bool, replacer: &mut Replacer) {
        let is_in = |words: &[&str]| {
            !is_quoted
                && words
                    .iter()
                    .any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
        };
        let is_table = self.is_at_table && !is_in(&BEFORE_TABLE);
        let is_column = self.is_at_column && !is_in(&NO_COLUMNS);
        if is_table || is_column {
            replacer.keep(name);
        }
        self.is_at_column = false;
        self.is_behind_table = is_table;
        self.is_at_table &= !is_table;
        self.is_at_table |= self.context.depth() == 0 && is_in(&["table"]);
        self.context.word(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymise::KEY_BYTES;

    #[test]
    fn names_and_listed_values_stay() {
        let mut replacer = Replacer::new(&[7; KEY_BYTES]);
        for (sql, syntax) in [
            (
                "CREATE TABLE IF NOT EXISTS `shop`.`orders` (`state` enum('opened','closed') DEFAULT 'annlee', PRIMARY KEY (`number`)) COMMENT='boblee'",
                Syntax::MYSQL,
            ),
            (
                "ALTER TABLE ONLY public.item ADD CONSTRAINT c CHECK ((kind = ANY (ARRAY['small'::text, 'large'::text])))",
                Syntax::POSTGRESQL,
            ),
            (
                "CREATE TYPE mood AS ENUM ('happy', 'sorry')",
                Syntax::POSTGRESQL,
            ),
            ("INSERT INTO orders VALUES ('carlee')", Syntax::MYSQL),
            ("CREATE VIEW v AS SELECT 'danlee'", Syntax::MYSQL),
            (
                "ALTER TABLE public.item OWNER TO erilee",
                Syntax::POSTGRESQL,
            ),
        ] {
            learn(sql.as_bytes(), syntax, &mut replacer);
        }
        let mut replaced = |value: &str| {
            let mut out = Vec::new();
            replacer.value(value.as_bytes(), &mut out);
            out != value.as_bytes()
        };
        for kept in [
            "shop", "orders", "state", "opened", "closed", "public", "item", "small", "large",
            "happy", "sorry",
        ] {
            assert!(!replaced(kept), "{kept}");
        }
        for secret in ["annlee", "boblee", "carlee", "danlee", "erilee", "primary"] {
            assert!(replaced(secret), "{secret}");
        }
    }
}
