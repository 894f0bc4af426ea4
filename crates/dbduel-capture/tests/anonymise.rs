//! Captures with other values: no literal of the log is in them, and all else is as it was.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dbduel_capture::anonymise::{Destination, KEY_BYTES, Replacer, anonymise};
use dbduel_capture::import::{ImportOptions, import};
use dbduel_capture::store::Capture;
use dbduel_sql::{Kind, Lexer, Syntax, TokenKind};
use proptest::prelude::*;
use tempfile::TempDir;

/// Shortest literal that must not come back, characters.
const SECRET_MIN: usize = 4;

struct Pair {
    dir: TempDir,
    source: Capture,
    hidden: Capture,
}

impl Pair {
    fn of(log: &Path, prefix: Option<&[u8]>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (source, target) = (dir.path().join("a.cap"), dir.path().join("b.cap"));
        let options = ImportOptions {
            logs: vec![log.to_owned()],
            target: source.clone(),
            prefix: prefix.map(<[u8]>::to_vec),
            ..ImportOptions::default()
        };
        import(&options, &mut |_| Ok(())).unwrap();
        let source = Capture::open(&source).unwrap();
        let destination = Destination {
            target: &target,
            check: &mut |_| Ok(()),
        };
        let mut replacer = Replacer::new(&[42; KEY_BYTES]);
        anonymise(&source, &mut replacer, destination).unwrap();
        let hidden = Capture::open(&target).unwrap();
        hidden.verify(&mut || Ok(())).unwrap();
        Pair {
            dir,
            source,
            hidden,
        }
    }

    fn text(log: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, log).unwrap();
        Self::of(&path, None)
    }

    fn dropped(&self) -> u64 {
        let anonymised = self.hidden.manifest().anonymised.as_ref().unwrap();
        anonymised.dropped.iter().map(|dropped| dropped.count).sum()
    }

    /// All bytes that were written.
    fn written(&self) -> Vec<u8> {
        let entries = fs::read_dir(self.dir.path().join("b.cap")).unwrap();
        let files = entries.map(|entry| fs::read(entry.unwrap().path()).unwrap());
        files
            .flat_map(|mut file| {
                file.push(b'\n');
                file
            })
            .collect()
    }
}

/// Values of strings as they stand between their quotes, numbers, and all else of a statement.
fn parts(text: &[u8], syntax: Syntax, literals: &mut Vec<Vec<u8>>, rest: &mut Vec<u8>) {
    // What `PREPARE … FROM 'text'` prepares is a statement.
    let mut before: &[u8] = b"";
    let is_preparation = dbduel_sql::kind_of(text, syntax) == Kind::Prepare;
    for token in Lexer::new(text, syntax) {
        let bytes = token.of(text);
        let is_code = is_preparation && before.eq_ignore_ascii_case(b"FROM");
        before = bytes;
        match token.kind {
            TokenKind::String => {
                let open = bytes
                    .iter()
                    .position(|byte| b"'\"$".contains(byte))
                    .unwrap();
                let inner = bytes.get(open + 1..bytes.len() - 1).unwrap_or_default();
                let is_body = bytes.starts_with(b"$") && text.get(..2) == Some(b"DO");
                match is_code || is_body {
                    true => parts(inner, syntax, literals, rest),
                    false => literals.push(inner.to_vec()),
                }
            }
            TokenKind::Number => literals.push(bytes.to_vec()),
            TokenKind::Executed => {
                parts(dbduel_sql::executed(bytes), syntax, literals, rest);
            }
            TokenKind::Word
            | TokenKind::Name
            | TokenKind::Parameter
            | TokenKind::Hint
            | TokenKind::Sign
            | TokenKind::Terminator => {
                rest.extend_from_slice(bytes);
                rest.push(b' ');
            }
        }
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(bytes, wanted).is_some()
}

/// `log_line_prefix` of the samples of stderr logs.
fn prefix(name: &str) -> Option<&'static [u8]> {
    match name {
        _ if name.ends_with("stderr.log") => Some(b"%m [%p] %c %l %v %x %u@%d %a %h %e "),
        _ if name.contains("-mode-") => Some(b"%c:%l %x "),
        _ => None,
    }
}

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Texts of the samples that stay, as they are no data.
const KEPT: [&str; 0] = [];

