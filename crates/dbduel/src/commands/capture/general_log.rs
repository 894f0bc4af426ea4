//! The general log of a running MySQL or MariaDB, turned on for a time and written to its table.
//!
//! The settings that this changes are restored at the end, on errors and on requests to end. A file with them is on the disk before
//! anything is changed, from which the next import from that server, or `dbduel capture restore`, restores them after SIGKILL.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use dbduel_capture::logs::LogProduct;
use dbduel_capture::logs::mysql_table::{GENERAL_COLUMNS, append_general_row};
use dbduel_driver::address::{Address, ServerAddress};
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, Row, Sink, TlsMode};
use dbduel_lab::StatusOutput as _;
use dbduel_machine::{clock, interrupt};
use dbduel_record::files::{Change, FileSystem, sync_parent};
use dbduel_record::foreign;
use dbduel_record::whole::write_whole_on;
use dbduel_server::{Home, create_private_dir};
use serde::{Deserialize, Serialize};

use crate::commands::connection::{self, Server, Tls};
use crate::console::{self, Console};

/// Folder of the home with the former settings of servers whose log is on.
const FOLDER: &str = "log-settings";
/// Format of these files.
const FORMAT: u32 = 1;
/// Largest such file that is read, bytes.
const STATE_BYTES_MAX: u64 = 64 << 10;
/// Time between two looks at whether the user wants to end.
const STEP: Duration = Duration::from_millis(200);
/// Time between two looks at whether the server's settings are still ours.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Time for reading the table: it has no index, and may have the rows of years.
const FETCH_DEADLINE: Duration = Duration::from_secs(6 * 3600);

/// A running MySQL or MariaDB, and how to log in to it.
pub struct RunningServer {
    text: String,
    address: Address,
    credentials: Credentials,
    tls: TlsMode,
}

impl RunningServer {
    /// The server that the user names.
    ///
    /// # Errors
    /// When the address is invalid or of another product, or the password file cannot be read.
    pub fn named(text: &str, password_file: Option<&Path>, tls: &Tls) -> Result<Self> {
        match ServerAddress::parse(text)?.dialect {
            Dialect::MySql => {}
            Dialect::PostgreSql => return Err(OtherProduct::PostgreSql.into()),
            Dialect::Sqlite => return Err(OtherProduct::Sqlite.into()),
        }
        let server = Server {
            address: text.to_owned(),
            password_file: password_file.map(Path::to_owned),
        };
        let (address, credentials) = connection::endpoint(&server)?;
        Ok(RunningServer {
            text: text.to_owned(),
            address: address.place,
            credentials,
            tls: connection::tls(tls),
        })
    }

    /// Its address, as the user wrote it; it has no password.
    pub fn address(&self) -> &str {
        &self.text
    }

    fn connect(&self, options: ConnectOptions) -> Result<Connection> {
        let options = ConnectOptions {
            tls: self.tls.clone(),
            ..options
        };
        let mut connection = connection::connect(&self.address, &self.credentials, &options)?;
        // Times of the table are those of the session's zone.
        connection.execute("SET time_zone = '+00:00'")?;
        Ok(connection)
    }
}

/// The server writes no log to a table.
#[derive(Debug, thiserror::Error)]
pub enum OtherProduct {
    /// PostgreSQL.
    #[error(
        "--from reads the log of MySQL and MariaDB through a table, and PostgreSQL writes its log to files of the server only: turn it on by hand \
         (log_destination = 'csvlog', log_min_duration_statement = 0, log_connections = on, log_disconnections = on; \
         docs/own-workload.md has all settings), and pass its files to `dbduel capture import`"
    )]
    PostgreSql,
    /// SQLite.
    #[error("--from reads the log of a server, and SQLite has none")]
    Sqlite,
}

/// Settings of a server that decide whether and where it writes its general log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LogSettings {
    log_output: String,
    general_log: bool,
}

