//! Initial settings of a session, so that our statements mean the same on every server.
//!
//! A server, an account or an `init_connect` statement may begin sessions without autocommit, with truncated or
//! changed rows, with double-quoted strings, or with an idle timeout. Each of these is set to what our statements rely
//! on, and nothing else: what affects speed (isolation, durability, locks) stays the server's, for it is what is
//! measured. Scripts outside of contests run with the server's session settings, as in sysbench.

use super::Dialect;

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionStart {
    /// Unmeasured statements of dbduel.
    #[default]
    Ours,
    /// Measured statements: isolation as the server or the workload sets it, lock timeouts as the server sets them.
    Measured,
    /// Measured statements of a capture: as [`SessionStart::Measured`], and MySQL and MariaDB keep the SQL modes that decide what an
    /// application's statements do.
    Captured,
    /// Queries about sessions as the server begins them.
    AsServer,
}

/// SQL modes of MySQL and MariaDB that reject values and statements; every session keeps them. All others change the
/// meaning of statements.
const KEPT_MODES: [&str; 8] = [
    "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_AUTO_CREATE_USER",
    "NO_ENGINE_SUBSTITUTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
];

/// Modes that change what statements do: sessions of a capture keep these, too. The others change how a statement's text is read (texts in
/// double quotes become names, a backslash is a character, BEGIN opens a block of a procedure), which decided what of a capture may run.
const KEPT_MODES_OF_CAPTURES: [&str; 12] = [
    "ALLOW_INVALID_DATES",
    "EMPTY_STRING_IS_NULL",
    "HIGH_NOT_PRECEDENCE",
    "IGNORE_SPACE",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_UNSIGNED_SUBTRACTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "PIPES_AS_CONCAT",
    "REAL_AS_FLOAT",
    "SIMULTANEOUS_ASSIGNMENT",
    "TIME_ROUND_FRACTIONAL",
    "TIME_TRUNCATE_FRACTIONAL",
];

/// Least idle timeout of a session, seconds; the server's own default.
const IDLE_S: u32 = 28_800;

/// The statement that begins a session on a server of this version; `None` to keep the server's settings.
pub(super) fn statement(
    dialect: Dialect,
    version: &str,
    session_start: SessionStart,
) -> Option<String> {
    match (dialect, session_start) {
        // A connection of SQLite is set when it opens its file.
        (_, SessionStart::AsServer) | (Dialect::Sqlite, _) => None,
        (Dialect::MySql, session_start) => Some(of_mysql(version, session_start)),
        (Dialect::PostgreSql, session_start) => Some(of_postgresql(version, session_start)),
    }
}

/// True for a statement that begins a session on MySQL or MariaDB.
pub(crate) fn is_start(sql: &[u8]) -> bool {
    sql.starts_with(MYSQL_START.as_bytes())
}

/// Beginning of that statement.
const MYSQL_START: &str = "SET SESSION autocommit = 1, ";

fn of_mysql(version: &str, session_start: SessionStart) -> String {
    let further: &[&str] = match session_start {
        SessionStart::Captured => &KEPT_MODES_OF_CAPTURES,
        SessionStart::Ours | SessionStart::Measured | SessionStart::AsServer => &[],
    };
    let modes = KEPT_MODES.iter().chain(further).map(|mode| {
        // Nothing where the server does not know it, or does not have it on.
        format!("IF(FIND_IN_SET('{mode}', @@sql_mode), '{mode}', NULL)")
    });
    let modes: Vec<String> = modes.collect();
    let mut settings = vec![
        "completion_type = 0".to_owned(),
        "sql_safe_updates = 0".to_owned(),
        // All rows.
        "sql_select_limit = 18446744073709551615".to_owned(),
        // The larger of an unsigned and a signed number is a decimal to MySQL.
        format!("wait_timeout = CAST(GREATEST(@@wait_timeout, {IDLE_S}) AS UNSIGNED)"),
        "character_set_client = utf8mb4".to_owned(),
        "character_set_results = utf8mb4".to_owned(),
        format!("sql_mode = CONCAT_WS(',', {})", modes.join(", ")),
    ];
    let is_mariadb = version.contains("MariaDB");
    // Where MariaDB says which version of MySQL it replaces.
    let number = numbers(version.strip_prefix("5.5.5-").unwrap_or(version));
    let since = |first: [u32; 3]| number >= first;
    let limit = match is_mariadb {
        true => since([10, 1, 1]).then_some("max_statement_time"),
        false => since([5, 7, 8]).then_some("max_execution_time"),
    };
    let read_only = match is_mariadb {
        true if since([11, 1, 1]) => Some("transaction_read_only"),
        true => since([10, 0, 0]).then_some("tx_read_only"),
        false if since([5, 7, 20]) => Some("transaction_read_only"),
        false => since([5, 6, 5]).then_some("tx_read_only"),
    };
    settings.extend(
        limit
            .into_iter()
            .chain(read_only)
            .map(|name| format!("{name} = 0")),
    );
    if is_mariadb && since([10, 3, 0]) {
        let idle =
            ["", "_readonly", "_write"].map(|kind| format!("idle{kind}_transaction_timeout = 0"));
        settings.extend(idle);
    }
    format!("{MYSQL_START}SESSION {}", settings.join(", SESSION "))
}

