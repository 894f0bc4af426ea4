//! The length of slices that is chosen from series of one contender at a time, against the blocks that follow.

use dbduel_stats::simulate::{
    Dips, FINE_NASTY, FINE_QUIET, FINE_TYPICAL, FINE_WANDERING, FineDuel, FineNoise, Noise,
};
use dbduel_stats::slice_length::{SliceCandidate, SliceChoice, SliceRule, choose_slice_length};

const GUARD_S: f64 = 0.05;

/// The choice from half a minute of each contender.
pub fn choose(duel: &mut FineDuel, fine: &FineNoise) -> SliceChoice {
    let rule = SliceRule {
        tick_s: fine.tick_s,
        unmeasured_s: GUARD_S,
        floor_s: 0.1,
        cap_s: 15.0,
        contenders: 2,
    };
    choose_slice_length(&duel.uninterrupted(30.0), &rule).unwrap()
}

/// What the choice predicts, and standard deviation of the 60 blocks that follow, as mean squares over 30 duels.
fn predicted_and_found(fine: FineNoise) -> (f64, f64) {
    let (mut predicted, mut found) = (0.0, 0.0);
    for seed in 0..30 {
        let mut duel = FineDuel::new(fine, 0.0, seed);
        let choice = choose(&mut duel, &fine);
        let chosen = |one: &&SliceCandidate| one.length_s == choice.length_s;
        let candidate = choice.candidates.iter().find(chosen).unwrap();
        predicted += candidate.block_sd.unwrap().powi(2);
        for _ in 0..60 {
            let block = duel.block(choice.length_s, GUARD_S, 1);
            found += block.log_ratio.powi(2) / 60.0;
        }
    }
    (predicted.sqrt(), found.sqrt())
}

fn without_rhythm(fine: FineNoise) -> FineNoise {
    let dips = Dips {
        depth: 0.0,
        ..fine.noise.dips
    };
    FineNoise {
        noise: Noise { dips, ..fine.noise },
        ..fine
    }
}

#[test]
fn blocks_scatter_as_the_choice_predicts() {
    for fine in [FINE_QUIET, FINE_TYPICAL, FINE_NASTY, FINE_WANDERING] {
        let (predicted, found) = predicted_and_found(without_rhythm(fine));
        let ratio = found / predicted;
        assert!(
            (0.7..1.4).contains(&ratio),
            "{fine:?}: {found} of {predicted}"
        );
    }
}

/// The limit that is stated: a virtual block has a contender's own dips on both sides, and a real one has not.
#[test]
fn blocks_of_contenders_with_rhythms_scatter_by_more_than_predicted() {
    let (predicted, found) = predicted_and_found(FINE_TYPICAL);
    let ratio = found / predicted;
    assert!((1.5..4.0).contains(&ratio), "{found} of {predicted}");
}
