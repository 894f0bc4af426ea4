//! A real server that listens on a socket and on TCP, and the ways into it that the program has.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use dbduel_driver::address::Address;
use dbduel_driver::{ConnectOptions, Connection, Credentials, TlsMode};
use dbduel_load::order::{Answer, OpenOrder, Order};
use dbduel_record::plan::{Parameters, Workload};

use super::super::bare_server::{BareServer, free_port};
use super::super::lab::program;
use super::certificates::{Certificates, Shown};

/// Database with the tables of [`WORKLOAD`].
const DATABASE: &str = "sbtest";
const WORKLOAD: &str = "oltp-point-select";

/// Part of every refusal for a server whose versions of TLS are too old.
pub const OLD_VERSION: &str = "can be reached with mode `off`";

/// A running server.
pub struct Place {
    server: BareServer,
    port: u16,
    certificates: Certificates,
}

/// What a login came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The method of the last answer.
    pub method: &'static str,
    /// Protocol and cipher of the encryption as the server names them; empty when there is none.
    pub tls: String,
}

impl Place {
    /// Starts a server with a certificate.
    pub fn start(name: &str, more: &[&str]) -> Self {
        let certificates = Certificates::make();
        let port = free_port();
        let mut options = vec![
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-name-resolve".to_owned(),
        ];
        options.extend(certificates.options());
        options.extend(more.iter().map(|&option| option.to_owned()));
        let place = Place {
            server: BareServer::start_with(name, &options),
            port,
            certificates,
        };
        place.drop_others();
        place.fill();
        place
    }

    /// Leaves root of this machine alone. Accounts without a name would stand before others, and further ones of root
    /// would let in whom they should not.
    fn drop_others(&self) {
        const OTHERS: &str =
            "FROM mysql.user WHERE user = '' OR (user = 'root' AND host <> 'localhost') LIMIT 1";
        loop {
            let account = self.ask(&format!(
                "SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) {OTHERS}"
            ));
            if account.is_empty() {
                return;
            }
            self.tell(&format!("DROP USER {account}"));
        }
    }

    fn fill(&self) {
        let output = self.load(
            &self.unix(),
            ("root", ""),
            &["--prepare", "--set", "tables=1", "table-size=100"],
        );
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }

    /// The first value of the answer to root; empty when there is none.
    pub fn ask(&self, sql: &str) -> String {
        self.server.query(sql)
    }

    pub fn tell(&self, sql: &str) {
        self.server.query(sql);
    }

    pub fn data(&self) -> PathBuf {
        self.server.data()
    }

    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    pub fn unix(&self) -> Address {
        Address::Unix {
            path: self.server.socket(),
        }
    }

    pub fn tcp(&self, host: &str) -> Address {
        Address::Tcp {
            host: host.to_owned(),
            port: self.port,
        }
    }

    /// Has the server show another certificate, by the statement of its product.
    pub fn show(&self, shown: Shown) {
        self.certificates.show(shown);
        let is_mariadb = self.ask("SELECT VERSION()").contains("MariaDB");
        self.tell(if is_mariadb {
            "FLUSH SSL"
        } else {
            "ALTER INSTANCE RELOAD TLS"
        });
    }

    /// `dbduel load` for a moment, with the password in the environment.
    pub fn load(&self, address: &Address, account: (&str, &str), more: &[&str]) -> Output {
        let mut command = program();
        command
            .args(["load", "--workload", WORKLOAD, "--database", DATABASE])
            .args(["--server", &with_user(address, account.0)])
            .args(["--duration", "200 ms", "--warm-up", "0 s", "--clients", "2"])
            .args(["--threads", "1", "--json"])
            .args(more)
            .env("DBDUEL_PASSWORD", account.1);
        if !more.contains(&"--set") {
            command.args(["--set", "tables=1", "table-size=100"]);
        }
        command.output().unwrap()
    }
}

/// The address as the command line takes it.
fn with_user(address: &Address, user: &str) -> String {
    match address {
        Address::Tcp { host, port } => format!("tcp://{user}@{host}:{port}"),
        Address::Unix { path } => format!("unix://{user}@{}", path.display()),
        Address::File { .. } => panic!("nobody logs in to a file"),
    }
}

