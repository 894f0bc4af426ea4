//! The attribute `#[test]` for a test program with its own harness, which the compiler would otherwise drop there.
//!
//! A test program imports it with `#[macro_use] extern crate dbduel_test_attribute`, so that it replaces the
//! built-in attribute in all modules and no test can be left out by a forgotten import.

use proc_macro::{TokenStream, TokenTree};

/// Keeps the function and passes its name, with the attribute's arguments before it, to `case!` of the test program.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens = function.clone().into_iter();
    let is_fn =
        |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn");
    let name = match tokens.by_ref().find(is_fn).and_then(|_| tokens.next()) {
        Some(TokenTree::Ident(name)) => name.to_string(),
        _ => return error("`#[test]` stands before a function"),
    };
    let registration = format!("crate::suite::harness::case!({arguments}; {name});");
    match registration.parse::<TokenStream>() {
        Ok(registration) => function.into_iter().chain(registration).collect(),
        Err(_) => error("the arguments of `#[test]` cannot be read"),
    }
}

fn error(text: &str) -> TokenStream {
    format!("compile_error!({text:?});")
        .parse()
        .unwrap_or_default()
}