impl LogSettings {
    fn read(connection: &mut Connection) -> Result<Self> {
        let answer = connection.query("SELECT @@GLOBAL.log_output, @@GLOBAL.general_log = 1")?;
        let text = |column| answer.text(0, column).unwrap_or_default();
        Ok(LogSettings {
            log_output: text(0),
            general_log: text(1) == "1",
        })
    }

    /// These settings with the general log on and written to its table; files that are written now are written on.
    fn with_table(&self, is_slow_log_on: bool) -> Self {
        let has_file = self.log_output.split(',').any(|place| place == "FILE");
        let log_output = match has_file && (self.general_log || is_slow_log_on) {
            true => "FILE,TABLE",
            false => "TABLE",
        };
        LogSettings {
            log_output: log_output.to_owned(),
            general_log: true,
        }
    }

    /// True for a value that a server reports, which goes into a statement.
    fn is_fit(&self) -> bool {
        let is_part = |byte: u8| byte.is_ascii_uppercase() || byte == b',';
        !self.log_output.is_empty() && self.log_output.bytes().all(is_part)
    }
}

/// What is on the disk while the log of a server is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LogState {
    format: u32,
    /// Address of the server, without a password.
    server: String,
    former: LogSettings,
    changed: LogSettings,
}

impl LogState {
    /// Restores the settings that are still as they were changed; others were set by another session since.
    fn restore(&self, connection: &mut Connection) -> Result<()> {
        let LogState {
            former, changed, ..
        } = self;
        let current = LogSettings::read(connection)?;
        let ours = (
            current.general_log == changed.general_log,
            current.log_output == changed.log_output,
        );
        if ours.0 && former.general_log != changed.general_log {
            connection.execute("SET GLOBAL general_log = OFF")?;
        }
        if ours.1 && former.log_output != changed.log_output {
            let output = &former.log_output;
            connection.execute(&format!("SET GLOBAL log_output = '{output}'"))?;
        }
        let restored = LogSettings::read(connection)?;
        ensure!(
            (!ours.0 || restored.general_log == former.general_log)
                && (!ours.1 || restored.log_output == former.log_output),
            "the server accepted the former settings and has others: {restored:?}, expected {former:?}"
        );
        Ok(())
    }

    /// What to do by hand where the settings cannot be restored.
    fn advice(&self) -> String {
        let (state, output) = match &self.former {
            LogSettings {
                general_log: true,
                log_output,
            } => ("ON", log_output),
            LogSettings { log_output, .. } => ("OFF", log_output),
        };
        format!(
            "could not restore the log settings of `{}`; run `dbduel capture restore`, or by hand: SET GLOBAL general_log = {state}; SET GLOBAL log_output = '{output}'",
            self.server
        )
    }
}

/// What was found or done where all are tried, and the first failure.
pub type Tried<T> = (Vec<T>, Option<anyhow::Error>);

/// The files with former settings, in the home.
#[derive(Debug)]
pub struct LogStates {
    folder: PathBuf,
    files: Arc<dyn FileSystem>,
}

impl LogStates {
    /// Those of a home.
    pub fn of(home: &Home) -> Self {
        LogStates {
            folder: home.root().join(FOLDER),
            files: Arc::clone(home.files()),
        }
    }

    fn path(&self, server: &Address) -> PathBuf {
        let hash = blake3::hash(server.to_string().as_bytes()).to_hex();
        self.folder.join(format!("{}.json", &hash[..16]))
    }

    /// The lock of a server's file, which its process holds; `None` where another one holds it.
    fn lock(&self, path: &Path) -> Result<Option<File>> {
        create_private_dir(&*self.files, &self.folder)?;
        let path = path.with_extension("lock");
        let failed = || format!("could not lock `{}`", path.display());
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .with_context(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(failed),
        }
    }

