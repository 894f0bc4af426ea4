//! Statements of dumps of PostgreSQL.

use dbduel_sql::{Lexer, Syntax, TokenKind};

use super::definition::{Definition, Item};
use super::mysql::unlisted;
use super::reach::reaches_out;
use super::table::{
    ACCOUNTS, DATABASE, EVENT_TRIGGER, EXTENSION, EXTENSION_COMMENT, EXTENSION_OLD, LANGUAGE,
    LARGE_OBJECTS, NULLS_NOT_DISTINCT, OWNER, REPLICATION, ROW_SECURITY, SCHEMA_PUBLIC,
    SECURITY_INVOKER, SERVER_FILE, SETTING, SQL_BODY, STATISTICS, STRINGS, TABLESPACE,
};
use super::{Refused, Verdict};
use crate::{Product, Target};

/// Words between a verb and the kind of object.
const MODIFIERS: [&str; 9] = [
    "OR",
    "REPLACE",
    "UNIQUE",
    "UNLOGGED",
    "TEMP",
    "TEMPORARY",
    "RECURSIVE",
    "CONSTRAINT",
    "LOCAL",
];
/// Settings of a session that dumps set, and the first version that has them.
const SETTINGS: [(&str, u32, u32); 21] = [
    ("STATEMENT_TIMEOUT", 0, 0),
    ("LOCK_TIMEOUT", 9, 3),
    ("IDLE_IN_TRANSACTION_SESSION_TIMEOUT", 9, 6),
    ("TRANSACTION_TIMEOUT", 17, 0),
    ("CLIENT_ENCODING", 0, 0),
    ("STANDARD_CONFORMING_STRINGS", 0, 0),
    ("ESCAPE_STRING_WARNING", 0, 0),
    ("CHECK_FUNCTION_BODIES", 0, 0),
    ("XMLOPTION", 0, 0),
    ("CLIENT_MIN_MESSAGES", 0, 0),
    ("ROW_SECURITY", 9, 5),
    ("DEFAULT_TABLESPACE", 0, 0),
    ("DEFAULT_TABLE_ACCESS_METHOD", 12, 0),
    ("DEFAULT_TOAST_COMPRESSION", 14, 0),
    ("DEFAULT_WITH_OIDS", 0, 0),
    ("SEARCH_PATH", 0, 0),
    ("EXTRA_FLOAT_DIGITS", 0, 0),
    ("DATESTYLE", 0, 0),
    ("INTERVALSTYLE", 0, 0),
    ("BYTEA_OUTPUT", 0, 0),
    ("QUOTE_ALL_IDENTIFIERS", 0, 0),
];
/// Extensions of contrib that PostgreSQL marks as trusted, and its own language.
const TRUSTED: [&str; 22] = [
    "plpgsql",
    "bool_plperl",
    "btree_gin",
    "btree_gist",
    "citext",
    "cube",
    "dict_int",
    "fuzzystrmatch",
    "hstore",
    "intarray",
    "isn",
    "lo",
    "ltree",
    "pg_trgm",
    "pgcrypto",
    "seg",
    "tablefunc",
    "tcn",
    "tsm_system_rows",
    "tsm_system_time",
    "unaccent",
    "uuid-ossp",
];

/// What is done with a statement that brings no rows.
pub fn judge(text: &[u8], target: &Target) -> Result<Verdict, Refused> {
    let definition = Definition::of(text, target)?;
    let all = &definition;
    let verb = String::from_utf8_lossy(all.at(0).text).to_ascii_uppercase();
    match verb.as_str() {
        "SET" => set(all, target),
        "SELECT" => select(all),
        "CREATE" | "ALTER" | "DROP" => define(all, target),
        "COMMENT" if all.at(1).is("ON") => comment(all),
        "GRANT" | "REVOKE" => Ok(Verdict::dropped(&ACCOUNTS)),
        "REFRESH" if all.has_at(1, &["MATERIALIZED", "VIEW"]) => Ok(Verdict::default()),
        "BEGIN" | "COMMIT" => Ok(Verdict::default()),
        "START" if all.at(1).is("TRANSACTION") => Ok(Verdict::default()),
        _ => Err(unlisted(all)),
    }
}

