//! Whole dumps, run into a destination that keeps what it gets.

use std::io::{Read, Write as _};
use std::path::PathBuf;

use dbduel_driver::{Dialect, ErrorClass, QueryError, ServerError};

use crate::{Action, DumpError, Loaded, Refusal, Target, define, load_into};

/// Keeps statements, and rows of COPY after theirs.
#[derive(Default)]
struct Kept {
    statements: Vec<String>,
    request_bytes_max: Option<u64>,
}

impl crate::Destination for Kept {
    fn execute(&mut self, sql: &[u8]) -> Result<u64, Refusal> {
        if sql.starts_with(b"INSERT INTO `refused`") {
            return Err(Refusal::Server("error 1062 (23000): duplicate".to_owned()));
        }
        self.statements
            .push(String::from_utf8_lossy(sql).into_owned());
        Ok(2)
    }

    fn copy(&mut self, sql: &str, rows: &mut dyn Read) -> Result<(), Refusal> {
        let mut text = String::new();
        rows.read_to_string(&mut text).map_err(Refusal::Content)?;
        self.statements.push(format!("{sql}\n{text}"));
        Ok(())
    }

    fn request_bytes_max(&mut self) -> Result<Option<u64>, Refusal> {
        Ok(self.request_bytes_max)
    }
}

fn target(greeting: &str) -> Target {
    match greeting.strip_prefix("PostgreSQL ") {
        Some(version) => Target::named(Dialect::PostgreSql, version).unwrap(),
        None => Target::named(Dialect::MySql, greeting).unwrap(),
    }
}

fn load_bytes(dump: &[u8], greeting: &str, kept: &mut Kept) -> Result<Loaded, DumpError> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("shop.sql");
    std::fs::write(&path, dump).unwrap();
    load_into(&path, &target(greeting), kept, &mut |_| true)
}

