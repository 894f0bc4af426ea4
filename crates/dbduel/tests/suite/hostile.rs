//! Hostile records and experiments from elsewhere: refused at once, with nothing done.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use dbduel_record::event::{EndReason, Event};
use dbduel_record::facts::Host;
use dbduel_record::{Plan, RecordWriter};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::lab::{Lab, program, short_experiment};

/// Long beside what a refusal takes, and short beside for ever.
const AT_ONCE: Duration = Duration::from_secs(60);

/// The output of a command that must end by itself.
#[track_caller]
fn ended(mut command: Command) -> Output {
    let output = output_of(&mut command);
    output.unwrap_or_else(|| panic!("{command:?} did not end"))
}

/// The output of a command; none when it did not end by itself within a minute.
pub fn output_of(command: &mut Command) -> Option<Output> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    let output = receiver.recv_timeout(AT_ONCE);
    if output.is_err() {
        kill(pid, Signal::SIGKILL).unwrap();
    }
    reader.join().unwrap().unwrap();
    output.ok()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn plan(lab: &Lab) -> Plan {
    let mut command = program();
    command
        .args(["run", "--plan", "--json"])
        .arg(lab.experiment());
    let output = ended(command);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A sealed record of a run that was interrupted before its first slice.
fn record(lab: &Lab) -> std::path::PathBuf {
    let plan = plan(lab);
    let dir = lab.path().join("record");
    let text = fs::read(lab.experiment()).unwrap();
    let mut writer = RecordWriter::create(&dir, &text, &plan, &Host::default(), 1).unwrap();
    let started = Event::Started {
        pid: 1,
        dbduel: plan.dbduel.clone(),
        epoch: 0,
    };
    writer.event(1, started).unwrap();
    let reason = EndReason::Interrupted;
    writer.event(2, Event::Ended { reason }).unwrap();
    writer.contender_file("first", "build.json", b"{}").unwrap();
    writer.seal(3, "0").unwrap();
    dir
}

/// Every verb that reads a record.
fn readers(record: &Path, lab: &Lab) -> Vec<Command> {
    let verb = |words: &[&str]| {
        let mut command = program();
        command.args(words).current_dir(lab.path());
        command
    };
    let mut commands = vec![verb(&["export", "-o", "exported"])];
    for words in [
        &["report"][..],
        &["verify"],
        &["audit"],
        &["history"],
        &["watch"],
        &["run"],
        &["check", "--server", "unix:/nowhere", "--against"],
    ] {
        commands.push(verb(words));
    }
    for command in &mut commands {
        command.arg(record);
    }
    commands
}

#[test]
fn no_reader_follows_a_record_out_of_its_directory_or_waits_for_it() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    let fifo = |path: &Path| mkfifo(path, Mode::S_IRWXU).unwrap();
    let zero = |path: &Path| symlink("/dev/zero", path).unwrap();
    let link = |path: &Path| symlink(&secret, path).unwrap();
    type Attack<'a> = (&'a str, &'a dyn Fn(&Path), &'a str);
    let attacks: [Attack<'_>; 7] = [
        ("events.jsonl", &fifo, "not a regular file"),
        ("plan.json", &fifo, "not a regular file"),
        ("slices.csv", &fifo, "not a regular file"),
        ("readings.csv", &zero, "symbolic link"),
        ("events.jsonl", &link, "symbolic link"),
        ("contenders/first/build.json", &link, "symbolic link"),
        ("latency.hlog", &zero, "symbolic link"),
    ];
    for (file, attack, why) in attacks {
        fs::write(&secret, "kept").unwrap();
        let lab = Lab::new(&short_experiment(["mariadb-10.11"; 2], ""));
        let record = record(&lab);
        let path = record.join(file);
        let _ = fs::remove_file(&path);
        attack(&path);
        for command in readers(&record, &lab) {
            let about = format!("{file}: {command:?}");
            let output = ended(command);
            let said = said(&output);
            assert!(!output.status.success(), "{about}: {said}");
            // Without a plan a directory is no record, and some verbs look no further.
            let is_told =
                file == "plan.json" || said.contains(why) || said.contains("is not a plain file");
            assert!(is_told, "{about}: {said}");
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
        assert!(!lab.has_results());
    }
}

