//! Dumps a database of a running server with an installed client: `mariadb-dump`, `mysqldump` or `pg_dump`.
//!
//! The dump is one consistent snapshot (`--single-transaction`; `pg_dump` always takes one) and is written compressed. The password
//! reaches the client in its environment, which only its own user can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use dbduel_driver::Credentials;
use dbduel_driver::address::Address;
use dbduel_text::Version;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::programs::{Errors, PAUSE, candidates, exit_of, version_text};
use crate::{Product, Target};

/// Prefix of the names of PostgreSQL's sockets, before the port.
const POSTGRESQL_SOCKET: &str = ".s.PGSQL.";
/// Most of the compressed dump that is flushed at once, bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// Why a server is not dumped.
#[derive(Debug, thiserror::Error)]
pub enum ServerDumpError {
    /// No client that can dump the server is installed.
    #[error("no program that dumps {server} was found on PATH{places}; install {install}")]
    NoClient {
        /// Product and version of the server.
        server: String,
        /// Other places that were searched.
        places: &'static str,
        /// What to install.
        install: String,
    },
    /// The client ended with an error.
    #[error("`{}` could not dump `{database}`: {said}", .program.display())]
    Failed {
        /// The client.
        program: PathBuf,
        /// The database.
        database: String,
        /// The beginning of its errors.
        said: String,
    },
    /// The dump cannot be written.
    #[error("could not write the dump `{}`", .path.display())]
    Write {
        /// The dump.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The client cannot be started.
    #[error("could not start `{}`", .program.display())]
    Start {
        /// The client.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The caller stopped it.
    #[error("cancelled")]
    Cancelled,
}

/// An installed program that dumps a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpClient {
    /// The program.
    pub program: PathBuf,
    /// Its product: MariaDB's programs also dump MySQL, and the other way round.
    pub product: Product,
    /// Its version.
    pub version: Version,
}

impl DumpClient {
    /// Finds the client for a server: of the server's own product where one is installed. Of PostgreSQL's the oldest that is not older
    /// than the server, as an older one refuses it.
    ///
    /// # Errors
    /// [`ServerDumpError::NoClient`].
    pub fn find(server: &Target) -> Result<Self, ServerDumpError> {
        let names = names(server.product).iter();
        let programs = names.flat_map(|name| candidates(name));
        let clients = programs.filter_map(|program| {
            let (product, version) = named(&version_text(&program)?)?;
            Some(Self {
                program,
                product,
                version,
            })
        });
        choose(server, clients.collect()).ok_or_else(|| no_client(server))
    }

    /// Its name and version, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        let program = self.program.file_name().unwrap_or_default();
        let of = Target {
            product: self.product,
            version: self.version,
        };
        format!("{} of {}", program.to_string_lossy(), of.name())
    }
}

/// A database of a running server.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Location of the server.
    pub place: &'a Address,
    /// The account.
    pub credentials: &'a Credentials,
    /// The database.
    pub database: &'a str,
}

/// Dumps a database into the new file `target`, compressed with gzip, readable for its owner alone. `go_on` is called with the bytes of
/// the dump so far and stops it by `false`. A dump that fails leaves no file.
///
/// # Errors
/// [`ServerDumpError`], of which the client's own words have no password.
pub fn dump(
    client: &DumpClient,
    source: &Source<'_>,
    target: &Path,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), ServerDumpError> {
    let unwritten = |error| ServerDumpError::Write {
        path: target.to_owned(),
        source: error,
    };
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600);
    let file = file.open(target).map_err(unwritten)?;
    let dumped = Dumping::start(client, source, file)
        .map_err(|source| ServerDumpError::Start {
            program: client.program.clone(),
            source,
        })
        .and_then(|dumping| dumping.wait(client, source, go_on, &unwritten));
    if dumped.is_err() {
        // The dump is incomplete, and its error matters more than that of removing it.
        let _ = std::fs::remove_file(target);
    }
    dumped
}

