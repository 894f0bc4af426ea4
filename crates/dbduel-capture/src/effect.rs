//! What a statement does to the transaction of its session.

use dbduel_sql::{Kind, Lexer, Syntax, Token, TokenKind, statements};

/// Words at the beginning of a statement that decide.
const WORDS: usize = 4;

/// What a statement does to its session's transaction. The number is its code in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Effect {
    /// Nothing, and it begins none where each statement commits by itself: settings, questions about the schema.
    None = 0,
    /// Runs in a transaction, its own one if none is open.
    Runs = 1,
    /// Begins a transaction.
    Begins = 2,
    /// Commits.
    Commits = 3,
    /// Rolls back.
    RollsBack = 4,
    /// Commits, and the next transaction begins at once.
    CommitsAndChains = 5,
    /// Rolls back, and the next transaction begins at once.
    RollsBackAndChains = 6,
    /// Commits what was open before it runs, and is committed itself (definitions in MySQL).
    CommitsImplicitly = 7,
    /// From now on statements do not commit by themselves (MySQL).
    AutocommitOff = 8,
    /// From now on statements commit by themselves; commits what was open (MySQL).
    AutocommitOn = 9,
    /// Rolls back what is open and restores the session's defaults.
    Resets = 10,
}

impl Effect {
    /// Codes of all effects, in order.
    pub const ALL: [Self; 11] = [
        Self::None,
        Self::Runs,
        Self::Begins,
        Self::Commits,
        Self::RollsBack,
        Self::CommitsAndChains,
        Self::RollsBackAndChains,
        Self::CommitsImplicitly,
        Self::AutocommitOff,
        Self::AutocommitOn,
        Self::Resets,
    ];

    /// The effect with this code, [`Effect::None`] for an unknown one.
    #[must_use]
    pub fn of_code(code: u8) -> Self {
        let known = Self::ALL.get(usize::from(code)).copied();
        known.unwrap_or(Self::None)
    }

    /// True where it ends the transaction that is open by `COMMIT` or `ROLLBACK`.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(
            self,
            Effect::Commits
                | Effect::RollsBack
                | Effect::CommitsAndChains
                | Effect::RollsBackAndChains
        )
    }

    /// The effect of one statement of that kind.
    #[must_use]
    pub fn of(text: &[u8], syntax: Syntax, kind: Kind) -> Self {
        match kind {
            Kind::Read | Kind::Write | Kind::Call | Kind::Execute => Effect::Runs,
            Kind::Begin => match is(&first_words(text, syntax), 1, "NOT") {
                // A compound statement of MariaDB.
                true => Effect::Runs,
                false => Effect::Begins,
            },
            Kind::Commit | Kind::Rollback => ending(text, syntax, kind),
            Kind::Set if syntax.is_mysql => autocommit(text, syntax),
            Kind::Definition | Kind::Lock | Kind::Other if syntax.is_mysql => {
                implicit(text, syntax, kind)
            }
            Kind::Definition => Effect::Runs,
            Kind::Prepare => match is(&first_words(text, syntax), 1, "TRANSACTION") {
                // Two-phase commit of PostgreSQL: the session has no transaction afterwards.
                true => Effect::Commits,
                false => Effect::None,
            },
            Kind::Savepoint
            | Kind::Set
            | Kind::Use
            | Kind::Show
            | Kind::Deallocate
            | Kind::Lock
            | Kind::Other => Effect::None,
        }
    }

    /// The effect of a request that has several statements, from theirs.
    #[must_use]
    pub fn of_several(effects: &[Effect]) -> Self {
        let mut sum = Effect::None;
        for effect in effects {
            sum = match (sum, *effect) {
                (sum, Effect::None) => sum,
                // What it began is ended within the request.
                (Effect::Begins, Effect::Commits | Effect::RollsBack) => Effect::Runs,
                // It ends one transaction and begins the next.
                (Effect::Commits | Effect::CommitsAndChains, Effect::Begins) => {
                    Effect::CommitsAndChains
                }
                (Effect::RollsBack | Effect::RollsBackAndChains, Effect::Begins) => {
                    Effect::RollsBackAndChains
                }
                (
                    control @ (Effect::Begins
                    | Effect::Commits
                    | Effect::RollsBack
                    | Effect::CommitsAndChains
                    | Effect::RollsBackAndChains
                    | Effect::AutocommitOff),
                    Effect::Runs,
                ) => control,
                (_, effect) => effect,
            };
        }
        sum
    }
}

