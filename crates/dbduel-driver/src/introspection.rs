//! Statements that query tables or act on whole ones, including tables of scripts with arbitrary names.
//!
//! Each is a function with a text for every product. [`ON_TABLES`] lists those that take a table, so that a test runs
//! each of them on each product.

use crate::Dialect;

/// Names of all tables in the connection's default database.
pub const fn table_names(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql => "SHOW TABLES",
        Dialect::PostgreSql => {
            "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
        }
        Dialect::Sqlite => {
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        }
    }
}

/// A row for each table of the connection's database, those of all schemas of PostgreSQL.
pub const fn tables_of_all_schemas(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::PostgreSql => {
            r"SELECT tablename FROM pg_tables WHERE schemaname <> 'information_schema' AND schemaname NOT LIKE 'pg\_%'"
        }
        Dialect::MySql | Dialect::Sqlite => table_names(dialect),
    }
}

/// Gathers the optimizer statistics of all tables, those of all schemas of PostgreSQL; `None` for products whose tables are named one by
/// one.
pub const fn gather_all_statistics(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::PostgreSql => Some("VACUUM (ANALYZE)"),
        Dialect::MySql | Dialect::Sqlite => None,
    }
}

/// Names of tables and their columns except columns of times, which may depend on when a table was filled, and for PostgreSQL the schema of
/// each table. For MySQL without JSON, which it stores in a form of its own. For PostgreSQL, without partitions, whose rows belong to another
/// table as well.
pub const fn columns_without_times(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql => {
            "SELECT table_name, column_name FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND data_type NOT IN ('date', 'datetime', 'time', 'timestamp', 'json') \
             AND table_name IN (SELECT t.table_name FROM information_schema.tables t \
             WHERE t.table_schema = DATABASE() AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')) \
             ORDER BY table_name, ordinal_position"
        }
        Dialect::PostgreSql => {
            "SELECT c.relname, a.attname, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' AND c.relkind IN ('r', 'p') \
             AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid) \
             AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid NOT IN ('date'::regtype, 'time'::regtype, \
             'timetz'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype) \
             ORDER BY n.nspname, c.relname, a.attnum"
        }
        Dialect::Sqlite => {
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
             AND upper(c.type) NOT IN ('DATE', 'DATETIME', 'TIME', 'TIMESTAMP') ORDER BY t.name, c.cid"
        }
    }
}

/// Names of the tables of the connection's default database that a rollback does not restore, and of its views and triggers, with what each is; `None` for products whose tables it all restores.
pub const fn beyond_rollback(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::MySql => Some(
            "SELECT t.table_name, 'table' FROM information_schema.tables t \
             LEFT JOIN information_schema.engines e ON e.engine = t.engine \
             WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND COALESCE(e.transactions, 'NO') <> 'YES' \
             UNION ALL SELECT table_name, 'view' FROM information_schema.views WHERE table_schema = DATABASE() \
             UNION ALL SELECT trigger_name, 'trigger' FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
        ),
        Dialect::PostgreSql | Dialect::Sqlite => None,
    }
}

/// Ends the statement of another session of the same account, by the number of its connection.
#[must_use]
pub fn end_session(dialect: Dialect, id: u32) -> Option<String> {
    match dialect {
        Dialect::MySql => Some(format!("KILL {id}")),
        Dialect::PostgreSql => Some(format!("SELECT pg_terminate_backend({id})")),
        Dialect::Sqlite => None,
    }
}

/// Names of the BYTEA columns of a PostgreSQL table, whose values are sent in hexadecimal. `schema` is that of the connection unless given.
#[must_use]
pub fn columns_of_bytes(schema: Option<&str>, table: &str) -> String {
    let table = oid(schema, table);
    format!(
        "SELECT attname FROM pg_attribute WHERE attrelid = {table} AND atttypid = 'bytea'::regtype"
    )
}

/// Names of a table's indexes in the connection's default database.
#[must_use]
pub fn index_names(dialect: Dialect, table: &str) -> String {
    let table = dialect.literal(table);
    match dialect {
        Dialect::MySql => format!(
            "SELECT DISTINCT index_name FROM information_schema.statistics \
             WHERE table_schema = DATABASE() AND table_name = {table}"
        ),
        Dialect::PostgreSql => format!(
            "SELECT indexname FROM pg_indexes WHERE schemaname = ANY (current_schemas(false)) AND tablename = {table}"
        ),
        Dialect::Sqlite => {
            format!("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = {table}")
        }
    }
}

/// How many rows a table has.
#[must_use]
pub fn count(dialect: Dialect, table: &str) -> String {
    format!("SELECT COUNT(*) FROM {}", dialect.identifier(table))
}

/// Gathers the optimizer statistics of a table.
#[must_use]
pub fn gather_statistics(dialect: Dialect, table: &str) -> String {
    let verb = match dialect {
        Dialect::MySql => "ANALYZE TABLE",
        Dialect::PostgreSql => "VACUUM (ANALYZE)",
        Dialect::Sqlite => "ANALYZE",
    };
    format!("{verb} {}", dialect.identifier(table))
}

