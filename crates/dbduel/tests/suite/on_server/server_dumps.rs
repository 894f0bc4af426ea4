//! `[data] server`: the database of a running server, dumped with an installed client before the contest.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use dbduel_driver::address::Address;
use dbduel_dump::Target;
use dbduel_dump::from_server::{DumpClient, Source, dump};
use dbduel_record::statements::ContenderStatements;

use super::captured::{fill_table, general_log, imported};
use super::database::Database;
use super::dumps::{as_owner, filled, rows};
use super::server::{MARIADB, Server};
use crate::suite::harness::skip;
use crate::suite::lab::{Lab, program, program_in, published};

/// Values of the application's statements, which no file of a record may have.
const VALUES: [&str; 2] = ["ada@example.org", "47110815"];
/// Sessions of an application: one class reads by the key, one by a column without an index.
const SESSIONS: [&[&str]; 2] = [
    &[
        "SELECT c FROM sbtest1 WHERE id = 5",
        "SELECT c FROM sbtest1 WHERE id = 6",
    ],
    &["SELECT id FROM sbtest1 WHERE pad = 'ada@example.org' OR k = 47110815"],
];

/// The client for a server; `None`, and the test counts as ignored, where there is none.
fn client(server: &Target) -> Option<DumpClient> {
    let found = DumpClient::find(server);
    if let Err(error) = &found {
        skip(&error.to_string());
    }
    found.ok()
}

/// Dumps a database into a file of the folder.
pub fn dumped(place: &Address, database: &Database, folder: &Path) -> Option<PathBuf> {
    let client = client(&Target::of(&database.connect()).unwrap())?;
    let source = Source {
        place,
        credentials: &database.credentials,
        database: &database.name,
    };
    let target = folder.join("taken.sql.gz");
    let mut bytes = 0;
    let mut go_on = |done| {
        bytes = done;
        true
    };
    dump(&client, &source, &target, &mut go_on).unwrap();
    Some(target)
}

#[test(on = &[MARIADB])]
fn a_database_of_a_running_server_is_dumped_and_loaded_again(server: &Server) {
    let (from, to) = (
        Database::create(server, "dumped"),
        Database::create(server, "loaded"),
    );
    fill_table(&from.place(1));
    let mut connection = from.connect();
    // A dump repeats the statement with the name of the database.
    let name = &from.name;
    let trigger = format!(
        "CREATE TRIGGER {name}.kept BEFORE UPDATE ON {name}.sbtest1 FOR EACH ROW SET NEW.pad = 'by a trigger'"
    );
    connection.execute(&trigger).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for place in [server.tcp(), server.unix()] {
        let Some(path) = dumped(&place, &from, folder.path()) else {
            return;
        };
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let report = filled(&path, &to.place(1)).unwrap();
        assert_eq!(report.rows, 100);
        let mut owner = as_owner(&to.place(1));
        owner
            .execute("UPDATE sbtest1 SET k = 0 WHERE id = 7")
            .unwrap();
        let sql = "SELECT COUNT(*), SUM(pad = 'by a trigger') FROM sbtest1";
        assert_eq!(rows(&mut owner, sql), ["100,1"]);
        fs::remove_file(&path).unwrap();
        to.run(&format!("DROP DATABASE {0}", to.name));
        to.run(&format!("CREATE DATABASE {0}", to.name));
    }
    // A client that fails leaves no file, and its words are passed on.
    let client = client(&Target::of(&from.connect()).unwrap()).unwrap();
    let source = Source {
        place: &server.tcp(),
        credentials: &from.credentials,
        database: "no_such_database",
    };
    let target = folder.path().join("none.sql.gz");
    let error = dump(&client, &source, &target, &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("no_such_database"), "{error}");
    assert!(!target.exists());
    let source = Source {
        database: &from.name,
        ..source
    };
    let error = dump(&client, &source, &target, &mut |_| false).unwrap_err();
    assert_eq!(error.to_string(), "cancelled");
    assert!(!target.exists());
}

