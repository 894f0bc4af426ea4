//! The table of rules.

use super::{Action, Rule};

/// Shorthand for a rule.
const fn rule(
    name: &'static str,
    found: &'static str,
    targets: &'static str,
    action: Action,
    reason: &'static str,
) -> Rule {
    Rule {
        name,
        found,
        targets,
        action,
        reason,
    }
}

const MYSQL_FAMILY: &str = "MySQL, MariaDB";
const POSTGRESQL: &str = "PostgreSQL";
const ALL: &str = "all";

macro_rules! rules {
    ($($name:ident = ($($value:expr),+ $(,)?);)+) => {
        $(pub static $name: Rule = rule($($value),+);)+
        /// Every rule that can apply to a statement.
        pub static RULES: &[&Rule] = &[$(&$name),+];
    };
}

rules! {
    SANDBOX = (
        "sandbox", "line that turns on the sandbox of the client", MYSQL_FAMILY, Action::Dropped,
        "it is for the client of MariaDB, and clients of MySQL take it for a command",
    );
    COLLATION_0900 = (
        "collation-0900", "collation utf8mb4_0900_ai_ci or _bin", "MariaDB before 11.8, MySQL before 8.0", Action::Rewritten,
        "the server lacks it; utf8mb4_unicode_520_ci and utf8mb4_bin take its place, with other weights and padding",
    );
    COLLATION_0900_OTHER = (
        "collation-0900-other", "collation of the family 0900 without a counterpart", "MariaDB before 11.8, MySQL before 8.0", Action::Refused,
        "the server lacks it; change the collation in the dump",
    );
    COLLATION_UCA1400 = (
        "collation-uca1400", "collation uca1400_ai_ci", "MySQL, MariaDB before 10.10", Action::Rewritten,
        "the server lacks it; utf8mb4_0900_ai_ci, or unicode_520_ci where the server lacks that too or for utf8mb3, takes its place, with other weights and padding",
    );
    COLLATION_UCA1400_OTHER = (
        "collation-uca1400-other", "collation of the family uca1400 without a counterpart", "MySQL, MariaDB before 10.10", Action::Refused,
        "the server lacks it; change the collation in the dump",
    );
    INVISIBLE = (
        "invisible-column", "invisible column", "MariaDB, MySQL before 8.0.23", Action::Reported,
        "the server skips the word, so the column is visible",
    );
    SRID = (
        "srid", "SRID of a column", "MariaDB, MySQL before 8.0.3", Action::Reported,
        "the server skips the word, so the column takes any SRID and its index may be unused",
    );
    FUNCTIONAL_KEY = (
        "functional-key", "index of an expression", "MariaDB, MySQL before 8.0.13", Action::Refused,
        "the server has none; index a generated column instead",
    );
    JSON = (
        "json", "column of type JSON", "MariaDB", Action::Reported,
        "the server keeps the text as it was written (longtext), MySQL a binary form",
    );
    OF_MARIADB = (
        "of-mariadb", "sequence, type, engine or versioning of MariaDB", "MySQL", Action::Refused,
        "the server has no counterpart",
    );
    ENGINE = (
        "engine", "storage engine that reaches beyond the server's own tables, or is unknown", MYSQL_FAMILY, Action::Refused,
        "convert the table before the dump (`ALTER TABLE … ENGINE = InnoDB`)",
    );
    SERVER_FILE = (
        "server-file", "file of the server (DATA DIRECTORY, INTO OUTFILE, LOAD DATA, SONAME, a function that reads files)", ALL, Action::Refused,
        "dumps have none; remove the statement or the clause",
    );
    DEFINER = (
        "definer", "DEFINER", MYSQL_FAMILY, Action::Rewritten,
        "the account is missing on this server; without the clause the account that loads the dump is the definer",
    );
    TRIGGER_DATABASE = (
        "trigger-database", "database before the name of a trigger or its table", MYSQL_FAMILY, Action::Rewritten,
        "servers repeat the statement that made the trigger, and the contender's database has another name",
    );
    TRIGGER_BODY = (
        "trigger-body", "trigger whose statements name the database of the dump", MYSQL_FAMILY, Action::Refused,
        "the contender's database has another name; remove the name of the database from the trigger and dump again",
    );
    NO_AUTO_CREATE_USER = (
        "no-auto-create-user", "NO_AUTO_CREATE_USER in sql_mode", "MySQL 8.0 and newer", Action::Rewritten,
        "the server lacks this mode, which concerns accounts only; the word is removed",
    );
    SQL_MODE_QUOTES = (
        "sql-mode-quotes", "sql_mode that changes the meaning of quotes (ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ORACLE, …)", MYSQL_FAMILY, Action::Refused,
        "statements could be read in two ways; dump with the default sql_mode and without `--compatible`",
    );
    REPLICATION = (
        "replication", "state of replication (GTID_PURGED, SQL_LOG_BIN, CHANGE MASTER, PUBLICATION, SUBSCRIPTION)", ALL, Action::Dropped,
        "it is no data",
    );
    EVENT = (
        "event", "event", MYSQL_FAMILY, Action::Dropped,
        "events change data by themselves",
    );
    ROCKSDB = (
        "rocksdb-bulk-load", "statement in a prepared text", MYSQL_FAMILY, Action::Dropped,
        "dumps prepare statements only to set the bulk load of RocksDB",
    );
    ACCOUNTS = (
        "accounts", "account, role or privilege", ALL, Action::Dropped,
        "the account that runs the statements owns the whole database",
    );
    DATABASE = (
        "database", "CREATE DATABASE, USE or \\connect", ALL, Action::Dropped,
        "the dump goes into the contender's own database",
    );
    NAMES_OF_DATABASES = (
        "several-databases", "second database", ALL, Action::Refused,
        "a workload has one database; write each into a dump of its own",
    );
    ALTER_DATABASE = (
        "alter-database", "ALTER DATABASE", MYSQL_FAMILY, Action::Rewritten,
        "it changes the character set of the contender's own database, whose name is left out",
    );
    RESTRICT = (
        "restrict", "\\restrict and \\unrestrict", POSTGRESQL, Action::Dropped,
        "they are for psql",
    );
    CLIENT_COMMAND = (
        "client-command", "command of the client", ALL, Action::Refused,
        "it is no SQL; remove the line",
    );
    SETTING = (
        "setting", "setting that the server lacks", POSTGRESQL, Action::Dropped,
        "newer versions have it, and dumps set it to its default",
    );
    TABLESPACE = (
        "tablespace", "default_tablespace", POSTGRESQL, Action::Dropped,
        "the contender's server has one tablespace",
    );
    STRINGS = (
        "strings", "standard_conforming_strings = off", POSTGRESQL, Action::Refused,
        "statements could be read in two ways; dump with the default",
    );
    OWNER = (
        "owner", "OWNER TO", POSTGRESQL, Action::Dropped,
        "the role is missing on this server; the role that loads the dump is the owner",
    );
    ROW_SECURITY = (
        "row-security", "policy of row-level security", POSTGRESQL, Action::Dropped,
        "its roles are missing, and the owner of a table is not subject to it: statements see all rows",
    );
    SCHEMA_PUBLIC = (
        "schema-public", "CREATE SCHEMA public or a comment on it", POSTGRESQL, Action::Dropped,
        "it exists",
    );
    EXTENSION_COMMENT = (
        "extension-comment", "comment on an extension", POSTGRESQL, Action::Dropped,
        "only the extension's owner may write it",
    );
    EXTENSION = (
        "extension", "extension", POSTGRESQL, Action::Refused,
        "only those of contrib that PostgreSQL marks as trusted are loaded; remove it and what uses it from the dump",
    );
    EXTENSION_OLD = (
        "extension-before-13", "extension", "PostgreSQL before 13", Action::Refused,
        "before PostgreSQL 13 only superusers create extensions, and dumps are loaded without; use 13 or newer",
    );
    EVENT_TRIGGER = (
        "event-trigger", "event trigger", POSTGRESQL, Action::Dropped,
        "only superusers create them, and they concern definitions only",
    );
    STATISTICS = (
        "statistics", "statistics of the optimizer", POSTGRESQL, Action::Dropped,
        "they are gathered after the load, for all contenders",
    );
    NULLS_NOT_DISTINCT = (
        "nulls-not-distinct", "NULLS NOT DISTINCT", "PostgreSQL before 15", Action::Refused,
        "the server lacks it",
    );
    SECURITY_INVOKER = (
        "security-invoker", "view with security_invoker", "PostgreSQL before 15", Action::Refused,
        "the server lacks it",
    );
    LANGUAGE = (
        "language", "function in a language other than SQL and PL/pgSQL", ALL, Action::Refused,
        "such functions are not loaded from dumps; remove it and what uses it",
    );
    SQL_BODY = (
        "sql-body", "function with a body that is no string (BEGIN ATOMIC)", POSTGRESQL, Action::Refused,
        "the statements of its body are not told from those of the dump; write the body as a string",
    );
    LARGE_OBJECTS = (
        "large-objects", "large object", POSTGRESQL, Action::Refused,
        "they are not loaded from dumps; dump with `--no-large-objects` (`--no-blobs` before 16)",
    );
}
