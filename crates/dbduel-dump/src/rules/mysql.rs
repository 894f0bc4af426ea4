//! Statements of dumps of MySQL and MariaDB.

use dbduel_sql::TokenKind;
use dbduel_text::Version;

use super::definition::{Definition, Item};
use super::table::{
    ACCOUNTS, ALTER_DATABASE, COLLATION_0900, COLLATION_0900_OTHER, COLLATION_UCA1400,
    COLLATION_UCA1400_OTHER, DATABASE, DEFINER, ENGINE, EVENT, FUNCTIONAL_KEY, INVISIBLE, JSON,
    LANGUAGE, NO_AUTO_CREATE_USER, OF_MARIADB, REPLICATION, ROCKSDB, SQL_MODE_QUOTES, SRID,
    TRIGGER_BODY, TRIGGER_DATABASE,
};
use super::{Refused, Verdict};
use crate::{Product, Target};

/// Words between a verb and the kind of object.
const MODIFIERS: [&str; 9] = [
    "OR",
    "REPLACE",
    "TEMPORARY",
    "UNIQUE",
    "FULLTEXT",
    "SPATIAL",
    "AGGREGATE",
    "ONLINE",
    "OFFLINE",
];
/// Modes of SQL that change how quotes are read, alone or as part of a group of modes.
const QUOTE_MODES: [&str; 7] = [
    "ANSI",
    "NO_BACKSLASH_ESCAPES",
    "ORACLE",
    "MSSQL",
    "DB2",
    "POSTGRESQL",
    "MAXDB",
];
/// Engines that keep their tables in files of their own, or nowhere.
const ENGINES: [&str; 9] = [
    "INNODB",
    "MYISAM",
    "MEMORY",
    "HEAP",
    "ARCHIVE",
    "BLACKHOLE",
    "CSV",
    "ARIA",
    "ROCKSDB",
];
/// Words with which the bodies of routines begin.
const BODIES: [&str; 9] = [
    "BEGIN", "RETURN", "SELECT", "SET", "INSERT", "UPDATE", "DELETE", "IF", "CALL",
];
/// Types of columns that MySQL lacks.
const MARIADB_TYPES: [&str; 3] = ["UUID", "INET6", "INET4"];

/// What is done with a statement that brings no rows.
pub fn judge(text: &[u8], target: &Target) -> Result<Verdict, Refused> {
    let definition = Definition::of(text, target)?;
    let all = &definition;
    let verb = all.at(0);
    let is_alone = |words: usize| all.items.len() == words;
    match String::from_utf8_lossy(verb.text)
        .to_ascii_uppercase()
        .as_str()
    {
        // All of it is in comments that the server skips.
        "" if all.items.is_empty() => Ok(Verdict {
            is_dropped: true,
            ..Verdict::default()
        }),
        "SET" => set(all, target),
        "CREATE" | "ALTER" | "DROP" => define(all, target),
        "LOCK" if all.at(1).is_any(&["TABLES", "TABLE"]) => Ok(Verdict::default()),
        "UNLOCK" if all.at(1).is_any(&["TABLES", "TABLE"]) => Ok(Verdict::default()),
        "BEGIN" | "COMMIT" if is_alone(1) || all.at(1).is("WORK") => Ok(Verdict::default()),
        "START" if all.at(1).is("TRANSACTION") => Ok(Verdict::default()),
        "USE" => Ok(Verdict {
            database: Some(all.at(1).text.to_vec()),
            ..Verdict::dropped(&DATABASE)
        }),
        "GRANT" | "REVOKE" => Ok(Verdict::dropped(&ACCOUNTS)),
        "FLUSH" if all.at(1).is("PRIVILEGES") => Ok(Verdict::dropped(&ACCOUNTS)),
        "CHANGE" | "START" | "STOP" | "RESET" => Ok(Verdict::dropped(&REPLICATION)),
        "PREPARE" | "EXECUTE" | "DEALLOCATE" => Ok(Verdict::dropped(&ROCKSDB)),
        "SELECT" if mentions(all, "ROCKSDB") => Ok(Verdict::dropped(&ROCKSDB)),
        "SELECT" | "DO" if sets_sequence(all) => match target.product {
            Product::MariaDb => Ok(Verdict::default()),
            _ => Err(Refused::by(&OF_MARIADB)),
        },
        _ => Err(unlisted(all)),
    }
}