/// A duel on the application's capture, whose tables come from this server.
fn experiment(folder: &Path, data: &str) -> String {
    let contender = "server = \"mariadb-10.11\"\nsettings = { innodb_buffer_pool_size = \"32M\", innodb_log_file_size = \"8M\", \
                     innodb_flush_log_at_trx_commit = 2 }";
    format!(
        "budget = \"6 s\"\nhorizon = \"25 %\"\nseed = 7\n[contenders.first]\n{contender}\n[contenders.second]\nlike = \"first\"\n\
         [workload]\nname = \"captured\"\ncapture = \"{}\"\n[data]\n{data}\n[load]\nclients = 2\n\
         [schedule]\nslice = \"100 ms\"\nguard = \"10 ms\"\nwarm_up = \"200 ms\"\n",
        folder.join("a.cap").display()
    )
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test(on = &[MARIADB])]
fn a_database_that_cannot_be_dumped_ends_the_run_before_its_record(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    imported(folder.path(), &general_log(&SESSIONS), None);
    let address = server.tcp().to_string().replacen("//", "//root@", 1);
    let home = folder.path().join("home");
    let run = |data: &str, path: Option<&str>| {
        let lab = Lab::new(&experiment(folder.path(), data));
        let mut command = program_in(&home);
        command.arg("run").arg(lab.experiment());
        command.arg("--results").arg(lab.results());
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(!lab.has_results());
        said(&output)
    };
    let missing = run(&format!("server = \"{address}/no_such_database\""), None);
    assert!(
        missing.contains("could not dump the database `no_such_database`"),
        "{missing}"
    );
    assert!(missing.contains("1049"), "{missing}");
    fs::write(folder.path().join("password"), "a wrong secret\n").unwrap();
    let password = folder.path().join("password");
    let refused = run(
        &format!(
            "server = \"{address}/mysql\"\npassword_file = \"{}\"",
            password.display()
        ),
        None,
    );
    assert!(
        refused.contains("1045") && refused.contains("`password_file` of [data]"),
        "{refused}"
    );
    assert!(!refused.contains("a wrong secret"), "{refused}");
    let none = folder.path().join("empty").display().to_string();
    let without = run(&format!("server = \"{address}/mysql\""), Some(&none));
    assert!(without.contains("mariadb-client"), "{without}");
    // The plan asks no server.
    let lab = Lab::new(&experiment(
        folder.path(),
        "server = \"tcp://db.invalid/shop\"",
    ));
    let output = program()
        .args(["run", "--plan"])
        .arg(lab.experiment())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let plan = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        plan.contains("First `dbduel run` dumps the database `shop` of `tcp://db.invalid`"),
        "{plan}"
    );
}

/// Files below a directory that contain one of the values.
fn files_with_values(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with_values(&path));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let has = |value: &&&str| {
            bytes
                .windows(value.len())
                .any(|part| part == value.as_bytes())
        };
        let values = VALUES.iter().filter(has);
        found.extend(values.map(|value| format!("{}: {value}", path.display())));
    }
    found
}

#[test(on = &[MARIADB], contest)]
fn a_contest_runs_on_a_running_servers_tables_and_keeps_plans_without_values(server: &Server) {
    let database = Database::create(server, "production");
    fill_table(&database.place(1));
    if client(&Target::of(&database.connect()).unwrap()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    imported(folder.path(), &general_log(&SESSIONS), None);
    let address = server.tcp().to_string().replacen("//", "//root@", 1);
    let data = format!("server = \"{address}\"\ndatabase = \"{}\"", database.name);
    let lab = Lab::new(&experiment(folder.path(), &data));
    let output = lab.run_to_the_end();
    assert!(
        said(&output).contains("with mariadb-dump of MariaDB 10.11"),
        "{}",
        said(&output)
    );
    let record = lab.record();
    assert_eq!(record.complaints, []);
    let dump = record.plan.workload.parameters["dump"].as_str().unwrap();
    assert!(dump.ends_with(".sql.gz"), "{dump}");
    // The record names the dump, so a resumed run asks no server.
    let kept = fs::read_to_string(lab.record_dir().join("experiment.toml")).unwrap();
    assert!(kept.contains(dump) && !kept.contains("tcp://"), "{kept}");
    fs::remove_dir_all(Path::new(dump).parent().unwrap()).unwrap();
    for contender in &record.contenders {
        let plans: &ContenderStatements = contender.statements.as_ref().unwrap();
        let plans = &plans.levels[0].statements;
        assert_eq!(plans.len(), 2, "{plans:?}");
        for plan in plans {
            assert_eq!(plan.because, None);
            assert!(plan.example.id.is_some() && plan.example.text.is_none());
        }
    }
    let report = published(&lab.record_dir());
    let classes = report["summary"]["duels"][0]["statements"]
        .as_array()
        .unwrap();
    let steps = |part: &str| {
        let class = classes
            .iter()
            .find(|class| class["class"].as_str().unwrap().contains(part));
        class.unwrap()["plans"][0]["steps"][0]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(steps("where id = ?"), "sbtest1: const PRIMARY");
    assert!(
        steps("where pad = ?").starts_with("sbtest1: ALL"),
        "{}",
        steps("where pad = ?")
    );
    assert_eq!(files_with_values(&lab.record_dir()), Vec::<String>::new());
}