/// True for a literal that must not come back: not one of the statements' own words, and changed by the maps of values.
fn is_secret(literal: &[u8], words: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(literal) else {
        return literal.len() >= SECRET_MIN;
    };
    let has_content = text.chars().filter(|one| one.is_alphanumeric()).count() >= SECRET_MIN;
    has_content && !KEPT.contains(&text) && !contains(words, literal)
}

#[test]
fn samples_keep_their_shape_and_no_literal() {
    let mut secrets = 0;
    for path in samples() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let pair = Pair::of(&path, prefix(&name));
        let (before, after) = (
            &pair.source.manifest().counts,
            &pair.hidden.manifest().counts,
        );
        let dropped = pair.dropped();
        assert_eq!(before.statements, after.statements + dropped, "{name}");
        assert_eq!(before.sessions, after.sessions, "{name}");
        assert_eq!(before.whole_sessions, after.whole_sessions, "{name}");
        if dropped == 0 {
            assert_eq!(before, after, "{name}");
        }
        let classes = |capture: &Capture| -> BTreeSet<String> {
            capture
                .classes()
                .iter()
                .map(|class| class.id.clone())
                .collect()
        };
        assert!(
            classes(&pair.hidden).is_subset(&classes(&pair.source)),
            "{name}"
        );
        let syntax = pair.source.syntax();
        let (mut literals, mut words) = (Vec::new(), Vec::new());
        for index in 0..pair.source.statements() {
            parts(
                pair.source.text(index).unwrap(),
                syntax,
                &mut literals,
                &mut words,
            );
            let parameters = pair.source.parameters(index).flatten();
            literals.extend(parameters.map(<[u8]>::to_vec));
        }
        let written = pair.written();
        literals.sort();
        literals.dedup();
        for literal in literals {
            if is_secret(&literal, &words) {
                secrets += 1;
                let text = String::from_utf8_lossy(&literal).into_owned();
                assert!(!contains(&written, &literal), "{name}: `{text}`");
            }
        }
        for user in &pair.source.manifest().users {
            assert!(
                !pair.hidden.manifest().users.contains(user) || user.is_empty(),
                "{name}"
            );
        }
    }
    assert!(secrets > 100, "{secrets}");
}

/// A value that no word of a statement is.
fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z]{7,14}",
        "[a-z]{4,8}@[a-z]{4,8}\\.example",
        "[1-9][0-9]{6,17}",
        "[1-9][0-9]{5,8}\\.[1-9]{2,4}",
        "20[0-3][0-9]-0[1-9]-[12][0-9]",
        "20[0-3][0-9]-0[1-9]-[12][0-9] 1[0-9]:[0-5][0-9]:[0-5][0-9]",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{11}",
        "1[0-9]{2}\\.1[0-9]{2}\\.2[0-4][0-9]\\.[1-9][0-9]",
        "[äöüßéа-я]{5,9}",
        "[漢-龜]{4,6}",
        "\\$P\\$B[a-zA-Z0-9./]{20,30}",
        "\\{\"[a-z]{6,9}\": \"[a-z]{6,9}\", \"[a-z]{6}\": [1-9][0-9]{6}\\}",
    ]
}

