//! The account that loads a dump and runs a captured workload: it owns one database and has no privilege beyond it, so that
//! neither a dump nor a statement reaches files of the server, other databases, accounts or settings.

use dbduel_driver::{Connection, Credentials, Dialect, QueryError};

/// Name of the account.
pub const USER: &str = "dbduel_data";
/// Purpose of the derived password; see [`blake3::derive_key`].
const PURPOSE: &str = "dbduel account that owns the data of a captured workload";

/// Why the account was not created. Repeats no statement, since one has the password.
#[derive(Debug, thiserror::Error)]
#[error("could not create the account `{USER}`, which loads the dump: {why}")]
pub struct AccountError {
    /// The server's error.
    why: String,
}

impl From<QueryError> for AccountError {
    fn from(error: QueryError) -> Self {
        let why = match &error {
            QueryError::Refused { error, .. } => {
                format!("the server answered with error {}", error.name())
            }
            _ => "the connection broke; the server's log may say why".to_owned(),
        };
        Self { why }
    }
}

/// The account's credentials. The password is derived from the one of the lab's account, which is in the data directory, so
/// that a copy of the data brings both along.
#[must_use]
pub fn credentials(lab: &Credentials) -> Credentials {
    let key = blake3::derive_key(PURPOSE, lab.password.as_bytes());
    Credentials::new(USER, blake3::Hash::from_bytes(key).to_hex().to_string())
}

/// Creates the account, or resets it, and gives it the database.
///
/// # Errors
/// When the server refuses a statement or does not answer.
pub fn create(
    admin: &mut Connection,
    database: &str,
    credentials: &Credentials,
) -> Result<(), AccountError> {
    match admin.dialect() {
        Dialect::MySql => create_mysql(admin, database, credentials),
        Dialect::PostgreSql => create_postgresql(admin, database, credentials),
        Dialect::Sqlite => Ok(()),
    }
}

fn create_mysql(
    admin: &mut Connection,
    database: &str,
    credentials: &Credentials,
) -> Result<(), AccountError> {
    let dialect = Dialect::MySql;
    let (user, password) = (
        dialect.literal(&credentials.user),
        dialect.literal(&credentials.password),
    );
    // The two are wildcards in names of databases.
    let pattern = database.replace('_', "\\_").replace('%', "\\%");
    let database = dialect.identifier(&pattern);
    let known = admin.query(&format!("SELECT host FROM mysql.user WHERE user = {user}"))?;
    for row in 0..known.rows.len() {
        let host = dialect.literal(&known.text(row, 0).unwrap_or_default());
        admin.execute(&format!("DROP USER {user}@{host}"))?;
    }
    for host in ["localhost", "%"] {
        let account = format!("{user}@'{host}'");
        admin.execute(&format!("CREATE USER {account} IDENTIFIED BY {password}"))?;
        admin.execute(&format!("GRANT ALL ON {database}.* TO {account}"))?;
    }
    Ok(())
}

fn create_postgresql(
    admin: &mut Connection,
    database: &str,
    credentials: &Credentials,
) -> Result<(), AccountError> {
    let dialect = Dialect::PostgreSql;
    let (role, password) = (
        dialect.identifier(&credentials.user),
        dialect.literal(&credentials.password),
    );
    let name = dialect.literal(&credentials.user);
    let known = admin.query(&format!("SELECT 1 FROM pg_roles WHERE rolname = {name}"))?;
    let verb = match known.rows.is_empty() {
        true => "CREATE",
        false => "ALTER",
    };
    admin.execute(&format!(
        "{verb} ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD {password}"
    ))?;
    let database = dialect.identifier(database);
    admin.execute(&format!("ALTER DATABASE {database} OWNER TO {role}"))?;
    admin.execute(&format!("ALTER SCHEMA public OWNER TO {role}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_follows_from_that_of_the_lab() {
        let of = |password: &str| credentials(&Credentials::new("dbduel", password));
        assert_eq!(of("one"), of("one"));
        assert_ne!(of("one").password, of("two").password);
        assert_ne!(of("one").password, "one");
        assert_eq!(of("one").user, USER);
    }
}
