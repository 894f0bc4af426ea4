//! `dbduel sysbench` as people's scripts meet it, beside sysbench itself where that is installed.

use std::io::BufRead as _;
use std::path::Path;
use std::process::{Command, Output};

use dbduel_driver::mock_server::{MockServer, Role};

use super::harness::skip;
use super::lab::{program, signal};

mod hostile;
mod interface;
pub mod native;
mod scripts;
mod upstream;

pub fn ours(folder: &Path, words: &[&str]) -> Output {
    let mut command = program();
    command.arg("sysbench").args(words).current_dir(folder);
    command.env_remove("MYSQL_PWD").output().unwrap()
}

/// Sysbench 1.0.20; the test counts as ignored when that is not installed.
pub fn theirs(folder: &Path, words: &[&str]) -> Option<Output> {
    let version = Command::new("sysbench").arg("--version").output();
    let is_there = version.is_ok_and(|output| output.stdout.starts_with(b"sysbench 1.0.20"));
    if !is_there {
        skip("sysbench 1.0.20 is not installed, so nothing was compared with it");
        return None;
    }
    let mut command = Command::new("sysbench");
    command
        .args(words)
        .current_dir(folder)
        .stdin(std::process::Stdio::null());
    Some(command.output().unwrap())
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The lines with every number as `#` and every run of spaces as one, so that only words and order are left.
fn shape(output: &Output) -> Vec<String> {
    let text = text(output);
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut shaped = String::new();
        let mut is_number = false;
        for letter in line.chars() {
            let continues = letter.is_ascii_digit() || (is_number && letter == '.');
            if continues && !is_number {
                shaped.push('#');
            } else if !continues {
                shaped.push(letter);
            }
            is_number = continues;
        }
        let words: Vec<&str> = shaped.split_whitespace().collect();
        let line = match words.first() {
            Some(&"sysbench") => "sysbench".to_owned(),
            // Bins differ from run to run; their form is held by a test of its own.
            Some(&"#") if shaped.contains('|') => "bin".to_owned(),
            // A small number is padded.
            _ => words.join(" ").replace("( #", "(#"),
        };
        if line != "bin" || lines.last().is_none_or(|last| last != "bin") {
            lines.push(line);
        }
    }
    lines
}

#[track_caller]
pub fn same_shape(folder: &Path, words: &[&str]) -> Output {
    let mine = ours(folder, words);
    if let Some(other) = theirs(folder, words) {
        assert_eq!(shape(&mine), shape(&other), "{}", words.join(" "));
        assert_eq!(
            mine.status.code(),
            other.status.code(),
            "{}",
            words.join(" ")
        );
    }
    mine
}

/// The number behind a label of the final block.
#[track_caller]
pub fn figure(output: &Output, label: &str) -> f64 {
    let text = text(output);
    let line = text
        .lines()
        .rev()
        .find(|line| line.trim_start().starts_with(label));
    let line = line.unwrap_or_else(|| panic!("no `{label}` in\n{text}"));
    let behind = line.trim_start()[label.len()..].trim();
    let number = behind.split([' ', 's', '/']).next().unwrap_or_default();
    number.parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn machine_tests_print_what_sysbench_prints() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        same_shape(folder.path(), &words)
    };
    let output = run("cpu --threads=2 --events=40 --time=0 --cpu-max-prime=2000 --rand-seed=5 run");
    assert_eq!(figure(&output, "total number of events:"), 40.0);
    run("cpu --time=1 --cpu-max-prime=2000 --percentile=0 run");
    run("cpu --time=1 --cpu-max-prime=2000 --percentile=99 --histogram run");
    run("cpu --threads=2 --time=1 --rate=100 --cpu-max-prime=500 --validate run");
    let output = run("memory --memory-total-size=64M --memory-block-size=4K --threads=2 run");
    assert_eq!(figure(&output, "total number of events:"), 16_384.0);
    run(
        "memory --memory-total-size=16M --memory-oper=none --memory-access-mode=rnd --memory-scope=local run",
    );
    run("threads --events=10 --threads=2 --thread-yields=10 run");
    let output = run("mutex --mutex-locks=50 --mutex-loops=10 --threads=3 run");
    assert_eq!(figure(&output, "total number of events:"), 3.0);
}