/// A statement with a value in it.
fn statement(value: &str, form: usize) -> String {
    let quoted = value.replace('\\', "\\\\").replace('\'', "''");
    let hex: String = value.bytes().map(|byte| format!("{byte:02X}")).collect();
    let double = value.replace('"', "\"\"");
    match form {
        0 => format!("SELECT a FROM t WHERE b = '{quoted}'"),
        1 => format!("SELECT a FROM t WHERE b LIKE '{quoted}%' AND c IN (1, 2)"),
        2 => format!("INSERT INTO t (a, b) VALUES (5, '{quoted}'), (6, \"{double}\")"),
        3 => format!(
            "SELECT a FROM t WHERE b = 0x{hex} /* {} */",
            value.replace("*/", "")
        ),
        4 => format!("SELECT a FROM t WHERE b = x'{hex}' -- {value}\n"),
        5 => format!("UPDATE t SET a = _utf8mb4'{quoted}' WHERE c = N'{quoted}'"),
        6 => format!("SET @a = '{quoted}'"),
        7 => format!("SELECT JSON_EXTRACT(a, '$.b') FROM t WHERE b = concat('{quoted}', 7)"),
        8 => format!(
            "PREPARE p FROM 'SELECT a FROM t WHERE b = \\'{}\\''",
            quoted.replace("''", "\\'\\'")
        ),
        _ => format!("SELECT a FROM t WHERE b = '{quoted}' # {value}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2026),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_generated_value_comes_back(values in proptest::collection::vec((secret(), 0_usize..10), 1..30)) {
        let mut log = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: SOCKET\n\
             Time                 Id Command    Argument\n2026-11-28T00:00:01.000000Z\t    7 Connect\tannlee@annhost on shop using Socket\n".to_owned();
        for (value, form) in &values {
            log += &format!("2026-11-28T00:00:01.000100Z\t    7 Query\t{}\n", statement(value, *form));
        }
        let pair = Pair::text(&log);
        prop_assert_eq!(pair.dropped(), 0);
        let (before, after) = (&pair.source.manifest().counts, &pair.hidden.manifest().counts);
        prop_assert_eq!(before, after);
        for (one, other) in pair.source.classes().iter().zip(pair.hidden.classes()) {
            prop_assert_eq!(&one.id, &other.id);
            prop_assert_eq!(one.statements, other.statements);
        }
        let written = pair.written();
        let mut secrets: Vec<String> = vec!["annlee".into(), "annhost".into()];
        for (value, _) in &values {
            secrets.push(value.clone());
            secrets.push(value.bytes().map(|byte| format!("{byte:02X}")).collect());
            // The parts of a document.
            let words = value.split(|one: char| !one.is_alphanumeric());
            secrets.extend(words.filter(|word| value.contains('"') && word.len() >= 6).map(str::to_owned));
        }
        for secret in secrets {
            prop_assert!(!contains(&written, secret.as_bytes()), "{}", secret);
        }
    }
}

#[test]
fn equal_values_stay_equal_and_keys_meet() {
    let log = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time                 Id Command    Argument\n\
         2026-11-28T00:00:01.000100Z\t    7 Query\tSELECT 'Annlee', 'annlee', 123456, '123456'\n\
         2026-11-28T00:00:02.000100Z\t    7 Query\tSELECT 'Annlee', 'ann%', 123457, '2026-11-28'\n";
    let pair = Pair::text(log);
    let mut found = Vec::new();
    for index in 0..2 {
        let (mut literals, mut words) = (Vec::new(), Vec::new());
        let text = pair.hidden.text(index).unwrap();
        parts(text, Syntax::MYSQL, &mut literals, &mut words);
        let literals = literals
            .into_iter()
            .map(|literal| String::from_utf8(literal).unwrap());
        found.push(literals.collect::<Vec<String>>());
    }
    let (one, other) = (&found[0], &found[1]);
    assert_eq!(one[0], other[0]);
    assert_eq!(one[0].to_lowercase(), one[1]);
    assert_eq!(one[2], one[3]);
    assert!(one[1].starts_with(other[1].trim_end_matches('%')));
    let number = |text: &str| text.parse::<u64>().unwrap();
    assert!(number(&one[2]) < number(&other[2]));
    // The log's own date moves as those in it.
    let moved = pair.hidden.manifest().span.start_unix_ns.unwrap();
    let days = (pair.source.manifest().span.start_unix_ns.unwrap() - moved) / 86_400_000_000_000;
    assert!(days % 7 == 0 && days > 180);
    assert_ne!(other[3], "2026-11-28");
}
