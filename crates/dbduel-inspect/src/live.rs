//! Evidence from a running server over a connection.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_audit::evidence::Connection as Link;
use dbduel_audit::{ServerEvidence, Texts};
use dbduel_driver::address::{Address, ServerAddress};
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, SQLITE_SHOW_SETTINGS};
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_record::plan::Contender;
use dbduel_server::{POSTGRESQL_SETTINGS, PROBE};

use crate::facts::answers;
use crate::login::{self, PasswordSource};

/// Queries the server at `address`; `name` is its name in the audit.
///
/// # Errors
/// When it refuses the connection or does not answer.
pub fn read(
    name: &str,
    address: &ServerAddress,
    credentials: &Credentials,
    options: &ConnectOptions,
    source: PasswordSource,
) -> Result<ServerEvidence> {
    let options = ConnectOptions {
        dialect: address.dialect,
        database: login::any_database(address.dialect),
        cancel: Cancel::when(interrupt::gives_up),
        ..options.clone()
    };
    let mut connection = login::connect(&address.place, credentials, &options, source)?;
    let mut evidence = evidence(name, &mut connection)?;
    evidence.source = address.to_string();
    evidence.connection.transport = Some(transport(&address.place));
    Ok(evidence)
}

/// Queries the running server of a contender, over a connection like those of its contest, within the plan's statement
/// timeout.
///
/// # Errors
/// As for [`read`], and when the password file cannot be read.
pub fn of_contender(
    contender: &Contender,
    address: &ServerAddress,
    plan: &Plan,
) -> Result<ServerEvidence> {
    let name = &contender.name;
    let about = || format!("contender `{name}`");
    let file = contender.password_file.as_deref().map(Path::new);
    let credentials = login::credentials(address, file, Some(name)).with_context(about)?;
    let options = ConnectOptions {
        statement_deadline: Duration::from_secs_f64(plan.limits.statement_s),
        ..ConnectOptions::default()
    };
    read(
        name,
        address,
        &credentials,
        &options,
        PasswordSource::Experiment,
    )
    .with_context(about)
}

/// Name of the transport to a server.
pub fn transport(address: &Address) -> String {
    match address {
        Address::Unix { .. } => "unix socket".to_owned(),
        Address::Tcp { .. } => "tcp".to_owned(),
        Address::File { .. } => "in process".to_owned(),
    }
}

/// Queries all evidence that an audit can use, over a connection like those of the load.
///
/// # Errors
/// When it does not answer, or does not report its version.
pub fn evidence(name: &str, connection: &mut Connection) -> Result<ServerEvidence> {
    match connection.dialect() {
        Dialect::MySql => of_mysql(name, connection),
        Dialect::PostgreSql => of_postgresql(name, connection),
        Dialect::Sqlite => of_sqlite(name, connection),
    }
}

fn of_sqlite(name: &str, connection: &mut Connection) -> Result<ServerEvidence> {
    let variables = named(connection, SQLITE_SHOW_SETTINGS)?;
    let mut evidence = ServerEvidence::of_variables(name, variables)
        .context("SQLite does not report its version")?;
    evidence.session = evidence.variables.clone();
    evidence.connection = Link {
        tls: Some(false),
        compression: Some(false),
        ..Link::default()
    };
    Ok(evidence)
}

fn of_postgresql(name: &str, connection: &mut Connection) -> Result<ServerEvidence> {
    let variables = named(connection, POSTGRESQL_SETTINGS)?;
    let mut evidence = ServerEvidence::of_variables(name, variables)
        .context("the server does not say which version it is")?;
    evidence.session = evidence.variables.clone();
    // Without the privilege for it this stays empty, and the audit says what it did not see.
    evidence.probe.extend(answers(connection, PROBE));
    evidence.connection = Link {
        tls: Some(connection.is_encrypted()),
        // Its protocol does not compress.
        compression: Some(false),
        ..Link::default()
    };
    Ok(evidence)
}

fn of_mysql(name: &str, connection: &mut Connection) -> Result<ServerEvidence> {
    let variables = named(connection, "SHOW GLOBAL VARIABLES")?;
    let mut evidence = ServerEvidence::of_variables(name, variables)
        .context("the server does not say which version it is")?;
    evidence.session = named(connection, "SHOW SESSION VARIABLES")?;
    evidence.status_before = named(connection, "SHOW GLOBAL STATUS")?;
    let cipher = named(connection, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")?;
    let compression = named(connection, "SHOW SESSION STATUS LIKE 'Compression'")?;
    evidence.connection = Link {
        tls: Some(
            cipher
                .get("ssl_cipher")
                .is_some_and(|cipher| !cipher.is_empty()),
        ),
        transport: None,
        compression: compression
            .get("compression")
            .map(|value| value.eq_ignore_ascii_case("on")),
        prepared: None,
    };
    // Without the privilege for it these stay empty, and the audit says what it did not see.
    if let Ok(result) = connection.query("SHOW ENGINE INNODB STATUS") {
        evidence.engine_status_before = result.text(0, 2);
    }
    if let Ok(result) = connection.query("SHOW PLUGINS") {
        let active = |row: &usize| {
            result
                .text(*row, 1)
                .is_some_and(|state| state.eq_ignore_ascii_case("active"))
        };
        evidence.plugins = (0..result.rows.len())
            .filter(active)
            .filter_map(|row| result.text(row, 0))
            .collect();
    }
    let pools = "SELECT COUNT(*) FROM information_schema.INNODB_BUFFER_POOL_STATS";
    if let Ok(result) = connection.query(pools)
        && let Some(count) = result.text(0, 0).filter(|count| count != "0")
    {
        evidence.probe.insert("buffer_pools".to_owned(), count);
    }
    Ok(evidence)
}

/// A result of names and values; names in lower case.
fn named(connection: &mut Connection, statement: &str) -> Result<Texts> {
    let result = connection
        .query(statement)
        .with_context(|| format!("`{statement}` failed"))?;
    let rows = (0..result.rows.len()).filter_map(|row| {
        Some((
            result.text(row, 0)?.to_lowercase(),
            result.text(row, 1).unwrap_or_default(),
        ))
    });
    Ok(rows.collect())
}
