//! MariaDB, from 10.1 on.

use std::path::Path;

use anyhow::Result;

use super::bootstrap::{Initialisation, Piece, assemble};
use super::{Build, COMMON_FACTS, FactQuery, Places, ServerProduct, Setting, Version, option_file};

pub struct MariaDb;

impl ServerProduct for MariaDb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn title(&self) -> &'static str {
        "MariaDB"
    }

    fn recognises(&self, version_text: &str) -> bool {
        version_text.to_ascii_lowercase().contains("mariadb")
    }

    fn initialise(
        &self,
        build: &Build,
        settings: &[Setting],
        data: &Path,
        staging: &Path,
    ) -> Result<()> {
        initialisation(build)?.run(build, settings, data, staging)
    }

    fn init_time_settings(&self, _version: Version) -> &'static [&'static str] {
        &[
            "innodb_page_size",
            "innodb_data_file_path",
            "innodb_undo_tablespaces",
            "innodb_checksum_algorithm",
            "innodb_log_block_size",
            "lower_case_table_names",
        ]
    }

    fn configuration(&self, build: &Build, places: &Places<'_>, settings: &[Setting]) -> String {
        option_file::render(build, &lab_lines(build.version), places, settings)
    }

    fn check_arguments(&self, _version: Version) -> &'static [&'static str] {
        &["--verbose", "--help"]
    }

    fn forbids(&self, version: Version, setting: &Setting) -> Option<&'static str> {
        let atomic = setting.normal_name() == "innodb_use_atomic_writes" && setting.asks_for_on();
        (atomic && !version.at_least(10, 2)).then_some(
            "before 10.2 it needs a Fusion-io device: on any other the server silently disables the doublewrite buffer \
             and then cannot open any InnoDB table",
        )
    }

    fn identity_files(&self) -> &'static [&'static str] {
        &[]
    }

    fn fact_queries(&self, version: Version) -> Vec<FactQuery> {
        let mut facts = COMMON_FACTS.to_vec();
        facts.push(FactQuery {
            name: "variable-origins",
            sql: "SELECT VARIABLE_NAME, GLOBAL_VALUE_ORIGIN, DEFAULT_VALUE, GLOBAL_VALUE \
                  FROM information_schema.SYSTEM_VARIABLES ORDER BY VARIABLE_NAME",
        });
        facts.push(FactQuery {
            name: "build",
            sql: if version.at_least(10, 5) {
                "SELECT @@version, @@version_comment, @@version_compile_machine, @@version_compile_os, \
                 @@version_malloc_library, @@version_ssl_library, @@version_source_revision"
            } else {
                "SELECT @@version, @@version_comment, @@version_compile_machine, @@version_compile_os, \
                 @@version_malloc_library, @@version_ssl_library, ''"
            },
        });
        facts.push(FactQuery {
            name: "innodb-metrics",
            sql: "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS ORDER BY NAME",
        });
        facts
    }
}

/// How an empty data directory is initialised.
///
/// # Errors
/// The tree lacks the product's system SQL.
fn initialisation(build: &Build) -> Result<Initialisation> {
    let folder = &build.share;
    // The files were renamed in 11.0.
    let prefix = if folder.join("mariadb_system_tables.sql").is_file() {
        "mariadb"
    } else {
        "mysql"
    };
    let file = |name: &str| format!("{prefix}_{name}.sql");
    let tables = file("system_tables");
    let performance = file("performance_tables");
    let data = file("system_tables_data");
    let sys = file("sys_schema");
    let makes_database = build.version.at_least(10, 4);
    let mut pieces = Vec::new();
    if makes_database {
        pieces.push(Piece::Text("create database if not exists mysql;"));
    }
    pieces.push(Piece::Text("use mysql;"));
    if makes_database {
        // Gives root an empty password. Left unset, only the operating system's root could log in.
        pieces.push(Piece::Text("SET @auth_root_socket=NULL;"));
    }
    pieces.extend([
        Piece::File(&tables),
        Piece::File(&performance),
        Piece::File(&data),
    ]);
    if makes_database {
        pieces.extend([
            Piece::Optional("maria_add_gis_sp_bootstrap.sql"),
            Piece::Optional(&sys),
        ]);
    }
    Ok(Initialisation {
        arguments: vec![
            "--bootstrap",
            "--log-warnings=0",
            "--max_allowed_packet=8M",
            "--net_buffer_length=16K",
            "--enforce-storage-engine=",
        ],
        sql: assemble(folder, &pieces)?,
        folders: if makes_database { &[] } else { &["mysql"] },
    })
}

/// Lines of the lab's configuration that are specific to this product.
fn lab_lines(version: Version) -> Vec<&'static str> {
    let mut lines = Vec::new();
    if version.at_least(11, 3) {
        // Without a certificate the server makes a new RSA key at every start, which takes seconds.
        lines.push("loose-skip-ssl");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_writes_are_forbidden_only_where_they_destroy() {
        let on = Setting::new("innodb-use-atomic-writes", Some("ON"));
        let off = Setting::new("innodb_use_atomic_writes", Some("0"));
        let flag = Setting::new("innodb_use_atomic_writes", None);
        assert!(MariaDb.forbids(Version::new(10, 1, 23), &on).is_some());
        assert!(MariaDb.forbids(Version::new(10, 1, 23), &flag).is_some());
        assert!(MariaDb.forbids(Version::new(10, 1, 23), &off).is_none());
        assert!(MariaDb.forbids(Version::new(10, 2, 11), &on).is_none());
    }

    #[test]
    fn keys_are_not_made_at_every_start() {
        assert_eq!(lab_lines(Version::new(11, 4, 5)), ["loose-skip-ssl"]);
        assert!(lab_lines(Version::new(10, 11, 19)).is_empty());
    }
}
