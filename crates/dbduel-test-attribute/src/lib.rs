//! Attributes of tests: `#[test]` for a test program with its own harness, which the compiler would otherwise drop there, and
//! `#[needs_program]`.
//!
//! A test program imports it with `#[macro_use] extern crate dbduel_test_attribute`, so that it replaces the
//! built-in attribute in all modules and no test can be left out by a forgotten import.

use std::{env, fs};

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

/// Counts a test as ignored where no program of that name is on the path at compile time, or as PostgreSQL where Debian puts it:
/// a test cannot ignore itself while it runs.
#[proc_macro_attribute]
pub fn needs_program(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let Some(TokenTree::Literal(name)) = arguments.into_iter().next() else {
        return error("`#[needs_program(\"curl\")]` names a program");
    };
    let name = name.to_string();
    if is_there(name.trim_matches('"')) {
        return function;
    }
    let ignored = format!(
        "#[ignore = \"there was no program {} on this machine\"]",
        name.trim_matches('"')
    );
    match ignored.parse::<TokenStream>() {
        Ok(ignored) => ignored.into_iter().chain(function).collect(),
        Err(_) => error("the name of a program has quotes or backslashes"),
    }
}

/// Where Debian puts PostgreSQL, not on the path: one folder for each major version below this one.
const POSTGRESQL_VERSIONS: &str = "/usr/lib/postgresql";

fn is_there(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir(POSTGRESQL_VERSIONS).into_iter().flatten();
    let versions = versions.flatten().map(|version| version.path().join("bin"));
    let mut folders = env::split_paths(&path).chain(versions);
    folders.any(|folder| folder.join(name).is_file())
}

fn error(text: &str) -> TokenStream {
    format!("compile_error!({text:?});")
        .parse()
        .unwrap_or_default()
}