#[test]
fn files_are_prepared_driven_and_removed_as_by_sysbench() {
    let folder = tempfile::tempdir().unwrap();
    let base = "fileio --file-total-size=1M --file-num=4";
    let run = |words: &str| {
        let words: Vec<&str> = base.split(' ').chain(words.split(' ')).collect();
        same_shape(folder.path(), &words)
    };
    assert_eq!(run("cleanup").status.code(), Some(0));
    let words: Vec<&str> = base.split(' ').chain(["prepare"]).collect();
    let made = ours(folder.path(), &words);
    assert!(
        text(&made).contains("Creating file test_file.3"),
        "{made:?}"
    );
    assert_eq!(
        std::fs::metadata(folder.path().join("test_file.3"))
            .unwrap()
            .len(),
        262_144
    );
    for mode in ["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] {
        for method in ["sync", "async", "mmap"] {
            let output = run(&format!(
                "--file-test-mode={mode} --file-io-mode={method} --events=50 --time=0 run"
            ));
            assert_eq!(
                figure(&output, "total number of events:"),
                50.0,
                "{mode} {method}"
            );
        }
    }
    run("--file-test-mode=rndwr --file-fsync-all --events=20 --time=0 run");
    run("cleanup");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_wrong_ends_with_the_exit_code_of_sysbench() {
    let folder = tempfile::tempdir().unwrap();
    for words in [
        "cpu prepare",
        "cpu nonsense",
        "cpu",
        "nosuch run",
        "nosuch.lua run",
        "--foo cpu run",
        "cpu --threads=abc run",
        "cpu --threads=0 run",
        "cpu --histogram=maybe run",
        "cpu run prepare",
        "cpu --percentile=101 run",
        "cpu --rand-type=foo run",
        "cpu --forced-shutdown=x run",
        "cpu --report-checkpoints=a run",
        "cpu --cpu-max-prime=2K run",
        "memory --memory-block-size=3K run",
        "fileio run",
        "oltp_read_write",
        "oltp_read_write nonsense",
        "oltp_read_write --foo=3 run",
        "bulk_insert help",
        "oltp_read_only --mysql-socket=/nonexistent/s.sock run",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let mine = ours(folder.path(), &words);
        assert_eq!(mine.status.code(), Some(1), "{words:?}: {mine:?}");
        if let Some(other) = theirs(folder.path(), &words) {
            assert_eq!(other.status.code(), Some(1), "{words:?}");
        }
    }
    let forced = [
        "cpu",
        "--time=1",
        "--forced-shutdown=0",
        "--cpu-max-prime=100000000",
        "run",
    ];
    let output = ours(folder.path(), &forced);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("Number of unfinished transactions on forced shutdown: 1"));
    let misspelt = ours(folder.path(), &["oltp_read_only", "--table-sise=3", "run"]);
    assert!(String::from_utf8_lossy(&misspelt.stderr).contains("did you mean --table-size?"));
}

#[test]
fn an_interrupted_run_says_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("slow.lua"),
        "local ffi = require('ffi') ffi.cdef 'int usleep(unsigned)' function event() ffi.C.usleep(20000) end",
    )
    .unwrap();
    for test in ["cpu", "slow.lua"] {
        let mut process = program()
            .args(["sysbench", test, "--time=300", "--report-interval=1", "run"])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(process.stdout.take().unwrap()).lines();
        // A report of a second in which an event ended.
        let has_events = |line: &str| line.contains(" eps: ") && !line.contains(" eps: 0.00");
        assert!(lines.any(|line| has_events(&line.unwrap())), "{test}");
        signal(&process, nix::sys::signal::Signal::SIGINT);
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert_eq!(process.wait().unwrap().code(), Some(130), "{test}");
        let events = rest
            .iter()
            .find_map(|line| line.trim().strip_prefix("total number of events:"));
        let events: u64 = events
            .unwrap_or_else(|| panic!("{rest:?}"))
            .trim()
            .parse()
            .unwrap();
        assert!(events > 0, "{test}: {rest:?}");
    }
}

