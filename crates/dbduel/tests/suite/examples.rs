//! What people copy runs: every shipped experiment, and every block of the documents that is a whole one, shortened.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use dbduel_powercut::mount;
use toml_edit::{DocumentMut, Item, TableLike, value};

use super::lab::{Lab, SHORT_SCHEDULE, program, servers_left};
use super::plans::experiments;

/// Budget of a contest, and of each cell of a sweep, seconds. Many contenders get what they need at least.
const BUDGET_S: u64 = 20;

/// Sizes that are at most 20,000 rows.
const SIZES: &[(&str, i64)] = &[
    ("tables", 1),
    ("table_size", 10_000),
    ("maxid1", 2_001),
    ("nlinks_max", 2_000),
    ("rows", 10_000),
    ("rows_per_slice", 50),
    ("warehouses", 1),
];

/// Room that contenders may take on disk together; of larger ones only the plan is looked at.
const BYTES_MAX: f64 = 2e9;

/// Workloads of a suite that are kept.
const WORKLOADS_MAX: usize = 3;

/// How an experiment says that its servers are elsewhere, or that they are not available here.
const ELSEWHERE: [&str; 6] = [
    "there is no server at",
    "could not fetch",
    "is not installed",
    "no package source",
    "could not resolve",
    "give the URL of their nats-server",
];

/// Blocks of the documents that are whole experiments, with the place that they are named by.
fn blocks() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md")];
    for folder in ["docs", "docs/tutorial"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    files.sort();
    let mut blocks = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        for (number, part) in text.split("```toml\n").skip(1).enumerate() {
            let block = part.split("```").next().unwrap();
            let has = |words: &str| block.contains(words);
            // Captures and dumps are the reader's own; `own_workload` makes one and runs it.
            if has("\"captured\"") {
                continue;
            }
            if has("[contenders.") && has("server = ") && (has("[workload]") || has("[suite]")) {
                blocks.push((format!("{name}, block {}", number + 1), block.to_owned()));
            }
        }
    }
    assert!(blocks.len() >= 4, "{blocks:?}");
    blocks
}

/// Sets what a table has of this name.
fn shrink(table: &mut dyn TableLike, name: &str, most: i64) {
    let Some(item) = table.get_mut(name) else {
        return;
    };
    match item.as_integer() {
        Some(number) => *item = value(number.min(most)),
        None => {
            // Levels of a sweep: the first two, the smaller the better, and different.
            let Some(levels) = item.as_array_mut() else {
                return;
            };
            let count = levels.len().min(2) as i64;
            levels.clear();
            levels.extend((0..count).map(|level| most / (level + 1)));
        }
    }
}

/// Keeps the first two values of every list of a table and of those in it; how many combinations these have.
fn shorten_lists(table: &mut dyn TableLike) -> u64 {
    let mut combinations = 1;
    for (_, item) in table.iter_mut() {
        if let Some(list) = item.as_array_mut() {
            while list.len() > 2 {
                list.remove(list.len() - 1);
            }
            combinations *= list.len() as u64;
        } else if let Some(inner) = item.as_table_like_mut() {
            combinations *= shorten_lists(inner);
        }
    }
    combinations
}

/// The experiment with a budget of so many seconds for each cell, small tables and few clients; its contenders stay as they are.
fn shortened(text: &str, budget_s: u64) -> String {
    let mut document: DocumentMut = text.parse().unwrap();
    let sweep = document.get_mut("sweep").and_then(Item::as_table_like_mut);
    let cells = sweep.map_or(1, shorten_lists);
    document["budget"] = value(format!("{} s", budget_s * cells));
    document["horizon"] = value("25 %");
    for part in ["workload", "sweep"] {
        if let Some(table) = document.get_mut(part).and_then(Item::as_table_like_mut) {
            for (name, most) in SIZES {
                shrink(table, name, *most);
            }
        }
    }
    if let Some(workload) = document
        .get_mut("workload")
        .and_then(Item::as_table_like_mut)
        && workload.get("name").and_then(Item::as_str) == Some("order-entry")
    {
        workload.insert("scale", value(0.02));
    }
    if let Some(load) = document.get_mut("load").and_then(Item::as_table_like_mut) {
        shrink(load, "clients", 4);
        let clients = load.get_mut("clients").and_then(Item::as_array_mut);
        if let Some(clients) = clients {
            clients.clear();
            clients.push(2);
        }
    }
    if let Some(suite) = document.get_mut("suite").and_then(Item::as_table_like_mut) {
        suite.insert("settle", value("1 s"));
        let workloads = suite.get_mut("workload");
        if let Some(workloads) = workloads.and_then(Item::as_array_of_tables_mut) {
            while workloads.len() > WORKLOADS_MAX {
                workloads.remove(workloads.len() - 1);
            }
            for workload in workloads.iter_mut() {
                workload.remove("slice");
            }
        }
    }
    let epochs = document
        .get("schedule")
        .and_then(|one| one.get("epochs"))
        .is_some();
    let schedule: DocumentMut = format!("[schedule]\n{SHORT_SCHEDULE}").parse().unwrap();
    document["schedule"] = schedule["schedule"].clone();
    if epochs {
        document["schedule"]["epochs"] = value(3);
    }
    // All work of its slices counts.
    if text.contains("\"insert-benchmark\"")
        && let Some(schedule) = document["schedule"].as_table_like_mut()
    {
        schedule.remove("guard");
    }
    document.to_string()
}

