//! Round trip to the hosts of a contest, and the shortest turn that it permits.
//!
//! The order of a turn and its answer cross the network, and hosts begin together within half a round trip. In a turn of
//! a few round trips, these times and not the servers would decide what is measured.

use anyhow::{Result, bail};
use dbduel_record::Plan;

/// Least length of a turn in round trips to its hosts.
const ROUND_TRIPS_MIN: f64 = 10.0;

/// The shortest middle of turn lengths, seconds, for a round trip; the shortest turn is shorter by the share `jitter`.
pub(super) fn shortest_turn_s(round_trip_s: f64, jitter: f64) -> f64 {
    ROUND_TRIPS_MIN * round_trip_s / (1.0 - jitter).max(f64::EPSILON)
}

/// Refuses a plan with turns too short for the round trip to its hosts, seconds; 0 without hosts.
///
/// # Errors
/// The round trip, the turn, and the setting to change.
pub(super) fn refuse_short_turns(plan: &Plan, round_trip_s: f64) -> Result<()> {
    let schedule = &plan.schedule;
    let needed_s = shortest_turn_s(round_trip_s, schedule.jitter);
    let levels = plan.levels.iter().enumerate();
    let turns = levels.map(|(level, own)| match plan.turns.get(&level) {
        Some(chosen) => chosen.turn_s,
        None => schedule.at(own).slice_s,
    });
    let shortest_s = turns.fold(f64::INFINITY, f64::min);
    if shortest_s >= needed_s {
        return Ok(());
    }
    let of = |seconds: f64| dbduel_text::duration(seconds);
    // Rounded up, so that the suggestion is not refused.
    let suggested_ms = (needed_s * 1e3).ceil();
    let remedy = match plan.turns.is_empty() {
        true => format!("set `slice = \"{suggested_ms} ms\"` or more in [schedule]"),
        false => "start the contest again instead of resuming it".to_owned(),
    };
    bail!(
        "a round trip to the hosts of this contest takes {}, and turns of {} are shorter than {ROUND_TRIPS_MIN:.0} round trips: the \
         network would decide what they measure; {remedy}, or use hosts that are nearer",
        of(round_trip_s),
        of(shortest_s * (1.0 - schedule.jitter))
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::{Scenario, turn_choice};

    #[test]
    fn turns_below_ten_round_trips_are_refused_with_the_length_that_is_accepted() {
        let mut plan = Scenario::duel().record().plan;
        plan.schedule.jitter = 0.2;
        plan.schedule.slice_s = 0.25;
        refuse_short_turns(&plan, 0.0).unwrap();
        refuse_short_turns(&plan, 0.02).unwrap();
        let why = refuse_short_turns(&plan, 0.0404).unwrap_err().to_string();
        assert!(why.contains("slice = \"505 ms\""), "{why}");
        plan.schedule.slice_s = 0.505;
        refuse_short_turns(&plan, 0.0404).unwrap();
        // Turns chosen earlier count instead.
        for level in 0..plan.levels.len() {
            plan.turns.insert(level, turn_choice(0.4, 0.05));
        }
        let why = refuse_short_turns(&plan, 0.0404).unwrap_err().to_string();
        assert!(why.contains("start the contest again"), "{why}");
    }
}
