//! Damaged records: judged and rendered, exported, audited and verified.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dbduel_record::{RecordWriter, latency};
use dbduel_testkit::damage::{Damage, draw, to_bytes, to_text};
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};

use super::{Target, bounded, copy, corpus, files};

/// What happens to a file of a record.
#[derive(Debug, Clone)]
enum Harm {
    Damaged(Vec<Damage>),
    /// The histogram in one line, which is compressed otherwise, so that no damage would get at it.
    Histogram(Index, Vec<Damage>),
    Missing,
    Empty,
    /// The content of another file.
    Other(Index),
}

fn harm(file: &str) -> impl Strategy<Value = Harm> + use<> {
    let is_log = file.ends_with(".hlog");
    prop_oneof![
        20 => vec(to_text(), 1..4).prop_map(Harm::Damaged),
        if is_log { 20 } else { 0 } =>
            (any::<Index>(), vec(to_bytes(), 1..4)).prop_map(|(line, damages)| Harm::Histogram(line, damages)),
        1 => Just(Harm::Missing),
        1 => Just(Harm::Empty),
        1 => any::<Index>().prop_map(Harm::Other),
    ]
}

/// The files of the record, those that all others hang on more often.
fn weighted() -> &'static [String] {
    static FILES: OnceLock<Vec<String>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut all = files(&corpus().join("record"));
        assert!(all.len() > 20, "the record is there: {all:?}");
        for (file, times) in [
            ("plan.json", 25),
            ("events.jsonl", 15),
            ("slices.csv", 10),
            ("latency.hlog", 10),
            ("ticks.csv", 5),
            ("readings.csv", 5),
            ("host.json", 3),
        ] {
            all.extend(vec![file.to_owned(); times]);
        }
        all
    })
}

/// A damaged copy of the record.
fn make(seed: u64, folder: &Path) {
    copy(&corpus().join("record"), folder);
    let strategy = vec(
        select(weighted().to_vec()).prop_flat_map(|file| (Just(file.clone()), harm(&file))),
        1..3,
    );
    for (file, harm) in draw(&strategy, seed) {
        let path = folder.join(&file);
        let Ok(mut bytes) = fs::read(&path) else {
            continue;
        };
        match harm {
            Harm::Missing => {
                fs::remove_file(&path).unwrap();
                continue;
            }
            Harm::Empty => bytes.clear(),
            Harm::Other(index) => {
                let other = &weighted()[index.index(weighted().len())];
                bytes = fs::read(folder.join(other)).unwrap_or_default();
            }
            Harm::Damaged(damages) => damages.iter().for_each(|damage| damage.apply(&mut bytes)),
            Harm::Histogram(line, damages) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                bytes = with_histogram(&text, line, &damages).into_bytes();
            }
        }
        fs::write(&path, bytes).unwrap();
    }
}

/// The log with the histogram of one line damaged before it was encoded.
fn with_histogram(log: &str, line: Index, damages: &[Damage]) -> String {
    let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
    let tagged: Vec<usize> = (0..lines.len())
        .filter(|&index| lines[index].starts_with("Tag="))
        .collect();
    if tagged.is_empty() {
        return log.to_owned();
    }
    let line = &mut lines[tagged[line.index(tagged.len())]];
    if let Some((before, payload)) = line.clone().rsplit_once(',')
        && let Ok(histogram) = latency::decode(payload)
    {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&histogram, &mut bytes)
            .unwrap();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        *line = format!("{before},{}", STANDARD.encode(bytes));
    }
    lines.join("\n") + "\n"
}

/// Judged and rendered in all formats, and one of what else reads records.
fn commands(seed: u64, folder: &Path) -> Vec<Command> {
    let other: &[&str] = match seed % 4 {
        0 => &["verify", "."],
        1 => &["audit", "."],
        2 => &[
            "export",
            ".",
            "-o",
            "exported",
            "--format",
            "csv,sqlite,parquet",
        ],
        _ => &["history", "."],
    };
    vec![bounded(&["report", "."], folder), bounded(other, folder)]
}

#[test]
fn records() {
    let target = Target {
        name: "records",
        count: 50,
        make,
        commands,
    };
    target.try_all();
}

/// The record, sealed, with a damaged manifest.
fn make_manifest(seed: u64, folder: &Path) {
    copy(&corpus().join("record"), folder);
    let writer = RecordWriter::open(folder, 1).unwrap();
    for at_ms in 2..4 {
        writer.seal(at_ms, "0").unwrap();
    }
    drop(writer);
    let manifest = folder.join(dbduel_record::manifest::MANIFEST);
    let mut bytes = fs::read(&manifest).unwrap();
    let damages = draw(&vec(to_text(), 1..6), seed);
    damages.iter().for_each(|damage| damage.apply(&mut bytes));
    fs::write(&manifest, bytes).unwrap();
}

fn verify(seed: u64, folder: &Path) -> Vec<Command> {
    let words: &[&str] = match seed % 2 {
        0 => &["verify", "."],
        _ => &["verify", ".", "--json"],
    };
    vec![bounded(words, folder)]
}

#[test]
fn manifests() {
    let target = Target {
        name: "manifests",
        count: 40,
        make: make_manifest,
        commands: verify,
    };
    target.try_all();
}

#[test]
fn the_record_is_judged_before_it_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    copy(&corpus().join("record"), folder.path());
    let writer = RecordWriter::open(folder.path(), 1).unwrap();
    writer.seal(2, "0").unwrap();
    drop(writer);
    let output = bounded(&["report", "."], folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("lazy"), "{text}");
    let output = bounded(&["verify", "."], folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