/// The first words in capital letters.
fn first_words(text: &[u8], syntax: Syntax) -> Vec<Vec<u8>> {
    let tokens = Lexer::new(text, syntax)
        .take_while(|token| token.kind == TokenKind::Word)
        .take(WORDS);
    tokens
        .map(|token| token.of(text).to_ascii_uppercase())
        .collect()
}

fn is(words: &[Vec<u8>], index: usize, word: &str) -> bool {
    words
        .get(index)
        .is_some_and(|found| found == word.as_bytes())
}

fn ending(text: &[u8], syntax: Syntax, kind: Kind) -> Effect {
    let words = first_words(text, syntax);
    // Of a transaction of any session, by its name.
    if is(&words, 1, "PREPARED") {
        return Effect::None;
    }
    let and = (1..=2).find(|index| is(&words, *index, "AND"));
    let chains = and.is_some_and(|and| is(&words, and + 1, "CHAIN"));
    match (kind, chains) {
        (Kind::Commit, false) => Effect::Commits,
        (Kind::Commit, true) => Effect::CommitsAndChains,
        (_, false) => Effect::RollsBack,
        (_, true) => Effect::RollsBackAndChains,
    }
}

/// Statements of MySQL that commit what is open.
fn implicit(text: &[u8], syntax: Syntax, kind: Kind) -> Effect {
    let words = first_words(text, syntax);
    let first = words.first().map_or(&[][..], Vec::as_slice);
    let second = words.get(1).map_or(&[][..], Vec::as_slice);
    match (kind, first) {
        (Kind::Definition, b"CREATE" | b"DROP")
            if matches!(second, b"TEMPORARY") || is(&words, 3, "TEMPORARY") =>
        {
            Effect::Runs
        }
        (Kind::Definition, _) | (Kind::Lock, b"LOCK") => Effect::CommitsImplicitly,
        (Kind::Other, b"FLUSH" | b"CACHE" | b"INSTALL" | b"UNINSTALL" | b"STOP" | b"CHANGE") => {
            Effect::CommitsImplicitly
        }
        (Kind::Other, b"XA") => match second {
            b"START" | b"BEGIN" => Effect::Begins,
            b"COMMIT" => Effect::Commits,
            b"ROLLBACK" => Effect::RollsBack,
            _ => Effect::None,
        },
        _ => Effect::None,
    }
}

/// `SET autocommit = …`, alone or among other settings. A value such as `@@autocommit` does not count.
fn autocommit(text: &[u8], syntax: Syntax) -> Effect {
    let mut tokens = Lexer::new(text, syntax).skip(1);
    let mut effect = Effect::None;
    loop {
        if sets_autocommit(&mut tokens, text) {
            let mut value = tokens
                .by_ref()
                .map(|token| token.of(text))
                .skip_while(|sign| matches!(*sign, b":" | b"=" | b":="));
            let value = value.next().unwrap_or_default();
            let value = value.strip_prefix(b"'").unwrap_or(value);
            let value = value.strip_suffix(b"'").unwrap_or(value);
            effect = match value.to_ascii_uppercase().as_slice() {
                b"0" | b"OFF" | b"FALSE" => Effect::AutocommitOff,
                _ => Effect::AutocommitOn,
            };
        }
        let mut depth = 0_usize;
        let next = tokens.find(|token| {
            match token.of(text) {
                b"(" => depth += 1,
                b")" => depth = depth.saturating_sub(1),
                b"," => return depth == 0,
                _ => {}
            }
            false
        });
        if next.is_none() {
            return effect;
        }
    }
}