/// How it came out.
enum Fate {
    Ran,
    /// Its servers are not available here, or it is too large.
    Left(String),
    Failed(String),
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Bytes that the plan says the contest takes on disk.
fn needed(lab: &Lab) -> Result<f64, Output> {
    let output = program()
        .args(["run", "--plan", "--json"])
        .arg(lab.experiment())
        .current_dir(lab.path())
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(output);
    }
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let contenders = plan["contenders"].as_array().map_or(2, Vec::len);
    let redo = |contender: &serde_json::Value| {
        let settings = contender["settings"].as_array().into_iter().flatten();
        let bytes = settings.filter(|setting| {
            let name = setting["name"].as_str().unwrap_or_default();
            name == "innodb_log_file_size" || name == "innodb_redo_log_capacity"
        });
        bytes
            .filter_map(|setting| gibibytes(setting["value"].as_str()?))
            .sum::<f64>()
    };
    let all = plan["contenders"].as_array().into_iter().flatten();
    Ok(contenders as f64 * 2e8 + 2.0 * all.map(redo).sum::<f64>())
}

/// Bytes of `4G` or `512M`.
fn gibibytes(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at(text.len().checked_sub(1)?);
    let factor = match unit {
        "G" => 1e9,
        "M" => 1e6,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// The seconds that a plan asks for which is refused for want of time.
fn asked_for(said: &str) -> Option<u64> {
    let (_, rest) = said.split_once("use a budget of ")?;
    let (number, rest) = rest.split_once(' ')?;
    let factor = match rest.split_whitespace().next()? {
        "s" => 1.0,
        "min" => 60.0,
        _ => return None,
    };
    // Somewhat more, for a contest that loses a block.
    Some((number.parse::<f64>().ok()? * factor * 1.2).ceil() as u64)
}

fn run(name: &str, text: &str) -> Fate {
    let mut lab = Lab::new(&shortened(text, BUDGET_S));
    let mut room = needed(&lab);
    if let Err(output) = &room
        && let Some(budget_s) = asked_for(&said(output))
    {
        lab = Lab::new(&shortened(text, budget_s.max(BUDGET_S)));
        room = needed(&lab);
    }
    match room {
        Err(output) => return Fate::Failed(format!("no plan: {}", said(&output))),
        Ok(bytes) if bytes > BYTES_MAX => {
            return Fate::Left(format!("takes {:.1} GB on disk", bytes / 1e9));
        }
        Ok(_) => {}
    }
    // What the example says itself of how it is run.
    let words: &[&str] = match text {
        _ if text.contains("dbduel crash-test") => &["crash-test", "--cuts", "4", "--load", "2s"],
        _ if text.contains("[attribute]") => &["attribute"],
        _ => &["run"],
    };
    if words[0] == "crash-test"
        && let Err(why) = mount::check()
    {
        return Fate::Left(why.to_string());
    }
    let output = program()
        .args(words)
        .arg(lab.experiment())
        .arg("--results")
        .arg(lab.results())
        .current_dir(lab.path())
        .output()
        .unwrap();
    let said = said(&output);
    assert_eq!(servers_left(), [], "{name}");
    match output.status.code() {
        // A power cut may cost what the contender does not promise.
        Some(4) if words[0] == "crash-test" && !said.contains("not comparable") => Fate::Ran,
        Some(0 | 3) => Fate::Ran,
        Some(1 | 2) if ELSEWHERE.iter().any(|words| said.contains(words)) => {
            Fate::Left(said.lines().last().unwrap_or_default().to_owned())
        }
        code => Fate::Failed(format!("{code:?}: {said}")),
    }
}

/// Runs all and says of each how it came out.
fn check(examples: Vec<(String, String)>) {
    let (mut report, mut failed, mut ran) = (String::new(), 0, 0);
    for (name, text) in examples {
        let words = match run(&name, &text) {
            Fate::Ran => {
                ran += 1;
                "ran".to_owned()
            }
            Fate::Left(why) => format!("left out: {why}"),
            Fate::Failed(why) => {
                failed += 1;
                format!("FAILED: {why}")
            }
        };
        writeln!(report, "{name}: {words}").unwrap();
        eprintln!("{name}: {words}");
    }
    assert!(failed == 0 && ran > 0, "{report}");
}

fn shipped(is_meant: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let files = experiments().into_iter();
    let named = files.map(|path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    named.filter(|(name, _)| is_meant(name)).collect()
}

#[test(lab, contest)]
fn every_block_of_the_documents_that_is_a_whole_experiment_runs() {
    check(blocks());
}

#[test(soak, contest)]
fn every_shipped_experiment_runs() {
    check(shipped(|name| !name.starts_with("crash-test-")));
}

#[test(soak, contest)]
fn every_shipped_crash_test_runs() {
    check(shipped(|name| name.starts_with("crash-test-")));
}

#[test]
fn a_shortened_example_keeps_its_contenders() {
    for (name, text) in shipped(|_| true).into_iter().chain(blocks()) {
        let [long, short] = [text.as_str(), &shortened(&text, BUDGET_S)].map(|text| {
            let document: DocumentMut = text.parse().unwrap();
            document["contenders"].to_string()
        });
        assert_eq!(long, short, "{name}");
    }
}
