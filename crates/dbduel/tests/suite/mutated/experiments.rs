//! Damaged experiment files: planned, and nothing else happens.

use std::fs;
use std::path::Path;
use std::process::Command;

use dbduel_testkit::damage::{draw, to_text};
use proptest::collection::vec;
use proptest::sample::select;

use super::super::plans;
use super::{Target, bounded, files};

const FILE: &str = "duel.toml";

fn make(seed: u64, folder: &Path) {
    let strategy = (select(plans::experiments()), vec(to_text(), 1..5));
    let (path, damages) = draw(&strategy, seed);
    let mut bytes = fs::read(path).unwrap();
    damages.iter().for_each(|damage| damage.apply(&mut bytes));
    fs::write(folder.join(FILE), bytes).unwrap();
}

fn commands(seed: u64, folder: &Path) -> Vec<Command> {
    assert_eq!(files(folder), [FILE], "a plan leaves nothing");
    let words: &[&str] = match seed % 4 {
        0 => &["audit", "--dry", FILE],
        _ => &["run", "--plan", FILE],
    };
    vec![bounded(words, folder)]
}

#[test]
fn experiments() {
    let target = Target {
        name: "experiments",
        count: 100,
        make,
        commands,
    };
    target.try_all();
}
