//! MySQL, from 5.5 on, and Percona Server, which is run as the MySQL version that it is built on.

use std::path::Path;

use anyhow::Result;

use super::bootstrap::{Initialisation, Piece, assemble};
use super::{Build, COMMON_FACTS, FactQuery, Places, ServerProduct, Setting, Version, option_file};

/// Vendor of the server.
pub enum MySql {
    Oracle,
    Percona,
}

impl ServerProduct for MySql {
    fn name(&self) -> &'static str {
        match self {
            MySql::Oracle => "mysql",
            MySql::Percona => "percona",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            MySql::Oracle => "MySQL",
            MySql::Percona => "Percona Server",
        }
    }

    fn recognises(&self, version_text: &str) -> bool {
        // Some relatives say `mysqld` too, and version 9.6 of another product looks like one of MySQL.
        let text = version_text.to_ascii_lowercase();
        if text.contains("percona") {
            return matches!(self, MySql::Percona);
        }
        let is_other = ["mariadb", "tidb", "vitess", "drizzle", "postgresql"]
            .iter()
            .any(|name| text.contains(name));
        matches!(self, MySql::Oracle)
            && !is_other
            && (text.contains("mysql") || Version::parse(version_text).is_some())
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

    fn init_time_settings(&self, version: Version) -> &'static [&'static str] {
        if version.at_least(5, 6) {
            &[
                "innodb_page_size",
                "innodb_data_file_path",
                "innodb_undo_tablespaces",
                "innodb_checksum_algorithm",
                "lower_case_table_names",
            ]
        } else {
            // 5.5 refuses to start when the redo log has another size than configured.
            &[
                "innodb_data_file_path",
                "innodb_log_file_size",
                "innodb_log_files_in_group",
                "lower_case_table_names",
            ]
        }
    }

    fn configuration(&self, build: &Build, places: &Places<'_>, settings: &[Setting]) -> String {
        option_file::render(build, &lab_lines(build.version), places, settings)
    }

    fn check_arguments(&self, version: Version) -> &'static [&'static str] {
        // From 8.0 on `--verbose --help` ends well even with unknown settings.
        if version.at_least(8, 0) {
            &["--validate-config"]
        } else {
            &["--verbose", "--help"]
        }
    }

    fn identity_files(&self) -> &'static [&'static str] {
        &["auto.cnf"]
    }

    fn fact_queries(&self, version: Version) -> Vec<FactQuery> {
        let mut facts = COMMON_FACTS.to_vec();
        if version.at_least(8, 0) {
            facts.push(FactQuery {
                name: "variable-origins",
                sql: "SELECT VARIABLE_NAME, VARIABLE_SOURCE, VARIABLE_PATH, MIN_VALUE, MAX_VALUE \
                      FROM performance_schema.variables_info ORDER BY VARIABLE_NAME",
            });
        }
        facts.push(FactQuery {
            name: "build",
            sql: "SELECT @@version, @@version_comment, @@version_compile_machine, @@version_compile_os, '', '', ''",
        });
        if version.at_least(5, 6) {
            facts.push(FactQuery {
                name: "innodb-metrics",
                sql: "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS ORDER BY NAME",
            });
        }
        facts
    }
}

/// How an empty data directory is initialised.
///
/// # Errors
/// The tree lacks the product's system SQL.
fn initialisation(build: &Build) -> Result<Initialisation> {
    if build.version.at_least(5, 7) {
        // Packaged servers have a folder compiled in that other machines lack, and end without it.
        return Ok(Initialisation {
            arguments: vec!["--initialize-insecure", "--secure-file-priv="],
            sql: Vec::new(),
            folders: &[],
        });
    }
    let pieces = [
        Piece::Text("use mysql;"),
        Piece::File("mysql_system_tables.sql"),
        Piece::File("mysql_system_tables_data.sql"),
    ];
    Ok(Initialisation {
        arguments: vec![
            "--bootstrap",
            "--log-warnings=0",
            "--max_allowed_packet=8M",
            "--net_buffer_length=16K",
            "--default-storage-engine=MyISAM",
        ],
        sql: assemble(&build.share, &pieces)?,
        folders: &["mysql"],
    })
}

/// Lines of the lab's configuration that are specific to this product.
fn lab_lines(version: Version) -> Vec<&'static str> {
    let mut lines = Vec::new();
    if version.at_least(5, 7) {
        lines.push("secure-file-priv=");
        // Below this the engine's own notes (I/O method, buffer pool, recovery) are not written.
        lines.push("loose-log-error-verbosity=3");
    }
    if version.at_least(8, 0) {
        // Otherwise a second protocol opens a port that is the same for every server.
        lines.push("loose-mysqlx=OFF");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_redo_log_of_5_5_is_made_with_the_data_directory() {
        assert!(
            MySql::Oracle
                .init_time_settings(Version::new(5, 5, 34))
                .contains(&"innodb_log_file_size")
        );
        assert!(
            !MySql::Oracle
                .init_time_settings(Version::new(5, 6, 14))
                .contains(&"innodb_log_file_size")
        );
    }

    #[test]
    fn settings_are_checked_by_what_each_version_has() {
        assert_eq!(
            MySql::Oracle.check_arguments(Version::new(5, 6, 24)),
            ["--verbose", "--help"]
        );
        assert_eq!(
            MySql::Oracle.check_arguments(Version::new(8, 0, 33)),
            ["--validate-config"]
        );
    }
}