/// A client whose output is written to a file by a thread.
struct Dumping {
    child: Child,
    errors: Option<Errors>,
    bytes: Arc<AtomicU64>,
    writing: Option<JoinHandle<io::Result<()>>>,
}

impl Dumping {
    fn start(client: &DumpClient, source: &Source<'_>, file: File) -> io::Result<Self> {
        let mut child = command(client, source)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&bytes);
        let writing =
            output.map(|output| std::thread::spawn(move || write(output, file, &counted)));
        Ok(Self {
            child,
            errors: errors.map(Errors::read),
            bytes,
            writing,
        })
    }

    fn wait(
        mut self,
        client: &DumpClient,
        source: &Source<'_>,
        go_on: &mut dyn FnMut(u64) -> bool,
        unwritten: &dyn Fn(io::Error) -> ServerDumpError,
    ) -> Result<(), ServerDumpError> {
        loop {
            // Asked at least once, also about a dump that is over at once.
            if !go_on(self.bytes.load(Ordering::Relaxed)) {
                return Err(ServerDumpError::Cancelled);
            }
            match &self.writing {
                Some(writing) if !writing.is_finished() => std::thread::sleep(PAUSE),
                Some(_) | None => break,
            }
        }
        let written = self.writing.take().map(JoinHandle::join);
        if let Some(Ok(Err(error))) = written {
            return Err(unwritten(error));
        }
        let is_well = exit_of(&mut self.child) == Some(true);
        let said = self.errors.take().map(Errors::text).unwrap_or_default();
        match is_well {
            true => Ok(()),
            false => Err(ServerDumpError::Failed {
                program: client.program.clone(),
                database: source.database.to_owned(),
                said,
            }),
        }
    }
}

impl Drop for Dumping {
    fn drop(&mut self) {
        // Has ended by itself unless the dump was given up; its pipe then ends the thread.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a client's output to a file, compressed and synced.
fn write(mut output: ChildStdout, file: File, bytes: &AtomicU64) -> io::Result<()> {
    let buffered = io::BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut encoder = GzEncoder::new(buffered, Compression::fast());
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = match io::Read::read(&mut output, &mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            break;
        }
        encoder.write_all(&buffer[..read])?;
        bytes.fetch_add(read as u64, Ordering::Relaxed);
    }
    let buffered = encoder.finish()?;
    let file = buffered
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    file.sync_all()
}

/// Names of programs that dump a product, the preferred ones first.
fn names(product: Product) -> &'static [&'static str] {
    match product {
        Product::MySql => &["mysqldump", "mariadb-dump"],
        Product::MariaDb => &["mariadb-dump", "mysqldump"],
        Product::PostgreSql => &["pg_dump"],
    }
}

/// Product and version of a client by what it prints: `pg_dump (PostgreSQL) 15.18 (Debian …)`, `mysqldump  Ver 8.0.33 for Linux …`,
/// `mysqldump  Ver 10.19 Distrib 10.11.19-MariaDB, for …`, `mariadb-dump from 11.8.2-MariaDB, client 10.19 for …`.
fn named(text: &str) -> Option<(Product, Version)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |word: &str| {
        let at = words.iter().position(|one| *one == word)?;
        Version::parse(words.get(at + 1)?)
    };
    if let Some(version) = after("(PostgreSQL)") {
        return Some((Product::PostgreSql, version));
    }
    let version = after("Distrib").or_else(|| after("from"));
    let version = version.or_else(|| after("Ver"))?;
    match text.contains("MariaDB") {
        true => Some((Product::MariaDb, version)),
        false => Some((Product::MySql, version)),
    }
}

/// The best client for a server; of equals the first.
fn choose(server: &Target, clients: Vec<DumpClient>) -> Option<DumpClient> {
    if server.product == Product::PostgreSql {
        let mut fit: Vec<DumpClient> = clients;
        fit.retain(|client| client.version.major >= server.version.major);
        return fit.into_iter().min_by_key(|client| client.version);
    }
    let is_own = |client: &&DumpClient| client.product == server.product;
    let own = clients.iter().find(is_own);
    own.or(clients.first()).cloned()
}

