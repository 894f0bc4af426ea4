//! The only account of a sandboxed server, and how it is created.
//!
//! The password is in a file inside the data directory: a copy of the data directory then contains both its accounts
//! and their password.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use dbduel_driver::address::Address;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::database::create_database;
use dbduel_driver::{ConnectError, ConnectOptions, Connection, Credentials, Dialect, QueryError};
use dbduel_machine::interrupt;
use dbduel_machine::random::secret;
use dbduel_record::files::FileSystem;

use super::super::home::write_whole;

/// The account that the lab works with.
pub const USER: &str = "dbduel";
/// The database that the lab works in.
pub const DATABASE: &str = "dbduel";
const FILE_NAME: &str = "dbduel.account";
const ATTEMPT: Duration = Duration::from_secs(5);

/// Login of a sandboxed server.
#[derive(Clone)]
pub struct Account {
    password: String,
}

impl Account {
    /// The account of a data directory; creates and stores a new password when it has none yet.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn of_data(files: &dyn FileSystem, data: &Path) -> Result<Self> {
        let path = Account::file(data);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Account {
                password: text.trim().to_owned(),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let password = secret(16)?;
                write_whole(files, &path, password.as_bytes(), 0o600)?;
                Ok(Account { password })
            }
            Err(error) => {
                Err(error).with_context(|| format!("could not read `{}`", path.display()))
            }
        }
    }

    /// Path of the file with a data directory's password.
    pub fn file(data: &Path) -> PathBuf {
        data.join(FILE_NAME)
    }

    /// Credentials for clients.
    pub fn credentials(&self) -> Credentials {
        Credentials::new(USER, &self.password)
    }

    /// Logs in; `statement` limits each statement of the connection.
    ///
    /// # Errors
    /// No server answers, or the server refuses.
    pub fn log_in(
        &self,
        dialect: Dialect,
        socket: &Path,
        statement: Duration,
    ) -> Result<Connection, ConnectError> {
        connect(dialect, socket, &self.credentials(), statement)
    }

    /// Creates the account on a freshly initialised server of MySQL or MariaDB, and removes every other login:
    /// anonymous accounts, which would take precedence for local logins, and root without a password. `statement`
    /// limits each statement.
    ///
    /// # Errors
    /// Root cannot log in, or a statement fails. No error repeats the password.
    pub fn set_up(&self, socket: &Path, statement: Duration) -> Result<()> {
        let mut root = connect(Dialect::MySql, socket, &Credentials::new("root", ""), statement)
            .with_context(|| format!("the server has neither the account `{USER}` nor root without a password; its data directory was not created by dbduel"))?;
        // The accounts are the sandbox's business and no part of the data: they are not for replicas.
        root.execute("SET SESSION sql_log_bin = 0")?;
        let accounts = root.query(&format!(
            "SELECT user, host FROM mysql.user WHERE user IN ('', 'root', '{USER}')"
        ))?;
        let mut roots = Vec::new();
        for row in 0..accounts.rows.len() {
            let (user, host) = (
                accounts.text(row, 0).unwrap_or_default(),
                accounts.text(row, 1).unwrap_or_default(),
            );
            let [user_name, host] = [&user, &host].map(|name| Dialect::MySql.identifier(name));
            let drop = format!("DROP USER {user_name}@{host}");
            if user == "root" {
                roots.push(drop);
            } else {
                root.execute(&drop)?;
            }
        }
        for host in ["localhost", "%"] {
            root.execute(&format!(
                "CREATE USER '{USER}'@'{host}' IDENTIFIED BY {}",
                Dialect::MySql.literal(&self.password)
            ))
            .map_err(|error| without_statement(&error))?;
            root.execute(&format!(
                "GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'{host}' WITH GRANT OPTION"
            ))?;
        }
        create_database(&mut root, DATABASE)?;
        for drop in roots {
            root.execute(&drop)?;
        }
        Ok(())
    }
}

/// An error without the statement that it quotes, which contains the password.
fn without_statement(error: &QueryError) -> anyhow::Error {
    match error.code() {
        Some(code) => {
            anyhow!("the server refused to create the account `{USER}` with error {code}")
        }
        None => anyhow!(
            "the connection broke while the account `{USER}` was created; the server's log may say why"
        ),
    }
}

fn connect(
    dialect: Dialect,
    socket: &Path,
    credentials: &Credentials,
    statement: Duration,
) -> Result<Connection, ConnectError> {
    let address = Address::Unix {
        path: PathBuf::from(socket),
    };
    Connection::connect(
        &address,
        credentials,
        &ConnectOptions {
            dialect,
            // A client of PostgreSQL must name one, and without a name it would be the user's.
            database: (dialect == Dialect::PostgreSql).then(|| DATABASE.to_owned()),
            deadline: ATTEMPT,
            statement_deadline: statement,
            cancel: Cancel::when(interrupt::gives_up),
            ..ConnectOptions::default()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_record::files::LocalFiles;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_password_is_made_once_and_only_the_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let of_data = |data: &Path| Account::of_data(&LocalFiles, data).unwrap();
        let first = of_data(dir.path());
        let second = of_data(dir.path());
        assert_eq!(first.password, second.password);
        assert_eq!(first.password.len(), 32);
        let mode = fs::metadata(dir.path().join(FILE_NAME))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(of_data(other.path()).password, first.password);
    }
}
