//! What goes wrong with a PostgreSQL that contends: each is a clear error, and no server stays behind.

use std::time::Duration;

use dbduel_record::event::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::harness::skip_always;
use super::super::lab::{Lab, assert_verified, home, program, servers_left, signal, verify};
use super::super::small_disk::SmallDisk;

const DUEL: &str = r#"
budget = "10 min"
seed = 7
[contenders.one]
server = "postgresql-16"
settings = { shared_buffers = "32MB" }
[contenders.two]
like = "one"
[workload]
name = "oltp-update-non-index"
tables = 1
table_size = 1_777
[load]
clients = 8
[schedule]
slice = "500 ms"
guard = "100 ms"
warm_up = "1 s"
"#;

fn with_setting(setting: &str) -> String {
    DUEL.replace("\"32MB\" }", &format!("\"32MB\", {setting} }}"))
}

#[test(lab, needs = &["postgresql-16"])]
fn a_locale_that_there_is_not_and_too_few_connections_are_refused_at_their_place() {
    for (setting, said_of_it) in [
        (
            "lc_messages = \"xx_YY.UTF-8\"",
            "invalid value for parameter",
        ),
        ("lc_collate = \"de_DE\"", "lc_collate"),
        (
            "max_connections = 8",
            "8 clients and dbduel itself need 9 connections",
        ),
    ] {
        let lab = Lab::new(&with_setting(setting));
        let output = lab.run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{setting}: {said}");
        assert!(said.contains("duel.toml:6:"), "{setting}: {said}");
        assert!(said.contains(said_of_it), "{setting}: {said}");
        assert!(!said.contains("loading"), "{setting}: {said}");
        assert_eq!(servers_left(), []);
    }
}

#[test(lab, needs = &["postgresql-16"])]
fn a_cluster_of_another_server_in_the_directory_is_named_with_the_snapshot_that_it_came_from() {
    let lab = Lab::new(DUEL);
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 1);
    lab.interrupt(&mut run);
    let snapshots = || {
        let entries = std::fs::read_dir(home().join("snapshots")).unwrap();
        let of_this = |path: &std::path::PathBuf| {
            let described = std::fs::read_dir(path).unwrap();
            let mut texts =
                described.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok());
            texts.any(|text| text.contains("1777"))
        };
        entries
            .map(|entry| entry.unwrap().path())
            .filter(of_this)
            .collect::<Vec<_>>()
    };
    let [snapshot] = &snapshots()[..] else {
        panic!("{:?}", snapshots());
    };
    std::fs::write(snapshot.join("data/PG_VERSION"), "9.1\n").unwrap();
    let again = Lab::new(DUEL);
    let output = again.run();
    let key = snapshot.file_name().unwrap().to_string_lossy().into_owned();
    let removed = program()
        .args(["datasets", "remove", &key])
        .status()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("initialized by PostgreSQL version 9.1"),
        "{said}"
    );
    assert!(
        said.contains(&format!("`dbduel datasets remove {key}`")),
        "{said}"
    );
    assert_eq!(servers_left(), []);
    assert!(removed.success() && !snapshot.exists());
}

#[test(lab, needs = &["postgresql-16"])]
fn a_full_disk_below_a_server_ends_the_contest_with_an_intact_record() {
    let disk = match SmallDisk::mount(420 << 10) {
        Ok(disk) => disk,
        Err(why) => return skip_always(&why),
    };
    let mut servers = std::fs::read_dir(home().join("servers")).unwrap();
    let tree = servers.find_map(|entry| {
        let path = entry.unwrap().path();
        path.file_name()?
            .to_str()?
            .starts_with("postgresql-16")
            .then_some(path)
    });
    let path = format!("path:{}", tree.unwrap().display());
    let experiment = DUEL.replace("postgresql-16", &path) + "[limits]\nfree_disk = \"1 KiB\"\n";
    let lab = Lab::new(&experiment);
    let mut command = disk.command(env!("CARGO_BIN_EXE_dbduel"));
    command.arg("--home").arg(disk.inside().join("home"));
    command.arg("run").arg(lab.experiment());
    command.arg("--results").arg(lab.results());
    let mut run = lab.spawn_command(command);
    lab.wait_for_slices(&mut run, 2);
    disk.fill();
    let code = lab.exit_code(&mut run, Duration::from_secs(120));
    let said = lab.said();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("make room") || said.contains("No space left"),
        "{said}"
    );
    assert_eq!(servers_left(), []);
    assert!(lab.record().finished_slices().count() >= 2);
    let (code, said) = verify(&lab.record_dir());
    assert!(matches!(code, Some(0 | 3)), "nothing was changed: {said}");
}