#[test]
fn a_manifest_names_nothing_outside_of_its_record() {
    let lab = Lab::new(&short_experiment(["mariadb-10.11"; 2], ""));
    let record = record(&lab);
    let manifest = record.join("manifest.jsonl");
    let text = fs::read_to_string(&manifest).unwrap();
    for path in ["../../x", "/etc/passwd", "contenders/../../duel.toml"] {
        let edited = text.replacen("\"plan.json\"", &format!("\"{path}\""), 1);
        assert_ne!(edited, text);
        fs::write(&manifest, edited).unwrap();
        let mut command = program();
        command.arg("verify").arg(&record);
        let output = ended(command);
        assert_eq!(output.status.code(), Some(4), "{}", said(&output));
        let refusal = format!("names `{path}`, which is not a path inside the record");
        assert!(said(&output).contains(&refusal), "{}", said(&output));
        assert!(!said(&output).contains("digest of"), "{}", said(&output));
    }
}

#[test]
fn times_of_a_plan_that_are_none_are_refused_before_anything_waits_for_them() {
    let lab = Lab::new(&short_experiment(["mariadb-10.11"; 2], ""));
    let record = record(&lab);
    let path = record.join("plan.json");
    let text = fs::read_to_string(&path).unwrap();
    for (table, key) in [
        ("limits", "server_start_s"),
        ("limits", "server_stop_s"),
        ("limits", "statement_s"),
        ("limits", "dataset_s"),
        ("schedule", "guard_s"),
        ("schedule", "drain_s"),
        ("schedule", "warm_up_cap_s"),
    ] {
        for seconds in [-1.0, 1e10, 1e300] {
            let mut plan: serde_json::Value = serde_json::from_str(&text).unwrap();
            plan[table][key] = seconds.into();
            fs::write(&path, plan.to_string()).unwrap();
            let mut command = program();
            command.arg("run").arg(&record);
            let output = ended(command);
            let said = said(&output);
            assert_eq!(output.status.code(), Some(1), "{key}: {said}");
            let refusal = format!("`{table}.{key}` is {seconds:e}; a time must be from 0 to 1e9 s");
            assert!(said.contains(&refusal), "{said}");
        }
    }
}

/// A script that says when any of its top level was executed for real.
fn script_leaving(mark: &Path) -> String {
    let mark = mark.display();
    format!(
        "sysbench.cmdline.options = {{ rows = {{\"Rows\", 7}} }}\n\
         if pcall(function() return os.execute end) then os.execute('touch {mark}') end\n\
         local ok, file = pcall(function() return io.open('{mark}', 'w') end)\n\
         if ok and file then file:close() end\n\
         pcall(function() require('ffi').C.system('touch {mark}') end)\n\
         pcall(function() debug.getregistry()._LOADED.os.execute('touch {mark}') end)\n\
         pcall(function() loadstring(string.dump(function() end))() end)\n\
         print('\\27[31mprinted')\n\
         function event() end\n"
    )
}

const SCRIPTED: &str = "[contenders.a]\nserver = \"mariadb-10.11\"\n[contenders.b]\nlike = \"a\"\n\
                        [workload]\nscript = \"mine.lua\"\n";

