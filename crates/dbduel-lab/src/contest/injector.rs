//! A known handicap: a server that is stopped repeatedly during its turns.
//!
//! It proves the lab: a duel must find a known difference. The actual stops are measured, because a busy machine wakes
//! this thread late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbduel_machine::clock;
use dbduel_record::plan::{InjectedStalls, Injection};
use dbduel_record::seed::named_seed;
use dbduel_stats::random::RandomStream;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use dbduel_server::signal_tree;

/// Time that a server with a handicap was stopped and awake in its turns, guard and drain included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct InjectedTime {
    /// Seconds in which it was stopped.
    pub stopped_s: f64,
    /// Seconds in which it ran.
    pub awake_s: f64,
}

impl InjectedTime {
    /// Adds a later time.
    #[must_use]
    pub fn plus(self, later: Self) -> Self {
        Self {
            stopped_s: self.stopped_s + later.stopped_s,
            awake_s: self.awake_s + later.awake_s,
        }
    }
}

/// The handicap of one server over all its turns. Its time runs between [`Self::resume`] and [`Self::pause`]; a stop
/// that the end of a turn cuts short continues in the next turn. The server is awake between turns, and when this is
/// dropped.
#[derive(Debug)]
pub struct SlowdownInjector {
    cycle: Cycle,
    running: Option<Running>,
    /// Since the last query.
    injected: InjectedTime,
}

#[derive(Debug)]
struct Running {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<(Cycle, InjectedTime)>,
}

impl SlowdownInjector {
    /// The handicap of `injection`. Random times derive from `seed`, the plan's.
    pub fn new(injection: &Injection, seed: u64) -> Self {
        Self {
            cycle: Cycle::new(injection, seed),
            running: None,
            injected: InjectedTime::default(),
        }
    }

    /// Begins a turn of the server in process group `group`. The server must be awake.
    pub fn resume(&mut self, group: i32) {
        self.pause();
        let mut cycle = self.cycle.clone();
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let signal = move |signal| signal_tree(group, signal);
        let thread = std::thread::spawn(move || {
            let injected = inject(&MachineTime, signal, &mut cycle, &stop);
            (cycle, injected)
        });
        self.running = Some(Running { is_over, thread });
    }

    /// Ends the turn and leaves the server awake. Without a turn it does nothing.
    pub fn pause(&mut self) {
        let Some(Running { is_over, thread }) = self.running.take() else {
            return;
        };
        is_over.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        if let Ok((cycle, injected)) = thread.join() {
            self.cycle = cycle;
            self.injected = self.injected.plus(injected);
        }
    }

    /// Ends the turn as [`Self::pause`]; returns the times of all turns since the last call.
    pub fn end_turn(&mut self) -> InjectedTime {
        self.pause();
        std::mem::take(&mut self.injected)
    }
}

impl Drop for SlowdownInjector {
    fn drop(&mut self) {
        self.pause();
    }
}

/// Position in a server's sequence of stops and times awake.
#[derive(Debug, Clone)]
struct Cycle {
    /// Length of a stop.
    stop: Duration,
    /// Bounds of the time awake before a stop, seconds.
    awake_s: [f64; 2],
    random: RandomStream,
    is_stopped: bool,
    /// Remainder of the present stop or time awake.
    rest: Duration,
}

impl Cycle {
    /// Begins awake, at a random moment, so that the expected number of stops in any time awake is that time divided by the mean
    /// time awake between two.
    fn new(injection: &Injection, seed: u64) -> Self {
        let stop_s = injection.period_s * injection.stopped_share;
        let pulses = InjectedStalls {
            stall_s: stop_s,
            every_s: [injection.period_s - stop_s; 2],
        };
        let InjectedStalls {
            stall_s,
            every_s: awake_s,
        } = injection.stalls.unwrap_or(pulses);
        let mut random = RandomStream::new(named_seed(seed, "injection"), 0);
        // A random moment is within a long time awake more often than within a short one, in proportion to their lengths.
        let [least, most] = awake_s;
        let around_s = (least * least + random.uniform() * (most * most - least * least)).sqrt();
        let rest = Duration::from_secs_f64(random.uniform() * around_s);
        Self {
            stop: Duration::from_secs_f64(stall_s),
            awake_s,
            random,
            is_stopped: false,
            rest,
        }
    }

    /// Advances by `passed`; an excess over the remainder does not count for the next stop or time awake.
    fn advance(&mut self, passed: Duration) {
        self.rest = self.rest.saturating_sub(passed);
        if self.rest > Duration::ZERO {
            return;
        }
        self.is_stopped = !self.is_stopped;
        self.rest = match self.is_stopped {
            true => self.stop,
            false => {
                let [least, most] = self.awake_s;
                Duration::from_secs_f64(least + self.random.uniform() * (most - least))
            }
        };
    }
}

/// The clock of an injector; tests substitute one.
trait InjectorClock {
    fn now(&self) -> Instant;
    /// Sleeps at most `time`.
    fn sleep(&self, time: Duration);
}

/// The clock of the machine.
struct MachineTime;

impl InjectorClock for MachineTime {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::park_timeout(time);
    }
}

