//! Rounds of the continuity check.

use dbduel_record::Record;
use dbduel_record::event::{ContinuityRound, Event, LoadStretch, Stamped};

use super::{Scenario, turn_choice};

/// Scatter of rounds, the same on both sides of the middle.
const SCATTER: [f64; 6] = [0.01, -0.02, 0.015, -0.01, 0.02, -0.015];

/// Four turns of a contender at a rate.
pub fn stretch(contender: &str, per_s: f64, seconds: f64) -> LoadStretch {
    LoadStretch {
        contender: contender.to_owned(),
        turns: 4,
        seconds,
        transactions: (per_s * seconds).round() as u64,
        latency_us_p99: 1e6 / per_s,
        cpu_us_per_transaction: Some(40.0),
        written_bytes_per_transaction: None,
        disk_flushes_per_transaction: Some(1.5),
    }
}

/// A duel whose second contender is 8 % faster in its blocks, and rounds before the first one in which each contender has `in_turns` of
/// its rate without a switch.
pub fn rehearsed(in_turns: [f64; 2]) -> Record {
    let mut record = Scenario::duel().record();
    record.plan.turns = [(0, turn_choice(0.2, 0.05))].into();
    let names: Vec<String> = record
        .plan
        .contenders
        .iter()
        .map(|one| one.name.clone())
        .collect();
    let rounds = SCATTER.map(|scatter| {
        let sides = [0, 1].map(|who| {
            let rate = 1000.0 * [1.0, 1.08][who];
            let unswitched = rate / in_turns[who] * scatter.exp();
            (
                stretch(&names[who], rate, 0.8),
                stretch(&names[who], unswitched, 0.8),
            )
        });
        let (in_turns, unswitched) = sides.into_iter().unzip();
        Event::ContinuityRound(ContinuityRound {
            level: 0,
            turn_s: 0.2,
            in_turns,
            unswitched,
            seconds: 4.0,
        })
    });
    let at_ms = record.events[0].at_ms;
    let rounds = rounds.map(|what| Stamped { at_ms, what });
    record.events.splice(1..1, rounds);
    record
}
