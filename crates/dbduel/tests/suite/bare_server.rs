//! A real server without a contest around it, for verbs that drive what runs already.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use dbduel_driver::address::Address;
use dbduel_driver::{ConnectOptions, Connection, Credentials};
use serde_json::Value;

use super::lab::home;

/// A running server with an empty database `sbtest`; root needs no password. Dropping it kills it.
pub struct BareServer {
    folder: tempfile::TempDir,
    child: Child,
}

impl BareServer {
    /// Starts a server that is in the home already, off the network.
    pub fn start(name: &str) -> Self {
        Self::start_with(name, &["--skip-networking".to_owned()])
    }

    /// As [`BareServer::start`], with these options in place of the one that keeps it off the network.
    pub fn start_with(name: &str, options: &[String]) -> Self {
        let tree = Tree::open(name);
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        tree.initialise(&data);
        let socket = folder.path().join("s.sock");
        let mut command = tree.command(&data);
        command
            .arg(format!("--socket={}", socket.display()))
            .arg(format!(
                "--pid-file={}",
                folder.path().join("pid").display()
            ))
            .args(options)
            .args([
                "--innodb-buffer-pool-size=64M",
                "--innodb-flush-log-at-trx-commit=2",
            ]);
        if tree.is_new_mysql() {
            command.args(["--mysqlx=OFF", "--secure-file-priv="]);
        }
        let log = File::create(folder.path().join("log")).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = BareServer { folder, child };
        server.wait_until_ready(name);
        server.query("CREATE DATABASE sbtest");
        server
    }