/// The postmaster ends all other processes then, and itself, which takes a moment in which it refuses clients.
#[test(lab, needs = &["postgresql-16"])]
fn a_contest_goes_on_after_processes_of_its_servers_were_killed() {
    let lab = Lab::new(DUEL);
    let mut run = lab.spawn();
    let died = || {
        let record = lab.begun();
        let events = record.into_iter().flat_map(|record| record.events);
        events
            .filter(|event| matches!(event.what, Event::ServerDied { .. }))
            .count()
    };
    for (number, kind) in ["checkpointer", "dbduel dbduel", "walwriter"]
        .iter()
        .enumerate()
    {
        let slices = lab
            .begun()
            .map_or(0, |record| record.finished_slices().count());
        lab.wait_for_slices(&mut run, slices + 2);
        let awake = |pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let title = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            !stat.contains(") T ")
                && String::from_utf8_lossy(&title).starts_with(&format!("postgres: {kind}"))
        };
        lab.wait_until(&mut run, kind, || {
            let all = servers_left().into_iter().map(|(pid, _)| pid);
            let hit = all
                .filter(|pid| awake(*pid))
                .find(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).is_ok());
            hit.is_some()
        });
        lab.wait_until(&mut run, "the end of the server", || died() > number);
    }
    let slices = lab
        .begun()
        .map_or(0, |record| record.finished_slices().count());
    lab.wait_for_slices(&mut run, slices + 3);
    lab.interrupt(&mut run);
    assert_verified(&lab.record_dir());
    assert_eq!(servers_left(), []);
}

/// The processes of a frozen server outlive their killed parent, stopped, with the clients' connections and the shared memory.
#[test(lab, needs = &["postgresql-16"])]
fn a_server_that_is_killed_while_it_is_frozen_is_started_again_without_a_wait() {
    let lab = Lab::new(DUEL);
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 2);
    let is_frozen_parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let title = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        stat.contains(") T ") && !title.starts_with(b"postgres:")
    };
    lab.wait_until(&mut run, "a frozen server", || {
        let all = servers_left().into_iter().map(|(pid, _)| pid);
        let hit = all
            .filter(|pid| is_frozen_parent(*pid))
            .find(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).is_ok());
        hit.is_some()
    });
    let recovered = || {
        let record = lab.begun();
        let mut events = record.into_iter().flat_map(|record| record.events);
        events.any(|event| matches!(event.what, Event::ServerRecovered { .. }))
    };
    lab.wait_until(&mut run, "the server's next start", recovered);
    let slices = lab
        .begun()
        .map_or(0, |record| record.finished_slices().count());
    lab.wait_for_slices(&mut run, slices + 3);
    let said = lab.said();
    assert!(!said.contains("clients still wait"), "{said}");
    lab.interrupt(&mut run);
    assert_verified(&lab.record_dir());
    assert_eq!(servers_left(), []);
}

/// A frozen server takes no processor time, in none of its processes, also not what its clients had asked for.
#[test(lab, needs = &["postgresql-16"])]
fn the_processes_of_a_frozen_server_take_no_processor_time() {
    let lab = Lab::new(DUEL);
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 2);
    let ticks = |pid: i32| -> Option<(char, u64)> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let used = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
        Some((fields[0].chars().next()?, used))
    };
    let looks = || -> Vec<(i32, (char, u64))> {
        let left = servers_left().into_iter();
        left.filter_map(|(pid, _)| Some((pid, ticks(pid)?)))
            .collect()
    };
    let count_frozen =
        |looks: &[(i32, (char, u64))]| looks.iter().filter(|one| one.1.0 == 'T').count();
    // With the orchestrator stopped, the frozen server stays so. Between two turns none may be frozen.
    let mut before = Vec::new();
    for _ in 0..100 {
        signal(&run, Signal::SIGSTOP);
        before = looks();
        if count_frozen(&before) >= 10 {
            break;
        }
        signal(&run, Signal::SIGCONT);
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(2));
    let after = looks();
    signal(&run, Signal::SIGCONT);
    let frozen: Vec<_> = before
        .iter()
        .filter(|(_, (state, _))| *state == 'T')
        .collect();
    assert!(frozen.len() >= 10, "{before:?}");
    for one in &frozen {
        assert!(after.contains(one), "{one:?}: {after:?}");
    }
    lab.interrupt(&mut run);
}
