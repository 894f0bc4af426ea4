//! A known handicap: a server that is stopped for a fixed share of its slices, in short pulses.
//!
//! It exists to prove the lab: a duel with a difference that is known must find it. What was really done
//! is measured, because a busy machine wakes this thread late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbduel_record::plan::Injection;
use nix::sys::signal::Signal;

use crate::lab::server::signal_tree;

/// Longest time in which the end of the pulses goes unnoticed.
const NOTICE: Duration = Duration::from_millis(20);

/// Running pulses. Dropped means ended, with the server awake.
#[derive(Debug)]
pub struct SlowdownInjector {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Duration, Duration)>>,
}

impl SlowdownInjector {
    /// Begins to stop the server whose first process leads the group `group` as `injection` says. The server is awake now.
    pub fn start(group: i32, injection: &Injection) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let phases = Phases::of(injection);
        let signal = move |signal| signal_tree(group, signal);
        let thread = std::thread::spawn(move || pulse(&MachineTime, signal, phases, &stop));
        Self {
            over,
            thread: Some(thread),
        }
    }

    /// Ends the pulses; returns the share of the time in which the server was stopped.
    pub fn end(mut self) -> f64 {
        let (stopped, total) = self.join();
        stopped.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn join(&mut self) -> (Duration, Duration) {
        self.over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().map(JoinHandle::join);
        thread.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for SlowdownInjector {
    fn drop(&mut self) {
        self.join();
    }
}

/// How long a server is awake and stopped in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Phases {
    awake: Duration,
    stopped: Duration,
}

impl Phases {
    fn of(injection: &Injection) -> Self {
        let stopped = Duration::from_secs_f64(injection.period_s * injection.stopped_share);
        let awake = Duration::from_secs_f64(injection.period_s).saturating_sub(stopped);
        Self { awake, stopped }
    }
}

/// The clock that pulses keep to. Tests have one of their own.
trait PulseTime {
    fn now(&self) -> Instant;
    fn sleep(&self, time: Duration);
}

/// The clock of the machine.
struct MachineTime;

impl PulseTime for MachineTime {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Stops and wakes in turn until it is over; returns the time stopped and the time in all.
fn pulse(
    time: &impl PulseTime,
    signal: impl Fn(Signal) -> nix::Result<()>,
    phases: Phases,
    over: &AtomicBool,
) -> (Duration, Duration) {
    let begun = time.now();
    let mut lost = Duration::ZERO;
    loop {
        if !slept(time, phases.awake, over) {
            break;
        }
        // A server that died in the meantime is found when its slice is lost.
        if signal(Signal::SIGSTOP).is_err() {
            break;
        }
        let since = time.now();
        time.sleep(phases.stopped);
        let woken = signal(Signal::SIGCONT);
        lost += time.now() - since;
        if woken.is_err() {
            break;
        }
    }
    (lost, time.now() - begun)
}

/// Sleeps; false when it was over before the end.
fn slept(time: &impl PulseTime, length: Duration, over: &AtomicBool) -> bool {
    let until = time.now() + length;
    loop {
        if over.load(Ordering::Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(time.now());
        if left.is_zero() {
            return true;
        }
        time.sleep(left.min(NOTICE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    fn state_of(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let after = &stat[stat.rfind(')').unwrap() + 2..];
        after.chars().next().unwrap()
    }

    const INJECTION: Injection = Injection {
        contender: 0,
        stopped_share: 0.3,
        period_s: 0.02,
    };

    /// Time that passes only where somebody sleeps.
    struct SleptTime {
        begun: Instant,
        slept: Cell<Duration>,
    }

    impl PulseTime for SleptTime {
        fn now(&self) -> Instant {
            self.begun + self.slept.get()
        }

        fn sleep(&self, time: Duration) {
            self.slept.set(self.slept.get() + time);
        }
    }

    #[test]
    fn pulses_stop_for_the_share_asked_for_and_end_awake() {
        let ms = Duration::from_millis;
        let time = SleptTime {
            begun: Instant::now(),
            slept: Cell::default(),
        };
        let (sent, over) = (RefCell::new(Vec::new()), AtomicBool::new(false));
        let signal = |signal| {
            let mut sent = sent.borrow_mut();
            sent.push((time.slept.get(), signal));
            over.store(sent.len() == 10, Ordering::Relaxed);
            Ok(())
        };
        let lost = pulse(&time, signal, Phases::of(&INJECTION), &over);
        assert_eq!(lost, (ms(5 * 6), ms(5 * 20)));
        let expected: Vec<(Duration, Signal)> = (0..5)
            .flat_map(|number| {
                let begun = ms(20 * number);
                [
                    (begun + ms(14), Signal::SIGSTOP),
                    (begun + ms(20), Signal::SIGCONT),
                ]
            })
            .collect();
        assert_eq!(*sent.borrow(), expected);
    }

    #[test]
    fn a_process_is_stopped_again_and_again_and_left_awake() {
        let mut child = Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap();
        let pulses = SlowdownInjector::start(child.id() as i32, &INJECTION);
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut changes = Vec::new();
        while changes.len() < 4 && Instant::now() < deadline {
            let is_stopped = state_of(child.id()) == 'T';
            if changes.last() != Some(&is_stopped) {
                changes.push(is_stopped);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let share = pulses.end();
        let left = state_of(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(changes.len(), 4, "it was not stopped twice");
        assert_ne!(left, 'T', "it is awake at the end");
        // How much of both phases a busy machine makes of them is its own business.
        assert!(share > 0.0 && share < 1.0, "{share}");
    }
}