/// The statements that run, and the names of the rules with counts and lines.
fn loaded(dump: &str, greeting: &str) -> (Vec<String>, Vec<(&'static str, u64, u64)>) {
    let mut kept = Kept::default();
    let loaded = load_bytes(dump.as_bytes(), greeting, &mut kept)
        .unwrap_or_else(|error| panic!("{greeting}: {error}"));
    let applied = loaded.applied.iter();
    let applied = applied.map(|applied| (applied.rule.name, applied.count, applied.line));
    (kept.statements, applied.collect())
}

fn refused(dump: &str, greeting: &str) -> String {
    let outcome = load_bytes(dump.as_bytes(), greeting, &mut Kept::default());
    outcome.map_or_else(
        |error| error.to_string(),
        |loaded| panic!("{dump}: {loaded:?}"),
    )
}

const MYSQL: &str = include_str!("../tests/dumps/mysql-8.0.sql");
const MARIADB: &str = include_str!("../tests/dumps/mariadb-11.8.sql");
const POSTGRESQL: &str = include_str!("../tests/dumps/postgresql-17.sql");

#[test]
fn a_dump_of_mysql_fits_mysql_with_little_and_mariadb_with_more() {
    let (at_home, rules) = loaded(MYSQL, "8.0.33");
    assert_eq!(
        rules,
        [
            ("replication", 3, 7),
            ("database", 2, 11),
            ("definer", 2, 49),
            ("event", 1, 62)
        ]
    );
    assert!(at_home.iter().any(|sql| sql.contains("utf8mb4_0900_ai_ci")));
    let (abroad, rules) = loaded(MYSQL, "10.11.19-MariaDB");
    let names: Vec<_> = rules.iter().map(|(name, ..)| *name).collect();
    assert_eq!(
        names,
        [
            "replication",
            "database",
            "invisible-column",
            "srid",
            "json",
            "collation-0900",
            "definer",
            "event"
        ]
    );
    let table = abroad.iter().find(|sql| sql.starts_with("CREATE TABLE"));
    let end = "COLLATE=utf8mb4_unicode_520_ci COMMENT='utf8mb4_0900_ai_ci; stays out'";
    assert!(table.is_some_and(|sql| sql.ends_with(end)), "{table:?}");
    assert!(
        !abroad.iter().any(|sql| sql.contains("DEFINER=")),
        "{abroad:?}"
    );
    let trigger = abroad.iter().find(|sql| sql.contains("TRIGGER")).unwrap();
    assert!(
        trigger.contains("SET NEW.note = 'it''s; done'; END"),
        "{trigger}"
    );
}

#[test]
fn a_trigger_loses_the_database_before_its_name() {
    let dump = |names: &str, body: &str| {
        format!(
            "DELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER {names} FOR EACH ROW {body} */;;\nDELIMITER ;\n"
        )
    };
    for (names, rules) in [
        (
            "`shop`.`kept` BEFORE UPDATE ON `shop`.`item`",
            vec!["definer", "trigger-database"],
        ),
        (
            "shop.`kept` BEFORE UPDATE ON `item`",
            vec!["definer", "trigger-database"],
        ),
        ("`kept` BEFORE UPDATE ON `item`", vec!["definer"]),
    ] {
        let (statements, applied) = loaded(&dump(names, "SET NEW.a = other.b"), "8.0.33");
        let [trigger] = statements.as_slice() else {
            panic!("{statements:?}");
        };
        assert!(
            trigger.contains("TRIGGER `kept` BEFORE UPDATE ON `item` FOR EACH ROW SET NEW.a ="),
            "{trigger}"
        );
        let applied: Vec<&str> = applied.iter().map(|(name, ..)| *name).collect();
        assert_eq!(applied, rules);
    }
    let names = "`shop`.`kept` BEFORE UPDATE ON `item`";
    let why = refused(
        &dump(names, "INSERT INTO `shop`.`log` VALUES (1)"),
        "8.0.33",
    );
    assert!(
        why.contains("shop.sql`:2:1: ") && why.contains("remove the name of the database"),
        "{why}"
    );
}

#[test]
fn definitions_of_one_contender_change_how_tables_are_stored_and_nothing_else() {
    let defined = |ddl: &str, greeting: &str| {
        let mut kept = Kept::default();
        let outcome = define(ddl, &target(greeting), &mut kept, &mut || true);
        (outcome.map_err(|error| error.to_string()), kept.statements)
    };
    for greeting in ["8.0.33", "11.8.2-MariaDB", "PostgreSQL 17.4"] {
        for end in ["", ";", ";\n-- the end\n"] {
            let ddl = format!(
                "CREATE INDEX named ON item (name);\n-- no more\nDROP INDEX priced ON item{end}"
            );
            let (outcome, statements) = defined(&ddl, greeting);
            assert_eq!(outcome.unwrap().statements, 2, "{greeting}");
            assert!(
                statements[1].contains("DROP INDEX priced ON item"),
                "{statements:?}"
            );
        }
        for (ddl, part) in [
            (
                "INSERT INTO item VALUES (1)",
                "`ddl`:1:1: only CREATE INDEX",
            ),
            (
                "CREATE INDEX a ON item (b);\nCREATE TABLE c (d int)",
                "`ddl`:2:1: only CREATE INDEX",
            ),
            ("DROP TABLE item", "only CREATE INDEX"),
            ("SET foreign_key_checks = 0", "only CREATE INDEX"),
            ("-- nothing", "no statement"),
        ] {
            let (outcome, _) = defined(ddl, greeting);
            let why = outcome.unwrap_err();
            assert!(why.contains(part), "{greeting}, {ddl}: {why}");
        }
    }
    let (outcome, _) = defined("ALTER TABLE item ENGINE = FEDERATED", "8.0.33");
    assert!(outcome.unwrap_err().contains("[engine]"));
}

#[test]
fn a_dump_of_mariadb_fits_mysql_with_other_collations() {
    let (_, rules) = loaded(MARIADB, "11.8.2-MariaDB");
    assert_eq!(rules, [("sandbox", 1, 1), ("definer", 1, 22)]);
    let (abroad, rules) = loaded(MARIADB, "8.0.33");
    assert_eq!(
        rules,
        [
            ("sandbox", 1, 1),
            ("collation-uca1400", 1, 10),
            ("no-auto-create-user", 1, 20),
            ("definer", 1, 22)
        ]
    );
    assert!(
        abroad
            .iter()
            .any(|sql| sql.contains("COLLATE=utf8mb4_0900_ai_ci"))
    );
    assert!(
        abroad
            .iter()
            .any(|sql| sql.ends_with("sql_mode = 'STRICT_TRANS_TABLES' */")),
        "{abroad:?}"
    );
}

#[test]
fn a_dump_of_postgresql_fits_newer_and_older_servers() {
    let (at_home, rules) = loaded(POSTGRESQL, "PostgreSQL 17.11");
    let expected = [
        ("restrict", 2, 5),
        ("database", 2, 17),
        ("owner", 2, 29),
        ("accounts", 1, 61),
    ];
    assert_eq!(rules, expected);
    assert!(
        at_home.contains(
            &"COPY public.item (id, name, note) FROM stdin\n1\tone\t\\N\n2\ttwo\\n;\tx\n"
                .to_owned()
        ),
        "{at_home:?}"
    );
    let (_, rules) = loaded(POSTGRESQL, "PostgreSQL 12.22");
    assert!(rules.contains(&("setting", 1, 9)), "{rules:?}");
}

#[test]
fn what_a_server_lacks_is_refused_with_its_place() {
    let table = |column: &str| {
        format!("-- MySQL dump\n\n  CREATE TABLE `t` (\n `a` int, {column}\n) ENGINE=InnoDB;\n")
    };
    for (dump, greeting, rule) in [
        (
            table("KEY `k` ((`a` + 1))"),
            "10.11.19-MariaDB",
            "functional-key",
        ),
        (table("KEY `k` (`a`,(`a` + 1))"), "5.6.24", "functional-key"),
        (table("`b` uuid"), "8.0.33", "of-mariadb"),
        (
            table("`b` text COLLATE utf8mb4_0900_as_cs"),
            "10.11.19-MariaDB",
            "collation-0900-other",
        ),
        (
            table("`b` text COLLATE utf8mb4_uca1400_as_cs"),
            "8.0.33",
            "collation-uca1400-other",
        ),
    ] {
        let why = refused(&dump, greeting);
        assert!(why.contains(&format!("[{rule}]")), "{why}");
        assert!(why.contains("shop.sql`:3:3: "), "{why}");
    }
    let (statements, _) = loaded(&table("KEY `k` ((`a` + 1))"), "8.0.33");
    assert_eq!(statements.len(), 1);
    let postgresql = |sql: &str| format!("-- PostgreSQL database dump\n{sql};\n");
    for (sql, greeting, rule) in [
        (
            "CREATE UNIQUE INDEX i ON t (a) NULLS NOT DISTINCT",
            "PostgreSQL 12.22",
            "nulls-not-distinct",
        ),
        (
            "CREATE VIEW v WITH (security_invoker='true') AS SELECT 1",
            "PostgreSQL 14.24",
            "security-invoker",
        ),
        (
            "CREATE EXTENSION IF NOT EXISTS postgis WITH SCHEMA public",
            "PostgreSQL 17.11",
            "extension",
        ),
        (
            "CREATE EXTENSION hstore",
            "PostgreSQL 12.22",
            "extension-before-13",
        ),
        (
            "SELECT pg_catalog.lo_create('16400')",
            "PostgreSQL 17.11",
            "large-objects",
        ),
    ] {
        let why = refused(&postgresql(sql), greeting);
        assert!(why.contains(&format!("[{rule}]")), "{why}");
    }
    loaded(
        &postgresql("CREATE EXTENSION IF NOT EXISTS hstore WITH SCHEMA public"),
        "PostgreSQL 17.11",
    );
}

#[test]
fn statements_that_are_no_data_do_not_run() {
    for sql in [
        "SET GLOBAL max_connections = 5",
        "SET @@GLOBAL.max_connections = 5",
        "SET PERSIST x = 1",
        "SET @a = (SELECT LOAD_FILE('/etc/passwd'))",
        "SET sql_mode = 'ANSI_QUOTES'",
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "SET sql_mode = ANSI",
        "SET sql_mode = 4",
        "SET sql_mode = 0x04",
        "SET sql_mode = x'414E5349'",
        "SET sql_mode = 'AN' 'SI'",
        "SET @mode = 'STRICT_ALL_TABLES,ANSI_QUOTES'",
        "SET @mode = 'AN\\SI'",
        "SOURCE /etc/passwd",
        "\\! id",
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
        "INSTALL PLUGIN a SONAME 'b'",
        "CREATE FUNCTION f RETURNS STRING SONAME 'x.so'",
        "CREATE TABLE t (a INT) DATA DIRECTORY='/x'",
        "CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION='mysql://a'",
        "CREATE TABLE t (a INT) ENGINE=CONNECT",
        "CREATE TABLE t (a INT) ENGINE CONNECT",
        "CREATE FUNCTION f(a INT) RETURNS SET('a') LANGUAGE JAVASCRIPT AS $$ 1 $$",
        "CREATE FUNCTION f() RETURNS TEXT CHARACTER SET utf8 LANGUAGE JAVASCRIPT AS $$ 1 $$",
        "CREATE TABLE t (a INT) /*!99999 COMMENT '*/' */",
        "CREATE TABLE t (a INT) /*!99999 -- */ ENGINE = CONNECT\n */",
        "CREATE VIEW v AS SELECT LOAD_FILE('/etc/passwd')",
        "CREATE PROCEDURE p() BEGIN SELECT 1 INTO OUTFILE '/x'; END",
        "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'a')",
        "INSERT INTO t SELECT LOAD_FILE('/etc/passwd')",
        "INSERT INTO t VALUES (LOAD_FILE('/etc/passwd'))",
        "INSERT INTO t VALUES (@@datadir)",
        "INSERT INTO t /*!50000 SELECT */ VALUES (1)",
        "INSERT INTO t SET a = 1",
        "/*!99999 INSERT INTO t VALUES (1) */ SHUTDOWN",
        "/*!50000 SHUTDOWN */",
        "SELECT LOAD_FILE('/etc/passwd')",
        "DO SLEEP(5)",
        "CALL p()",
        "UPDATE t SET a = 1",
        "KILL 5",
        "FLUSH LOGS",
        "nonsense",
    ] {
        let why = refused(&format!("-- MySQL dump\n{sql};\n"), "8.0.33");
        assert!(why.contains("shop.sql`:2:"), "{sql}: {why}");
    }
    for sql in [
        "COPY t FROM '/etc/passwd'",
        "COPY t FROM PROGRAM 'id'",
        "COPY t TO PROGRAM 'id'",
        "COPY t FROM stdin WITH (FORMAT csv)",
        "DO $$ BEGIN PERFORM pg_read_file('/etc/passwd'); END $$",
        "CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN pg_read_file('x'); END $$",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END",
        "CREATE FUNCTION language(language int) RETURNS int LANGUAGE c AS 'x'",
        "CREATE TABLE t (a int); SELECT 1",
        "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc.so', 'system'",
        "CREATE FUNCTION f() RETURNS int LANGUAGE plpython3u AS $$ x $$",
        "CREATE VIEW v AS SELECT pg_read_file('/etc/passwd')",
        "CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw",
        "CREATE LANGUAGE plperlu",
        "CREATE CAST (a AS b) WITHOUT FUNCTION",
        "ALTER SYSTEM SET x = 1",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_catalog.set_config('role', 'x', false)",
        "SELECT pg_catalog.setval('s', (SELECT 1))",
        "SET session_preload_libraries = 'x'",
        "SET standard_conforming_strings = off",
        "INSERT INTO t SELECT pg_read_file('x')",
        "INSERT INTO t VALUES (pg_read_file('x'))",
        "VACUUM",
        "LISTEN a",
        "\\! id\n",
        "\\copy t from program 'id'\n",
        "\\i /etc/passwd\n",
    ] {
        let why = refused(
            &format!("-- PostgreSQL database dump\n{sql};\n"),
            "PostgreSQL 17.11",
        );
        assert!(why.contains("shop.sql`:2:"), "{sql}: {why}");
    }
}

#[test]
fn words_of_clauses_are_names_elsewhere() {
    for sql in [
        "CREATE FUNCTION `f`(language INT) RETURNS int RETURN language",
        "CREATE PROCEDURE `p`(language INT) LANGUAGE SQL BEGIN SELECT language FROM t; END",
        "CREATE TABLE t (engine INT, `a` INT) ENGINE InnoDB",
        "SET sql_mode = @saved, @mode = 'x', NAMES utf8mb4",
    ] {
        let dump = format!("-- MySQL dump\nDELIMITER ;;\n{sql} ;;\n");
        assert_eq!(loaded(&dump, "8.0.33").0, [sql]);
    }
    for sql in [
        "CREATE FUNCTION f(language text) RETURNS text LANGUAGE sql AS $$ SELECT 1 $$",
        "CREATE FUNCTION f() RETURNS TABLE(language text) LANGUAGE plpgsql AS $$ x $$",
        "CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM u; DELETE FROM v)",
    ] {
        let dump = format!("-- PostgreSQL database dump\n{sql};\n");
        assert_eq!(loaded(&dump, "PostgreSQL 17.11").0, [sql]);
    }
    let sql_body = "-- PostgreSQL database dump\n\nCREATE FUNCTION f() RETURNS int\n BEGIN ATOMIC\n SELECT 1;\nEND;\n";
    let why = refused(sql_body, "PostgreSQL 17.11");
    assert!(why.contains(":3:1") && why.contains("[sql-body]"), "{why}");
}

#[test]
fn collations_of_a_database_are_replaced_too() {
    let dump =
        "-- MySQL dump\nALTER DATABASE `shop` CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci;\n";
    let (statements, rules) = loaded(dump, "10.11.19-MariaDB");
    assert_eq!(
        statements,
        ["ALTER DATABASE  CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci"]
    );
    let names: Vec<_> = rules.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["alter-database", "collation-0900"]);
}

