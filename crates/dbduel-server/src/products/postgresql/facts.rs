//! Queries of a PostgreSQL server's state.

use super::super::PROBE;
use super::{FactQuery, Version};

macro_rules! collation {
    () => {
        "SELECT 'datcollate', datcollate::text FROM pg_database WHERE datname = current_database()"
    };
}

/// The whole query is refused for a user without the privilege for `pg_config`.
macro_rules! flags {
    () => {
        " UNION ALL SELECT 'cflags', setting FROM pg_config WHERE name = 'CFLAGS'"
    };
}

/// Names and values of the settings at the start of a session, in the format of `SHOW ALL`; later changes of this
/// session are left out.
pub const SETTINGS: &str = "SELECT name, CASE WHEN source <> 'session' THEN current_setting(name) \
     WHEN unit IS NULL OR reset_val IN ('0', '-1') THEN reset_val ELSE reset_val || unit END FROM pg_settings ORDER BY name";

/// Queries for a record.
pub fn queries(version: Version) -> Vec<FactQuery> {
    vec![
        FactQuery {
            name: "variables",
            sql: SETTINGS,
        },
        FactQuery {
            name: "status",
            sql: status(version),
        },
        FactQuery {
            name: "variable-origins",
            sql: "SELECT name, CASE source WHEN 'session' THEN reset_val ELSE setting END, unit, boot_val, source, context, \
                  vartype, min_val, max_val, enumvals FROM pg_settings ORDER BY name",
        },
        FactQuery {
            name: "plugins",
            sql: "SELECT name, default_version, installed_version, comment FROM pg_available_extensions ORDER BY name",
        },
        // Compiler flags are part of it: builds of one version differ in them.
        FactQuery {
            name: "build",
            sql: "SELECT name, setting FROM pg_config ORDER BY name",
        },
        FactQuery {
            name: PROBE,
            sql: match version.major {
                0..11 => concat!(collation!(), flags!()),
                _ => concat!(
                    collation!(),
                    flags!(),
                    " UNION ALL SELECT 'jit_available', pg_jit_available()::text"
                ),
            },
        },
    ]
}

/// A statement that reads the statistics views as rows of a name and a value: `pg_stat_wal.wal_bytes`, and
/// `pg_stat_database/NAME.xact_commit` where a view has several rows. For tables, sums over those of users.
fn status(version: Version) -> &'static str {
    macro_rules! rows {
        ($view:literal, $key:literal) => {
            concat!(
                "SELECT '",
                $view,
                "' || ",
                $key,
                " || '.' || c.key AS name, c.value FROM ",
                $view,
                " v, LATERAL json_each_text(row_to_json(v)) c"
            )
        };
    }
    macro_rules! all {
        ($first:expr $(, $more:expr)*) => { concat!($first $(, " UNION ALL ", $more)*, " ORDER BY 1") };
    }
    macro_rules! tables {
        () => {
            "SELECT 'pg_stat_user_tables.' || c.key, c.value FROM (SELECT coalesce(sum(n_live_tup), 0) AS n_live_tup, \
             coalesce(sum(n_dead_tup), 0) AS n_dead_tup, coalesce(sum(autovacuum_count), 0) AS autovacuum_count FROM pg_stat_user_tables) v, LATERAL json_each_text(row_to_json(v)) c"
        };
    }
    macro_rules! base {
        ($($more:expr),*) => {
            all!(
                rows!("pg_stat_archiver", "''"),
                rows!("pg_stat_bgwriter", "''"),
                rows!("pg_stat_database", "'/' || coalesce(v.datname, 'shared')"),
                tables!(),
                "SELECT 'pg_current_wal_insert_lsn', (pg_current_wal_insert_lsn() - '0/0')::text"
                $(, $more)*
            )
        };
    }
    match version.major {
        0..10 => all!(
            rows!("pg_stat_archiver", "''"),
            rows!("pg_stat_bgwriter", "''"),
            rows!("pg_stat_database", "'/' || v.datname"),
            tables!(),
            "SELECT 'pg_current_xlog_insert_location', (pg_current_xlog_insert_location() - '0/0')::text"
        ),
        10..13 => base!(),
        13 => base!(rows!("pg_stat_slru", "'/' || v.name")),
        14 | 15 => base!(
            rows!("pg_stat_slru", "'/' || v.name"),
            rows!("pg_stat_wal", "''")
        ),
        16 => base!(
            rows!("pg_stat_slru", "'/' || v.name"),
            rows!("pg_stat_wal", "''"),
            rows!(
                "pg_stat_io",
                "'/' || concat_ws('/', v.backend_type, v.object, v.context)"
            )
        ),
        _ => base!(
            rows!("pg_stat_slru", "'/' || v.name"),
            rows!("pg_stat_wal", "''"),
            rows!("pg_stat_checkpointer", "''"),
            rows!(
                "pg_stat_io",
                "'/' || concat_ws('/', v.backend_type, v.object, v.context)"
            )
        ),
    }
}
