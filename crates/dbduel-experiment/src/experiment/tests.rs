//! What people get wrong in an experiment file is said with its place and what to do.

use std::path::Path;

use super::conduct::SUBJECTS_MAX;
use super::*;

const GOOD: &str = r#"
budget = "20 min"
[contenders.a]
server = "mariadb-10.11"
settings = { innodb_buffer_pool_size = "1G", innodb-doublewrite = true }
[contenders.b]
like = "a"
settings = { innodb_doublewrite = 0 }
[workload]
name = "oltp-read-write"
table_size = 1_000_000
[load]
clients = [1, 16]
"#;

fn parse(text: &str) -> Result<Experiment, Troubles> {
    Experiment::parse(Path::new("x.toml"), text)
}

/// The experiment with `old` replaced has exactly one trouble, `message` at `place`.
#[track_caller]
fn check(old: &str, new: &str, place: &str, message: &str) {
    assert!(GOOD.contains(old), "`{old}` is not in the experiment");
    let troubles = parse(&GOOD.replacen(old, new, 1)).unwrap_err().to_string();
    assert_eq!(troubles.lines().count(), 1, "{troubles}");
    assert!(
        troubles.starts_with(&format!("x.toml:{place}: ")),
        "{troubles}"
    );
    assert!(troubles.contains(message), "{troubles}");
}

#[test]
fn what_is_written_is_what_is_read() {
    let experiment = parse(GOOD).unwrap();
    let names: Vec<&str> = experiment
        .contenders
        .iter()
        .map(|contender| contender.name.value.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(experiment.budget.unwrap().value.as_secs(), 1200);
    assert_eq!(experiment.contenders[0].settings[1].value.value, "ON");
    assert_eq!(experiment.load.clients.unwrap().value, [1, 16]);
    assert_eq!(experiment.workload.parameters[0].1.value, 1_000_000);
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    check("budget =", "bugdet =", "2:1", "did you mean `budget`?");
    check("clients =", "client =", "13:1", "did you mean `clients`?");
    check("like =", "lik =", "7:1", "did you mean `like`?");
    check("like = \"a\"", "", "6:13", "neither `server` nor `like`");
}

#[test]
fn a_key_in_the_wrong_table_is_told_where_it_belongs() {
    check(
        "clients =",
        "budget = \"1 min\"\nclients =",
        "13:1",
        "unknown key `budget` in [load]; it belongs at the top of the file, before the first table",
    );
    check(
        "budget",
        "warm_up = \"1 s\"\nbudget",
        "2:1",
        "it belongs in [schedule]",
    );
    check(
        "budget",
        "server-io = \"9/s\"\nbudget",
        "2:1",
        "it belongs in [load]",
    );
    check(
        "like =",
        "password_file = \"x\"\nthreads = 1\nlike =",
        "8:1",
        "it belongs in [load]",
    );
    let two = "[search]\nrate = 3\n[load]\narrival = \"poisson\"\nrate = \"search\"\nobjective = \"p99 < 1 s\"\n";
    check(
        "[load]\nclients = [1, 16]\n",
        two,
        "13:1",
        "did you mean `rates`? A key `rate` belongs in [load]",
    );
    assert_eq!(
        home_of("load").as_deref(),
        Some("in [hosts] or at the top of the file, before the first table")
    );
    assert_eq!(home_of("table_size"), None);
}

#[test]
fn what_is_absurdly_long_is_refused_in_short() {
    let long = "x".repeat(10_000);
    let refused = parse(&format!("about = [\"{long}\"]\n{GOOD}"))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("too long for a name") && refused.len() < 300,
        "{refused}"
    );
    let many = "\"D3\", ".repeat(SUBJECTS_MAX + 1);
    let refused = parse(&format!("about = [{many}]\n{GOOD}"))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("has 101 names, at most 100"), "{refused}");
    let levels: Vec<String> = (0..100_000).map(|level| level.to_string()).collect();
    let text = format!(
        "{}[sweep]\nsettings.sort_buffer_size = [{}]\n",
        GOOD,
        levels.join(",")
    );
    let refused = parse(&text).unwrap_err().to_string();
    assert!(
        refused.contains("has 100000 levels; a sweep has at most 200"),
        "{refused}"
    );
}

#[test]
fn a_name_that_no_configuration_can_have_is_refused_for_every_server() {
    let message = "cannot be set: this is not the name of a setting";
    check("innodb-doublewrite =", "\"sync\\nport\" =", "5:46", message);
    check(
        "settings = { innodb_doublewrite = 0 }",
        "variants = { \"a b\" = [1, 2] }",
        "8:14",
        message,
    );
}