#[test]
fn a_dump_of_several_databases_is_refused() {
    let why = refused("-- MySQL dump\nUSE `a`;\nUSE `b`;\n", "8.0.33");
    assert!(why.contains("`a` and `b`") && why.contains(":3:1"), "{why}");
    let dump = "-- PostgreSQL database dump\n\\connect a\nCREATE TABLE t (a int);\n\\connect b\n";
    assert!(refused(dump, "PostgreSQL 17.11").contains("`a` and `b`"));
    let why = refused("-- MySQL dump\nUSE `a`;\n", "8.0.33");
    assert!(why.contains("no statement"), "{why}");
}

#[test]
fn a_dump_of_the_other_dialect_is_refused_by_name() {
    let why = refused(POSTGRESQL, "8.0.33");
    assert!(why.contains("dump of PostgreSQL; MySQL 8.0.33"), "{why}");
    let why = refused(MYSQL, "PostgreSQL 17.11");
    assert!(why.contains("MySQL or MariaDB; PostgreSQL 17 "), "{why}");
    let why = refused("PRAGMA foreign_keys=OFF;\n", "8.0.33");
    assert!(why.contains("SQLite"), "{why}");
}

#[test]
fn errors_show_no_values() {
    let dump = "-- MySQL dump\nINSERT INTO `refused` VALUES ('secret');\n";
    let why = refused(dump, "8.0.33");
    assert!(
        why.contains(":2:1") && why.contains("1062") && !why.contains("secret"),
        "{why}"
    );
    let why = refused("-- MySQL dump\nUPDATE t SET a = 'secret';\n", "8.0.33");
    assert!(why.contains("UPDATE") && !why.contains("secret"), "{why}");
    let error = ServerError {
        class: ErrorClass::DuplicateKey,
        code: 1062,
        sqlstate: *b"23000",
        message: "Duplicate entry 'secret' for key 'mail'".to_owned(),
    };
    let sql = || "INSERT INTO t VALUES ('secret')".to_owned();
    let source = || std::io::Error::other("broken");
    let refusals = [
        QueryError::Refused { error, sql: sql() },
        QueryError::Broken {
            sql: sql(),
            source: source(),
        },
        QueryError::Protocol {
            sql: sql(),
            source: source().into(),
        },
        QueryError::TooMuch { sql: sql() },
    ];
    for (error, expected) in refusals
        .into_iter()
        .zip(["1062", "broken", "broken", "long"])
    {
        let refusal = format!("{:?}", Refusal::from(error));
        assert!(
            refusal.contains(expected) && !refusal.contains("secret"),
            "{refusal}"
        );
    }
}

