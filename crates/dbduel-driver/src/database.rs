//! The database that tables are in, and the directory of its server or file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::{Connection, Dialect, QueryError};

/// Creates a database unless it is there.
///
/// # Errors
/// [`QueryError`], such as for an account that may not.
pub fn create_database(connection: &mut Connection, name: &str) -> Result<(), QueryError> {
    match connection.dialect() {
        Dialect::MySql => {
            let name = Dialect::MySql.identifier(name);
            connection.execute(&format!("CREATE DATABASE IF NOT EXISTS {name}"))?;
        }
        Dialect::PostgreSql => {
            let names = connection.query("SELECT datname FROM pg_database")?;
            let is_there =
                (0..names.rows.len()).any(|row| names.text(row, 0).as_deref() == Some(name));
            if !is_there {
                let name = Dialect::PostgreSql.identifier(name);
                connection.execute(&format!("CREATE DATABASE {name}"))?;
            }
        }
        // A file is one, and is open.
        Dialect::Sqlite => {}
    }
    Ok(())
}

/// Creates the file of a database unless it exists; does nothing for servers.
///
/// # Errors
/// When the file cannot be created, for example in a missing folder.
pub fn create_file(address: &Address) -> io::Result<()> {
    match address {
        Address::File { path, .. } if !path.exists() => {
            File::create_new(path)?;
            Ok(())
        }
        Address::File { .. } | Address::Tcp { .. } | Address::Unix { .. } => Ok(()),
    }
}

/// Data directory of the server on its machine, or path of the file; `None` when the server does not report it.
pub fn data_directory(connection: &mut Connection) -> Option<PathBuf> {
    let sql = match connection.dialect() {
        Dialect::MySql => "SELECT @@datadir",
        Dialect::PostgreSql => "SHOW data_directory",
        Dialect::Sqlite => "SELECT file FROM pragma_database_list WHERE name = 'main'",
    };
    let path = connection.query(sql).ok()?.text(0, 0).map(PathBuf::from)?;
    match connection.dialect() {
        Dialect::Sqlite => path.parent().map(Path::to_owned),
        Dialect::MySql | Dialect::PostgreSql => Some(path),
    }
}