    fn read(&self, path: &Path) -> Result<Option<LogState>> {
        let text = match foreign::read(path, STATE_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("could not read `{}`", path.display()))?,
        };
        let state = serde_json::from_slice(&text)
            .ok()
            .filter(|state: &LogState| {
                state.format == FORMAT && state.former.is_fit() && state.changed.is_fit()
            });
        let state = state.with_context(|| {
            format!(
                "`{}` is damaged or of another version of dbduel; it has the log settings of a server from before an import. Restore them by hand and remove it",
                path.display()
            )
        })?;
        Ok(Some(state))
    }

    fn write(&self, path: &Path, state: &LogState) -> Result<()> {
        let text = serde_json::to_vec_pretty(state)?;
        write_whole_on(&*self.files, path, &text, 0o600)
            .with_context(|| format!("could not write `{}`", path.display()))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = self.files.apply(Change::Remove { path });
        removed
            .and_then(|()| sync_parent(&*self.files, path))
            .with_context(|| format!("could not remove `{}`", path.display()))
    }

    /// The files of imports that did not end, each with its lock, and the first failure; all files are tried.
    fn leftovers(&self) -> Result<Tried<(PathBuf, LogState, File)>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Vec::new(), None));
            }
            entries => {
                entries.with_context(|| format!("could not read `{}`", self.folder.display()))?
            }
        };
        let mut leftovers = Vec::new();
        let mut failed = None;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let leftover = || -> Result<_> {
                let Some(lock) = self.lock(&path)? else {
                    return Ok(None);
                };
                Ok(self.read(&path)?.map(|state| (state, lock)))
            };
            match leftover() {
                Ok(Some((state, lock))) => leftovers.push((path, state, lock)),
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Ok((leftovers, failed))
    }

    /// Addresses of servers whose log an import that did not end left on, and the first failure; all files are tried.
    ///
    /// # Errors
    /// When the folder of the files cannot be read.
    pub fn left_on(&self) -> Result<Tried<String>> {
        let (leftovers, failed) = self.leftovers()?;
        let servers = leftovers.into_iter().map(|(_, state, _)| state.server);
        Ok((servers.collect(), failed))
    }

    /// Restores the settings of all servers whose log an import that did not end left on: their addresses, and the first failure; all
    /// servers are tried.
    ///
    /// # Errors
    /// When the folder of the files cannot be read.
    pub fn restore(&self, password_file: Option<&Path>, tls: &Tls) -> Result<Tried<String>> {
        let (leftovers, mut failed) = self.leftovers()?;
        let mut restored = Vec::new();
        for (path, state, _lock) in leftovers {
            let result = RunningServer::named(&state.server, password_file, tls)
                .and_then(|server| server.connect(ConnectOptions::default()))
                .and_then(|mut connection| state.restore(&mut connection))
                .with_context(|| state.advice())
                .and_then(|()| self.remove(&path));
            match result {
                Ok(()) => restored.push(state.server),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Ok((restored, failed))
    }
}

/// A general log that is on, until it is ended or dropped.
pub struct GeneralLog<'a> {
    server: &'a RunningServer,
    states: &'a LogStates,
    path: PathBuf,
    state: LogState,
    connection: Connection,
    /// Server's time when it was turned on, UTC.
    begin: String,
    product: LogProduct,
    version: String,
    is_ended: bool,
    _lock: File,
}