#[test]
fn a_statement_longer_than_a_packet_names_the_setting() {
    let mut kept = Kept {
        request_bytes_max: Some(4096),
        ..Kept::default()
    };
    let dump = format!(
        "-- MySQL dump\nINSERT INTO `t` VALUES ('{}');\n",
        "x".repeat(8192)
    );
    let why = load_bytes(dump.as_bytes(), "8.0.33", &mut kept).unwrap_err();
    assert!(why.to_string().contains("max_allowed_packet"), "{why}");
}

#[test]
fn compressed_dumps_are_read_and_truncated_ones_refused() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(MYSQL.as_bytes()).unwrap();
    let mut compressed = encoder.finish().unwrap();
    let mut kept = Kept::default();
    let whole = load_bytes(&compressed, "8.0.33", &mut kept).unwrap();
    assert!(whole.rows > 0 && kept.statements.len() as u64 == whole.statements);
    compressed.truncate(compressed.len() / 2);
    let error = load_bytes(&compressed, "8.0.33", &mut Kept::default()).unwrap_err();
    assert!(matches!(error, DumpError::Read { .. }), "{error}");
}

#[test]
fn bytes_that_are_no_text_reach_the_server_unchanged() {
    struct Bytes(Vec<Vec<u8>>);
    impl crate::Destination for Bytes {
        fn execute(&mut self, sql: &[u8]) -> Result<u64, Refusal> {
            self.0.push(sql.to_vec());
            Ok(1)
        }
        fn copy(&mut self, _sql: &str, _rows: &mut dyn Read) -> Result<(), Refusal> {
            Ok(())
        }
        fn request_bytes_max(&mut self) -> Result<Option<u64>, Refusal> {
            Ok(None)
        }
    }
    let mut insert = b"INSERT INTO `t` VALUES (_binary '".to_vec();
    insert.extend((0..=255).filter(|byte| !b"'\\".contains(byte)));
    insert.extend(b"\\'\\\\')");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sql");
    std::fs::write(&path, [b"-- MySQL dump\n", &insert[..], b";\n"].concat()).unwrap();
    let mut kept = Bytes(Vec::new());
    load_into(&path, &target("8.0.33"), &mut kept, &mut |_| true).unwrap();
    assert_eq!(kept.0, [insert]);
}

#[test]
fn a_load_ends_when_it_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sql");
    std::fs::write(&path, POSTGRESQL).unwrap();
    let mut calls = 0;
    let mut observe = |_| {
        calls += 1;
        calls < 4
    };
    let target = target("PostgreSQL 17.11");
    let outcome = load_into(&path, &target, &mut Kept::default(), &mut observe);
    assert!(matches!(outcome, Err(DumpError::Cancelled)), "{outcome:?}");
}

#[test]
fn every_rule_has_a_name_of_its_own_and_ends_no_sentence() {
    let mut names = std::collections::BTreeSet::new();
    for rule in crate::rules::RULES {
        assert!(names.insert(rule.name), "{}", rule.name);
        for text in [rule.found, rule.reason] {
            assert!(!text.is_empty() && !text.ends_with('.'), "{}", rule.name);
        }
        let is_known = [
            Action::Rewritten,
            Action::Dropped,
            Action::Reported,
            Action::Refused,
        ];
        assert!(is_known.contains(&rule.action));
    }
}
