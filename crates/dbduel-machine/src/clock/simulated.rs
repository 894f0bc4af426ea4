//! Time of a simulated contest: the simulation advances it, for its own thread only.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::Clocks;

/// Wall-clock time at which every simulation begins: 15 January 2027.
const WALL: Duration = Duration::from_secs(1_800_000_000);
/// Uptime of the simulated machine at that moment.
const UP: Duration = Duration::from_secs(500);

/// Limit of steps: a wait for an event that never comes would not end.
const STEPS_MAX: u64 = 3_000_000;

#[derive(Debug, Clone, Copy)]
struct Now {
    /// The real instant at which the simulation began. Only differences from it are used.
    began: Instant,
    passed: Duration,
    clocks: Clocks,
    /// Number of steps.
    steps: u64,
}

thread_local! {
    static NOW: RefCell<Option<Now>> = const { RefCell::new(None) };
}

/// Simulated time of this thread, until dropped.
#[derive(Debug)]
pub struct SimulatedTime(());

impl SimulatedTime {
    /// Begins simulated time.
    ///
    /// # Panics
    /// When time is simulated already.
    pub fn begin() -> Self {
        let before = NOW.replace(Some(Now {
            began: Instant::now(),
            passed: Duration::ZERO,
            steps: 0,
            clocks: Clocks {
                wall: WALL,
                since_start: UP,
                awake: UP,
            },
        }));
        assert!(before.is_none(), "time is simulated already");
        Self(())
    }
}

impl Drop for SimulatedTime {
    fn drop(&mut self) {
        NOW.set(None);
    }
}

fn change(how: impl FnOnce(&mut Now)) -> bool {
    NOW.with_borrow_mut(|now| now.as_mut().map(how).is_some())
}

/// Sets the wall clock forward or back.
pub fn step(seconds: i64) {
    change(|now| {
        let wall_s = now.clocks.wall.as_secs().saturating_add_signed(seconds);
        now.clocks.wall = Duration::new(wall_s, now.clocks.wall.subsec_nanos());
    });
}

/// Suspends the machine for `time`.
pub fn suspend(time: Duration) {
    change(|now| {
        now.clocks.wall += time;
        now.clocks.since_start += time;
    });
}

/// Advances the time; false where it is not simulated.
///
/// # Panics
/// After too many steps, when a wait has no end.
pub fn pass(time: Duration) -> bool {
    change(|now| {
        now.steps += 1;
        assert!(now.steps < STEPS_MAX, "simulated time passes without end");
        now.passed += time;
        now.clocks.wall += time;
        now.clocks.since_start += time;
        now.clocks.awake += time;
    })
}

pub(super) fn now() -> Option<Instant> {
    NOW.with_borrow(|now| now.map(|now| now.began + now.passed))
}

pub(super) fn clocks() -> Option<Clocks> {
    NOW.with_borrow(|now| now.map(|now| now.clocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn simulated_time_passes_when_it_is_let_and_on_its_thread_alone() {
        let time = SimulatedTime::begin();
        let (begun, clocks) = (clock::now(), Clocks::now());
        assert_eq!(clock::since(begun), Duration::ZERO);
        clock::sleep(Duration::from_secs(3600));
        assert_eq!(clock::since(begun), Duration::from_secs(3600));
        step(-60);
        suspend(Duration::from_secs(5));
        let now = Clocks::now();
        assert_eq!(now.wall - clocks.wall, Duration::from_secs(3545));
        assert_eq!(now.suspended(), Duration::from_secs(5));
        assert_eq!(clock::since(begun), Duration::from_secs(3600));
        let elsewhere = std::thread::spawn(Clocks::now).join().unwrap();
        assert_ne!(elsewhere.wall, now.wall);
        drop(time);
        assert!(!pass(Duration::ZERO));
    }
}
