//! The files of a data directory by use: data, redo, undo, temporary, logs, system.
//!
//! Files are recognised by the names that MySQL 5.5 to 9 and MariaDB 10.1 to 11 give them, with InnoDB, MyISAM, Aria,
//! MyRocks and TokuDB, PostgreSQL 9.6 to 18, and `dbduel.sqlite`. A contender may rename them (`log_bin`,
//! `innodb_undo_directory`), but only within its data directory, and without changing the parts of a name that are
//! checked here.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::{Component, Path};

use dbduel_record::facts::{FileSize, FileSizes};

use super::copy::{allocated_bytes, visit_files};

/// Databases of the server itself.
const SYSTEM_DATABASES: &[&str] = &[
    "information_schema",
    "mysql",
    "ndbinfo",
    "performance_schema",
    "sys",
];

/// Folders of MyRocks, of MariaDB and of others.
const ROCKSDB: &[&str] = &["#rocksdb", ".rocksdb"];

/// Extensions of files that hold table rows.
const HOLDS_ROWS: &[&str] = &[
    "ARM", "ARZ", "CSV", "ISM", "MAD", "MYD", "ibd", "sst", "tokudb",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileUse {
    Data,
    Redo,
    Undo,
    Temporary,
    Log,
    System,
    /// A file of InnoDB's shared tablespace: data where no table has a file of its own, system files otherwise.
    SharedTablespace,
}

/// Sizes of the files below the data directory `data`, by their use.
///
/// # Errors
/// A folder cannot be read. A file that vanishes during the walk is left out.
pub fn file_sizes(data: &Path) -> io::Result<FileSizes> {
    let mut sizes = FileSizes::default();
    let mut shared = FileSize::default();
    let mut has_files_of_tables = false;
    visit_files(data, |path, metadata| {
        let below = path.strip_prefix(data).unwrap_or(path);
        let part = match file_use(below) {
            FileUse::Data => {
                has_files_of_tables |= HOLDS_ROWS.contains(&text(below.extension()));
                &mut sizes.data
            }
            FileUse::Redo => &mut sizes.redo,
            FileUse::Undo => &mut sizes.undo,
            FileUse::Temporary => &mut sizes.temporary,
            FileUse::Log => &mut sizes.logs,
            FileUse::System => &mut sizes.system,
            FileUse::SharedTablespace => &mut shared,
        };
        *part = with(*part, metadata);
    })?;
    let part = match has_files_of_tables {
        true => &mut sizes.system,
        false => &mut sizes.data,
    };
    part.bytes += shared.bytes;
    part.allocated_bytes += shared.allocated_bytes;
    Ok(sizes)
}

fn with(size: FileSize, metadata: &Metadata) -> FileSize {
    FileSize {
        bytes: size.bytes + metadata.len(),
        allocated_bytes: size.allocated_bytes + allocated_bytes(metadata),
    }
}

/// The use of a file, by its path below the data directory.
fn file_use(path: &Path) -> FileUse {
    let name = text(path.file_name());
    let extension = text(path.extension());
    let folder = match path.parent().and_then(|parent| parent.components().next()) {
        Some(Component::Normal(folder)) => text(Some(folder)),
        _ => "",
    };
    if is_temporary(folder, name, extension) {
        return FileUse::Temporary;
    }
    if let Some(found) = of_engines(folder, name, extension).or_else(|| of_postgresql(path)) {
        return found;
    }
    if folder.is_empty() {
        return in_root(name, extension);
    }
    match SYSTEM_DATABASES.contains(&folder) || folder.starts_with('#') || folder == "lost+found" {
        true => FileUse::System,
        false => FileUse::Data,
    }
}

fn is_temporary(folder: &str, name: &str, extension: &str) -> bool {
    name.starts_with("#sql")
        || name.starts_with("ibtmp")
        || extension == "ibt"
        || matches!(folder, "#innodb_temp" | "#binlog_cache_files")
}

/// Redo and undo files of engines, anywhere in the data directory.
fn of_engines(folder: &str, name: &str, extension: &str) -> Option<FileUse> {
    if ROCKSDB.contains(&folder) {
        return Some(match extension {
            "sst" | "blob" => FileUse::Data,
            "log" => FileUse::Redo,
            _ => FileUse::System,
        });
    }
    let is_undo = extension == "ibu"
        || name == "tokudb.rollback"
        || name
            .strip_prefix("undo")
            .is_some_and(|rest| is_number(rest.trim_start_matches('_')));
    let is_redo = folder == "#innodb_redo"
        || name.starts_with("ib_logfile")
        || name.starts_with("aria_log.")
        || name == "aria_log_control"
        || extension.starts_with("tokulog");
    match (is_undo, is_redo) {
        (true, _) => Some(FileUse::Undo),
        (_, true) => Some(FileUse::Redo),
        _ if name.starts_with("ibdata") => Some(FileUse::SharedTablespace),
        _ => None,
    }
}

/// Files of a PostgreSQL cluster: below `base`, each database has a folder named by its number and each table files
/// named by its number, with a suffix for segments and maps. The server's own tables have numbers below 16384
/// (`FirstNormalObjectId`); a database created in single-user mode may have one, too.
fn of_postgresql(path: &Path) -> Option<FileUse> {
    let mut parts = path.iter().map(|part| text(Some(part)));
    let folder = parts.next()?;
    let below = parts.next()?;
    match folder {
        "base" if below == "pgsql_tmp" => Some(FileUse::Temporary),
        "base" if is_number(below) => {
            let file = parts.next()?.split(['.', '_']).next()?;
            let is_of_user = file.parse::<u64>().is_ok_and(|number| number >= 16_384);
            Some(if is_of_user {
                FileUse::Data
            } else {
                FileUse::System
            })
        }
        "pg_wal" | "pg_xlog" => Some(FileUse::Redo),
        "log" | "pg_log" if below.ends_with(".log") => Some(FileUse::Log),
        "global" => Some(FileUse::System),
        _ if folder.starts_with("pg_") => Some(FileUse::System),
        _ => None,
    }
}

/// A file beside the databases.
fn in_root(name: &str, extension: &str) -> FileUse {
    // A binary or relay log is numbered with six digits or more, whatever its name is.
    let is_numbered = extension.len() >= 6 && is_number(extension);
    match extension {
        "err" | "index" | "log" | "state" => FileUse::Log,
        _ if is_numbered => FileUse::Log,
        // A tablespace that several tables share.
        "ibd" if name != "mysql.ibd" => FileUse::Data,
        "tokudb" | "sqlite" => FileUse::Data,
        "sqlite-wal" | "sqlite-journal" => FileUse::Redo,
        "sqlite-shm" => FileUse::Temporary,
        _ => FileUse::System,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A name as text; empty when it is not UTF-8, since servers use no such names.
fn text(name: Option<&OsStr>) -> &str {
    name.and_then(OsStr::to_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[track_caller]
    fn check(expected: FileUse, paths: &[&str]) {
        for path in paths {
            assert_eq!(file_use(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn files_are_recognised_by_the_names_that_servers_give_them() {
        check(
            FileUse::Data,
            &[
                "dbduel/sbtest1.ibd",
                "dbduel/sbtest1.frm",
                "dbduel/undo001.ibd",
                "dbduel/t#P#p0.ibd",
                "dbduel/notes.000001",
                "dbduel/a.MYD",
                "dbduel/a.MAI",
                "other/db.opt",
                "shared.ibd",
                "#rocksdb/000012.sst",
                "_dbduel_sbtest1_main_5_2_1d.tokudb",
                "base/16384/16385",
                "base/16384/16385_fsm",
                "base/5/16390.1",
            ],
        );
        check(
            FileUse::Redo,
            &[
                "ib_logfile0",
                "ib_logfile101",
                "redo/ib_logfile1",
                "#innodb_redo/#ib_redo12",
                "#innodb_redo/#ib_redo13_tmp",
                "aria_log.00000001",
                "aria_log_control",
                "#rocksdb/000013.log",
                "log000000000001.tokulog29",
                "pg_wal/000000010000000000000001",
                "pg_xlog/archive_status/000000010000000000000001.done",
            ],
        );
        check(
            FileUse::Undo,
            &[
                "undo001",
                "undo_002",
                "undo/undo003",
                "more.ibu",
                "tokudb.rollback",
            ],
        );
        check(
            FileUse::Temporary,
            &[
                "ibtmp1",
                "#innodb_temp/temp_1.ibt",
                "dbduel/#sql-ib22-4711.ibd",
                "dbduel/#sql-alter-1f-5.frm",
                "#sql4fa_8_1.MYD",
                "#binlog_cache_files/ML_1",
                "base/pgsql_tmp/pgsql_tmp4711.0",
            ],
        );
        check(
            FileUse::Log,
            &[
                "binlog.000001",
                "mysql-bin.1000000",
                "mysql-bin.index",
                "mysql-bin.state",
                "box-relay-bin.000002",
                "box-slow.log",
                "box.err",
                "tc.log",
                "ddl_recovery.log",
            ],
        );
        check(
            FileUse::System,
            &[
                "mysql/user.frm",
                "mysql/innodb_table_stats.ibd",
                "sys/sys_config.ibd",
                "performance_schema/db.opt",
                "mysql.ibd",
                "#ib_16384_0.dblwr",
                "ib_buffer_pool",
                "auto.cnf",
                "ca-key.pem",
                "#rocksdb/MANIFEST-000005",
                "#rocksdb/LOG",
                "lost+found/x",
                "base/1/1247",
                "base/16384/PG_VERSION",
                "global/pg_control",
                "pg_xact/0000",
                "PG_VERSION",
            ],
        );
        check(FileUse::SharedTablespace, &["ibdata1", "system/ibdata2"]);
    }

    /// Writes files of these lengths and returns the sizes of their folder.
    fn sizes(files: &[(&str, usize)]) -> FileSizes {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![1_u8; *bytes]).unwrap();
        }
        let sizes = file_sizes(folder.path()).unwrap();
        let all = crate::tree_size(folder.path()).unwrap();
        assert_eq!(
            sizes.total(),
            FileSize {
                bytes: all.apparent_bytes,
                allocated_bytes: all.allocated_bytes,
            },
            "the parts add up to the directory"
        );
        sizes
    }

    #[test]
    fn the_shared_tablespace_is_data_only_where_it_holds_the_tables() {
        let rest = [
            ("ibdata1", 4000),
            ("ib_logfile0", 500),
            ("mysql/user.MYD", 30),
        ];
        let own = sizes(&[&rest[..], &[("dbduel/a.frm", 2), ("dbduel/a.ibd", 700)]].concat());
        assert_eq!((own.data.bytes, own.system.bytes), (702, 4030));
        assert_eq!((own.redo.bytes, own.undo.bytes), (500, 0));
        let shared = sizes(&[&rest[..], &[("dbduel/a.frm", 2)]].concat());
        assert_eq!((shared.data.bytes, shared.system.bytes), (4002, 30));
    }
}