#[test]
fn a_script_is_not_run_for_a_plan_or_a_dry_audit() {
    let lab = Lab::new(SCRIPTED);
    let mark = lab.path().join("mark");
    fs::write(lab.path().join("mine.lua"), script_leaving(&mark)).unwrap();
    let command = |words: &[&str]| {
        let mut command = program();
        command
            .arg(words[0])
            .arg(lab.experiment())
            .args(&words[1..]);
        ended(command)
    };
    for words in [&["run", "--plan"][..], &["audit", "--dry"]] {
        let output = command(words);
        let said = said(&output);
        assert_ne!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(!said.contains("printed"), "{words:?}: {said}");
        assert!(!mark.exists(), "{words:?}");
    }
    let plan = String::from_utf8(command(&["run", "--plan", "--json"]).stdout).unwrap();
    assert!(plan.contains("\"options.rows\": 7"), "{plan}");
    let output = command(&["run", "--plan", "--run-script"]);
    assert!(output.status.success() && mark.exists(), "{output:?}");

    // What needs them says how it is run.
    let needy = "local x = os.execute('true')\nfunction event() end\n";
    fs::write(lab.path().join("mine.lua"), needy).unwrap();
    let output = command(&["run", "--plan"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--run-script"), "{}", said(&output));
}

#[test]
fn an_option_of_sysbench_among_those_of_a_script_says_where_it_belongs() {
    let lab = Lab::new(&format!(
        "{SCRIPTED}options = {{ rand_type = \"uniform\" }}\n"
    ));
    let text = script_leaving(&lab.path().join("mark"));
    fs::write(lab.path().join("mine.lua"), text).unwrap();
    let mut command = program();
    command.arg("run").arg(lab.experiment()).arg("--plan");
    let output = ended(command);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(
        said.contains("duel.toml:7:13")
            && said.contains("write `rand_type` itself, outside of `options`"),
        "{said}"
    );
}

#[test]
fn a_script_that_waits_or_never_ends_is_refused() {
    let lab = Lab::new(SCRIPTED);
    let fifo = lab.path().join("pipe.lua");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    for text in [
        "while true do end",
        "dofile('pipe.lua')",
        "package.path = './?.lua'; require('pipe')",
        "loadfile('/dev/zero')()",
        "local t = {} while true do t[#t + 1] = ('x'):rep(1e6) end",
    ] {
        let text = format!("{text}\nfunction event() end\n");
        fs::write(lab.path().join("mine.lua"), &text).unwrap();
        let mut command = program();
        command.args(["run", "--plan"]).arg(lab.experiment());
        command.current_dir(lab.path());
        let output = ended(command);
        assert_eq!(output.status.code(), Some(2), "{text}: {}", said(&output));
    }
}

/// The experiment is refused at once, with exit code 2 and `part` of the reason.
#[track_caller]
fn check_refused(experiment: &str, part: &str) {
    let lab = Lab::new(experiment);
    let begun = Instant::now();
    let output = ended(lab.run_command());
    let said = said(&output);
    let start: String = said.chars().take(500).collect();
    assert_eq!(output.status.code(), Some(2), "{start}");
    assert!(said.contains(part), "{start}");
    assert!(!lab.has_results());
    assert!(begun.elapsed() < AT_ONCE);
}

#[test]
fn experiments_that_are_too_large_are_refused_at_once() {
    let workload = "[workload]\nname = \"oltp-point-select\"\n";
    let settings: String = (0..20_000)
        .map(|n| format!("setting_{n} = {n}\n"))
        .collect();
    check_refused(
        &format!(
            "[contenders.a]\nserver = \"mariadb-10.11\"\n[contenders.a.settings]\n{settings}\
             [contenders.b]\nlike = \"a\"\n{workload}"
        ),
        "at most 1000 settings, found 20000",
    );
    let chain: String = (1..4000)
        .map(|n| format!("[contenders.c{n}]\nlike = \"c{}\"\n", n - 1))
        .collect();
    check_refused(
        &format!("[contenders.c0]\nserver = \"mariadb-10.11\"\n{chain}{workload}"),
        "at most 16 contenders, found 4000",
    );
    let unknown: String = (0..20_000)
        .map(|n| format!("unknown_{n} = {n}\n"))
        .collect();
    check_refused(&unknown, "unknown key");
    let levels: Vec<String> = (1..5000).map(|n| n.to_string()).collect();
    let two = "[contenders.a]\nserver = \"mariadb-10.11\"\n[contenders.b]\nlike = \"a\"\n";
    check_refused(
        &format!("{two}{workload}[load]\nclients = [{}]\n", levels.join(", ")),
        "4999 load levels",
    );
    check_refused(&"# too long\n".repeat(200_000), "larger than 1 MiB");
    check_refused(
        &format!("{two}[workload]\nname = \"linkbench\"\nconfig = \"/dev/zero\"\n"),
        "not a regular file",
    );
    let mut command = program();
    command.args(["run", "/dev/zero"]);
    let output = ended(command);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn one_server_under_two_names_is_refused() {
    for other in [
        "tcp://127.0.0.1:3399",
        "tcp://[::1]:3399",
        "tcp://LOCALHOST:3399",
    ] {
        check_refused(
            &format!(
                "[contenders.a]\nserver = \"tcp://localhost:3399\"\n[contenders.b]\nserver = \"{other}\"\n\
                 [workload]\nname = \"oltp-point-select\"\n"
            ),
            "the same running server",
        );
    }
}

#[test]
fn a_password_in_an_address_is_repeated_nowhere() {
    let lab = Lab::new(
        "[contenders.a]\nserver = \"tcp://u:pw/s3cret@h\"\n[contenders.b]\nlike = \"a\"\n",
    );
    let address = "tcp://u:s3cret@127.0.0.1:1";
    let slashed = "tcp://u:pw/s3cret@127.0.0.1:1";
    let experiment = lab.experiment();
    let experiment = experiment.to_str().unwrap();
    for words in [
        &["audit", address, "unix:/nowhere"][..],
        &["audit", "unix:/nowhere", slashed],
        &["audit", address],
        &[
            "load",
            "--server",
            slashed,
            "--workload",
            "oltp-point-select",
        ],
        &["check", "--server", address, "--workload", "order-entry"],
        &["servers", "install", slashed],
        &["run", experiment],
        &["run", "--plan", experiment],
    ] {
        let mut command = program();
        command.args(words).current_dir(lab.path());
        let output = ended(command);
        assert!(!output.status.success(), "{words:?}");
        assert!(
            !said(&output).contains("s3cret"),
            "{words:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn nothing_of_a_record_or_an_experiment_drives_the_terminal_or_the_page() {
    let hostile = "\u{1b}]0;title\u{7}\u{202e}gnp\u{9b}31m";
    let lab = Lab::new(&short_experiment(["mariadb-10.11"; 2], ""));
    let mut plan = plan(&lab);
    plan.question = hostile.to_owned();
    plan.contenders[1].name = format!("second{hostile}");
    plan.contenders[1].server = hostile.to_owned();
    let dir = lab.path().join("record");
    let mut writer = RecordWriter::create(&dir, b"", &plan, &Host::default(), 1).unwrap();
    let reason = EndReason::Failed;
    writer.event(1, Event::Ended { reason }).unwrap();
    drop(writer);
    fs::write(dir.join("slices.csv"), format!("block\n{hostile}\n")).unwrap();
    let is_unfit = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c)
    };
    let check = |words: &[&str]| {
        let mut command = program();
        command.args(words);
        let output = ended(command);
        let said = said(&output);
        assert!(!said.contains(is_unfit), "{words:?}: {said:?}");
        said
    };
    let record = dir.to_str().unwrap();
    for format in ["terminal", "html", "markdown", "json"] {
        assert!(
            check(&["report", record, "--format", format]).contains("gnp"),
            "{format}"
        );
    }
    for verb in ["report", "verify", "audit", "history", "pool"] {
        check(&[verb, record]);
    }
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("report") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains(is_unfit), "{name}");
        }
    }
    let broken = Lab::new(
        &format!("[contenders.\"{hostile}\"]\nserver = \"{hostile}\"\n")
            .replace(['\u{1b}', '\u{7}'], ""),
    );
    check(&["run", broken.experiment().to_str().unwrap()]);
}
