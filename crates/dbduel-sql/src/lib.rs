//! SQL as text: tokens, classes of statements, kinds of statements.
//!
//! Works on bytes and never decodes: a log has the bytes that clients sent, in a character set that it does not name. A
//! lexer and no parser, because a grammar refuses what a server takes, and a statement that is refused here would be
//! missing in a capture.

pub mod answers;
pub mod class;
mod functions;
pub mod kind;
pub mod lexer;
mod settings;

pub use class::{Class, ClassId};
pub use kind::{Kind, Refused, executed, kind_of, replayable};
pub use lexer::{Lexer, Syntax, Token, TokenKind, statements};