fn no_client(server: &Target) -> ServerDumpError {
    let (places, install) = match server.product {
        Product::PostgreSql => (
            " and in /usr/lib/postgresql that is not older than it",
            format!(
                "the client of that version (Debian: `postgresql-client-{}`)",
                server.version.major
            ),
        ),
        Product::MariaDb => ("", "MariaDB's client (Debian: `mariadb-client`)".to_owned()),
        Product::MySql => (
            "",
            "MySQL's client with `mysqldump` (`mysql-client` of MySQL's packages)".to_owned(),
        ),
    };
    ServerDumpError::NoClient {
        server: server.name(),
        places,
        install,
    }
}

/// The call of a client. It reads no option file, as options there can leave rows out.
fn command(client: &DumpClient, source: &Source<'_>) -> Command {
    let mut command = Command::new(&client.program);
    let Credentials { user, password, .. } = source.credentials;
    if client.product == Product::PostgreSql {
        let (host, port) = postgresql_place(source.place);
        command.args(["--format=plain", "--no-owner", "--no-privileges"]);
        // --no-large-objects, which before 16 had another name.
        command.args(["-B", "--no-password", "--encoding=UTF8"]);
        command.arg(format!("--username={user}"));
        command.arg(format!("--host={host}"));
        command.arg(format!("--port={port}"));
        command.arg(format!("--dbname={}", connection_string(source.database)));
        command.env_remove("PGSERVICE").env_remove("PGOPTIONS");
        if !password.is_empty() {
            command.env("PGPASSWORD", password);
        }
        return command;
    }
    command.arg("--no-defaults");
    command.args(["--single-transaction", "--quick", "--hex-blob"]);
    command.args(["--routines", "--triggers", "--no-tablespaces"]);
    // Equal data give equal bytes.
    command.arg("--skip-dump-date");
    command.args(["--max-allowed-packet=1G", "--default-character-set=utf8mb4"]);
    match client.product {
        // What older servers and MariaDB do not understand.
        Product::MySql => {
            command.args(["--loose-column-statistics=0", "--loose-set-gtid-purged=OFF"]);
        }
        // From 11.4 it refuses servers without a certificate that it can verify.
        Product::MariaDb => {
            command.arg("--skip-ssl-verify-server-cert");
        }
        Product::PostgreSql => {}
    }
    match source.place {
        Address::Tcp { host, port } => {
            command.arg("--protocol=tcp");
            command.arg(format!("--host={host}"));
            command.arg(format!("--port={port}"));
        }
        Address::Unix { path } => {
            command.arg("--protocol=socket");
            command.arg(format!("--socket={}", path.display()));
        }
        Address::File { .. } => {}
    }
    command.arg(format!("--user={user}"));
    command.env("MYSQL_PWD", password);
    command.args(["--", source.database]);
    command
}

/// Host, or folder of the socket, and port for PostgreSQL's clients.
fn postgresql_place(place: &Address) -> (String, String) {
    match place {
        Address::Tcp { host, port } => (host.clone(), port.to_string()),
        Address::Unix { path } => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let port = name.strip_prefix(POSTGRESQL_SOCKET).unwrap_or("5432");
            (folder.display().to_string(), port.to_owned())
        }
        Address::File { path, .. } => (path.display().to_string(), String::new()),
    }
}