    fn wait_until_ready(&mut self, name: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.connect().is_err() {
            let has_ended = self.child.try_wait().unwrap().is_some();
            if has_ended || Instant::now() > deadline {
                let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
                panic!("{name} does not answer; it said:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }

    /// The folder with the server's data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn connect(&self) -> Result<Connection, dbduel_driver::ConnectError> {
        let address = Address::Unix {
            path: self.socket(),
        };
        let root = Credentials::new("root".to_owned(), String::new());
        Connection::connect(&address, &root, &ConnectOptions::default())
    }

    /// The first value of the answer; empty when there is none.
    pub fn query(&self, sql: &str) -> String {
        let answer = self.connect().unwrap().query(sql).unwrap();
        answer.text(0, 0).unwrap_or_default()
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port without a listener. It lies below those that Linux assigns by itself (from 32768 on by default), so that no
/// connection takes it before the server does.
pub fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    (0..1_000)
        .map(|_| first + TRIED.fetch_add(1, Ordering::Relaxed))
        .find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .expect("a port is free")
}

/// An unpacked server, as `build.json` describes it.
pub struct Tree {
    root: PathBuf,
    build: Value,
}

impl Tree {
    pub fn open(name: &str) -> Self {
        let root = home().join("servers").join(name);
        let text = std::fs::read_to_string(root.join("build.json")).unwrap();
        Tree {
            root: root.canonicalize().unwrap(),
            build: serde_json::from_str(&text).unwrap(),
        }
    }

    /// Full names of the options that the server lists, with underscores.
    pub fn options(&self) -> BTreeSet<String> {
        let folder = tempfile::tempdir().unwrap();
        let output = self
            .command(folder.path())
            .args(["--verbose", "--help"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = text.lines().filter_map(|line| {
            // Explanations stand further right.
            let line = line.strip_prefix("  ")?;
            let name = match line.split_once(", --") {
                Some((letter, name)) if letter.len() == 2 && letter.starts_with('-') => name,
                _ => line.strip_prefix("--")?,
            };
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            let end = name.find(|c| !is_part(c)).unwrap_or(name.len());
            Some(name[..end].replace('-', "_"))
        });
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Whether the server takes the beginning of an option's name for the option; MySQL does so no longer.
    pub fn takes_abbreviations(&self) -> bool {
        !self.is_new_mysql()
    }

    /// Whether the server takes `name` for one of its options.
    pub fn takes(&self, name: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        // Of a new MySQL, the help takes any name.
        let look: &[&str] = match self.is_new_mysql() {
            true => &["--validate-config"],
            false => &["--verbose", "--help"],
        };
        // Some want a value and some must not have one.
        [format!("--{name}"), format!("--{name}=/x")]
            .iter()
            .any(|option| {
                let output = self
                    .command(folder.path())
                    .arg(option)
                    .args(look)
                    .output()
                    .unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                !said.contains("unknown option")
                    && !said.contains("unknown variable")
                    && !said.contains("ambiguous option")
            })
    }

    /// A path that `build.json` has under this name, if any.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.root.join(self.build[key].as_str()?))
    }

    /// The version as an audit is told it.
    pub fn version(&self) -> String {
        let part = |name: &str| self.build["version"][name].as_u64().unwrap();
        let numbers = [part("major"), part("minor"), part("patch")];
        match self.build["product"] == "postgresql" {
            true => format!("{}.{}", numbers[0], numbers[1]),
            false => numbers.map(|number| number.to_string()).join("."),
        }
    }

    /// Whether it is a MySQL of 8.0 or later.
    pub fn is_new_mysql(&self) -> bool {
        self.build["product"] == "mysql" && self.build["version"]["major"].as_u64() >= Some(8)
    }

    /// The daemon without any option.
    pub fn daemon(&self) -> Command {
        let libraries: Vec<String> = self.build["library_path"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| self.root.join(part.as_str().unwrap()).display().to_string())
            .collect();
        let libraries = libraries.join(":");
        let daemon = self.path("daemon").unwrap();
        match self.path("loader") {
            Some(loader) => {
                let mut command = Command::new(loader);
                command.args(["--library-path", &libraries]).arg(daemon);
                command
            }
            None => {
                let mut command = Command::new(daemon);
                command.env("LD_LIBRARY_PATH", libraries);
                command
            }
        }
    }

    fn command(&self, data: &Path) -> Command {
        self.command_with("--no-defaults", data)
    }

    /// The daemon with this as its first option, which says where others are read from.
    pub fn command_with(&self, first: &str, data: &Path) -> Command {
        let mut command = self.daemon();
        let share = self.path("share").unwrap();
        command
            .arg(first)
            .arg(format!(
                "--basedir={}",
                self.path("basedir").unwrap().display()
            ))
            .arg(format!("--lc-messages-dir={}", share.display()))
            .arg(format!("--character-sets-dir={}/charsets", share.display()))
            .arg(format!("--datadir={}", data.display()))
            .arg("--user=root");
        if let Some(plugins) = self.path("plugins") {
            command.arg(format!("--plugin-dir={}", plugins.display()));
        }
        command
    }

    fn initialise(&self, data: &Path) {
        if self.is_new_mysql() {
            let output = self
                .command(data)
                .arg("--initialize-insecure")
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            return;
        }
        std::fs::create_dir_all(data.join("mysql")).unwrap();
        let share = self.path("share").unwrap();
        let is_mariadb = self.build["product"] == "mariadb";
        let mut sql = if is_mariadb {
            "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
                .to_owned()
        } else {
            "USE mysql;\n".to_owned()
        };
        for part in ["system_tables", "performance_tables", "system_tables_data"] {
            for product in ["mariadb", "mysql"] {
                let file = share.join(format!("{product}_{part}.sql"));
                if let Ok(bytes) = std::fs::read(&file) {
                    sql += &String::from_utf8_lossy(&bytes);
                    sql.push('\n');
                    break;
                }
            }
        }
        self.bootstrap(data, &sql);
    }

    /// Executes statements, a line each, on data of a MariaDB or an old MySQL without starting a server for clients.
    pub fn bootstrap(&self, data: &Path, sql: &str) {
        let engine = match self.build["product"] == "mariadb" {
            true => "--enforce-storage-engine=",
            false => "--default-storage-engine=MyISAM",
        };
        // A file: it has room for whatever the server says while its statements are written.
        let mut said = tempfile::tempfile().unwrap();
        let mut child = self
            .command(data)
            .args(["--bootstrap", "--max-allowed-packet=8M", engine])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(said.try_clone().unwrap())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(sql.as_bytes())
            .unwrap();
        let status = child.wait().unwrap();
        let mut text = String::new();
        said.rewind().unwrap();
        said.read_to_string(&mut text).unwrap();
        assert!(status.success(), "{status}: {text}");
    }
}
