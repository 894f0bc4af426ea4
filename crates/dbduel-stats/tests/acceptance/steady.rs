//! Certification of the steady state on machines with known warm-ups.

use dbduel_stats::simulate::{Contender, Machine, Noise, QUIET, TYPICAL};
use dbduel_stats::steady::{SteadyDetector, SteadyRule, SteadyState};

#[derive(Debug, Clone, Copy)]
enum WarmUp {
    None,
    /// Depth at the start and time constant.
    Exponential(f64, f64),
    Step(f64),
    Honeymoon(f64),
}

impl WarmUp {
    /// Level relative to the final one.
    fn factor(self, t: f64) -> f64 {
        match self {
            WarmUp::None => 1.0,
            WarmUp::Exponential(depth, time) => 1.0 - depth * (-t / time).exp(),
            WarmUp::Step(at) => {
                if t < at {
                    0.7
                } else {
                    1.0
                }
            }
            WarmUp::Honeymoon(until) => {
                if t < until {
                    1.3
                } else {
                    1.0
                }
            }
        }
    }
}

struct Outcome {
    certified: usize,
    biased: usize,
}

/// 100 series: how many were certified, and of these, how many would be off by more than 2 % over the
/// next ten minutes.
fn certify(noise: Noise, warm_up: WarmUp, fixed: Option<usize>) -> Outcome {
    let mut outcome = Outcome {
        certified: 0,
        biased: 0,
    };
    for seed in 0..100 {
        let mut machine = Machine::new(noise, seed);
        let random = &mut machine.random.clone();
        let mut contender = Contender::new(&noise, 0.0, random);
        let mut detector = SteadyDetector::new(SteadyRule::default()).unwrap();
        let mut after = None;
        for t in 0..1800_usize {
            let value = contender.step(&mut machine) * warm_up.factor(t as f64);
            if let SteadyState::Steady { after: found, .. } = detector.push(value).unwrap() {
                after = Some(found);
                break;
            }
        }
        if let Some(after) = fixed.or(after) {
            outcome.certified += 1;
            let bias = (after..after + 600)
                .map(|t| warm_up.factor(t as f64))
                .sum::<f64>()
                / 600.0
                - 1.0;
            outcome.biased += usize::from(bias.abs() > 0.02);
        }
    }
    outcome
}

#[test]
fn quiet_machines_are_certified_without_bias() {
    for warm_up in [
        WarmUp::None,
        WarmUp::Exponential(0.6, 20.0),
        WarmUp::Exponential(0.6, 60.0),
        WarmUp::Step(90.0),
        WarmUp::Honeymoon(120.0),
    ] {
        let Outcome {
            certified, biased, ..
        } = certify(QUIET, warm_up, None);
        assert!(
            certified >= 98 && biased <= 1,
            "{warm_up:?}: {certified} {biased}"
        );
    }
    let Outcome { biased, .. } = certify(QUIET, WarmUp::Exponential(0.4, 180.0), None);
    assert!(biased <= 5, "{biased}");
}

#[test]
fn typical_machines_are_mostly_certified() {
    let Outcome {
        certified, biased, ..
    } = certify(TYPICAL, WarmUp::Exponential(0.6, 60.0), None);
    assert!(certified >= 70 && biased <= 3, "{certified} {biased}");
    let Outcome {
        certified, biased, ..
    } = certify(TYPICAL, WarmUp::Exponential(0.4, 180.0), None);
    assert!(biased * 100 <= 12 * certified, "{certified} {biased}");
}

/// Control: a fixed minute of warm-up.
#[test]
fn a_fixed_warm_up_is_biased() {
    let Outcome { biased, .. } = certify(QUIET, WarmUp::Exponential(0.6, 60.0), Some(60));
    assert!(biased >= 95, "{biased}");
}