/// Stops and wakes a server until the turn is over. The server is awake before and after.
fn inject(
    clock: &impl InjectorClock,
    signal: impl Fn(Signal) -> nix::Result<()>,
    cycle: &mut Cycle,
    is_over: &AtomicBool,
) -> InjectedTime {
    let mut injected = InjectedTime::default();
    let mut since = clock.now();
    // A server that died in the meantime is found when its slice is lost.
    if cycle.is_stopped && signal(Signal::SIGSTOP).is_err() {
        let _ = signal(Signal::SIGCONT);
        return injected;
    }
    loop {
        let is_over = !slept(clock, since + cycle.rest, is_over);
        let sent = match (cycle.is_stopped, is_over) {
            (true, _) => signal(Signal::SIGCONT),
            (false, false) => signal(Signal::SIGSTOP),
            (false, true) => Ok(()),
        };
        let now = clock.now();
        let passed = now - since;
        since = now;
        match cycle.is_stopped {
            true => injected.stopped_s += passed.as_secs_f64(),
            false => injected.awake_s += passed.as_secs_f64(),
        }
        cycle.advance(passed);
        if sent.is_err() {
            // Some of its processes may have been stopped.
            let _ = signal(Signal::SIGCONT);
        }
        if is_over || sent.is_err() {
            return injected;
        }
    }
}