/// SET of a setting of the session to a value.
fn set(all: &Definition<'_>, target: &Target) -> Result<Verdict, Refused> {
    let at = 1 + usize::from(all.at(1).is_any(&["SESSION", "LOCAL"]));
    if all
        .at(at)
        .is_any(&["ROLE", "AUTHORIZATION", "SESSION_AUTHORIZATION"])
    {
        return Ok(Verdict::dropped(&ACCOUNTS));
    }
    let setting = all.at(at);
    let known = SETTINGS.iter().find(|(name, ..)| setting.is(name));
    let Some((_, major, minor)) = known else {
        return Err(unlisted(all));
    };
    if !target.is_since(Product::PostgreSql, *major, *minor) {
        return Ok(Verdict::dropped(&SETTING));
    }
    let value = all.at(at + 2);
    let is_on = value.is_any(&["ON", "TRUE"]) || value.text == b"'on'";
    if setting.is("STANDARD_CONFORMING_STRINGS") && !is_on {
        return Err(Refused::by(&STRINGS));
    }
    if setting.is("DEFAULT_TABLESPACE") && value.text != b"''" {
        return Ok(Verdict::dropped(&TABLESPACE));
    }
    Ok(Verdict::default())
}

/// The functions that dumps call: positions of sequences, the search path.
fn select(all: &Definition<'_>) -> Result<Verdict, Refused> {
    let mut at = 1;
    while all.at(at).is_any(&["PG_CATALOG", "FROM"])
        || all.at(at).is_sign(b'.')
        || all.at(at).is_sign(b'*')
    {
        at += 1;
    }
    let name = String::from_utf8_lossy(all.at(at).text).to_ascii_lowercase();
    if matches!(
        name.as_str(),
        "pg_restore_relation_stats" | "pg_restore_attribute_stats"
    ) {
        return Ok(Verdict::dropped(&STATISTICS));
    }
    if name.starts_with("lo_") || name == "lowrite" {
        return Err(Refused::by(&LARGE_OBJECTS));
    }
    let is_value = |item: &Item<'_>| match item.kind {
        TokenKind::String | TokenKind::Number => true,
        TokenKind::Word => item.is_any(&["TRUE", "FALSE", "REGCLASS", "PG_CATALOG"]),
        TokenKind::Sign => matches!(item.text, b"," | b":" | b"." | b"-"),
        _ => false,
    };
    let last = all.items.len() - 1;
    let values = all.items.get(at + 2..last).unwrap_or_default();
    let is_plain = all.at(at + 1).is_sign(b'(') && all.at(last).is_sign(b')');
    let is_known =
        name == "setval" || (name == "set_config" && all.at(at + 2).text == b"'search_path'");
    match is_known && is_plain && values.iter().all(is_value) {
        true => Ok(Verdict::default()),
        false => Err(Refused::unlisted(
            "a SELECT other than of `setval` and of the search path",
        )),
    }
}

/// Objects that are left out, with the rule.
fn left_out(object: &str) -> Option<&'static super::Rule> {
    Some(match object {
        "PUBLICATION" | "SUBSCRIPTION" => &REPLICATION,
        "EVENT TRIGGER" => &EVENT_TRIGGER,
        "POLICY" => &ROW_SECURITY,
        "ROLE" | "USER" | "GROUP" | "DEFAULT PRIVILEGES" => &ACCOUNTS,
        "DATABASE" => &DATABASE,
        _ => return None,
    })
}

