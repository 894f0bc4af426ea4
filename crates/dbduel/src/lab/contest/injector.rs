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
        let stopped = Duration::from_secs_f64(injection.period_s * injection.stopped_share);
        let awake = Duration::from_secs_f64(injection.period_s).saturating_sub(stopped);
        let thread = std::thread::spawn(move || pulse(group, awake, stopped, &stop));
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

/// Stops and wakes in turn until it is over; returns the time stopped and the time in all.
fn pulse(
    group: i32,
    awake: Duration,
    stopped: Duration,
    over: &AtomicBool,
) -> (Duration, Duration) {
    let begun = Instant::now();
    let mut lost = Duration::ZERO;
    loop {
        if !slept(awake, over) {
            break;
        }
        // A server that died in the meantime is found when its slice is lost.
        if signal_tree(group, Signal::SIGSTOP).is_err() {
            break;
        }
        let since = Instant::now();
        std::thread::sleep(stopped);
        let woken = signal_tree(group, Signal::SIGCONT);
        lost += since.elapsed();
        if woken.is_err() {
            break;
        }
    }
    (lost, begun.elapsed())
}

/// Sleeps; false when it was over before the end.
fn slept(time: Duration, over: &AtomicBool) -> bool {
    let until = Instant::now() + time;
    loop {
        if over.load(Ordering::Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NOTICE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    fn state_of(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let after = &stat[stat.rfind(')').unwrap() + 2..];
        after.chars().next().unwrap()
    }

    #[test]
    fn a_process_is_stopped_for_about_the_share_asked_for_and_left_awake() {
        let mut child = Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap();
        let injection = Injection {
            contender: 0,
            stopped_share: 0.3,
            period_s: 0.02,
        };
        let pulses = SlowdownInjector::start(child.id() as i32, &injection);
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut seen_stopped = false;
        while !seen_stopped && Instant::now() < deadline {
            seen_stopped = state_of(child.id()) == 'T';
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(300));
        let share = pulses.end();
        let left = state_of(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen_stopped, "it was never stopped");
        assert_ne!(left, 'T', "it is awake at the end");
        // A busy machine makes both phases longer than asked for.
        assert!((0.1..0.7).contains(&share), "{share}");
    }
}