/// The error for a statement that is not on the list, with its first two words.
pub(super) fn unlisted(all: &Definition<'_>) -> Refused {
    let words = all.items.iter().take(2);
    let words: Vec<_> = words
        .filter(|item| item.kind == TokenKind::Word)
        .map(|item| String::from_utf8_lossy(item.text).to_ascii_uppercase())
        .collect();
    Refused::unlisted(&format!("`{}`", dbduel_text::visible(&words.join(" "))))
}

/// True when one of its words has this in it.
fn mentions(all: &Definition<'_>, part: &str) -> bool {
    let words = all.items.iter().filter(|item| item.kind == TokenKind::Word);
    let mut upper = words.map(|item| String::from_utf8_lossy(item.text).to_ascii_uppercase());
    upper.any(|word| word.contains(part))
}

/// True for `SETVAL(sequence, number, 0)` after the verb.
fn sets_sequence(all: &Definition<'_>) -> bool {
    let mut rest = all.items.iter().skip(3);
    all.at(1).is("SETVAL")
        && all.at(2).is_sign(b'(')
        && rest.all(|item| match item.kind {
            TokenKind::Name | TokenKind::Number | TokenKind::Word => true,
            TokenKind::Sign => matches!(item.text, b"," | b")" | b"." | b"-"),
            _ => false,
        })
}

/// SET of variables of the session to values.
fn set(all: &Definition<'_>, target: &Target) -> Result<Verdict, Refused> {
    let has = |part: &str| mentions(all, part);
    if has("ROCKSDB") || has("@ENABLE_BULK_LOAD") || has("@DISABLE_BULK_LOAD") {
        return Ok(Verdict::dropped(&ROCKSDB));
    }
    if ["GTID_PURGED", "GTID_SLAVE_POS", "LOG_BIN"]
        .iter()
        .any(|part| has(part))
    {
        return Ok(Verdict::dropped(&REPLICATION));
    }
    if all.at(1).is_any(&["PASSWORD", "ROLE"]) || all.has_at(1, &["DEFAULT", "ROLE"]) {
        return Ok(Verdict::dropped(&ACCOUNTS));
    }
    let is_global = |item: &Item<'_>| {
        item.is_any(&["GLOBAL", "PERSIST", "PERSIST_ONLY"])
            || String::from_utf8_lossy(item.text)
                .to_ascii_uppercase()
                .starts_with("@@GLOBAL")
    };
    if all.items.iter().any(is_global) || has("@@PERSIST") {
        return Err(Refused::unlisted("`SET GLOBAL`"));
    }
    let is_expression = all.items.iter().any(|item| item.is_sign(b'('));
    if is_expression || all.at(1).is_any(&["STATEMENT", "RESOURCE"]) {
        return Err(Refused::unlisted(
            "SET with an expression or a statement in it",
        ));
    }
    let mut verdict = Verdict::default();
    refuse_quote_modes(all, has("SQL_MODE"))?;
    if has("SQL_MODE") {
        modes(all, target, &mut verdict);
    }
    collations(all, target, &mut verdict)?;
    Ok(verdict)
}

/// Refuses modes of SQL that change how quotes are read: in strings of any SET, as a variable may become the mode later; where the
/// SET is of the mode, in other forms, too.
fn refuse_quote_modes(all: &Definition<'_>, is_of_mode: bool) -> Result<(), Refused> {
    let changes_quotes = |mode: &str| QUOTE_MODES.contains(&mode) || mode.starts_with("ANSI");
    let is_refused = |place: usize| {
        let item = all.at(place);
        let upper = String::from_utf8_lossy(item.text).to_ascii_uppercase();
        let has_quote_mode = |list: &str| list.split(',').map(str::trim).any(changes_quotes);
        match item.kind {
            TokenKind::String => {
                let is_plain = upper.starts_with(['\'', '"']) && !upper.contains('\\');
                // Strings in a row are one.
                let is_joined = all.at(place + 1).kind == TokenKind::String;
                has_quote_mode(upper.trim_matches(['\'', '"']))
                    || !is_plain
                    || (is_of_mode && is_joined)
            }
            TokenKind::Number => is_of_mode,
            TokenKind::Word | TokenKind::Name => is_of_mode && changes_quotes(&upper),
            _ => false,
        }
    };
    match (0..all.items.len()).any(is_refused) {
        true => Err(Refused::by(&SQL_MODE_QUOTES)),
        false => Ok(()),
    }
}