/// A table's name and, in the second column, its definition.
#[must_use]
pub fn definition(dialect: Dialect, table: &str) -> String {
    match dialect {
        Dialect::MySql => format!("SHOW CREATE TABLE {}", dialect.identifier(table)),
        Dialect::PostgreSql => POSTGRESQL_DEFINITION.replace("{table}", &oid(None, table)),
        Dialect::Sqlite => SQLITE_DEFINITION.replace("{table}", &dialect.literal(table)),
    }
}

/// Checks the integrity of a table, where the server has a statement for that. Complaints are in the last column.
#[must_use]
pub fn check(dialect: Dialect, table: &str) -> Option<String> {
    let name = dialect.identifier(table);
    match dialect {
        Dialect::MySql => Some(format!("CHECK TABLE {name} EXTENDED")),
        Dialect::PostgreSql => None,
        Dialect::Sqlite => Some(format!("PRAGMA integrity_check({name})")),
    }
}

/// Drops a table if it exists, with objects that refer to it.
#[must_use]
pub fn drop_if_exists(dialect: Dialect, table: &str) -> String {
    let cascade = match dialect {
        Dialect::PostgreSql => " CASCADE",
        Dialect::MySql | Dialect::Sqlite => "",
    };
    format!(
        "DROP TABLE IF EXISTS {}{cascade}",
        dialect.identifier(table)
    )
}

/// What stands before a statement to have it explained, without estimates of costs where the product can leave them out.
#[must_use]
pub fn explain_verb(dialect: Dialect) -> &'static str {
    match dialect {
        // MySQL 9.7 returns a tree unless it is asked for a table; MariaDB and versions without trees skip the comment.
        Dialect::MySql => "EXPLAIN /*!80018 FORMAT=TRADITIONAL */",
        Dialect::PostgreSql => "EXPLAIN (COSTS OFF)",
        Dialect::Sqlite => "EXPLAIN QUERY PLAN",
    }
}

/// Explains a statement.
#[must_use]
pub fn explain(dialect: Dialect, statement: &str) -> String {
    format!("{} {statement}", explain_verb(dialect))
}

/// Text of a statement about a table for a product; `None` where the product has none.
pub type OnTable = fn(Dialect, &str) -> Option<String>;

/// All of the above by name, in an order in which they can run on one table.
pub const ON_TABLES: &[(&str, OnTable)] = &[
    ("table_names", |dialect, _| {
        Some(table_names(dialect).to_owned())
    }),
    ("columns_without_times", |dialect, _| {
        Some(columns_without_times(dialect).to_owned())
    }),
    ("columns_of_bytes", |dialect, table| {
        (dialect == Dialect::PostgreSql).then(|| columns_of_bytes(None, table))
    }),
    ("index_names", |dialect, table| {
        Some(index_names(dialect, table))
    }),
    ("count", |dialect, table| Some(count(dialect, table))),
    ("gather_statistics", |dialect, table| {
        Some(gather_statistics(dialect, table))
    }),
    ("definition", |dialect, table| {
        Some(definition(dialect, table))
    }),
    ("check", check),
    ("explain", |dialect, table| {
        Some(explain(dialect, &count(dialect, table)))
    }),
    ("drop_if_exists", |dialect, table| {
        Some(drop_if_exists(dialect, table))
    }),
];

/// PostgreSQL's OID of a table.
fn oid(schema: Option<&str>, table: &str) -> String {
    let dialect = Dialect::PostgreSql;
    let name = qualified(dialect, schema, table);
    format!("{}::regclass", dialect.literal(&name))
}

/// A table's quoted name, with its schema if one is given.
#[must_use]
pub fn qualified(dialect: Dialect, schema: Option<&str>, table: &str) -> String {
    match schema {
        Some(schema) => format!(
            "{}.{}",
            dialect.identifier(schema),
            dialect.identifier(table)
        ),
        None => dialect.identifier(table).to_string(),
    }
}

/// Name and definition of a table with its indexes.
const SQLITE_DEFINITION: &str = r"
SELECT tbl_name, group_concat(sql, ';
') FROM (SELECT tbl_name, sql FROM sqlite_schema WHERE tbl_name = {table} AND sql IS NOT NULL ORDER BY type = 'index', name)";

/// Name and definition of a table with its indexes, assembled from the catalogue, since PostgreSQL has no statement
/// for it.
const POSTGRESQL_DEFINITION: &str = r"
SELECT c.relname, concat_ws(E';\n',
    'CREATE ' || CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END || 'TABLE ' || quote_ident(c.relname) || E' (\n  '
    || concat_ws(E',\n  ',
        (SELECT string_agg(concat_ws(' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
                CASE WHEN a.attnotnull THEN 'NOT NULL' END, 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid)), E',\n  ' ORDER BY a.attnum)
         FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
        (SELECT string_agg('CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid), E',\n  ' ORDER BY k.conname)
         FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype <> 'n'))
    || E'\n)' || coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', ''),
    (SELECT string_agg(pg_get_indexdef(i.indexrelid), E';\n' ORDER BY i.indexrelid) FROM pg_index i
     WHERE i.indrelid = c.oid AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)))
FROM pg_class c WHERE c.oid = {table}";
