//! The lab's only source of time, which a simulated contest can replace. A test refuses other clocks in `lab/`.
//!
//! [`RecordClock`] is the clock of a record: its times never go back, whatever happens to the machine's clock. A stamp
//! is the wall-clock time at which the work on the record began, plus the time since then on a clock that cannot be set
//! and that counts while the machine sleeps. So the difference of two stamps is a duration. Where the wall clock was
//! set meanwhile the stamps differ from it, and that is a notice.

#[cfg(feature = "simulated")]
pub mod simulated;

use std::time::{Duration, Instant, SystemTime};

use dbduel_record::event::{Notice, Severity};
use nix::time::{ClockId, clock_gettime};

/// Largest difference between two clocks that is not reported, seconds.
const STEP_S: f64 = 1.0;
/// Rate at which a time service may adjust the wall clock gradually, as a share of the elapsed time.
const SLEW: f64 = 0.001;
/// Attempts to read all clocks at one moment.
const READS_MAX: u32 = 10;
/// Largest duration of a reading of all clocks that counts as one moment.
const MOMENT: Duration = Duration::from_millis(5);

/// The present instant of the monotonic clock.
#[must_use]
pub fn now() -> Instant {
    #[cfg(feature = "simulated")]
    if let Some(instant) = simulated::now() {
        return instant;
    }
    Instant::now()
}

/// Time since `instant`.
#[must_use]
pub fn since(instant: Instant) -> Duration {
    now().saturating_duration_since(instant)
}

/// The present wall-clock time, by which files are dated.
#[must_use]
pub fn system_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Clocks::now().wall
}

/// Sleeps for `time`.
pub fn sleep(time: Duration) {
    #[cfg(feature = "simulated")]
    if simulated::pass(time) {
        return;
    }
    std::thread::sleep(time);
}

/// The clocks of the machine at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clocks {
    /// Wall-clock time since 1970-01-01 UTC.
    pub wall: Duration,
    /// Time since boot.
    pub since_start: Duration,
    /// Time since boot without suspensions.
    pub awake: Duration,
}

impl Clocks {
    /// The present clocks of this machine.
    #[must_use]
    pub fn now() -> Self {
        #[cfg(feature = "simulated")]
        if let Some(clocks) = simulated::clocks() {
            return clocks;
        }
        let read = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
        let mut clocks = Self::default();
        for _ in 0..READS_MAX {
            clocks = Self {
                awake: read(ClockId::CLOCK_MONOTONIC),
                wall: read(ClockId::CLOCK_REALTIME),
                since_start: read(ClockId::CLOCK_BOOTTIME),
            };
            // Another process may have had the processor in between.
            if read(ClockId::CLOCK_MONOTONIC).saturating_sub(clocks.awake) < MOMENT {
                break;
            }
        }
        clocks
    }

    /// The wall clock, milliseconds.
    #[must_use]
    pub fn wall_ms(&self) -> u64 {
        self.wall.as_millis() as u64
    }

    /// Suspended time since boot.
    #[must_use]
    pub fn suspended(&self) -> Duration {
        self.since_start.saturating_sub(self.awake)
    }
}

/// The clock of one record while dbduel writes it.
#[derive(Debug)]
pub struct RecordClock {
    read: fn() -> Clocks,
    /// Stamp at `began`.
    origin_ms: u64,
    began: Clocks,
    looked: Clocks,
    /// Seconds by which the record's last stamp was ahead of the wall clock at the beginning; 0 once reported.
    ahead_s: f64,
}

impl RecordClock {
    /// A clock that reads by `read`, for a record whose last stamp is `last_ms`; 0 for none.
    #[must_use]
    pub fn new(read: fn() -> Clocks, last_ms: u64) -> Self {
        let began = read();
        let wall_ms = began.wall_ms();
        Self {
            read,
            origin_ms: wall_ms.max(last_ms),
            began,
            looked: began,
            ahead_s: last_ms.saturating_sub(wall_ms) as f64 / 1e3,
        }
    }