/// Reads the target of an assignment: true for the `autocommit` of the session.
fn sets_autocommit(tokens: &mut impl Iterator<Item = Token>, text: &[u8]) -> bool {
    let mut is_of_session = true;
    for token in tokens {
        if !matches!(token.kind, TokenKind::Word | TokenKind::Name) {
            return false;
        }
        let word = token.of(text);
        // A scope before a quoted name, as in @@session.`autocommit`, is a word of its own.
        let scope = word.strip_prefix(b"@@").unwrap_or(word);
        let scope = scope.strip_suffix(b".").unwrap_or(scope);
        let is_one_of = |scopes: &[&str]| {
            let mut scopes = scopes.iter();
            scopes.any(|known| scope.eq_ignore_ascii_case(known.as_bytes()))
        };
        if is_one_of(&["GLOBAL", "PERSIST", "PERSIST_ONLY"]) {
            is_of_session = false;
        } else if !is_one_of(&["SESSION", "LOCAL"]) {
            return is_of_session && names_autocommit(word);
        }
    }
    false
}

/// `autocommit`, `@@autocommit`, `@@session.autocommit`, each with backquotes or without.
fn names_autocommit(word: &[u8]) -> bool {
    let is_variable = word.starts_with(b"@");
    let word = match word.strip_prefix(b"@@") {
        Some(rest) => rest,
        // A variable of the user.
        None if is_variable => return false,
        None => word,
    };
    let scoped = word.iter().position(|byte| *byte == b'.');
    let (scope, name) = match scoped {
        Some(point) => (&word[..point], &word[point + 1..]),
        None => (&b""[..], word),
    };
    let name = name.strip_prefix(b"`").unwrap_or(name);
    let name = name.strip_suffix(b"`").unwrap_or(name);
    name.eq_ignore_ascii_case(b"autocommit")
        && (scope.is_empty()
            || scope.eq_ignore_ascii_case(b"SESSION")
            || scope.eq_ignore_ascii_case(b"LOCAL"))
}

/// The kind that stands for a request with several statements: that of the first one with the most effect.
#[must_use]
pub fn kind_of_several(kinds: &[Kind]) -> Kind {
    let rank = |kind: Kind| match kind {
        Kind::Write => 5,
        Kind::Definition => 4,
        Kind::Call => 3,
        Kind::Execute => 2,
        Kind::Read => 1,
        _ => 0,
    };
    let mut chosen = kinds.first().copied().unwrap_or(Kind::Other);
    for kind in kinds {
        if rank(*kind) > rank(chosen) {
            chosen = *kind;
        }
    }
    chosen
}

/// The default database that `USE name` chooses.
#[must_use]
pub fn used_schema(text: &[u8], syntax: Syntax) -> Option<Vec<u8>> {
    let first = statements(text, syntax).next()?;
    let text = &text[first];
    let name = Lexer::new(text, syntax).nth(1)?;
    let bytes = name.of(text);
    Some(match name.kind {
        TokenKind::Name => unquoted(bytes),
        TokenKind::Word => bytes.to_vec(),
        _ => return None,
    })
}

