//! Contests whose load is far away.

use dbduel_machine::clock::simulated::SimulatedTime;
use dbduel_record::Record;
use dbduel_stats::random::RandomStream;

use super::faults::Strikes;
use super::{End, Exit, Simulation, in_memory, plan};

/// Round trip to the load, seconds.
const ROUND_TRIP_S: f64 = 0.03;

/// How a contest with this schedule ends, and the turns that it chose, seconds.
fn contest(schedule: &str) -> (End, Vec<f64>) {
    let text = format!(
        "budget = \"60 s\"\nhorizon = \"3 %\"\nseed = 5\n[contenders.a]\nserver = \"sqlite\"\n[contenders.b]\nlike = \"a\"\n\
         [workload]\nname = \"oltp-read-only\"\ntables = 1\ntable_size = 20\n[load]\nclients = 2\n\
         [schedule]\nwarm_up = \"1 s\"\n{schedule}[limits]\nfree_disk = \"1 KiB\"\n"
    );
    let folder = tempfile::tempdir_in(in_memory()).unwrap();
    let (planned, contenders) = plan(&folder.path().join("duel.toml"), &text).unwrap();
    let random = RandomStream::new(5, 1);
    let mut simulation = Simulation::of(5, random, folder, (text, planned, contenders), Vec::new());
    simulation.may_fail = true;
    simulation.world.0.borrow_mut().round_trip_s = ROUND_TRIP_S;
    let time = SimulatedTime::begin();
    let silence = dbduel_text::terminal::silence::keep();
    let (end, _) = simulation.process(Strikes::default()).unwrap();
    drop((time, silence));
    let turns = simulation.records().into_iter().flat_map(|record| {
        let plan = Record::open(&record).unwrap().plan;
        plan.turns.into_values().map(|turn| turn.turn_s)
    });
    (end, turns.collect())
}

#[test]
fn a_pilot_chooses_turns_of_ten_round_trips_at_least() {
    let (end, turns) = contest("");
    assert!(
        matches!(end, End::Ended(Exit::Done | Exit::Undecided)),
        "{end:?}"
    );
    assert!(!turns.is_empty());
    assert!(
        turns.iter().all(|turn_s| *turn_s >= 10.0 * ROUND_TRIP_S),
        "{turns:?}"
    );
}

#[test]
fn turns_that_are_set_and_too_short_are_refused() {
    let (end, _) = contest("slice = \"200 ms\"\nguard = \"50 ms\"\n");
    let End::Failed(why) = end else {
        panic!("{end:?}");
    };
    assert!(
        why.contains("takes 30.0 ms") && why.contains("set `slice = \""),
        "{why}"
    );
}
