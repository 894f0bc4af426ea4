//! SIGINT, SIGTERM and SIGHUP: the first asks to finish, the second to stop at once.
//!
//! The handler only counts; every wait checks the count. `signal-hook` is not used because it replaces the handler of a
//! signal that the process was started to ignore.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static RECEIVED: AtomicU8 = AtomicU8::new(0);
/// True while a measurement may finish after the first request.
static FINISHES: AtomicBool = AtomicBool::new(false);

/// Urgency of the user's request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No request.
    None,
    /// End after the current measurement.
    Finish,
    /// End now.
    Stop,
}

extern "C" fn count(_: nix::libc::c_int) {
    // Saturating, so that a key held down does not wrap around to "not interrupted".
    let _ = RECEIVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
        Some(count.saturating_add(1))
    });
}

/// Requests an end, as a signal does.
pub fn request() {
    #[cfg(feature = "simulated")]
    if simulated::request() {
        return;
    }
    count(0);
}

/// Counts SIGINT, SIGTERM and SIGHUP instead of ending the process. A signal that the process was started to ignore, as
/// by `nohup` and background jobs of scripts, stays ignored.
///
/// # Errors
/// When the system refuses the handler.
pub fn install() -> nix::Result<()> {
    #[cfg(feature = "simulated")]
    if simulated::received().is_some() {
        return Ok(());
    }
    let action = SigAction::new(
        SigHandler::Handler(count),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler touches one atomic and nothing else, which is async-signal-safe; what is put back was there.
        unsafe {
            let before = sigaction(signal, &action)?;
            if matches!(before.handler(), SigHandler::SigIgn) {
                sigaction(signal, &before)?;
            }
        }
    }
    Ok(())
}

/// The user's requests so far.
#[must_use]
pub fn urgency() -> Urgency {
    let received = RECEIVED.load(Ordering::Relaxed);
    #[cfg(feature = "simulated")]
    let received = simulated::received().unwrap_or(received);
    match received {
        0 => Urgency::None,
        1 => Urgency::Finish,
        _ => Urgency::Stop,
    }
}

/// The user asked to end where there was nothing to finish.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Returns an error when the user asked to end; for phases without anything to finish.
///
/// # Errors
/// [`Interrupted`] after the first signal.
pub fn check() -> Result<(), Interrupted> {
    if urgency() == Urgency::None {
        Ok(())
    } else {
        Err(Interrupted)
    }
}

/// A measurement in progress, until dropped: waits continue after a first request to end.
#[derive(Debug)]
#[must_use]
pub struct Measuring(());

/// Begins to measure.
pub fn begin_measuring() -> Measuring {
    finish_first(true);
    Measuring(())
}

impl Drop for Measuring {
    fn drop(&mut self) {
        finish_first(false);
    }
}

fn finish_first(finishes: bool) {
    #[cfg(feature = "simulated")]
    if simulated::finish_first(finishes) {
        return;
    }
    FINISHES.store(finishes, Ordering::Relaxed);
}

/// True when waits must end: after the first request, or the second during a measurement.
#[must_use]
pub fn gives_up() -> bool {
    let finishes = FINISHES.load(Ordering::Relaxed);
    #[cfg(feature = "simulated")]
    let finishes = simulated::finishes().unwrap_or(finishes);
    match finishes {
        true => urgency() == Urgency::Stop,
        false => urgency() != Urgency::None,
    }
}

/// A simulated user, who interrupts one thread only.
#[cfg(feature = "simulated")]
pub mod simulated {
    use std::cell::Cell;

    thread_local! {
        static REQUESTS: Cell<Option<u8>> = const { Cell::new(None) };
        static FINISHES: Cell<bool> = const { Cell::new(false) };
    }

    /// The user of this thread, until dropped.
    #[derive(Debug)]
    pub struct SimulatedUser(());

    impl Drop for SimulatedUser {
        fn drop(&mut self) {
            REQUESTS.set(None);
        }
    }

    /// A user who has not interrupted yet.
    pub fn begin() -> SimulatedUser {
        REQUESTS.set(Some(0));
        FINISHES.set(false);
        SimulatedUser(())
    }

    /// See [`super::Measuring`]; false where no user is simulated.
    pub(super) fn finish_first(finishes: bool) -> bool {
        FINISHES.set(finishes);
        REQUESTS.get().is_some()
    }

    pub(super) fn finishes() -> Option<bool> {
        REQUESTS.get().map(|_| FINISHES.get())
    }

    /// Interrupts; false where no user is simulated.
    pub(super) fn request() -> bool {
        let requests = REQUESTS.get();
        REQUESTS.set(requests.map(|requests| requests.saturating_add(1)));
        requests.is_some()
    }

    pub(super) fn received() -> Option<u8> {
        REQUESTS.get()
    }
}
