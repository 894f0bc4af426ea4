//! Texts as users see them: the help of every verb, error messages, the plan of an experiment, and README in two languages.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::lab::program;

/// Columns of the help in snapshots.
const COLUMNS: usize = 100;

const DUEL: &str = r#"
question = "SQLite: write-ahead log or rollback journal?"
seed = 7
budget = "2 min"
horizon = "2 %"
about = ["journal_mode"]

[contenders.delete]
server = "sqlite"
settings = { journal_mode = "DELETE" }

[contenders.wal]
like = "delete"
settings = { journal_mode = "WAL" }

[workload]
name = "oltp-update-non-index"
table_size = 10_000

[load]
clients = [1, 4]
threads = 2
"#;

/// Output of the program in `dir`, and its exit code.
fn answer(dir: &Path, arguments: &[&str]) -> String {
    let mut command = program();
    let output = command.current_dir(dir).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}{}exit code {}\n",
        text(&output.stdout),
        text(&output.stderr),
        output.status.code().unwrap()
    )
}

#[cfg(all(feature = "fleet", feature = "crash-test", feature = "parquet"))]
#[test]
fn every_verb_has_its_help() {
    let mut command = dbduel::command().term_width(COLUMNS);
    command.build();
    let mut pending = vec![command];
    let mut all = String::new();
    while let Some(mut command) = pending.pop() {
        let name = command.get_bin_name().unwrap_or("dbduel").to_owned();
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        writeln!(all, "=== {name}\n{}\n", lines.join("\n")).unwrap();
        let below: Vec<_> = command.get_subcommands().cloned().collect();
        let is_shown = |verb: &clap::Command| !verb.is_hide_set() && verb.get_name() != "help";
        pending.extend(below.into_iter().filter(is_shown).rev());
    }
    insta::assert_snapshot!("help", all);
}

#[test]
fn the_plan_of_an_experiment_is_readable() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("duel.toml"), DUEL).unwrap();
    let plan = answer(dir.path(), &["run", "duel.toml", "--plan"]);
    // The room on the disk is the machine's.
    let is_of_machine = |line: &&str| line.starts_with("Disk ");
    let lines: Vec<&str> = plan.lines().filter(|line| !is_of_machine(line)).collect();
    assert_eq!(lines.len() + 1, plan.lines().count(), "{plan}");
    insta::assert_snapshot!("plan", lines.join("\n"));
}

#[test]
fn errors_say_what_was_tried_what_happened_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let edited = |from: &str, to: &str| {
        assert!(DUEL.contains(from), "{from}");
        DUEL.replace(from, to)
    };
    fs::write(dir.path().join("duel.toml"), DUEL).unwrap();
    let experiments = [
        ("a misspelt key", edited("table_size", "tabel_size")),
        (
            "a key of another table",
            edited("[load]", "[load]\nbudget = \"2 min\""),
        ),
        (
            "no such server",
            edited("server = \"sqlite\"", "server = \"sqlite3\""),
        ),
        ("no server at all", edited("server = \"sqlite\"\n", "")),
        (
            "a setting that does not exist",
            edited("journal_mode = \"WAL\"", "jurnal_mode = \"WAL\""),
        ),
        ("a duration without a unit", edited("\"2 min\"", "\"2\"")),
        (
            "a workload that does not exist",
            edited("oltp-update-non-index", "oltp-update"),
        ),
        ("no TOML", edited("seed = 7", "seed = = 7")),
    ];
    let mut all = String::new();
    for (what, text) in experiments {
        fs::write(dir.path().join("broken.toml"), text).unwrap();
        let said = answer(dir.path(), &["run", "broken.toml", "--plan"]);
        writeln!(all, "=== {what}\n{said}").unwrap();
    }
    for arguments in [
        "report nowhere",
        "run nowhere.toml",
        "verify .",
        "history .",
        "run duel.toml --budget soon",
        "run duel.toml --fail-if slower",
        "servers install mariadb-10.4",
        "load --server tcp://127.0.0.1:1 --workload oltp-reed-write",
        "load --server tcp://root:secret@127.0.0.1:3306 --workload oltp-read-write",
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        writeln!(
            all,
            "=== dbduel {arguments}\n{}",
            answer(dir.path(), &words)
        )
        .unwrap();
    }
    insta::assert_snapshot!("errors", all);
}

/// Lines of code without comments, and the targets of links, of a page.
fn code_and_links(page: &str) -> (Vec<String>, BTreeSet<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("```").skip(1).step_by(2);
    let code = blocks
        .flat_map(str::lines)
        .map(|line| line.split('#').next().unwrap().trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    let links = text.split("](").skip(1);
    let links = links.map(|rest| rest.split(')').next().unwrap().to_owned());
    let to_languages = ["README.md", "README.zh-CN.md"];
    let links = links.filter(|link| !to_languages.contains(&link.as_str()));
    (code, links.collect())
}

#[test]
fn the_chinese_readme_has_the_code_and_the_links_of_the_english_one() {
    let (code, links) = code_and_links("README.md");
    assert!(code.len() > 20 && links.len() > 20, "{code:?} {links:?}");
    assert_eq!(code_and_links("README.zh-CN.md"), (code, links));
}