#[test]
fn wrong_types_say_what_was_expected() {
    check(
        "\"20 min\"",
        "20",
        "2:10",
        "expected a duration such as \"20 min\", found the number 20",
    );
    check("[1, 16]", "[1, \"x\"]", "13:11", "expected a whole number");
    check("[1, 16]", "[0]", "13:11", "from 1 to");
    check("[1, 16]", "[]", "13:11", "at least one");
    check(
        "\"mariadb-10.11\"",
        "[1]",
        "4:10",
        "expected a string, found a list",
    );
}

#[test]
fn contradictions_are_refused() {
    check("[1, 16]", "[16, 16]", "13:11", "listed twice");
    check(
        "clients = [1, 16]",
        "arrival = \"poisson\"",
        "13:11",
        "needs `rate`",
    );
    check("clients = [1, 16]", "rate = 5", "13:8", "goes with arrival");
    check(
        "innodb-doublewrite",
        "innodb-buffer-pool-size",
        "5:46",
        "set twice",
    );
}

#[test]
fn settings_that_belong_to_the_lab_are_refused() {
    check("innodb-doublewrite", "datadir", "5:46", "private place");
    check(
        "innodb-doublewrite",
        "loose_innodb_foo",
        "5:46",
        "ignored setting",
    );
    check("\"1G\"", "\"1G\\nport=1\"", "5:40", "control characters");
}

#[test]
fn names_must_refer_to_something() {
    check(
        "like = \"a\"",
        "like = \"aa\"",
        "7:8",
        "no contender `aa`; did you mean `a`?",
    );
    check("like = \"a\"", "like = \"b\"", "7:8", "`like` itself");
    check(
        "budget",
        "baseline = \"c\"\nbudget",
        "2:12",
        "no contender `c`",
    );
    check(
        "[contenders.b]",
        "[contenders.b-5.6]",
        "6:13",
        "in quotes: [contenders.\"b-5.6\"]",
    );
}

#[test]
fn what_the_contest_is_about_is_known_to_the_audit() {
    let text = format!("about = [\"innodb_doublewrite\", \"D3\"]\n{GOOD}");
    let about = parse(&text).unwrap().about;
    let names: Vec<&str> = about.iter().map(|name| name.value.as_str()).collect();
    assert_eq!(names, ["innodb_doublewrite", "D3"]);
    for (value, place, message) in [
        ("[\"D3\", \"D33\"]", "2:16", "did you mean `D3`?"),
        (
            "[\"innodb_doublewrit\"]",
            "2:10",
            "no class, fact, rule or variable of the audit (did you mean `innodb_doublewrite`?)",
        ),
        ("\"D3\"", "2:9", "found the string \"D3\""),
        ("[]", "2:9", "is a list of what the contest is about"),
        ("[3]", "2:10", "expected a string, found the number 3"),
    ] {
        let line = format!("about = {value}\nbudget =");
        check("budget =", &line, place, message);
    }
}

#[test]
fn a_lone_contender_has_nobody_to_duel_with() {
    let text = "[contenders.a]\nserver = \"x\"\n[workload]\nname = \"y\"\n";
    let troubles = parse(text).unwrap_err().to_string();
    assert!(
        troubles.contains("at least two contenders, found 1"),
        "{troubles}"
    );
}

#[test]
fn what_is_no_toml_is_said_with_its_place() {
    let troubles = parse("question = \n").unwrap_err().to_string();
    assert!(
        troubles.starts_with("x.toml:1:12: not valid TOML"),
        "{troubles}"
    );
    for hostile in [
        "\u{feff}[",
        "a = \"\u{0}\"",
        &"[".repeat(10_000),
        &"a.".repeat(5_000),
    ] {
        assert!(parse(hostile).is_err());
    }
}

#[test]
fn a_setting_is_found_through_like() {
    let experiment = parse(GOOD).unwrap();
    let span = experiment
        .setting_span("b", "innodb_buffer_pool_size")
        .unwrap();
    assert_eq!(&GOOD[span], "innodb_buffer_pool_size");
    let own = experiment.setting_span("b", "INNODB-doublewrite").unwrap();
    assert!(GOOD[..own.start].contains("[contenders.b]"));
    assert_eq!(experiment.setting_span("b", "nothing"), None);
}

#[test]
fn a_script_stands_for_a_workload_and_brings_its_options() {
    let script = "script = \"mine.lua\"\noptions = { table-size = 5, verbose = true }";
    let text = GOOD.replacen(
        "name = \"oltp-read-write\"\ntable_size = 1_000_000",
        script,
        1,
    );
    let workload = parse(&text).unwrap().workload;
    assert_eq!(workload.name.value, "script");
    let parameters: Vec<(&str, &serde_json::Value)> = workload
        .parameters
        .iter()
        .map(|(key, value)| (key.value.as_str(), &value.value))
        .collect();
    let (path, size, verbose) = ("mine.lua".into(), 5.into(), true.into());
    assert_eq!(
        parameters,
        [
            ("script", &path),
            ("options.table-size", &size),
            ("options.verbose", &verbose)
        ]
    );
    let name = "name = \"oltp-read-write\"";
    check(
        name,
        "name = \"x\"\nscript = \"y.lua\"",
        "11:10",
        "use only one of them",
    );
    check(name, "", "9:1", "neither `name` nor `script`");
    check(
        "table_size = 1_000_000",
        "options = { a = 1 }",
        "11:11",
        "goes with `script`",
    );
}