/// Removes modes that the server lacks from the strings of a SET.
fn modes(all: &Definition<'_>, target: &Target, verdict: &mut Verdict) {
    for item in all
        .items
        .iter()
        .filter(|item| item.kind == TokenKind::String)
    {
        let written = String::from_utf8_lossy(item.text).to_ascii_uppercase();
        let written = written.trim_matches(['\'', '"']);
        let modes = || written.split(',').map(str::trim);
        let is_gone = |mode: &str| mode == "NO_AUTO_CREATE_USER";
        if target.is_since(Product::MySql, 8, 0) && modes().any(is_gone) {
            let kept: Vec<&str> = modes().filter(|mode| !is_gone(mode)).collect();
            let text = format!("'{}'", kept.join(","));
            verdict.replace(&NO_AUTO_CREATE_USER, item.start..item.end, text.as_bytes());
        }
    }
}

/// CREATE, ALTER and DROP.
fn define(all: &Definition<'_>, target: &Target) -> Result<Verdict, Refused> {
    let (object, after) = all.object(&MODIFIERS);
    match object.as_str() {
        "TABLE" | "TABLES" | "INDEX" | "VIEW" | "TRIGGER" | "PROCEDURE" | "FUNCTION"
        | "SEQUENCE" => {}
        "DATABASE" | "SCHEMA" => {
            let mut verdict = database(all, after);
            if !verdict.is_dropped {
                collations(all, target, &mut verdict)?;
            }
            return Ok(verdict);
        }
        "EVENT" => return Ok(Verdict::dropped(&EVENT)),
        "USER" | "ROLE" => return Ok(Verdict::dropped(&ACCOUNTS)),
        _ => return Err(unlisted(all)),
    }
    all.refuse_files()?;
    let mut verdict = Verdict::default();
    if let Some(place) = all.places(&["DEFINER"]).next()
        && all.at(place + 1).is_sign(b'=')
        && !all.at(place + 2).is("CURRENT_USER")
    {
        let end = all.account(place + 2).0.end;
        verdict.replace(&DEFINER, all.at(place).start..end, b"");
    }
    if object == "TRIGGER" {
        without_database(all, after, &mut verdict)?;
    }
    let is_routine = matches!(object.as_str(), "FUNCTION" | "PROCEDURE");
    if is_routine && has_foreign_language(all, after) {
        return Err(Refused::by(&LANGUAGE));
    }
    if object == "TABLE" || object == "INDEX" {
        table(all, target, &mut verdict)?;
    }
    if target.product == Product::MySql {
        refuse_mariadb(all, &object)?;
    }
    collations(all, target, &mut verdict)?;
    verdict.edits.sort_by_key(|(range, _)| range.start);
    Ok(verdict)
}

/// Removes the database before the names of a trigger and of its table.
fn without_database(
    all: &Definition<'_>,
    after: usize,
    verdict: &mut Verdict,
) -> Result<(), Refused> {
    let (_, end) = all.name(after);
    let on = (end..all.items.len()).find(|&place| all.at(place).is("ON"));
    let ends = [Some(end), on.map(|on| all.name(on + 1).1)];
    let mut databases: Vec<&[u8]> = Vec::new();
    for end in ends.into_iter().flatten() {
        // The name, a point, and the database before it.
        if let Some(database) = end.checked_sub(3)
            && all.at(end - 2).is_sign(b'.')
        {
            let range = all.at(database).start..all.at(end - 1).start;
            verdict.replace(&TRIGGER_DATABASE, range, b"");
            databases.push(all.at(database).text);
        }
    }
    let body = ends.into_iter().flatten().max().unwrap_or(end);
    let is_of_dump = |place: usize| {
        let item = all.at(place);
        item.is_name() && all.at(place + 1).is_sign(b'.') && databases.contains(&item.text)
    };
    match (body..all.items.len()).any(is_of_dump) {
        true => Err(Refused::by(&TRIGGER_BODY)),
        false => Ok(()),
    }
}

