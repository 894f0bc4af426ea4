//! The text is checked against the grammar of its format, and its samples against a contest.

use dbduel_lab::contest::Referee as _;
use dbduel_lab::contest::events::{ContestEvent, Follower as _};
use dbduel_load::order::Tick;
use dbduel_record::Record;
use dbduel_record::event::{Event, SliceId};
use dbduel_record::rows::ReadingRow;
use dbduel_record::store::SliceResult;
use dbduel_testkit::synthetic::Scenario;

use super::*;
use crate::referee::Judge;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const HOSTILE: &str = "a\\b\"} 1\n# EOF\n<script>";

/// A board in the middle of a contest against a contender with a hostile name.
fn board() -> Arc<Board> {
    let dir = tempfile::tempdir().unwrap();
    let mut scenario = Scenario {
        blocks: 8,
        ..Scenario::duel()
    };
    HOSTILE.clone_into(&mut scenario.sides[1].name);
    let path = dir.path().join("record");
    scenario.write(&path);
    let record = Record::open(&path).unwrap();
    let board = Arc::new(Board::default());
    let plan = Arc::new(record.plan.clone());
    board.follow(&ContestEvent::Begun { plan: &plan });
    board.follow(&ContestEvent::PhaseBegun(Phase::Measuring));
    let standing = Judge::default().decide_level(&plan, &record.slices, 0);
    board.follow(&ContestEvent::LevelJudged(&standing));
    let mut result = SliceResult::default();
    result.classes.push(record.slices[0].clone());
    result.readings.push(ReadingRow {
        block: 0,
        position: 0,
        contender: HOSTILE.to_owned(),
        source: "server".to_owned(),
        metric: "cpu_user_s".to_owned(),
        value: 1.5,
    });
    for used_s in [30.0, 60.0] {
        board.follow(&ContestEvent::SliceRecorded {
            contender: 1,
            level: 0,
            result: &result,
            used_s,
        });
    }
    board.follow(&ContestEvent::Entry(&Event::SliceLost {
        slice: SliceId {
            block: 0,
            position: 0,
        },
        why: "none".to_owned(),
        seconds: 1.0,
    }));
    board.follow(&ContestEvent::LoadUsed { used_s: 61.0 });
    assert_eq!(board.standing().used_s, 61.0);
    let tick = Tick {
        length_s: 0.5,
        ok: 100,
        ..Tick::default()
    };
    board.follow(&ContestEvent::Tick {
        contender: 1,
        level: 0,
        tick: &tick,
        used_s: 61.5,
        message: "",
    });
    board
}

/// Checks the text line by line as the format's grammar has it; gives the samples.
fn read(text: &str) -> Vec<(String, f64)> {
    let body = text.strip_suffix("# EOF\n").expect("the last line");
    let (mut families, mut family, mut kind) = (BTreeSet::new(), "", "");
    let mut samples = Vec::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            (family, kind) = rest.split_once(' ').unwrap();
            assert!(families.insert(family), "{family} twice");
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert_eq!(name, family);
            assert!(name.ends_with(&format!("_{unit}")), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(family), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let suffix = name.strip_prefix(family).unwrap();
            let allowed = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            assert_eq!(suffix, allowed, "{line}");
            let value = value.replace("+Inf", "inf").parse().unwrap();
            samples.push((sample.to_owned(), value));
        }
    }
    samples
}

#[test]
fn the_text_is_whole_and_says_how_the_contest_stands() {
    let samples = read(&text(&board().standing()));
    let of = |name: &str| -> Vec<f64> {
        let named = samples
            .iter()
            .filter(|(sample, _)| sample.split('{').next() == Some(name));
        named.map(|(_, value)| *value).collect()
    };
    assert_eq!(of("dbduel_load_used_seconds"), [61.5]);
    assert_eq!(of("dbduel_tick_transactions_per_second"), [200.0]);
    assert_eq!(of("dbduel_slices_total"), [2.0]);
    assert_eq!(of("dbduel_lost_slices_total"), [1.0]);
    assert_eq!(of("dbduel_server_cpu_user_seconds_total"), [3.0]);
    assert!(of("dbduel_server_cpu_system_seconds_total").is_empty());
    assert_eq!(of("dbduel_complete_blocks"), [8.0]);
    let (ratio, low, high) = (
        of("dbduel_ratio"),
        of("dbduel_ratio_low"),
        of("dbduel_ratio_high"),
    );
    assert!(low[0] <= ratio[0] && ratio[0] <= high[0]);
    for states in ["dbduel_phase", "dbduel_verdict"] {
        assert_eq!(of(states).iter().sum::<f64>(), 1.0, "{states}");
    }
    let hostile = r#"contender="a\\b\"} 1\n# EOF\n<script>""#;
    assert!(samples.iter().any(|(sample, _)| sample.contains(hostile)));
}

#[test]
fn before_a_contest_there_is_only_its_phase() {
    let samples = read(&text(&Standing::default()));
    assert_eq!(samples.len(), 1 + PHASES.len());
}

#[test]
fn a_collector_gets_the_media_type_and_other_paths_nothing() {
    let address = serve(Loopback::port(0), board()).unwrap();
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask(PATH);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(
        head.contains(&format!("Content-Type: {KIND}\r\n")),
        "{head}"
    );
    assert!(!read(body).is_empty());
    assert!(ask("/").starts_with("HTTP/1.1 404"));
}
