//! Hints for optimisers: they choose plans and are part of a statement's class, so they stay where they have nothing else in them.

use dbduel_sql::{Lexer, Syntax, TokenKind};

use super::statement::{Dropped, HINT, NOT_CLOSED, SIGNS};

/// Hints for optimisers: of MySQL, and of pg_hint_plan.
const HINTS: [&str; 48] = [
    "bka",
    "no_bka",
    "bnl",
    "no_bnl",
    "derived_condition_pushdown",
    "no_derived_condition_pushdown",
    "dupsweedout",
    "group_index",
    "no_group_index",
    "hash_join",
    "no_hash_join",
    "index",
    "no_index",
    "index_merge",
    "no_index_merge",
    "join_fixed_order",
    "join_index",
    "no_join_index",
    "join_order",
    "join_prefix",
    "join_suffix",
    "max_execution_time",
    "merge",
    "no_merge",
    "mrr",
    "no_mrr",
    "no_icp",
    "no_range_optimization",
    "order_index",
    "no_order_index",
    "qb_name",
    "resource_group",
    "semijoin",
    "no_semijoin",
    "skip_scan",
    "no_skip_scan",
    "set_var",
    "subquery",
    "seqscan",
    "noseqscan",
    "indexscan",
    "indexonlyscan",
    "bitmapscan",
    "nestloop",
    "hashjoin",
    "mergejoin",
    "leading",
    "parallel",
];

/// Appends a hint, which is part of a class, if it is one of an optimiser and has no text in it.
pub(super) fn hint(comment: &[u8], syntax: Syntax, out: &mut Vec<u8>) -> Result<(), Dropped> {
    let inner = comment
        .strip_prefix(b"/*+")
        .and_then(|inner| inner.strip_suffix(b"*/"))
        .ok_or(NOT_CLOSED)?;
    let mut tokens = Lexer::new(inner, syntax);
    let first = tokens
        .next()
        .map(|token| token.of(inner).to_ascii_lowercase());
    let is_known = first.is_some_and(|first| HINTS.iter().any(|hint| first == hint.as_bytes()));
    let is_plain = Lexer::new(inner, syntax).all(|token| match token.kind {
        TokenKind::Word | TokenKind::Name => true,
        TokenKind::Number => token.end - token.start <= 9,
        TokenKind::Sign => SIGNS.contains(&inner[token.start]),
        TokenKind::String
        | TokenKind::Parameter
        | TokenKind::Hint
        | TokenKind::Executed
        | TokenKind::Terminator => false,
    });
    match is_known && is_plain {
        true => {
            out.extend_from_slice(comment);
            Ok(())
        }
        false => Err(HINT),
    }
}