/// Sleeps until `until`; false when the turn ended first.
fn slept(clock: &impl InjectorClock, until: Instant, is_over: &AtomicBool) -> bool {
    loop {
        if is_over.load(Ordering::Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(clock.now());
        if left.is_zero() {
            return true;
        }
        clock.sleep(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use nix::errno::Errno;

    const PULSES: Injection = Injection {
        contender: 0,
        stopped_share: 0.3,
        period_s: 0.02,
        stalls: None,
    };

    fn stalls(every_s: [f64; 2]) -> Injection {
        let stalls = InjectedStalls {
            stall_s: 1.0,
            every_s,
        };
        Injection::of_stalls(0, stalls)
    }

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// A turn of so many milliseconds, whose clock runs only in sleep.
    struct Turn {
        begun: Instant,
        passed: Cell<Duration>,
        length: Duration,
        is_over: AtomicBool,
    }

    impl InjectorClock for Turn {
        fn now(&self) -> Instant {
            self.begun + self.passed.get()
        }

        fn sleep(&self, time: Duration) {
            self.passed.set((self.passed.get() + time).min(self.length));
            self.is_over
                .store(self.passed.get() == self.length, Ordering::Relaxed);
        }
    }

    /// The signals of a turn of so many milliseconds and when they were sent, milliseconds, and its times.
    fn turn(cycle: &mut Cycle, length: u64) -> (Vec<(u128, Signal)>, InjectedTime) {
        let clock = Turn {
            begun: clock::now(),
            passed: Cell::default(),
            length: ms(length),
            is_over: AtomicBool::new(false),
        };
        let sent = RefCell::new(Vec::new());
        let signal = |signal| {
            sent.borrow_mut()
                .push((clock.passed.get().as_millis(), signal));
            Ok(())
        };
        let injected = inject(&clock, signal, cycle, &clock.is_over);
        (sent.into_inner(), injected)
    }

    fn times(stopped_ms: u64, awake_ms: u64) -> InjectedTime {
        InjectedTime {
            stopped_s: ms(stopped_ms).as_secs_f64(),
            awake_s: ms(awake_ms).as_secs_f64(),
        }
    }

    #[track_caller]
    fn assert_close(found: InjectedTime, expected: InjectedTime) {
        let far = (found.stopped_s - expected.stopped_s)
            .abs()
            .max((found.awake_s - expected.awake_s).abs());
        assert!(far < 1e-9, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn pulses_stop_for_the_share_asked_for_and_end_awake() {
        let mut cycle = Cycle::new(&PULSES, 7);
        assert!(cycle.rest < ms(14), "{cycle:?}");
        cycle.rest = ms(14);
        let (sent, injected) = turn(&mut cycle, 114);
        let expected: Vec<(u128, Signal)> = (0..5)
            .flat_map(|number| {
                let begun = 20 * number;
                [(begun + 14, Signal::SIGSTOP), (begun + 20, Signal::SIGCONT)]
            })
            .collect();
        // The last time awake and the turn end together; the stop that is due comes in the next turn.
        assert_eq!(sent, expected);
        assert_close(injected, times(30, 84));
        let (sent, injected) = turn(&mut cycle, 10);
        assert_eq!(sent, [(0, Signal::SIGSTOP), (6, Signal::SIGCONT)]);
        assert_close(injected, times(6, 4));
    }

    #[test]
    fn a_stop_that_turns_cut_lasts_its_whole_length_over_several_of_them() {
        let mut cycle = Cycle::new(&stalls([4.0, 4.0]), 7);
        cycle.rest = ms(400);
        assert_eq!(turn(&mut cycle, 300).0, []);
        let mut total = InjectedTime::default();
        for (begins, ends) in [(100, 300), (0, 300), (0, 300), (0, 200)] {
            let (sent, injected) = turn(&mut cycle, 300);
            assert_eq!(sent, [(begins, Signal::SIGSTOP), (ends, Signal::SIGCONT)]);
            total = total.plus(injected);
        }
        assert_close(total, times(1000, 200));
        // Of the 4 s awake before the next, 0.1 s have passed.
        for _ in 0..12 {
            assert_eq!(turn(&mut cycle, 300).0, []);
        }
        // A turn that is not cut waits for the end of the stop.
        let (sent, injected) = turn(&mut cycle, 1350);
        assert_eq!(sent, [(300, Signal::SIGSTOP), (1300, Signal::SIGCONT)]);
        assert_close(injected, times(1000, 350));
    }

    #[test]
    fn times_awake_are_drawn_between_their_bounds_and_in_any_time_the_share_is_the_planned_one() {
        let injection = stalls([2.0, 6.0]);
        let mut awake_s = Vec::new();
        let mut total = InjectedTime::default();
        for seed in 0..2_000 {
            let mut cycle = Cycle::new(&injection, seed);
            let mut last_wake = None;
            // Ten seconds awake, in turns that wait for the end of a stop.
            let mut left_s = 10.0;
            while left_s > 0.0 {
                let (is_stopped, rest_s) = (cycle.is_stopped, cycle.rest.as_secs_f64());
                let passed_s = if is_stopped {
                    rest_s
                } else {
                    rest_s.min(left_s)
                };
                match is_stopped {
                    true => {
                        total.stopped_s += passed_s;
                        last_wake = Some(left_s);
                    }
                    false => {
                        total.awake_s += passed_s;
                        left_s -= passed_s;
                        if passed_s == rest_s {
                            awake_s.extend(last_wake.map(|wake_s| wake_s - left_s));
                        }
                    }
                }
                cycle.advance(Duration::from_secs_f64(passed_s));
            }
        }
        assert!(
            awake_s.iter().all(|time| (1.999..6.001).contains(time)),
            "{awake_s:?}"
        );
        let share = total.stopped_s / total.awake_s;
        assert!((share - 0.25).abs() < 0.005, "{share}");
        // The same seed draws the same times.
        let first = |seed| Cycle::new(&injection, seed).rest;
        assert_eq!(first(7), first(7));
        assert_ne!(first(7), first(8));
    }

    #[test]
    fn a_server_that_cannot_be_stopped_gets_no_further_stops_and_is_left_awake() {
        for (is_stopped, awake_s) in [(false, 0.4), (true, 0.0)] {
            let mut cycle = Cycle::new(&stalls([4.0, 4.0]), 7);
            cycle.rest = ms(400);
            cycle.is_stopped = is_stopped;
            let clock = Turn {
                begun: clock::now(),
                passed: Cell::default(),
                length: ms(60_000),
                is_over: AtomicBool::new(false),
            };
            let sent = RefCell::new(Vec::new());
            let signal = |signal| {
                sent.borrow_mut().push(signal);
                Err(Errno::EPERM)
            };
            let injected = inject(&clock, signal, &mut cycle, &clock.is_over);
            assert_eq!(*sent.borrow(), [Signal::SIGSTOP, Signal::SIGCONT]);
            assert_eq!(injected.awake_s, awake_s);
        }
    }

    fn state_of(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let after = &stat[stat.rfind(')').unwrap() + 2..];
        after.chars().next().unwrap()
    }

    #[test]
    fn a_process_is_stopped_again_and_again_and_left_awake_after_each_turn() {
        let mut child = Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap();
        let mut injector = SlowdownInjector::new(&PULSES, 7);
        assert_eq!(injector.end_turn(), InjectedTime::default());
        let mut ends = Vec::new();
        for _ in 0..2 {
            injector.resume(child.id() as i32);
            let deadline = clock::now() + Duration::from_secs(60);
            let mut changes = Vec::new();
            while changes.len() < 4 && clock::now() < deadline {
                let is_stopped = state_of(child.id()) == 'T';
                if changes.last() != Some(&is_stopped) {
                    changes.push(is_stopped);
                }
                clock::sleep(ms(1));
            }
            let injected = injector.end_turn();
            ends.push((changes.len(), state_of(child.id()), injected));
        }
        // A stop that is under way when the turn ends, and a turn that is dropped.
        injector.cycle = Cycle {
            is_stopped: true,
            rest: Duration::from_secs(50),
            ..injector.cycle.clone()
        };
        injector.resume(child.id() as i32);
        let deadline = clock::now() + Duration::from_secs(60);
        while state_of(child.id()) != 'T' && clock::now() < deadline {
            clock::sleep(ms(1));
        }
        let was_stopped = state_of(child.id()) == 'T';
        drop(injector);
        let after_drop = state_of(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        for (changes, left, injected) in ends {
            assert_eq!(changes, 4, "it was not stopped twice");
            assert_ne!(left, 'T', "it is awake at the end");
            // How much of both phases a busy machine makes of them is its own business.
            assert!(
                injected.stopped_s > 0.0 && injected.awake_s > 0.0,
                "{injected:?}"
            );
        }
        assert!(was_stopped && after_drop != 'T', "{after_drop}");
    }
}
