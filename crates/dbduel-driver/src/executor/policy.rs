//! Scheduling of load threads by the kernel, and their processor time.

use std::io;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Makes the timers of the calling thread exact.
///
/// # Errors
/// When the kernel refuses; transactions are then sent up to 50 µs late, which shows in their lag.
pub fn make_timers_exact() -> io::Result<()> {
    // One nanosecond; zero would mean the default.
    Ok(nix::sys::prctl::set_timerslack(1)?)
}

/// Puts the calling thread under the policy that is best for so many clients on it: `SCHED_BATCH` for
/// several, the ordinary policy for one.
///
/// Under the ordinary policy a reply that arrives preempts whatever runs on its core, and on a machine
/// shared with the server that is the server: measured with 16 and 64 clients on two cores, the load takes
/// about twice the processor time and the server gives less. A batch thread finishes its pause first and
/// then finds many replies at once. A single client has no replies to find together, only later: measured,
/// batch costs it 5 % of the processor time and 7 % of the throughput.
///
/// # Errors
/// When the kernel refuses; the load is then driven under the policy that the thread had.
pub fn suit_clients(clients: u32) -> io::Result<()> {
    let policy = match clients {
        0 | 1 => libc::SCHED_OTHER,
        _ => libc::SCHED_BATCH,
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 names the calling thread and the structure lives until the call returns.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Clients of a local server from which on two processors always have work, so that no transaction wakes an idle one.
const FILL_TWO_PROCESSORS: u32 = 32;

/// How many load threads a machine of so many processors gets when the server may be on it too: a quarter of the
/// processors, but two where there are two.
///
/// While processors are idle now and then, a single thread wakes half of the server's threads on the processor that it is
/// not on itself, which costs both of them more. `busy_clients` are those of which each always has a transaction under way
/// on a server that is presumably here. Where these keep two processors busy, no processor has to be woken up, and one thread
/// finds more replies at a time than each of two (figures in `docs/load-path.md`).
#[must_use]
pub fn threads_beside_a_server(processors: u32, busy_clients: u32) -> u32 {
    match processors {
        0 | 1 => 1,
        2 if busy_clients >= FILL_TWO_PROCESSORS => 1,
        _ => (processors / 4).max(2),
    }
}

/// Share of the processors used by other programs from which on a load has [`BESIDE_OTHERS`] threads.
const OTHERS_SHARE: f64 = 0.15;

/// Load threads on a machine with other busy programs, at most one for each client.
const BESIDE_OTHERS: u32 = 16;

/// How long the processors are watched for other programs. A shorter time would hold few of the kernel's ticks of 10
/// ms.
const OTHERS_WINDOW: Duration = Duration::from_millis(200);

/// How many load threads a load gets that is not part of a contest: [`threads_beside_a_server`], or more where other programs are busy
/// on the processors now, which takes a fifth of a second to find out.
///
/// The kernel shares processors by runnable threads, so one or two of them lose against two compilers where the 64 of
/// another load generator do not: with 64 clients 0.53 of its throughput, and 1.18 with 16 threads (figures in
/// `docs/load-path.md`). A contest keeps few, since all its contenders suffer alike.
#[must_use]
pub fn threads_among_others(processors: u32, clients: u32, busy_clients: u32) -> u32 {
    let others = || share_of_others(OTHERS_WINDOW).unwrap_or(0.0);
    match busy_clients > 1 && others() >= OTHERS_SHARE {
        true => clients.min(BESIDE_OTHERS),
        false => threads_beside_a_server(processors, busy_clients),
    }
}

/// Share of all processors in use by any process within the next `window`; `None` where the kernel does not report it.
fn share_of_others(window: Duration) -> Option<f64> {
    let before = busy_and_all_ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
    std::thread::sleep(window);
    let after = busy_and_all_ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
    let all = after.1 - before.1;
    // The kernel's counters of idle time may go back a little.
    (all > 0.0).then(|| ((after.0 - before.0) / all).clamp(0.0, 1.0))
}

/// Busy ticks and all ticks of all processors, from the first line of `/proc/stat`.
fn busy_and_all_ticks(stat: &str) -> Option<(f64, f64)> {
    let ticks: Vec<f64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        // Guests, which come after these eight, are in the first two already.
        .take(8)
        .collect();
    let all: f64 = ticks.iter().sum();
    let idle: f64 = ticks.get(3..5)?.iter().sum();
    Some((all - idle, all))
}

/// Confines the calling thread, and all threads that it starts from now on, to these processors.
///
/// # Errors
/// When a number is too large or names no processor that the process may use.
pub fn confine_to(cores: &[u32]) -> io::Result<()> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core as usize)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Raises the limit of open files to the hard limit. Each client needs one, and the usual soft limit of 1024 is kept
/// low only for the sake of `select`.
///
/// # Errors
/// When the kernel refuses; the limit is then unchanged.
pub fn raise_open_files_limit() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(())
}

