//! Several connections that process a list of jobs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dbduel_driver::{ConnectError, ConnectOptions, Connection, SessionStart};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::{FillError, FillWatch, Place};

/// Longest wait for one connection.
const CONNECT: Duration = Duration::from_secs(30);

/// Connections to one server, which all stop at the first error.
pub(crate) struct WorkerPool<'a> {
    place: &'a Place<'a>,
    watch: &'a FillWatch,
    deadline: Instant,
}

impl<'a> WorkerPool<'a> {
    /// A pool whose deadline starts now.
    pub(crate) fn new(place: &'a Place<'a>, watch: &'a FillWatch) -> Self {
        WorkerPool {
            place,
            watch,
            deadline: Instant::now() + place.deadline,
        }
    }

    /// When the deadline for the whole work passes.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Opens one more connection. Its statements must end within the remaining time.
    pub(crate) fn connect(&self) -> Result<Connection, ConnectError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let options = ConnectOptions {
            dialect: self.place.dialect,
            deadline: CONNECT.min(left),
            statement_deadline: left,
            database: Some(self.place.database.to_owned()),
            tls: self.place.tls.clone(),
            local_infile: true,
            cancel: self.watch.cancel.clone(),
            session: SessionStart::Ours,
        };
        Connection::connect(self.place.address, self.place.credentials, &options)
    }

    /// Runs all jobs, in no particular order; returns their processor time on this side. After an error no new job is
    /// started.
    pub(super) fn work_through<J: Sync>(
        &self,
        jobs: &[J],
        work: impl Fn(&mut Connection, &J) -> Result<(), FillError> + Sync,
    ) -> Result<Duration, FillError> {
        let cpu_ns = AtomicU64::new(0);
        let next = AtomicUsize::new(0);
        let first_error = Mutex::new(None);
        let member = || -> Result<(), FillError> {
            let mut connection = None;
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.watch.cancel.is_set() {
                    return Err(FillError::Cancelled);
                }
                if Instant::now() >= self.deadline {
                    return Err(FillError::TimeUp {
                        seconds: self.place.deadline.as_secs_f64(),
                    });
                }
                let connection = match &mut connection {
                    Some(connection) => connection,
                    empty => empty.insert(self.connect()?),
                };
                work(connection, job)?;
            }
            Ok(())
        };
        let members = (self.place.connections.max(1) as usize).min(jobs.len());
        std::thread::scope(|scope| {
            for _ in 0..members {
                scope.spawn(|| {
                    if let Err(error) = member() {
                        // The list is over for everyone.
                        next.store(jobs.len(), Ordering::Relaxed);
                        let mut first = first_error
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner);
                        first.get_or_insert(error);
                    }
                    cpu_ns.fetch_add(thread_cpu().as_nanos() as u64, Ordering::Relaxed);
                });
            }
        });
        let first = first_error
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match first {
            Some(error) => Err(error),
            None => Ok(Duration::from_nanos(cpu_ns.into_inner())),
        }
    }
}

/// Processor time of this thread since it began; zero where the system does not report it.
pub(crate) fn thread_cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else {
        return Duration::ZERO;
    };
    let micros = |time: TimeVal| time.num_microseconds().unsigned_abs();
    Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
}