    /// The present stamp: milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        let passed = (self.read)()
            .since_start
            .saturating_sub(self.began.since_start);
        self.origin_ms + passed.as_millis() as u64
    }

    /// The stamp of a past moment, given in nanoseconds of `CLOCK_MONOTONIC`; the machine must not have been suspended
    /// since.
    #[must_use]
    pub fn ms_of_ns(&self, moment_ns: u64) -> u64 {
        let passed = (self.read)()
            .awake
            .saturating_sub(Duration::from_nanos(moment_ns));
        self.now_ms().saturating_sub(passed.as_millis() as u64)
    }

    /// Suspended time since boot.
    #[must_use]
    pub fn suspended(&self) -> Duration {
        (self.read)().suspended()
    }

    /// Findings on changes of the clocks since the last call.
    pub fn look(&mut self) -> Vec<Notice> {
        let now = (self.read)();
        let before = std::mem::replace(&mut self.looked, now);
        let since = |clock: fn(&Clocks) -> Duration| {
            clock(&now).as_secs_f64() - clock(&before).as_secs_f64()
        };
        let passed_s = since(|clocks| clocks.since_start);
        let set_s = since(|clocks| clocks.wall) - passed_s;
        let suspended_s = passed_s - since(|clocks| clocks.awake);
        let mut found = Vec::new();
        let ahead_s = std::mem::take(&mut self.ahead_s);
        if ahead_s > STEP_S {
            found.push(behind(ahead_s));
        }
        if set_s.abs() > STEP_S + SLEW * passed_s {
            found.push(set(set_s));
        }
        if suspended_s > STEP_S {
            found.push(suspended(suspended_s));
        }
        found
    }
}

fn set(by_s: f64) -> Notice {
    let (way, by) = match by_s > 0.0 {
        true => ("forward", by_s),
        false => ("back", -by_s),
    };
    Notice::new(
        "lab.clock-set",
        Severity::Doubt,
        &[],
        format!(
            "The machine's clock was set {way} by {} during the run. Times in the record continue without the step, and durations are \
             correct; a server that times its waits by that clock may have waited too long or not at all.",
            dbduel_text::duration(by)
        ),
        "Let the time service settle before a run, and check the throughput around that time.",
    )
}

fn behind(by_s: f64) -> Notice {
    Notice::new(
        "lab.clock-behind",
        Severity::Note,
        &[],
        format!(
            "The machine's clock is {} behind the last entry of the record; the record's times continue from that entry.",
            dbduel_text::duration(by_s)
        ),
        "Set the machine's clock.",
    )
}

fn suspended(for_s: f64) -> Notice {
    Notice::new(
        "lab.suspended",
        Severity::Doubt,
        &[],
        format!(
            "The machine was suspended for {} during the run; a slice that was running then is lost.",
            dbduel_text::duration(for_s)
        ),
        "Keep the machine awake during a run, for example with `systemd-inhibit`.",
    )
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static CLOCKS: Cell<Clocks> = const { Cell::new(at(1_800_000_000, 500, 400)) };
    }

    const fn at(wall_s: u64, since_start_s: u64, awake_s: u64) -> Clocks {
        Clocks {
            wall: Duration::from_secs(wall_s),
            since_start: Duration::from_secs(since_start_s),
            awake: Duration::from_secs(awake_s),
        }
    }

    /// The rules that find something when the clocks go on to these, and the stamp then.
    fn look(clock: &mut RecordClock, clocks: Clocks) -> (Vec<String>, u64) {
        CLOCKS.set(clocks);
        let found = clock.look().into_iter().map(|notice| notice.rule);
        (found.collect(), clock.now_ms() - 1_800_000_000_000)
    }

    #[test]
    fn what_happens_to_the_clocks_is_found_once_and_moves_no_stamp() {
        let mut clock = RecordClock::new(|| CLOCKS.get(), 0);
        let none = Vec::<String>::new();
        assert_eq!(
            look(&mut clock, at(1_800_000_010, 510, 410)),
            (none.clone(), 10_000)
        );
        // Slewed by a time service: 3 s in an hour.
        assert_eq!(
            look(&mut clock, at(1_800_003_613, 4110, 4010)),
            (none.clone(), 3_610_000)
        );
        // Asleep for a night, with the wall clock going on.
        let night = look(&mut clock, at(1_800_033_613, 34_110, 4020));
        assert_eq!(night, (vec!["lab.suspended".to_owned()], 33_610_000));
        assert_eq!(look(&mut clock, at(1_800_033_614, 34_111, 4021)).0, none);
        // Set forward by ten days, and back again.
        let forward = look(&mut clock, at(1_800_897_615, 34_112, 4022));
        assert_eq!(forward, (vec!["lab.clock-set".to_owned()], 33_612_000));
        let back = look(&mut clock, at(1_800_033_616, 34_113, 4023));
        assert_eq!(back, (vec!["lab.clock-set".to_owned()], 33_613_000));
    }

    #[test]
    fn the_machines_own_clocks_are_read_when_they_are_asked_for() {
        let clocks = [ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_BOOTTIME];
        let read = || clocks.map(|clock| Duration::from(clock_gettime(clock).unwrap()));
        let before = read();
        let now = Clocks::now();
        let after = read();
        assert!((before[0]..=after[0]).contains(&now.awake), "{now:?}");
        assert!((before[1]..=after[1]).contains(&now.since_start), "{now:?}");
        // However long this test is without a processor, that is no suspension.
        let least = before[1].saturating_sub(after[0]);
        let most = after[1].saturating_sub(before[0]);
        assert!((least..=most).contains(&now.suspended()), "{now:?}");
    }
}