/// An unknown key in every table; the errors name those that are known.
#[test]
fn every_known_key_is_documented() {
    let errors = parse(
        "zzz_qqq = 1\n[contenders.a]\nserver = \"mariadb-10.11\"\nzzz_qqq = 1\n[workload]\nname = \"oltp-point-select\"\n\
         [load]\nclients = 1\nzzz_qqq = 1\n[schedule]\nzzz_qqq = 1\n[limits]\nzzz_qqq = 1\n[search]\nzzz_qqq = 1\n\
         [injection]\ncontender = \"a\"\nstopped = \"10 %\"\nzzz_qqq = 1\n",
    )
    .unwrap_err()
    .to_string();
    let lists = errors.split("known here: ").skip(1);
    let known = lists.flat_map(|list| {
        let line = list.lines().next().unwrap_or_default();
        line.split('`').skip(1).step_by(2)
    });
    let known: std::collections::BTreeSet<&str> = known.collect();
    assert!(known.len() > 30, "{known:?} of {errors}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments.md");
    let page = std::fs::read_to_string(path).unwrap();
    for key in known {
        let is_there = page.contains(&format!("`{key}`")) || page.contains(&format!("[{key}"));
        assert!(is_there, "docs/experiments.md does not have `{key}`");
    }
}

const SUITE: &str = r#"
[contenders.a]
server = "mariadb-10.11"
[contenders.b]
like = "a"
[workload]
table_size = 1_000
[suite]
mirrored = false
settle = "2 s"
[[suite.workload]]
name = "point"
workload = "oltp-point-select"
group = "p"
[[suite.workload]]
name = "mine"
script = "mine.lua"
phase = "fresh"
clients = 3
slice = "3 s"
options = { tables = 2 }
"#;

/// The suite with `old` replaced has exactly one trouble, `message` at `place`.
#[track_caller]
fn check_suite(old: &str, new: &str, place: &str, message: &str) {
    assert!(SUITE.contains(old), "`{old}` is not in the suite");
    let troubles = parse(&SUITE.replacen(old, new, 1)).unwrap_err().to_string();
    assert_eq!(troubles.lines().count(), 1, "{troubles}");
    assert!(
        troubles.starts_with(&format!("x.toml:{place}: ")),
        "{troubles}"
    );
    assert!(troubles.contains(message), "{troubles}");
}

#[test]
fn a_suite_is_read_with_its_workloads() {
    let suite = parse(SUITE).unwrap().suite.unwrap();
    assert_eq!(
        (suite.mirrored, suite.settle.unwrap().as_secs()),
        (Some(false), 2)
    );
    let [point, mine] = suite.workloads.as_slice() else {
        panic!("{suite:?}")
    };
    assert_eq!(point.workload.name.value, "oltp-point-select");
    assert_eq!((point.group.as_deref(), point.clients), (Some("p"), None));
    assert_eq!(mine.workload.name.value, "script");
    assert_eq!((mine.clients, mine.slice.unwrap().as_secs()), (Some(3), 3));
    let keys: Vec<&str> = mine
        .workload
        .parameters
        .iter()
        .map(|(key, _)| key.value.as_str())
        .collect();
    assert_eq!(keys, ["script", "options.tables"]);
}

#[test]
fn mistakes_in_a_suite_are_told_in_place() {
    check_suite(
        "name = \"mine\"",
        "name = \"point\"",
        "16:8",
        "two workloads of the suite are called `point`",
    );
    check_suite("name = \"mine\"\n", "", "15:1", "has no `name`");
    check_suite(
        "workload = \"oltp-point-select\"\n",
        "",
        "11:1",
        "neither `workload` nor `script`",
    );
    check_suite(
        "\"fresh\"",
        "\"later\"",
        "18:9",
        "expected \"fresh\", \"write\"",
    );
    check_suite(
        "mirrored = false",
        "mirrored = 1",
        "9:12",
        "expected true or false",
    );
    check_suite("settle", "setle", "10:1", "did you mean `settle`?");
    check_suite(
        "[suite]\n",
        "[load]\nclients = [1, 2]\n[suite]\n",
        "9:11",
        "a suite has one number of clients",
    );
    check_suite(
        "[suite]\n",
        "[sweep]\ntables = [1, 2]\n[suite]\n",
        "10:1",
        "a suite has no [sweep]",
    );
}
