//! Damaged option files and dumps of variables: audited against one another.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbduel_testkit::damage::{draw, to_text};
use proptest::collection::vec;
use proptest::sample::select;

use super::{Target, bounded, files};

/// What the audit writes.
const FIXED: &str = "fixed.toml";

/// The product and the version of a file whose name has this part.
const SERVERS: [(&str, &str, &str); 5] = [
    ("postgresql-18", "postgresql", "18.6"),
    ("postgresql-17", "postgresql", "17.1"),
    ("sqlite", "sqlite", "3.54.1"),
    ("mariadb", "mariadb", "10.1.8"),
    ("my", "mysql", "5.6.24"),
];
const OPTIONS: [[&str; 2]; 2] = [
    ["--product-a", "--version-a"],
    ["--product-b", "--version-b"],
];

fn make(seed: u64, folder: &Path) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/audit");
    let sources: Vec<PathBuf> = files(&data).iter().map(|file| data.join(file)).collect();
    let strategy = vec((select(sources), vec(to_text(), 1..6)), 2);
    for (number, (path, damages)) in draw(&strategy, seed).into_iter().enumerate() {
        let mut bytes = fs::read(&path).unwrap();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        let name = path.file_name().unwrap().to_string_lossy();
        fs::write(folder.join(format!("{number}-{name}")), bytes).unwrap();
    }
}

fn commands(seed: u64, folder: &Path) -> Vec<Command> {
    let mut both = files(folder);
    both.retain(|file| file != FIXED);
    let mut words = vec!["audit"];
    words.extend(both.iter().map(String::as_str));
    for (file, [product_option, version_option]) in both.iter().zip(OPTIONS) {
        let said = SERVERS
            .iter()
            .find(|(part, ..)| file.contains(part))
            .map(|(_, product, version)| [product_option, product, version_option, version]);
        words.extend(said.into_iter().flatten());
    }
    match seed % 3 {
        0 => words.push("--json"),
        1 => words.push("--all"),
        _ => words.extend(["--fix", FIXED]),
    }
    vec![bounded(&words, folder)]
}

#[test]
fn options() {
    let target = Target {
        name: "options",
        count: 100,
        make,
        commands,
    };
    target.try_all();
}
