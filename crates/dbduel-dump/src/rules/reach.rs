//! Functions in definitions that reach beyond the database.
//!
//! A dump defines functions of its own, which its views, defaults and triggers call, so a list of what is harmless would refuse them. The
//! account that loads has no right to what these reach; the list names it before anything is loaded.

/// Functions of MySQL, MariaDB and PostgreSQL, of their bundled extensions and of widespread libraries, that reach files, programs, other sessions or the server.
const FUNCTIONS: [&str; 40] = [
    "LOAD_FILE",
    "SET_CONFIG",
    "QUERY_TO_XML",
    "QUERY_TO_XMLSCHEMA",
    "QUERY_TO_XML_AND_XMLSCHEMA",
    "CURSOR_TO_XML",
    "DATABASE_TO_XML",
    "TABLE_TO_XML",
    "SYS_EXEC",
    "SYS_EVAL",
    "MASTER_POS_WAIT",
    "SOURCE_POS_WAIT",
    "WAIT_FOR_EXECUTED_GTID_SET",
    "PG_READ_FILE",
    "PG_READ_BINARY_FILE",
    "PG_STAT_FILE",
    "PG_FILE_WRITE",
    "PG_FILE_READ",
    "PG_FILE_RENAME",
    "PG_FILE_UNLINK",
    "PG_FILE_SYNC",
    "PG_LOGDIR_LS",
    "PG_CURRENT_LOGFILE",
    "LO_IMPORT",
    "LO_EXPORT",
    "PG_RELOAD_CONF",
    "PG_ROTATE_LOGFILE",
    "PG_TERMINATE_BACKEND",
    "PG_CANCEL_BACKEND",
    "PG_SWITCH_WAL",
    "PG_SWITCH_XLOG",
    "PG_PROMOTE",
    "PG_START_BACKUP",
    "PG_STOP_BACKUP",
    "PG_BACKUP_START",
    "PG_BACKUP_STOP",
    "PG_CREATE_PHYSICAL_REPLICATION_SLOT",
    "PG_CREATE_LOGICAL_REPLICATION_SLOT",
    "PG_DROP_REPLICATION_SLOT",
    "DBLINK",
];
/// Beginnings of names of functions that are refused.
const PREFIXES: [&str; 4] = ["DBLINK_", "PG_LOGICAL_", "PG_LS_", "PG_REPLICATION_"];

/// True for a function that reaches files, programs, other sessions or the server itself; the case of its name does not matter.
pub fn reaches_out(function: &str) -> bool {
    let begins_with = |prefix: &&str| {
        let first = function.get(..prefix.len());
        first.is_some_and(|first| first.eq_ignore_ascii_case(prefix))
    };
    FUNCTIONS
        .iter()
        .any(|name| name.eq_ignore_ascii_case(function))
        || PREFIXES.iter().any(begins_with)
}