/// True when a routine has the clause LANGUAGE with another language than SQL. In its body it is a name.
fn has_foreign_language(all: &Definition<'_>, after: usize) -> bool {
    let (_, end) = all.name(after);
    let begins_body = |place: &usize| {
        let item = all.at(*place);
        // A type or a part of one: `SET('a')`, `CHARACTER SET utf8mb4`.
        let is_of_type = item.is("SET")
            && (all.at(place + 1).is_sign(b'(')
                || all.at(place - 1).is_any(&["CHARACTER", "CHAR"]));
        item.is_any(&BODIES) && !is_of_type
    };
    let mut clauses = (end..all.items.len())
        .filter(|&place| all.at(place).depth == 0)
        .take_while(|place| !begins_body(place));
    clauses.any(|place| all.at(place).is("LANGUAGE") && !all.at(place + 1).is("SQL"))
}

/// CREATE, DROP and ALTER DATABASE.
fn database(all: &Definition<'_>, after: usize) -> Verdict {
    let options = [
        "CHARACTER",
        "CHARSET",
        "COLLATE",
        "DEFAULT",
        "ENCRYPTION",
        "READ",
    ];
    let (name, end) = all.name(after);
    if !all.at(0).is("ALTER") {
        return Verdict {
            database: Some(name.to_vec()),
            ..Verdict::dropped(&DATABASE)
        };
    }
    let mut verdict = Verdict::default();
    if !all.at(after).is_any(&options) {
        verdict.database = Some(name.to_vec());
        let range = all.at(after).start..all.at(end - 1).end;
        verdict.replace(&ALTER_DATABASE, range, b"");
    }
    verdict
}

/// What a server lacks of a table or an index.
fn table(all: &Definition<'_>, target: &Target, verdict: &mut Verdict) -> Result<(), Refused> {
    let skips = |word: &[u8]| {
        let mut skipped = all.skipped.iter();
        skipped.any(|skipped| skipped.eq_ignore_ascii_case(word))
    };
    if skips(b"INVISIBLE") {
        verdict.note(&INVISIBLE);
    }
    if skips(b"SRID") {
        verdict.note(&SRID);
    }
    let has_functional =
        target.product == Product::MySql && target.version >= Version::new(8, 0, 13);
    if !has_functional && has_functional_key(all) {
        return Err(Refused::by(&FUNCTIONAL_KEY));
    }
    if target.product == Product::MariaDb && has_column_of(all, &["JSON"]) {
        verdict.note(&JSON);
    }
    for place in all.places(&["ENGINE"]) {
        let place = place + 1 + usize::from(all.at(place + 1).is_sign(b'='));
        let name = all.at(place).text;
        let is_known = ENGINES
            .iter()
            .any(|engine| name.eq_ignore_ascii_case(engine.as_bytes()));
        // Within parentheses, without the sign, it is a column of this name.
        let is_option = all.at(place - 1).is_sign(b'=') || all.at(place - 1).depth == 0;
        if is_option && !is_known {
            return Err(Refused::by(&ENGINE));
        }
    }
    Ok(())
}

