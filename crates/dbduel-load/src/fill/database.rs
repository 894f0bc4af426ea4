//! The database that tables are in, and the directory of its server.

use std::path::PathBuf;

use crate::driver::{Connection, Dialect, QueryError};

/// Creates a database unless it is there.
///
/// # Errors
/// [`QueryError`], such as for an account that may not.
pub fn create_database(connection: &mut Connection, name: &str) -> Result<(), QueryError> {
    match connection.dialect() {
        Dialect::MySql => {
            let quoted = name.replace('`', "``");
            connection.execute(&format!("CREATE DATABASE IF NOT EXISTS `{quoted}`"))?;
        }
        Dialect::PostgreSql => {
            let names = connection.query("SELECT datname FROM pg_database")?;
            let is_there =
                (0..names.rows.len()).any(|row| names.text(row, 0).as_deref() == Some(name));
            if !is_there {
                let quoted = name.replace('"', "\"\"");
                connection.execute(&format!("CREATE DATABASE \"{quoted}\""))?;
            }
        }
    }
    Ok(())
}

/// Where the server keeps its data, on its machine; none when it does not say.
pub fn data_directory(connection: &mut Connection) -> Option<PathBuf> {
    let sql = match connection.dialect() {
        Dialect::MySql => "SELECT @@datadir",
        Dialect::PostgreSql => "SHOW data_directory",
    };
    connection.query(sql).ok()?.text(0, 0).map(PathBuf::from)
}