/// Processor time of the calling thread so far, exact; user mode and kernel together.
#[must_use]
pub fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Processor time of a thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    /// In user mode, seconds.
    pub user_s: f64,
    /// In the kernel, seconds.
    pub system_s: f64,
    /// Ready to run but waiting for a processor, seconds.
    pub waited_s: f64,
}

impl CpuTime {
    /// That of the calling thread; zero where the kernel does not report it.
    #[must_use]
    pub fn of_this_thread() -> Self {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else {
            return CpuTime::default();
        };
        CpuTime {
            user_s: usage.user_time().num_microseconds() as f64 / 1e6,
            system_s: usage.system_time().num_microseconds() as f64 / 1e6,
            waited_s: waited_ns().unwrap_or_default() as f64 / 1e9,
        }
    }

    /// The sum of two threads.
    #[must_use]
    pub fn plus(self, other: CpuTime) -> Self {
        CpuTime {
            user_s: self.user_s + other.user_s,
            system_s: self.system_s + other.system_s,
            waited_s: self.waited_s + other.waited_s,
        }
    }

    /// Difference to an earlier reading.
    #[must_use]
    pub fn since(self, earlier: CpuTime) -> Self {
        CpuTime {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
            waited_s: self.waited_s - earlier.waited_s,
        }
    }
}

/// The second number of `schedstat`: time in the run queue, nanoseconds.
fn waited_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_up_as_processor_time_and_never_more_than_there_was() {
        const ENOUGH_S: f64 = 0.02;
        let on_cpu_s = |time: CpuTime| time.user_s + time.system_s;
        let (before, clock_before) = (CpuTime::of_this_thread(), processor_time());
        let mut sum = 0_u64;
        // The kernel brings these counters up to date at its ticks, and a busy machine gives this thread few of them.
        let used = loop {
            sum = std::hint::black_box(sum.wrapping_add(1));
            let now = CpuTime::of_this_thread();
            // What the counters lag behind the thread's own clock is never negative.
            assert!(on_cpu_s(now) <= processor_time().as_secs_f64());
            let used = now.since(before);
            if on_cpu_s(used) >= ENOUGH_S {
                break used;
            }
            let worked = processor_time() - clock_before;
            assert!(worked < Duration::from_secs(10), "{used:?} of {worked:?}");
        };
        assert!(used.waited_s >= 0.0, "{used:?}");
    }

    #[test]
    fn several_clients_are_driven_in_batches_and_one_is_not() {
        // On a thread of its own, since the policy stays.
        let policies = std::thread::spawn(|| {
            [1, 2, 1].map(|clients| {
                suit_clients(clients).unwrap();
                // SAFETY: 0 names the calling thread.
                unsafe { libc::sched_getscheduler(0) }
            })
        });
        assert_eq!(
            policies.join().unwrap(),
            [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_OTHER]
        );
    }

    #[test]
    fn busy_processors_need_fewer_threads() {
        let threads = [
            (1, 64),
            (2, 1),
            (2, 31),
            (2, 32),
            (3, 64),
            (4, 64),
            (16, 1),
            (16, 64),
        ]
        .map(|(processors, clients)| threads_beside_a_server(processors, clients));
        assert_eq!(threads, [1, 2, 2, 1, 2, 2, 4, 4]);
    }

    #[test]
    fn processors_are_busy_but_for_idle_and_waiting_for_the_disk() {
        let stat = "cpu  10 1 20 300 40 2 3 4 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(busy_and_all_ticks(stat), Some((40.0, 380.0)));
        assert_eq!(busy_and_all_ticks("intr 1 2"), None);
        let share = share_of_others(Duration::from_millis(50));
        assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }

    #[test]
    fn few_clients_have_no_more_threads_than_clients_beside_others() {
        for clients in [2, 5, 64] {
            let threads = threads_among_others(2, clients, clients);
            assert!((1..=clients.max(2)).contains(&threads), "{threads}");
        }
        assert_eq!(threads_among_others(2, 1, 1), 2);
    }

    #[test]
    fn a_processor_that_does_not_exist_is_refused() {
        // On a thread of its own, since a success would confine the thread.
        let outcome = std::thread::spawn(|| confine_to(&[1_000])).join();
        assert!(outcome.is_ok_and(|outcome| outcome.is_err()));
    }
}