/// True when an index has an expression: in its list, a parenthesis that follows no name.
fn has_functional_key(all: &Definition<'_>) -> bool {
    let is_list = |open: &usize| {
        let is_after = |back: usize| {
            open.checked_sub(back)
                .is_some_and(|place| all.at(place).is_any(&["KEY", "INDEX", "ON"]))
        };
        all.at(*open).is_sign(b'(') && (is_after(1) || is_after(2))
    };
    let has_expression = |open: usize| {
        let depth = all.at(open).depth + 1;
        let mut inner =
            (open + 1..all.items.len()).take_while(|&place| all.at(place).depth >= depth);
        inner.any(|place| {
            let before = all.at(place - 1);
            all.at(place).is_sign(b'(')
                && all.at(place).depth == depth
                && (before.is_sign(b'(') || before.is_sign(b','))
        })
    };
    (0..all.items.len()).filter(is_list).any(has_expression)
}

/// True when a column has one of these types.
fn has_column_of(all: &Definition<'_>, types: &[&str]) -> bool {
    (2..all.items.len()).any(|place| {
        let before = all.at(place - 2);
        all.at(place).is_any(types)
            && all.at(place).depth == 1
            && all.at(place - 1).is_name()
            && (before.is_sign(b'(') || before.is_sign(b','))
    })
}

/// Refuses what only MariaDB has.
fn refuse_mariadb(all: &Definition<'_>, object: &str) -> Result<(), Refused> {
    let is_aria = |place: usize| all.at(place + 1).is_sign(b'=') && all.at(place + 2).is("ARIA");
    let calls_nextval = |place: usize| all.at(place + 1).is_sign(b'(');
    let is_foreign = object == "SEQUENCE"
        || all.has(&["SYSTEM", "VERSIONING"])
        || all.has(&["NEXT", "VALUE", "FOR"])
        || all.places(&["NEXTVAL"]).any(calls_nextval)
        || all.places(&["ENGINE"]).any(is_aria)
        || (object == "TABLE" && has_column_of(all, &MARIADB_TYPES));
    match is_foreign {
        true => Err(Refused::by(&OF_MARIADB)),
        false => Ok(()),
    }
}

/// Replaces collations that the server lacks.
fn collations(all: &Definition<'_>, target: &Target, verdict: &mut Verdict) -> Result<(), Refused> {
    let lacks_0900 =
        target.is_before(Product::MariaDb, 11, 8) || target.is_before(Product::MySql, 8, 0);
    let lacks_uca1400 =
        target.product == Product::MySql || target.is_before(Product::MariaDb, 10, 10);
    for item in all.items.iter().filter(|item| item.kind == TokenKind::Word) {
        let name = String::from_utf8_lossy(item.text).to_ascii_lowercase();
        let (rule, by) = match name.as_str() {
            "utf8mb4_0900_ai_ci" if lacks_0900 => (&COLLATION_0900, "utf8mb4_unicode_520_ci"),
            "utf8mb4_0900_bin" if lacks_0900 => (&COLLATION_0900, "utf8mb4_bin"),
            "utf8mb4_uca1400_ai_ci" | "uca1400_ai_ci" if lacks_uca1400 && lacks_0900 => {
                (&COLLATION_UCA1400, "utf8mb4_unicode_520_ci")
            }
            "utf8mb4_uca1400_ai_ci" | "uca1400_ai_ci" if lacks_uca1400 => {
                (&COLLATION_UCA1400, "utf8mb4_0900_ai_ci")
            }
            "utf8mb3_uca1400_ai_ci" | "utf8_uca1400_ai_ci" if lacks_uca1400 => {
                (&COLLATION_UCA1400, "utf8_unicode_520_ci")
            }
            other if other.starts_with("utf8mb4_") && other.contains("_0900_") && lacks_0900 => {
                return Err(Refused::by(&COLLATION_0900_OTHER));
            }
            other if lacks_uca1400 && other.contains("uca1400_") && is_of_unicode(other) => {
                return Err(Refused::by(&COLLATION_UCA1400_OTHER));
            }
            _ => continue,
        };
        verdict.replace(rule, item.start..item.end, by.as_bytes());
    }
    verdict.edits.sort_by_key(|(range, _)| range.start);
    Ok(())
}

/// True for a collation of a Unicode character set, and not the name of a column.
fn is_of_unicode(name: &str) -> bool {
    ["utf8", "utf16", "utf32", "ucs2", "uca1400"]
        .iter()
        .any(|set| name.starts_with(set))
}
