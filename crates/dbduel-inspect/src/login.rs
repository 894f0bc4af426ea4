//! Credentials for running servers, and advice when a server refuses the login. Passwords come from files and the
//! environment, never from a command line, an address or an experiment, and are never written anywhere.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_driver::address::{Address, ServerAddress};
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, ErrorClass, TlsMode};

use dbduel_driver::pgpass;

/// Environment variable with the password of any server.
const PASSWORD: &str = "DBDUEL_PASSWORD";

/// Default account when an address names none.
fn default_user(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql => "root",
        Dialect::PostgreSql => "postgres",
        Dialect::Sqlite => "",
    }
}

/// Environment variable that the server's own clients read; used last.
fn password_of_clients(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql => "MYSQL_PWD",
        Dialect::PostgreSql => "PGPASSWORD",
        // A file has no accounts.
        Dialect::Sqlite => "",
    }
}

/// The database of a login that needs none; PostgreSQL refuses a login without one.
pub fn any_database(dialect: Dialect) -> Option<String> {
    match dialect {
        Dialect::MySql | Dialect::Sqlite => None,
        Dialect::PostgreSql => Some("postgres".to_owned()),
    }
}

/// Limit of bytes read of a password file; its first line must be within.
const PASSWORD_FILE_BYTES_MAX: u64 = 64 << 10;

