//! Other work on the machine, of a known amount.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbduel_driver::executor::policy::confine_to;
use nix::time::{ClockId, clock_gettime};

use super::peer::Result;

/// How long a thread works before it looks whether it has had its share.
const BURST: Duration = Duration::from_millis(2);
/// How long it sleeps when it has.
const PAUSE: Duration = Duration::from_millis(1);

/// One thread for each processor that works for a share of the time, by its own processor clock: where it has to wait for the
/// processor it works on until it has had its share.
pub struct Disturber {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Disturber {
    /// Begins.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(share: f64) -> Result<Self> {
        let mut disturber = Disturber {
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        for core in 0..std::thread::available_parallelism()?.get() as u32 {
            let is_over = Arc::clone(&disturber.is_over);
            let thread = std::thread::Builder::new().name("disturber".to_owned());
            let thread = thread.spawn(move || {
                // Where the processors of this process have other numbers the kernel chooses.
                let _ = confine_to(&[core]);
                work(share, &is_over);
            })?;
            disturber.threads.push(thread);
        }
        Ok(disturber)
    }
}

impl Drop for Disturber {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(share: f64, is_over: &AtomicBool) {
    let begun = Instant::now();
    let used_before = processor_time();
    while !is_over.load(Ordering::Relaxed) {
        let used = processor_time().saturating_sub(used_before);
        if used > begun.elapsed().mul_f64(share) {
            std::thread::sleep(PAUSE);
            continue;
        }
        let until = processor_time() + BURST;
        while processor_time() < until {
            std::hint::spin_loop();
        }
    }
}

/// Processor time of the calling thread; zero where the kernel does not say.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