/// Logs in as the commands do that measure nothing. The error is what a user reads.
pub fn administer(
    address: &Address,
    (user, password): (&str, &str),
    tls: &TlsMode,
) -> Result<Seen, String> {
    let options = ConnectOptions {
        tls: tls.clone(),
        ..ConnectOptions::default()
    };
    let credentials = Credentials::new(user, password);
    let mut connection = Connection::connect(address, &credentials, &options)
        .map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
    let mut status = |name: &str| {
        let answer = connection.query(&format!("SHOW SESSION STATUS LIKE '{name}'"));
        answer.unwrap().text(0, 1).unwrap_or_default()
    };
    let tls = [status("Ssl_version"), status("Ssl_cipher")]
        .join(" ")
        .trim()
        .to_owned();
    assert_eq!(
        connection.is_encrypted(),
        !tls.is_empty(),
        "both sides know whether they are overheard"
    );
    let method = connection.authentication();
    Ok(Seen { method, tls })
}

/// Logs in as the clients of a load do, in a load process. Returns the cipher.
pub fn drive(
    address: &Address,
    (user, password): (&str, &str),
    tls: &TlsMode,
) -> Result<String, String> {
    let workload = dbduel_workloads::find(WORKLOAD).unwrap();
    let given = Parameters::from([
        ("tables".to_owned(), 1.into()),
        ("table_size".to_owned(), 100.into()),
    ]);
    let order = Order::Open(OpenOrder {
        dialect: dbduel_driver::Dialect::MySql,
        contender: "server".to_owned(),
        address: address.clone(),
        user: user.to_owned(),
        password: password.to_owned(),
        tls: tls.clone(),
        database: DATABASE.to_owned(),
        workload: Workload {
            name: WORKLOAD.to_owned(),
            parameters: dbduel_workloads::parameters::resolve(workload, &given).unwrap(),
        },
        clients: 1,
        retries: 0,
        connect_s: 20.0,
    });
    let mut process = program()
        .args(["drive", "--threads", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = process.stdin.take().unwrap();
    writeln!(orders, "{}", serde_json::to_string(&order).unwrap()).unwrap();
    let mut answers = BufReader::new(process.stdout.take().unwrap()).lines();
    let answer = answers.next().unwrap().unwrap();
    drop(orders);
    process.wait().unwrap();
    match serde_json::from_str(&answer).unwrap() {
        Answer::Opened { session, .. } => Ok(session.tls_cipher.unwrap_or_default()),
        Answer::Refused { why } => Err(why),
        other => panic!("{other:?}"),
    }
}

/// Both ways in, which must come to the same.
#[track_caller]
pub fn log_in(address: &Address, account: (&str, &str), tls: &TlsMode) -> Result<Seen, String> {
    let seen = administer(address, account, tls);
    match (&seen, drive(address, account, tls)) {
        (Ok(seen), Ok(cipher)) => assert!(
            seen.tls.ends_with(&cipher) && seen.tls.is_empty() == cipher.is_empty(),
            "{seen:?}, and `{cipher}` for clients"
        ),
        (Err(why), Err(driven)) => {
            let driven = driven.strip_prefix("cannot open `server`: ").unwrap();
            // A server that speaks old versions of TLS only leaves right behind its answer, which may then not arrive.
            let is_old = |said: &str| said.contains(OLD_VERSION);
            assert!(
                why.ends_with(driven) || (is_old(why) && is_old(driven)),
                "{why}, and `{driven}` for clients"
            );
        }
        other => panic!("{address}, {account:?}, {tls:?}: {other:?}"),
    }
    seen
}

/// What the program said on standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn verify_ca(ca: &Path) -> TlsMode {
    TlsMode::VerifyCa { ca: ca.to_owned() }
}

pub fn verify_identity(ca: &Path) -> TlsMode {
    TlsMode::VerifyIdentity { ca: ca.to_owned() }
}