/// A connection string for a database whose name may look like one.
fn connection_string(database: &str) -> String {
    let quoted = database.replace('\\', "\\\\").replace('\'', "\\'");
    format!("dbname='{quoted}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_driver::Dialect;

    fn client(product: Product, version: &str) -> DumpClient {
        DumpClient {
            program: PathBuf::from(format!("/{version}")),
            product,
            version: Version::parse(version).unwrap(),
        }
    }

    fn arguments(client: &DumpClient, place: &Address) -> Vec<String> {
        let credentials = Credentials::new("app", "the secret");
        let source = Source {
            place,
            credentials: &credentials,
            database: "sh'op",
        };
        let command = command(client, &source);
        let words = command.get_args();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn clients_are_known_by_what_they_print() {
        for (text, product, version) in [
            (
                "pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n",
                Product::PostgreSql,
                "15.18",
            ),
            (
                "mysqldump  Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)\n",
                Product::MySql,
                "8.0.33",
            ),
            (
                "mysqldump  Ver 10.13 Distrib 5.6.24, for Linux (x86_64)\n",
                Product::MySql,
                "5.6.24",
            ),
            (
                "mysqldump  Ver 10.19 Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)\n",
                Product::MariaDb,
                "10.11.19",
            ),
            (
                "mariadb-dump from 11.8.2-MariaDB, client 10.19 for linux (x86_64)\n",
                Product::MariaDb,
                "11.8.2",
            ),
        ] {
            let version = Version::parse(version).unwrap();
            assert_eq!(named(text), Some((product, version)), "{text}");
        }
        assert_eq!(named("usage: dump FILE"), None);
    }

    #[test]
    fn a_server_is_dumped_by_its_own_client_where_there_is_one() {
        let server = |dialect, greeting| Target::named(dialect, greeting).unwrap();
        let both = || {
            vec![
                client(Product::MariaDb, "10.11.19"),
                client(Product::MySql, "8.0.33"),
            ]
        };
        let mysql = server(Dialect::MySql, "9.7.4");
        assert_eq!(
            choose(&mysql, both()),
            Some(client(Product::MySql, "8.0.33"))
        );
        let mariadb = server(Dialect::MySql, "5.5.5-10.11.19-MariaDB");
        assert_eq!(
            choose(&mariadb, both()),
            Some(client(Product::MariaDb, "10.11.19"))
        );
        let only = vec![client(Product::MariaDb, "10.11.19")];
        assert_eq!(choose(&mysql, only.clone()), only.first().cloned());
        let of = ["17.2", "12.22", "15.18"].map(|version| client(Product::PostgreSql, version));
        let postgresql = |greeting| choose(&server(Dialect::PostgreSql, greeting), of.to_vec());
        assert_eq!(
            postgresql("13.4"),
            Some(client(Product::PostgreSql, "15.18"))
        );
        assert_eq!(
            postgresql("12.1"),
            Some(client(Product::PostgreSql, "12.22"))
        );
        assert_eq!(postgresql("18.0"), None);
        let why = no_client(&server(Dialect::PostgreSql, "18.0")).to_string();
        assert!(
            why.contains("PostgreSQL 18") && why.contains("`postgresql-client-18`"),
            "{why}"
        );
    }

    #[test]
    fn the_password_is_no_argument() {
        let tcp = Address::Tcp {
            host: "db".to_owned(),
            port: 3307,
        };
        let socket = Address::Unix {
            path: PathBuf::from("/run/pg/.s.PGSQL.5433"),
        };
        for (product, place, expected) in [
            (
                Product::MySql,
                &tcp,
                ["--host=db", "--port=3307", "--user=app", "sh'op"],
            ),
            (
                Product::MariaDb,
                &socket,
                [
                    "--socket=/run/pg/.s.PGSQL.5433",
                    "--protocol=socket",
                    "--",
                    "sh'op",
                ],
            ),
            (
                Product::PostgreSql,
                &socket,
                [
                    "--host=/run/pg",
                    "--port=5433",
                    "--username=app",
                    "--dbname=dbname='sh\\'op'",
                ],
            ),
        ] {
            let words = arguments(&client(product, "15.1"), place);
            for word in expected {
                assert!(words.iter().any(|one| one == word), "{word}: {words:?}");
            }
            assert!(!words.iter().any(|one| one.contains("secret")), "{words:?}");
        }
    }
}