impl<'a> GeneralLog<'a> {
    /// Turns the log on. Settings that an import from this server left changed are restored first.
    ///
    /// # Errors
    /// When the server cannot be reached, the account lacks privileges, or another import from the server runs. Nothing stays
    /// changed then.
    pub fn turn_on(server: &'a RunningServer, states: &'a LogStates) -> Result<Self> {
        let path = states.path(&server.address);
        let lock = states.lock(&path)?;
        let lock =
            lock.with_context(|| format!("another import from `{}` is running", server.address()))?;
        let mut connection = server.connect(ConnectOptions::default())?;
        if let Some(state) = states.read(&path)? {
            state
                .restore(&mut connection)
                .with_context(|| state.advice())?;
            states.remove(&path)?;
            console::status_line(&format!(
                "restored the log settings of `{}`, which an import that did not end had changed",
                server.address()
            ));
        }
        let first = "SELECT NOW(6), VERSION(), @@GLOBAL.slow_query_log = 1";
        let answer = connection.query(first)?;
        let text = |column| answer.text(0, column).unwrap_or_default();
        let (begin, version, is_slow_log_on) = (text(0), text(1), text(2) == "1");
        let is_mariadb = version.contains("MariaDB");
        // Whether the account may, before anything is changed.
        connection
            .query("SELECT thread_id FROM mysql.general_log LIMIT 1")
            .context(
                "could not read the table `mysql.general_log`; grant the account SELECT on it",
            )?;
        let former = LogSettings::read(&mut connection)?;
        let state = LogState {
            format: FORMAT,
            server: server.address().to_owned(),
            changed: former.with_table(is_slow_log_on),
            former,
        };
        ensure!(
            state.former.is_fit(),
            "the server reports an unknown log_output, `{}`; nothing was changed",
            state.former.log_output
        );
        states.write(&path, &state)?;
        let mut log = GeneralLog {
            server,
            states,
            path,
            state,
            connection,
            begin,
            product: match is_mariadb {
                true => LogProduct::Mariadb,
                false => LogProduct::Mysql,
            },
            version,
            is_ended: false,
            _lock: lock,
        };
        match log.change() {
            Ok(()) => Ok(log),
            Err(error) => {
                log.restore()?;
                Err(error)
            }
        }
    }

    fn change(&mut self) -> Result<()> {
        let changed = self.state.changed.clone();
        let output = format!("SET GLOBAL log_output = '{}'", changed.log_output);
        for statement in [output.as_str(), "SET GLOBAL general_log = ON"] {
            self.connection.execute(statement).with_context(|| {
                format!(
                    "could not turn on the general log of `{}`, and nothing stays changed; the account needs SUPER or SYSTEM_VARIABLES_ADMIN. \
                     On a managed service set log_output and general_log by its own tool, and import the log that it gives you",
                    self.server.address()
                )
            })?;
        }
        let current = LogSettings::read(&mut self.connection)?;
        ensure!(
            current == changed,
            "the server accepted {changed:?} and has {current:?}; nothing stays changed"
        );
        Ok(())
    }

    /// Address of the server, as the user wrote it.
    pub fn address(&self) -> &str {
        self.server.address()
    }

    /// Waits while the log is on, until the user asks to end it. Returns false where the user did.
    ///
    /// # Errors
    /// When the connection is lost, or another session changes the settings.
    pub fn wait(&mut self, length: Duration, console: &Console) -> Result<bool> {
        let begun = clock::now();
        let mut looked = begun;
        loop {
            let passed = clock::since(begun);
            if interrupt::check().is_err() {
                return Ok(false);
            }
            let Some(left) = length.checked_sub(passed).filter(|left| !left.is_zero()) else {
                return Ok(true);
            };
            console.measuring(
                passed.as_secs_f64(),
                length.as_secs_f64(),
                "the general log is on",
            );
            if clock::since(looked) >= LOOK_EVERY {
                looked = clock::now();
                let current = LogSettings::read(&mut self.connection)?;
                if current != self.state.changed {
                    bail!(
                        "another session changed log_output or general_log of `{}` after {} s; nothing was imported",
                        self.server.address(),
                        passed.as_secs()
                    );
                }
            }
            clock::sleep(left.min(STEP));
        }
    }

    /// Restores the former settings, through another connection where this one is lost, and removes the file with them.
    fn restore(&mut self) -> Result<()> {
        let again = || {
            let mut connection = self.server.connect(ConnectOptions::default())?;
            self.state.restore(&mut connection)
        };
        let restored = self.state.restore(&mut self.connection);
        restored
            .or_else(|_| again())
            .with_context(|| self.state.advice())?;
        self.is_ended = true;
        self.states.remove(&self.path)
    }

    /// Turns the log off: restores the former settings.
    ///
    /// # Errors
    /// When they cannot be restored; says how to do it by hand.
    pub fn end(mut self) -> Result<LoggedRows<'a>> {
        let end = self.connection.query("SELECT NOW(6)");
        self.restore()?;
        Ok(LoggedRows {
            server: self.server,
            begin: self.begin.clone(),
            end: end?.text(0, 0).unwrap_or_default(),
            own_session: self.connection.id(),
            product: self.product,
            version: self.version.clone(),
        })
    }
}