/// A run of a script on a server that ends at the first line that a report hook prints; what it printed after that, and its exit code.
fn run_whose_server_ends(hook: &str, words: &[&str], signals: bool) -> (Vec<String>, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "local ffi = require('ffi') ffi.cdef 'int usleep(unsigned)'
         function event() ffi.C.usleep(20000) end
         sysbench.hooks.report_intermediate = function (stat) {hook} end"
    );
    std::fs::write(folder.path().join("hook.lua"), script).unwrap();
    let socket = folder.path().join("s.sock");
    let server = MockServer::start(&socket, Role::Null).unwrap();
    let mut process = program()
        .args(["sysbench", "hook.lua", "--report-interval=1"])
        .arg("--mysql-ignore-errors=all")
        .arg(format!("--mysql-socket={}", socket.display()))
        .args(words)
        .arg("run")
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "a report"));
    drop(server);
    if signals {
        // Until the hook is called again.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        signal(&process, nix::sys::signal::Signal::SIGTERM);
    }
    let rest = lines.map(Result::unwrap).collect();
    (rest, process.wait().unwrap().code())
}

const ASKING_HOOK: &str = "if not con then con = sysbench.sql.driver():connect() end
    con:query('SELECT 1') print('a report')";

#[test]
fn a_report_hook_whose_server_has_gone_does_not_outlast_the_run() {
    let (rest, code) = run_whose_server_ends(ASKING_HOOK, &["--time=4"], false);
    assert_eq!(code, Some(0), "{rest:?}");
    let figures = "General statistics:".to_owned();
    assert!(rest.contains(&figures), "{rest:?}");
}

#[test]
fn a_run_that_a_report_hook_holds_up_ends_by_a_signal() {
    let (rest, code) = run_whose_server_ends(ASKING_HOOK, &["--time=600"], true);
    assert_eq!(code, Some(130), "{rest:?}");
    let figures = "General statistics:".to_owned();
    assert!(rest.contains(&figures), "{rest:?}");
    let (rest, code) = run_whose_server_ends(
        "print('a report') io.flush() while true do end",
        &["--time=600"],
        true,
    );
    assert_eq!(code, Some(130), "{rest:?}");
}

#[test]
fn signals_that_were_ignored_from_the_beginning_stay_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let ours = program();
    let mut process = Command::new("sh")
        .args(["-c", "trap '' HUP INT; exec \"$@\"", "sh"])
        .arg(ours.get_program())
        .args(ours.get_args())
        .args(["sysbench", "cpu", "--time=1", "run"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "Threads started!"));
    signal(&process, nix::sys::signal::Signal::SIGHUP);
    signal(&process, nix::sys::signal::Signal::SIGINT);
    assert!(lines.any(|line| line.unwrap() == "General statistics:"));
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test(lab)]
fn a_rate_that_cannot_be_kept_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["cpu", "--rate=2000000000", "--verbosity=1", "run"];
    let output = same_shape(folder.path(), &words);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output).starts_with("FATAL: The event queue is full."),
        "{output:?}"
    );
}

#[test]
fn the_version_reads_as_that_of_sysbench() {
    let folder = tempfile::tempdir().unwrap();
    same_shape(folder.path(), &["--version"]);
    let help = ours(folder.path(), &["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help).contains("--mysql-ignore-errors=[LIST,...]"));
}

#[test]
fn a_script_is_run_with_its_options_commands_and_hooks() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
sysbench.cmdline.options = { greeting = {"What to say", "hello"} }
sysbench.cmdline.commands = { shout = { function() print(string.upper(sysbench.opt.greeting)) end } }
function event() end
function done() print("done") end
sysbench.hooks.report_cumulative = function(stat) print("events: " .. stat.events) end
"#;
    std::fs::write(folder.path().join("own.lua"), script).unwrap();
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let output = ours(folder.path(), &words);
        (
            output.status.code(),
            text(&output),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, said, _) = run("own.lua --greeting=ahoy shout");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("AHOY"), "{said}");
    let (code, said, _) = run("own.lua --events=7 --time=0 --threads=2 run");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("events: 7") && said.contains("done"),
        "{said}"
    );
    assert!(
        run("own.lua help")
            .1
            .contains("--greeting=STRING What to say [hello]")
    );
    let (code, _, complaint) = run("own.lua --greting=x run");
    assert_eq!(code, Some(1));
    assert!(complaint.contains("--greeting"), "{complaint}");
    std::fs::write(
        folder.path().join("bad.lua"),
        "function event()\n  error('no luck')\nend\n",
    )
    .unwrap();
    let (code, said, _) = run("bad.lua --events=1 run");
    assert_eq!(code, Some(1));
    assert!(
        said.contains("bad.lua:2") && said.contains("no luck"),
        "{said}"
    );
    // Nothing is reported of a run that failed.
    assert!(!said.contains("General statistics"), "{said}");
}