fn of_postgresql(version: &str, session_start: SessionStart) -> String {
    let mut settings = vec![
        ("standard_conforming_strings", "on"),
        ("bytea_output", "hex"),
        ("datestyle", "ISO"),
        ("intervalstyle", "postgres"),
        ("default_transaction_read_only", "off"),
        ("statement_timeout", "0"),
    ];
    let [major, minor, _] = numbers(version);
    for (since, name) in [
        ([9, 6], "idle_in_transaction_session_timeout"),
        ([14, 0], "idle_session_timeout"),
        ([17, 0], "transaction_timeout"),
    ] {
        if [major, minor] >= since {
            settings.push((name, "0"));
        }
    }
    if session_start == SessionStart::Ours {
        settings.extend([
            ("default_transaction_isolation", "'read committed'"),
            ("lock_timeout", "0"),
        ]);
    }
    let settings = settings.iter();
    let settings: Vec<String> = settings
        .map(|(name, value)| format!("SET {name} = {value}"))
        .collect();
    // A path on which tables can be made is the user's choice.
    format!(
        "{}; SELECT set_config('search_path', 'public', false) \
         WHERE coalesce(current_schema(), 'pg_catalog') IN ('pg_catalog', 'information_schema')",
        settings.join("; ")
    )
}

/// The first three numbers of a version.
fn numbers(version: &str) -> [u32; 3] {
    let mut found = [0; 3];
    let digits = |c: char| !c.is_ascii_digit();
    for (place, text) in found.iter_mut().zip(version.split(digits)) {
        *place = text.parse().unwrap_or(0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_the_greeting_has_it() {
        assert_eq!(numbers("8.0.36-0ubuntu1"), [8, 0, 36]);
        assert_eq!(numbers("17.2 (Debian 17.2-1)"), [17, 2, 0]);
        assert_eq!(numbers("18beta1"), [18, 0, 0]);
        assert_eq!(numbers(""), [0, 0, 0]);
    }

    #[test]
    fn a_server_is_asked_for_settings_that_its_version_has() {
        let has = |version: &str, name: &str| of_mysql(version, SessionStart::Ours).contains(name);
        for (version, limit, read_only) in [
            ("5.5.62", None, None),
            ("5.6.51", None, Some("SESSION tx_read_only")),
            (
                "8.0.36",
                Some("max_execution_time"),
                Some("transaction_read_only"),
            ),
            (
                "5.5.5-10.11.6-MariaDB-1",
                Some("max_statement_time"),
                Some("SESSION tx_read_only"),
            ),
            (
                "11.8.2-MariaDB",
                Some("max_statement_time"),
                Some("transaction_read_only"),
            ),
        ] {
            for name in [
                "max_execution_time",
                "max_statement_time",
                "SESSION tx_read_only",
                "transaction_read_only",
            ] {
                let is_expected = Some(name) == limit || Some(name) == read_only;
                assert_eq!(has(version, name), is_expected, "{version}: {name}");
            }
            assert_eq!(
                has(version, "idle_write_transaction_timeout"),
                version.contains("MariaDB")
            );
        }
        let has =
            |version: &str, name: &str| of_postgresql(version, SessionStart::Ours).contains(name);
        assert!(!has("9.5.25", "idle_") && has("9.6.24", "idle_in_transaction"));
        assert!(!has("13.4", "idle_session_timeout") && has("14.0", "idle_session_timeout"));
        assert!(!has("16.9", "SET transaction_timeout") && has("17.0", "SET transaction_timeout"));
    }

    #[test]
    fn sessions_of_a_capture_keep_modes_that_change_values_and_none_that_changes_the_reading() {
        let has = |session_start, mode: &str| of_mysql("8.0.33", session_start).contains(mode);
        for mode in ["PIPES_AS_CONCAT", "NO_AUTO_VALUE_ON_ZERO"] {
            assert!(has(SessionStart::Captured, mode), "{mode}");
            assert!(!has(SessionStart::Measured, mode), "{mode}");
        }
        for mode in ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE"] {
            assert!(!has(SessionStart::Captured, mode), "{mode}");
        }
    }

    #[test]
    fn what_is_measured_keeps_its_isolation_and_questions_keep_everything() {
        let of = |session_start| statement(Dialect::PostgreSql, "17.2", session_start);
        assert!(of(SessionStart::Ours).unwrap().contains("isolation"));
        assert!(!of(SessionStart::Measured).unwrap().contains("isolation"));
        for dialect in [Dialect::MySql, Dialect::PostgreSql] {
            assert_eq!(statement(dialect, "17.2", SessionStart::AsServer), None);
        }
    }
}