/// A quoted name without its quotes, doubled ones made single.
fn unquoted(name: &[u8]) -> Vec<u8> {
    let Some((&quote, rest)) = name.split_first() else {
        return Vec::new();
    };
    let inner = rest.strip_suffix(&[quote]).unwrap_or(rest);
    let mut plain = Vec::with_capacity(inner.len());
    let mut is_doubled = false;
    for byte in inner {
        is_doubled = *byte == quote && !is_doubled;
        if !is_doubled {
            plain.push(*byte);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(text: &str, syntax: Syntax) -> Effect {
        let text = text.as_bytes();
        Effect::of(text, syntax, dbduel_sql::kind_of(text, syntax))
    }

    #[test]
    fn effects_follow_the_product() {
        use Effect::*;
        for (text, mysql, postgresql) in [
            ("select 1", Runs, Runs),
            ("update t set a = 1", Runs, Runs),
            ("begin", Begins, Begins),
            ("START TRANSACTION READ ONLY", Begins, Begins),
            ("BEGIN NOT ATOMIC select 1; END", Runs, Runs),
            ("commit", Commits, Commits),
            ("COMMIT AND CHAIN", CommitsAndChains, CommitsAndChains),
            ("commit work and no chain", Commits, Commits),
            (
                "rollback work and chain",
                RollsBackAndChains,
                RollsBackAndChains,
            ),
            ("rollback to savepoint a", None, None),
            ("rollback to a", None, None),
            ("commit prepared 'x'", None, None),
            ("prepare transaction 'x'", Commits, Commits),
            ("create table t (a int)", CommitsImplicitly, Runs),
            ("create temporary table t (a int)", Runs, Runs),
            ("set names utf8mb4", None, None),
            ("show tables", None, None),
        ] {
            assert_eq!(effect(text, Syntax::MYSQL), mysql, "{text}");
            assert_eq!(effect(text, Syntax::POSTGRESQL), postgresql, "{text}");
        }
    }

    #[test]
    fn autocommit_is_found_among_settings() {
        use Effect::*;
        for (text, expected) in [
            ("SET autocommit=0", AutocommitOff),
            ("set session AUTOCOMMIT = OFF", AutocommitOff),
            ("set @@autocommit := 'off'", AutocommitOff),
            ("set @@session.`autocommit` = 0", AutocommitOff),
            (
                "set names utf8, autocommit = 1, sql_mode = ''",
                AutocommitOn,
            ),
            ("set @@session.autocommit = default", AutocommitOn),
            ("set global autocommit = 0", None),
            ("set @@global.autocommit = 0", None),
            ("set @autocommit = 0", None),
            ("set @x = 'autocommit=0'", None),
            ("set autocommit", AutocommitOn),
            ("SET @old = @@autocommit", None),
            ("SET @old = @@autocommit, autocommit = 0", AutocommitOff),
            ("set autocommit = 0, @a = 1", AutocommitOff),
            ("set @a = concat('x', autocommit, 1)", None),
            ("set @@global.`autocommit` = 0", None),
            ("set persist_only autocommit = 0", None),
            ("set global a = 1, session autocommit = 0", AutocommitOff),
        ] {
            assert_eq!(effect(text, Syntax::MYSQL), expected, "{text}");
        }
    }

    #[test]
    fn a_request_of_several_statements_has_the_effect_that_remains() {
        use Effect::*;
        for (effects, expected) in [
            (&[Begins, Runs, Commits][..], Runs),
            (&[Begins, Runs], Begins),
            (&[Runs, Commits], Commits),
            (&[Commits, Begins], CommitsAndChains),
            (&[RollsBack, Begins, Runs], RollsBackAndChains),
            (&[CommitsAndChains, Begins], CommitsAndChains),
            (&[Commits, Begins, Runs, Commits], Commits),
            (&[Runs, Begins], Begins),
            (&[None, Runs, None], Runs),
            (&[], None),
        ] {
            assert_eq!(Effect::of_several(effects), expected, "{effects:?}");
        }
        let kinds = [Kind::Set, Kind::Read, Kind::Write, Kind::Commit];
        assert_eq!(kind_of_several(&kinds), Kind::Write);
        assert_eq!(kind_of_several(&[]), Kind::Other);
    }

    #[test]
    fn the_used_schema_is_unquoted() {
        for (text, expected) in [
            ("use shop", Some(&b"shop"[..])),
            ("USE `my``shop` ;", Some(b"my`shop")),
            ("use", Option::None),
            ("use 'x'", Option::None),
        ] {
            let found = used_schema(text.as_bytes(), Syntax::MYSQL);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn codes_are_places() {
        for (place, effect) in Effect::ALL.into_iter().enumerate() {
            assert_eq!(effect as usize, place);
            assert_eq!(Effect::of_code(effect as u8), effect);
        }
        assert_eq!(Effect::of_code(200), Effect::None);
    }
}