impl Drop for GeneralLog<'_> {
    fn drop(&mut self) {
        if !self.is_ended
            && let Err(error) = self.restore()
        {
            console::status_line(&format!("{error:#}"));
        }
    }
}

/// The rows that the general log's table got while it was on.
pub struct LoggedRows<'a> {
    server: &'a RunningServer,
    begin: String,
    end: String,
    own_session: u32,
    product: LogProduct,
    version: String,
}

impl LoggedRows<'_> {
    /// Product of the server.
    pub fn product(&self) -> LogProduct {
        self.product
    }

    /// Version of the server.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Writes the rows to a new file in the form of the table's own file, without those of dbduel's connection. Their number.
    ///
    /// # Errors
    /// When the table cannot be read or the file not be written.
    pub fn write(&self, file: File) -> Result<u64> {
        let mut connection = self.server.connect(ConnectOptions {
            statement_deadline: FETCH_DEADLINE,
            cancel: Cancel::when(interrupt::gives_up),
            ..ConnectOptions::default()
        })?;
        let sql = format!(
            "SELECT CAST(event_time AS CHAR), CAST(user_host AS BINARY), thread_id, server_id, \
             CAST(command_type AS BINARY), CAST(argument AS BINARY) FROM mysql.general_log \
             WHERE event_time BETWEEN '{}' AND '{}' AND thread_id <> {}",
            self.begin, self.end, self.own_session
        );
        let mut writer = RowWriter {
            out: BufWriter::with_capacity(1 << 20, file),
            line: Vec::new(),
            rows: 0,
            failed: None,
        };
        connection
            .query_into(&sql, &mut writer)
            .context("could not read `mysql.general_log`")?;
        let flushed = writer.out.flush();
        let written = writer.failed.map_or(flushed, Err);
        written.context("could not write the rows of `mysql.general_log` to a file")?;
        Ok(writer.rows)
    }
}

/// Writes rows of the table as lines.
struct RowWriter {
    out: BufWriter<File>,
    line: Vec<u8>,
    rows: u64,
    failed: Option<io::Error>,
}

impl RowWriter {
    fn write(&mut self, row: &Row<'_>) -> io::Result<()> {
        let mut values = [&b""[..]; GENERAL_COLUMNS];
        for (place, value) in values.iter_mut().zip(row.values()) {
            let value = value.map_err(io::Error::other)?;
            *place = value.as_bytes().unwrap_or_default();
        }
        self.line.clear();
        append_general_row(&mut self.line, values);
        self.out.write_all(&self.line)?;
        self.rows += 1;
        Ok(())
    }
}

impl Sink for RowWriter {
    fn wants_columns(&self) -> bool {
        false
    }

    fn row(&mut self, row: &Row<'_>) {
        if self.failed.is_none() {
            self.failed = self.write(row).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use dbduel_record::files::LocalFiles;

    use super::*;

    #[test]
    fn a_damaged_file_hides_no_other_server() {
        let folder = tempfile::tempdir().unwrap();
        let states = LogStates {
            folder: folder.path().to_owned(),
            files: Arc::new(LocalFiles),
        };
        let settings = |general_log| LogSettings {
            log_output: "TABLE".to_owned(),
            general_log,
        };
        for name in ["a", "b", "c"] {
            let state = LogState {
                format: FORMAT,
                server: format!("tcp://root@{name}:3306"),
                former: settings(false),
                changed: settings(true),
            };
            let path = folder.path().join(format!("{name}.json"));
            states.write(&path, &state).unwrap();
        }
        fs::write(folder.path().join("b.json"), "{").unwrap();
        fs::write(folder.path().join("d.json"), "").unwrap();
        let (mut servers, failed) = states.left_on().unwrap();
        servers.sort();
        assert_eq!(servers, ["tcp://root@a:3306", "tcp://root@c:3306"]);
        let failed = failed.unwrap().to_string();
        assert!(failed.contains("is damaged"), "{failed}");
    }
}