/// CREATE, ALTER and DROP.
fn define(all: &Definition<'_>, target: &Target) -> Result<Verdict, Refused> {
    let (object, after) = all.object(&MODIFIERS);
    let (name, _) = all.name(after);
    if let Some(rule) = left_out(&object) {
        let is_database = object == "DATABASE";
        return Ok(Verdict {
            database: is_database.then(|| name.to_vec()),
            ..Verdict::dropped(rule)
        });
    }
    match object.as_str() {
        "TABLE" | "INDEX" | "VIEW" | "MATERIALIZED VIEW" | "TRIGGER" | "PROCEDURE" | "FUNCTION"
        | "AGGREGATE" | "SEQUENCE" | "TYPE" | "DOMAIN" | "SCHEMA" | "STATISTICS" | "RULE"
        | "COLLATION" | "TEXT SEARCH" => {}
        "EXTENSION" if !all.at(0).is("ALTER") => extension(name, target)?,
        "LARGE OBJECT" => return Err(Refused::by(&LARGE_OBJECTS)),
        _ => return Err(unlisted(all)),
    }
    let count = all.items.len();
    if all.at(0).is("ALTER") && count >= 3 && all.has_at(count - 3, &["OWNER", "TO"]) {
        return Ok(Verdict::dropped(&OWNER));
    }
    if object == "SCHEMA" && name == b"public" {
        return Ok(Verdict::dropped(&SCHEMA_PUBLIC));
    }
    if all.has(&["ROW", "LEVEL", "SECURITY"]) {
        return Ok(Verdict::dropped(&ROW_SECURITY));
    }
    all.refuse_files()?;
    if matches!(object.as_str(), "FUNCTION" | "PROCEDURE") {
        routine(all, after)?;
    }
    if target.is_before(Product::PostgreSql, 15, 0) {
        if all.has(&["NULLS", "NOT", "DISTINCT"]) {
            return Err(Refused::by(&NULLS_NOT_DISTINCT));
        }
        if all.has(&["SECURITY_INVOKER"]) {
            return Err(Refused::by(&SECURITY_INVOKER));
        }
    }
    Ok(Verdict::default())
}

/// Refuses extensions that a superuser would have to create, by name.
fn extension(name: &[u8], target: &Target) -> Result<(), Refused> {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let named = |rule: &'static super::Rule| {
        let mut refused = Refused::by(rule);
        refused.why = format!(
            "extension `{}`: {}",
            dbduel_text::visible(&name),
            rule.reason
        );
        Err(refused)
    };
    if !TRUSTED.contains(&name.as_str()) {
        return named(&EXTENSION);
    }
    if target.is_before(Product::PostgreSql, 13, 0) && name != "plpgsql" {
        return named(&EXTENSION_OLD);
    }
    Ok(())
}

/// Functions and procedures in SQL and PL/pgSQL, whose bodies reach no files.
fn routine(all: &Definition<'_>, after: usize) -> Result<(), Refused> {
    // The statements of such a body are not told from those of the dump.
    if all.has(&["BEGIN", "ATOMIC"]) {
        return Err(Refused::by(&SQL_BODY));
    }
    let is_plain = |place: usize| {
        let language = String::from_utf8_lossy(all.at(place + 1).text).to_ascii_lowercase();
        matches!(language.trim_matches('\''), "sql" | "plpgsql")
    };
    // Elsewhere it is a name, of a parameter for instance.
    let (_, end) = all.name(after);
    let mut clauses = all
        .places(&["LANGUAGE"])
        .filter(|&place| place >= end && all.at(place).depth == 0);
    if !clauses.all(is_plain) {
        return Err(Refused::by(&LANGUAGE));
    }
    let mut bodies = all
        .items
        .iter()
        .filter(|item| item.kind == TokenKind::String);
    match bodies.any(|body| body_reaches_out(body.text)) {
        true => Err(Refused::by(&SERVER_FILE)),
        false => Ok(()),
    }
}

/// True when the body of a routine calls a function that reaches files.
fn body_reaches_out(body: &[u8]) -> bool {
    let tag = match body.first() {
        Some(b'$') => memchr::memchr(b'$', &body[1..]).map_or(1, |end| end + 2),
        _ => 1,
    };
    let inner = body
        .get(tag..body.len().saturating_sub(tag))
        .unwrap_or_default();
    let mut last: &[u8] = b"";
    for token in Lexer::new(inner, Syntax::POSTGRESQL) {
        let bytes = token.of(inner);
        if token.kind == TokenKind::Sign
            && bytes == b"("
            && reaches_out(String::from_utf8_lossy(last).trim_matches('"'))
        {
            return true;
        }
        last = bytes;
    }
    false
}

/// COMMENT ON.
fn comment(all: &Definition<'_>) -> Result<Verdict, Refused> {
    let (object, after) = all.object(&["ON"]);
    if let Some(rule) = left_out(&object) {
        return Ok(Verdict::dropped(rule));
    }
    match object.as_str() {
        "EXTENSION" => Ok(Verdict::dropped(&EXTENSION_COMMENT)),
        "SCHEMA" if all.at(after).text == b"public" => Ok(Verdict::dropped(&SCHEMA_PUBLIC)),
        "LARGE OBJECT" => Err(Refused::by(&LARGE_OBJECTS)),
        _ => Ok(Verdict::default()),
    }
}
