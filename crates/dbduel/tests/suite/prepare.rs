//! What goes wrong before the first slice: one server under two addresses, slow statements, servers that are killed.

use std::os::unix::fs::symlink;
use std::process::Command;

use dbduel_record::event::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::bare_server::{BareServer, Tree, free_port};
use super::lab::{Lab, count, home, servers_left, short_experiment, with_budget};

/// A running server that lets the account `duel` in over its socket and this port.
fn listening(name: &str, port: u16) -> BareServer {
    let options = [
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
    ];
    let server = BareServer::start_with(name, &options);
    server.query("CREATE USER duel@'%'");
    server.query("GRANT ALL ON *.* TO duel@'%'");
    server
}

/// Only the server knows that a socket and a port lead to it.
#[test(lab, needs = &["mariadb-10.11", "mysql-8.0.33"])]
fn a_running_server_under_a_socket_and_a_port_is_one_server() {
    for name in ["mariadb-10.11", "mysql-8.0.33"] {
        let (port, other_port) = (free_port(), free_port());
        let server = listening(name, port);
        let run = |port: u16| {
            // Of two servers the contest gets as far as the look at the disk, which no machine passes.
            let lab = Lab::new(&format!(
                "[contenders.a]\nserver = \"tcp://duel@127.0.0.1:{port}\"\n\
                 [contenders.b]\nserver = \"unix://duel@{}\"\n\
                 [workload]\nname = \"oltp-point-select\"\ntables = 1\ntable_size = 100\n\
                 [schedule]\nwarm_up = \"1 s\"\n[limits]\nfree_disk = \"4000 TiB\"\n",
                server.socket().display()
            ));
            let output = lab.run();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status.code(), said)
        };
        let (code, said) = run(port);
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(said.contains("duel.toml:4:"), "{name}: {said}");
        assert!(
            said.contains("`a` and `b` are the same running server"),
            "{name}: {said}"
        );
        assert_eq!(server.query("SHOW TABLES FROM dbduel"), "", "{name}");

        let _other = listening(name, other_port);
        let (code, said) = run(other_port);
        assert_eq!(code, Some(1), "{name}: {said}");
        assert!(said.contains("make room"), "{name}: {said}");
    }
}

/// A script prepares a number of statements that only the script knows.
#[test(needs = &["mariadb-10.11"])]
fn a_limit_of_prepared_statements_is_remarked_on_before_data_are_loaded() {
    let experiment = short_experiment(["mariadb-10.11", "mariadb-10.11"], "").replacen(
        "flush_log_at_trx_commit = 2,",
        "flush_log_at_trx_commit = 2, max-prepared-stmt-count = \"1K\",",
        1,
    );
    let (before, after) = experiment.split_once("[workload]").unwrap();
    let (_, after) = after.split_once("[load]").unwrap();
    let lab = Lab::new(&format!(
        "{before}[workload]\nscript = \"mine.lua\"\n[load]{after}"
    ));
    let script = "function prepare() error('data are loaded') end\n\
                  function thread_init()\n con = sysbench.sql.driver():connect()\n\
                  for n = 1, 300 do con:prepare('SELECT ' .. n) end\nend\n\
                  function event() con:query('SELECT 1') end\n";
    std::fs::write(lab.path().join("mine.lua"), script).unwrap();
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = "`first`: 4 clients prepare up to 1,200 statements, 300 each, and the limit of its server is 1,024, beyond which it \
                    refuses them; set max_prepared_stmt_count to 1200 or more, or use fewer clients, or set `statements = \"text\"`";
    let (before, _) = said.split_once("data are loaded").unwrap();
    assert!(before.contains(expected), "{said}");
}

#[test(lab, needs = &["mariadb-10.11"])]
fn the_limit_of_a_statement_holds_while_a_server_is_set_up() {
    // A home of its own, whose pristine data have accounts that take three seconds to read.
    let home = tempfile::tempdir().unwrap();
    let servers = super::lab::home().join("servers").canonicalize().unwrap();
    symlink(servers, home.path().join("servers")).unwrap();
    let experiment = short_experiment(
        ["mariadb-10.11", "mariadb-10.11"],
        "[limits]\nstatement = \"1 s\"\n",
    );
    let lab = Lab::new(&experiment);
    let dbduel = |verb: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbduel"));
        command
            .arg("--home")
            .arg(home.path())
            .arg(verb)
            .arg(lab.experiment());
        command.current_dir(lab.path()).output().unwrap()
    };
    let output = dbduel("audit");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let mut pristine = std::fs::read_dir(home.path().join("pristine")).unwrap();
    Tree::open("mariadb-10.11").bootstrap(
        &pristine.next().unwrap().unwrap().path(),
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW mysql.user AS SELECT Host, User FROM mysql.global_priv WHERE SLEEP(3) = 0;\n",
    );
    let output = dbduel("run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("contender `first` did not start") && said.contains("the deadline passed"),
        "{said}"
    );
    assert!(!said.contains("loading"), "{said}");
}

/// Removes the snapshots of tables of this size, so that they are loaded again.
/// Removes the snapshots of tables of this size.
pub fn forget_snapshots(table_size: u64) {
    let Ok(entries) = std::fs::read_dir(home().join("snapshots")) else {
        return;
    };
    for entry in entries.flatten() {
        let description = std::fs::read(entry.path().join("snapshot.json")).unwrap_or_default();
        let description: Value = serde_json::from_slice(&description).unwrap_or_default();
        if description["parameters"]["table_size"] == table_size {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
}

/// One server while it is filled, and one that is frozen meanwhile.
#[test(lab, needs = &["mariadb-10.11"])]
fn servers_that_are_killed_while_the_contest_is_prepared_are_prepared_again() {
    const ROWS: u64 = 203_571;
    forget_snapshots(ROWS);
    let experiment = short_experiment(["mariadb-10.11", "mariadb-10.11"], "");
    let experiment = with_budget(&experiment, "10 min")
        .replace("table_size = 2_000", &format!("table_size = {ROWS}"));
    // So that the second does not start from a snapshot of the first.
    let second = experiment.rfind("\"32M\"").unwrap() + "\"32M\"".len();
    let (before, after) = experiment.split_at(second);
    let experiment = format!("{before}, lock_wait_timeout = 86_399{after}");
    let lab = Lab::new(&experiment);
    let mut run = lab.spawn();
    lab.wait_until(&mut run, "loading of the second", || {
        lab.said().contains("second: loading")
    });
    let victims = servers_left();
    assert_eq!(victims.len(), 2, "{victims:?}");
    for (pid, _) in victims {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    lab.wait_for_slices(&mut run, 2);
    lab.interrupt(&mut run);
    forget_snapshots(ROWS);
    let record = lab.record();
    let is_repeated = |event: &Event| matches!(event, Event::Noticed { notice } if notice.rule == "prepare.repeated");
    assert_eq!(count(&record, is_repeated), 1, "{}", lab.said());
    let is_dead = |event: &Event| matches!(event, Event::ServerDied { contender, .. } if contender == "first");
    assert_eq!(count(&record, is_dead), 1, "{}", lab.said());
    let is_recovered = |event: &Event| matches!(event, Event::ServerRecovered { .. });
    assert_eq!(count(&record, is_recovered), 1, "{}", lab.said());
}
