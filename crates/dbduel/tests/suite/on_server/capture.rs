//! The general log of a running server, turned on by `dbduel capture import --from`, and its settings afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dbduel_capture::import::{ImportOptions, import};
use dbduel_capture::store::Capture;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::super::bare_server::BareServer;
use super::super::lab::{program_in, signal};

const MARIADB: &str = "mariadb-10.11";
const MYSQL: &str = "mysql-9.7";

/// A server, and a folder with a home and captures.
struct Place {
    server: BareServer,
    folder: TempDir,
}

impl Place {
    fn start(name: &str) -> Self {
        Place {
            server: BareServer::start(name),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("shop.cap")
    }

    /// An import of this account, for so many minutes.
    fn import(&self, user: &str, minutes: &str) -> Child {
        let mut command = program_in(&self.home());
        let address = format!("unix://{user}@{}", self.server.socket().display());
        command
            .args([
                "capture",
                "import",
                "--from",
                &address,
                "--minutes",
                minutes,
            ])
            .args(["--yes", "-o"])
            .arg(self.target())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn restore(&self) -> Output {
        let mut command = program_in(&self.home());
        command.args(["capture", "restore"]).output().unwrap()
    }

    fn settings(&self) -> String {
        let settings = "SELECT CONCAT(@@GLOBAL.general_log + 0, ' ', @@GLOBAL.log_output)";
        self.server.query(settings)
    }

    fn rows(&self) -> u64 {
        let count = self.server.query("SELECT COUNT(*) FROM mysql.general_log");
        count.parse().unwrap()
    }

    /// Waits until the import has turned the log on.
    #[track_caller]
    fn wait_until_on(&self, import: &mut Child) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.settings().starts_with("1 ") {
            assert!(Instant::now() < deadline, "the log is not on in time");
            assert!(
                import.try_wait().unwrap().is_none(),
                "the import ended early"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Files with former settings, which are there as long as these are not restored.
    fn states(&self) -> usize {
        let entries = fs::read_dir(self.home().join("log-settings")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "json")
            })
            .count()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn texts(path: &Path) -> Vec<String> {
    let capture = Capture::open(path).unwrap();
    let texts = (0..capture.statements()).map(|index| text(capture.text(index).unwrap()));
    texts.collect()
}

/// Statements with everything that a table of text escapes.
const SENT: &str = "SELECT 'a\\\\b\"c',\n\t'd,e' AS captured";

fn an_import_has_the_statements_of_the_others(name: &str) {
    let place = Place::start(name);
    let mut import = place.import("root", "60");
    place.wait_until_on(&mut import);
    assert_eq!(place.settings(), "1 TABLE");
    assert_eq!(place.states(), 1);
    place.server.query(SENT);
    // A second import of the server waits for none.
    let second = place.import("root", "60").wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let said = text(&second.stderr);
    assert!(said.contains("another import from"), "{said}");

    signal(&import, Signal::SIGTERM);
    let output = import.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("keeps what this import logged"), "{said}");
    assert!(said.contains("TRUNCATE TABLE mysql.general_log"), "{said}");
    assert_eq!(place.settings(), "0 FILE");
    assert_eq!(place.states(), 0);
    assert!(place.rows() > 0, "dbduel empties no table");
    let left: Vec<_> = fs::read_dir(place.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");

    let texts = texts(&place.target());
    assert!(texts.iter().any(|text| text == SENT), "{texts:?}");
    let own = ["SET GLOBAL general_log", "FROM mysql.general_log"];
    let is_own = |text: &String| own.iter().any(|part| text.contains(part));
    assert!(!texts.iter().any(is_own), "{texts:?}");
    let capture = Capture::open(&place.target()).unwrap();
    let manifest = capture.manifest();
    assert!(manifest.span.names_zone && !manifest.log.is_product_assumed);
    let version = place.server.query("SELECT VERSION()");
    assert_eq!(manifest.log.version.as_ref(), Some(&version));
    assert_eq!(manifest.unreadable.parts, 0);
    assert!(manifest.counts.whole_sessions > 0);
}

#[test(needs = &["mariadb-10.11"])]
fn an_import_from_mariadb_has_the_statements_of_the_others() {
    an_import_has_the_statements_of_the_others(MARIADB);
}

#[test(needs = &["mysql-9.7"])]
fn an_import_from_mysql_has_the_statements_of_the_others() {
    an_import_has_the_statements_of_the_others(MYSQL);
}

#[test(lab, needs = &["mysql-8.0.33"])]
fn an_import_from_mysql_8_has_the_statements_of_the_others() {
    an_import_has_the_statements_of_the_others("mysql-8.0.33");
}

/// The settings of a server whose general log is in its table, beside a slow log in a file.
fn settings_survive_sigkill(name: &str) {
    let place = Place::start(name);
    let server = &place.server;
    // Rows of before.
    server.query("SET GLOBAL log_output = 'TABLE'");
    server.query("SET GLOBAL general_log = ON");
    server.query("SELECT 'before'");
    server.query("SET GLOBAL general_log = OFF");
    server.query("SET GLOBAL log_output = 'FILE'");
    server.query("SET GLOBAL slow_query_log = ON");
    let before = place.rows();
    assert!(before > 0);
    let kill = || {
        let mut import = place.import("root", "60");
        place.wait_until_on(&mut import);
        signal(&import, Signal::SIGKILL);
        import.wait().unwrap();
        assert_eq!(place.settings(), "1 FILE,TABLE");
        assert_eq!(place.states(), 1);
    };

    kill();
    let output = place.restore();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(said.contains("restored the log settings of"), "{said}");
    assert_eq!(place.settings(), "0 FILE");
    assert_eq!(place.states(), 0);
    let again = text(&place.restore().stdout);
    assert!(again.contains("no import left"), "{again}");

    kill();
    // Nothing is sent while this one has the log on, so that it may have no statements.
    let output = place.import("root", "0.001").wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(
        said.contains("which an import that did not end had changed"),
        "{said}"
    );
    assert!(said.contains("keeps what this import logged"), "{said}");
    assert_eq!(place.settings(), "0 FILE");
    assert_eq!(place.states(), 0);
    assert!(place.rows() > before, "rows of before stay");

    // What another session changed since is not restored.
    kill();
    server.query("SET GLOBAL log_output = 'NONE'");
    assert_eq!(place.restore().status.code(), Some(0));
    assert_eq!(place.settings(), "0 NONE");
}

#[test(needs = &["mariadb-10.11"])]
fn log_settings_of_mariadb_survive_sigkill() {
    settings_survive_sigkill(MARIADB);
}

#[test(needs = &["mysql-9.7"])]
fn log_settings_of_mysql_survive_sigkill() {
    settings_survive_sigkill(MYSQL);
}

#[test(lab, needs = &["mysql-8.0.33"])]
fn log_settings_of_mysql_8_survive_sigkill() {
    settings_survive_sigkill("mysql-8.0.33");
}

#[test(needs = &["mariadb-10.11"])]
fn an_account_without_privileges_changes_nothing() {
    let place = Place::start(MARIADB);
    place.server.query("CREATE USER app@localhost");
    let import = || {
        let output = place.import("app", "60").wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let said = import();
    assert!(said.contains("grant the account SELECT"), "{said}");
    place
        .server
        .query("GRANT SELECT ON mysql.general_log TO app@localhost");
    let said = import();
    assert!(said.contains("nothing stays changed"), "{said}");
    assert_eq!(place.settings(), "0 FILE");
    assert_eq!(place.states(), 0);
}

/// Functions that MariaDB lists and a replay does not run.
const REFUSED_IN_MARIADB: [&str; 8] = [
    "benchmark",
    "binlog_gtid_pos",
    "load_file",
    "master_gtid_wait",
    "master_pos_wait",
    "wsrep_last_seen_gtid",
    "wsrep_last_written_gtid",
    "wsrep_sync_wait_upto_gtid",
];

#[test(needs = &["mariadb-10.11"])]
fn functions_of_mariadb_are_known_but_for_those_that_reach_out() {
    let place = Place::start(MARIADB);
    let listed =
        "SELECT GROUP_CONCAT(DISTINCT LOWER(`FUNCTION`)) FROM information_schema.SQL_FUNCTIONS";
    let listed = place.server.query(listed);
    let entries = listed
        .split(',')
        .map(|name| format!("2026-11-28T00:00:00.000000Z\t    7 Query\tSELECT {name}(1)\n"));
    let log = place.folder.path().join("general.log");
    fs::write(&log, entries.collect::<String>()).unwrap();
    let options = ImportOptions {
        logs: vec![log],
        target: place.target(),
        ..ImportOptions::default()
    };
    let manifest = import(&options, &mut |_| Ok(())).unwrap();
    assert!(manifest.counts.statements > 150, "{listed}");
    let refused = manifest
        .refusals
        .iter()
        .map(|refusal| refusal.what.as_str());
    let names = refused.map(|what| what.split('`').nth(1).unwrap_or(what));
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    assert_eq!(names, REFUSED_IN_MARIADB);
}