/// Where the user gives credentials, for the advice to name.
#[derive(Debug, Clone, Copy)]
pub enum PasswordSource {
    /// Options of a command: `.0` names those for the password file; TLS is set by `--tls`.
    Options(&'static str),
    /// An experiment; its contests connect without TLS.
    Experiment,
    /// `[data]` of an experiment, whose server is dumped; asked without TLS.
    Data,
}

/// Credentials for a server: the first line of `file`; without a file `DBDUEL_PASSWORD_NAME` for the contender `name`,
/// `DBDUEL_PASSWORD`, `MYSQL_PWD` or `PGPASSWORD`, the [password file](pgpass) of PostgreSQL's clients, or no password.
///
/// # Errors
/// When a file cannot be read, or group or others have access to the password file of PostgreSQL's clients.
pub fn credentials(
    server: &ServerAddress,
    file: Option<&Path>,
    name: Option<&str>,
) -> Result<Credentials> {
    let ServerAddress {
        dialect,
        user,
        place,
    } = server;
    let user = user.as_deref().unwrap_or(default_user(*dialect));
    let of_environment = || of_environment(*dialect, name, |name| std::env::var(name).ok());
    let password = match file {
        Some(file) => Some(first_line(file)?),
        None => match (of_environment(), dialect) {
            (None, Dialect::PostgreSql) => pgpass::password(place, user)?,
            (password, _) => password,
        },
    };
    let password = password.unwrap_or_default();
    Ok(Credentials::new(user, password))
}

/// Connects to a running server. A refused login comes with advice.
///
/// # Errors
/// When the connection fails.
pub fn connect(
    address: &Address,
    credentials: &Credentials,
    options: &ConnectOptions,
    source: PasswordSource,
) -> Result<Connection> {
    Connection::connect(address, credentials, options).map_err(|error| {
        let refusal = error.refused();
        let advice = refusal.and_then(|refusal| advice(refusal.class, &options.tls, source));
        let error = anyhow::Error::from(error);
        match advice {
            Some(advice) => error.context(advice),
            None => error,
        }
    })
}

/// Advice on a refused login; `None` where the server's message is enough.
fn advice(refusal: ErrorClass, tls: &TlsMode, source: PasswordSource) -> Option<String> {
    match refusal {
        ErrorClass::AccessDenied => {
            let file = match source {
                PasswordSource::Options(file) => file,
                PasswordSource::Experiment => "the contender's `password_file`",
                PasswordSource::Data => "`password_file` of [data]",
            };
            let demand = match (source, tls) {
                (PasswordSource::Options(_), TlsMode::Off) => "; the account may also require TLS, see --tls",
                (PasswordSource::Options(_), _) => {
                    "; an account that requires a client certificate (REQUIRE X509) cannot be used"
                }
                (PasswordSource::Experiment | PasswordSource::Data, _) => {
                    "; the account may also require TLS, which a contest does not use"
                }
            };
            Some(format!(
                "the password is read from {file} or {PASSWORD}{demand}"
            ))
        }
        ErrorClass::PasswordUnused => Some(
            "this account ignores passwords: connect over the unix socket as the operating system's user of that name"
                .to_owned(),
        ),
        _ => None,
    }
}

fn first_line(file: &Path) -> Result<String> {
    // A pipe is read too: shells give one for `<(command)`.
    let mut text = String::new();
    File::open(file)
        .and_then(|file| file.take(PASSWORD_FILE_BYTES_MAX).read_to_string(&mut text))
        .with_context(|| format!("could not read the password file `{}`", file.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn of_environment(
    dialect: Dialect,
    name: Option<&str>,
    read: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let own = name.map(|name| {
        format!(
            "{PASSWORD}_{}",
            name.chars().map(letter).collect::<String>()
        )
    });
    own.and_then(|own| read(&own))
        .or_else(|| read(PASSWORD))
        .or_else(|| read(password_of_clients(dialect)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_password_wins() {
        let environment = |names: &'static [&'static str]| {
            move |asked: &str| names.contains(&asked).then(|| asked.to_owned())
        };
        let all = &["MYSQL_PWD", "DBDUEL_PASSWORD", "DBDUEL_PASSWORD_MY_SQL"];
        let of = |name, names| {
            of_environment(Dialect::MySql, name, environment(names)).unwrap_or_default()
        };
        assert_eq!(of(Some("my-sql"), all), all[2]);
        assert_eq!(of(Some("other"), all), all[1]);
        assert_eq!(of(None, &["MYSQL_PWD"]), all[0]);
        assert_eq!(of(None, &[]), "");
        let both = environment(&["MYSQL_PWD", "PGPASSWORD"]);
        assert_eq!(
            of_environment(Dialect::PostgreSql, None, both).as_deref(),
            Some("PGPASSWORD")
        );
    }

    #[test]
    fn a_password_file_is_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, "of the first line\r\nmore\n").unwrap();
        let server = ServerAddress::parse("tcp://db").unwrap();
        let credentials = credentials(&server, Some(&file), Some("a")).unwrap();
        assert_eq!(
            (credentials.user.as_str(), credentials.password.as_str()),
            ("root", "of the first line")
        );
        let missing = super::credentials(&server, Some(&folder.path().join("none")), None);
        assert!(missing.unwrap_err().to_string().contains("password file"));
    }

    #[test]
    fn a_word_on_passwords_is_for_whose_password_was_looked_at() {
        let options = PasswordSource::Options("--password-file");
        let word = |class, tls: &TlsMode, source| advice(class, tls, source).unwrap_or_default();
        let denied = word(ErrorClass::AccessDenied, &TlsMode::Off, options);
        assert!(denied.contains("--password-file") && denied.contains("--tls"));
        let denied = word(ErrorClass::AccessDenied, &TlsMode::Required, options);
        assert!(denied.contains("--password-file") && !denied.contains("--tls"));
        assert!(denied.contains("X509"), "{denied}");
        // A file has no options to point to.
        let denied = word(
            ErrorClass::AccessDenied,
            &TlsMode::Off,
            PasswordSource::Experiment,
        );
        assert!(denied.contains("`password_file`") && !denied.contains("--"));
        assert!(
            word(ErrorClass::PasswordUnused, &TlsMode::Off, options).contains("operating system")
        );
        // Locked, expired, used up: the server says it all.
        assert_eq!(word(ErrorClass::Other, &TlsMode::Off, options), "");
    }
}
