//! What goes wrong, and when: drawn from a seed.

use dbduel_testkit::damage::draw;
use nix::sys::signal::Signal;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::sample::select;

/// One of the processes of a contest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Load,
    ActiveServer,
    FrozenServer,
    Orchestrator,
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Kill(Part),
    /// Stopped and continued after so many milliseconds.
    Stop(Part, u64),
    /// A full disk below the record, for so many milliseconds.
    FullDisk(u64),
    /// The wall clock is set forward or back by so many seconds.
    ClockStep(i64),
    /// The user asks for an end.
    Interrupt(Signal),
}

/// A fault, and when, milliseconds after the start of the run.
pub type Timed = (u64, Fault);

fn part() -> impl Strategy<Value = Part> {
    select(vec![
        Part::Load,
        Part::ActiveServer,
        Part::FrozenServer,
        Part::Orchestrator,
    ])
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => part().prop_map(Fault::Kill),
        4 => (part(), 50..4000_u64).prop_map(|(part, ms)| Fault::Stop(part, ms)),
        2 => (100..5000_u64).prop_map(Fault::FullDisk),
        2 => select(vec![-864_000, -3600, -3, 2, 90, 864_000]).prop_map(Fault::ClockStep),
        1 => select(vec![Signal::SIGINT, Signal::SIGTERM]).prop_map(Fault::Interrupt),
    ]
}

/// Two faults, the second at the same moment as the first or soon after it.
pub fn pair(seed: u64) -> [Timed; 2] {
    let gap = prop_oneof![Just(0_u64), 0..300_u64, 0..6000_u64];
    // Shared data are restored within a second; the contest is over within half a minute.
    let strategy = (0..16_000_u64, fault(), gap, fault());
    let (at_ms, first, gap_ms, second) = draw(&strategy, seed);
    [(at_ms, first), (at_ms + gap_ms, second)]
}
