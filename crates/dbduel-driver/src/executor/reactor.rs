//! Waits of tasks: for sockets, for instants, and for a bell rung by other threads.
//!
//! A wait sleeps in the kernel. With busy polling it first polls for events: a thread that slept on an idle processor
//! resumes tens of microseconds late, one that polled within one or two.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::policy::processor_time;

/// Time that a thread spent polling without result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Polled {
    /// Its processor time.
    pub used: Duration,
    /// Time in which other threads had its processor.
    pub waited: Duration,
}

/// Names a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub(super) usize);

/// Tokens of the bell and the timer, which no task has.
const BELL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// Bytes that one read can bring. All sockets of a thread share the buffer: a reply is consumed as it is
/// read, so with many clients one warm buffer beats many cold ones.
const READ_BUFFER: usize = 64 << 10;

/// Readiness that a task waits for on its socket.
///
/// Always edge-triggered: a level-triggered descriptor is asked once more by the kernel after every reply, and one
/// whose peer has gone while its client is parked would never let the loop sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Bytes arrived.
    Read,
    /// Bytes arrived or can be sent again.
    ReadAndWrite,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Interest::Read => EventFlags::IN | EventFlags::RDHUP | EventFlags::ET,
            Interest::ReadAndWrite => Interest::Read.flags() | EventFlags::OUT,
        }
    }
}

/// Source of an event.
pub(super) enum Source {
    Bell,
    Timer,
    Task(Token),
}

/// Handle to wake a load thread from another thread.
#[derive(Debug, Clone)]
pub struct Bell(Arc<EventFd>);

impl Bell {
    /// Wakes the thread, so that it reads its commands.
    pub fn ring(&self) {
        // Fails only when 2^64 rings are pending, and then the thread is being called anyway.
        let _ = self.0.write(1);
    }
}

/// The waits of one thread.
#[derive(Debug)]
pub struct Reactor {
    epoll: OwnedFd,
    bell: Arc<EventFd>,
    /// How long a wait polls before it sleeps.
    busy_poll: Duration,
    /// Time polled without result so far.
    polled: Cell<Polled>,
    timer: TimerFd,
    timers: RefCell<BinaryHeap<Reverse<(Instant, Token)>>>,
    armed: Cell<Option<Instant>>,
    /// Waits that slept.
    #[cfg(test)]
    sleeps: Cell<u32>,
    owner_timer: Cell<Option<Instant>>,
    turn_began: Cell<Instant>,
    buffer: RefCell<Box<[u8]>>,
}

impl Reactor {
    pub(super) fn new(busy_poll: Duration) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = Arc::new(EventFd::from_flags(
            EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK,
        )?);
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK,
        )?;
        // Edge-triggered, so that neither has to be read.
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), flags)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), flags)?;
        Ok(Reactor {
            epoll,
            bell,
            busy_poll,
            polled: Cell::default(),
            timer,
            timers: RefCell::default(),
            armed: Cell::new(None),
            #[cfg(test)]
            sleeps: Cell::new(0),
            owner_timer: Cell::new(None),
            turn_began: Cell::new(Instant::now()),
            buffer: RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()),
        })
    }

    /// The thread's bell, for use by other threads.
    #[must_use]
    pub fn bell(&self) -> Bell {
        Bell(Arc::clone(&self.bell))
    }

    /// Watches a socket for a task.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn watch(&self, socket: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        let data = EventData::new_u64(token.0 as u64);
        Ok(epoll::add(&self.epoll, socket, data, interest.flags())?)
    }

    /// Changes the interest of a watched socket.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn rewatch(&self, socket: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        let data = EventData::new_u64(token.0 as u64);
        Ok(epoll::modify(&self.epoll, socket, data, interest.flags())?)
    }

    /// Polls the task at `at`, in addition to its other waits.
    pub fn wake_at(&self, token: Token, at: Instant) {
        self.timers.borrow_mut().push(Reverse((at, token)));
    }

    /// Removes the timer of a task at `at`. Scans all timers, so it is for rare cases.
    pub fn forget_timer(&self, token: Token, at: Instant) {
        let mut timers = self.timers.borrow_mut();
        timers.retain(|timer| *timer != Reverse((at, token)));
    }

    /// Removes all timers of these tasks.
    pub fn forget_timers(&self, tokens: &[Token]) {
        let tokens: BTreeSet<Token> = tokens.iter().copied().collect();
        let mut timers = self.timers.borrow_mut();
        timers.retain(|Reverse((_, token))| !tokens.contains(token));
    }

    /// How many timers tasks have set.
    #[cfg(test)]
    pub(crate) fn timers(&self) -> usize {
        self.timers.borrow().len()
    }

    /// How many waits slept in the kernel.
    #[cfg(test)]
    pub(super) fn sleeps(&self) -> u32 {
        self.sleeps.get()
    }

    /// Ends the wait of a turn at `at` for the executor's owner; replaces an earlier instant.
    pub fn wake_owner_at(&self, at: Option<Instant>) {
        self.owner_timer.set(at);
    }

    /// When the current batch of events was taken from the kernel. The time from here until a task's turn is the load
    /// process's own delay.
    #[inline]
    #[must_use]
    pub fn turn_began(&self) -> Instant {
        self.turn_began.get()
    }

    /// The read buffer of the thread; not to be kept across a [`turn`](super::turn).
    pub fn buffer(&self) -> std::cell::RefMut<'_, Box<[u8]>> {
        self.buffer.borrow_mut()
    }

    /// Time that waits spent polling before an event arrived.
    #[must_use]
    pub fn polled(&self) -> Polled {
        self.polled.get()
    }

    /// Waits for events, which replace those in `events`, up to its capacity. The earliest requested instant ends the
    /// wait, and so does a signal while it sleeps.
    #[inline]
    pub(super) fn wait(&self, events: &mut Vec<Event>) -> io::Result<()> {
        events.clear();
        if !self.busy_poll.is_zero() && self.poll(events)? {
            return Ok(());
        }
        self.arm_timer()?;
        #[cfg(test)]
        self.sleeps.set(self.sleeps.get() + 1);
        self.take(events, None)
    }

    /// Polls until there are events, an instant has come, or its time is over; false only in the last case. An instant
    /// needs no timer here.
    fn poll(&self, events: &mut Vec<Event>) -> io::Result<bool> {
        let at_once = Timespec::default();
        self.take(events, Some(&at_once))?;
        // What is there at the first look was not waited for.
        if !events.is_empty() {
            return Ok(true);
        }
        let (due, began) = (self.earliest(), Instant::now());
        if due.is_some_and(|due| began >= due) {
            return Ok(true);
        }
        let used_before = processor_time();
        let until = began + self.busy_poll;
        let (has_come, ended) = loop {
            // Threads that are ready to run on this processor go first, above all a server that has just been sent something.
            std::thread::yield_now();
            // Leaves more of the core to its other thread.
            std::hint::spin_loop();
            self.take(events, Some(&at_once))?;
            let now = Instant::now();
            if !events.is_empty() || due.is_some_and(|due| now >= due) {
                break (true, now);
            }
            if now >= until {
                break (false, now);
            }
        };
        // Parted by the thread's own clock, since others may have had the processor meanwhile.
        let used = processor_time().saturating_sub(used_before);
        let before = self.polled.get();
        self.polled.set(Polled {
            used: before.used + used,
            waited: before.waited + (ended - began).saturating_sub(used),
        });
        Ok(has_come)
    }

    /// Takes events from the kernel; waits for the first of them, up to the timeout if there is one.
    #[inline]
    fn take(&self, events: &mut Vec<Event>, limit: Option<&Timespec>) -> io::Result<()> {
        match epoll::wait(&self.epoll, spare_capacity(events), limit) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn begin_turn(&self, now: Instant) {
        self.turn_began.set(now);
    }

    #[inline]
    pub(super) fn source(&self, event: Event) -> Source {
        match event.data.u64() {
            BELL => Source::Bell,
            TIMER => {
                self.armed.set(None);
                Source::Timer
            }
            token => Source::Task(Token(token as usize)),
        }
    }

    /// The next task whose instant has come.
    pub(super) fn due_timer(&self) -> Option<Token> {
        let mut timers = self.timers.borrow_mut();
        let Reverse((at, _)) = timers.peek()?;
        if *at > self.turn_began.get() {
            return None;
        }
        timers.pop().map(|Reverse((_, token))| token)
    }

    /// The earliest instant at which a task or the owner must run.
    fn earliest(&self) -> Option<Instant> {
        let task = self.timers.borrow().peek().map(|Reverse((at, _))| *at);
        [task, self.owner_timer.get()].into_iter().flatten().min()
    }

    /// Sets the kernel's timer to the earliest instant, unless it is already set to it.
    fn arm_timer(&self) -> io::Result<()> {
        let earliest = self.earliest();
        let Some(at) = earliest.filter(|_| earliest != self.armed.get()) else {
            return Ok(());
        };
        // A timer set to zero would never fire.
        let wait = at
            .saturating_duration_since(Instant::now())
            .max(Duration::from_nanos(1));
        let expiration = Expiration::OneShot(TimeSpec::from_duration(wait));
        self.timer.set(expiration, TimerSetTimeFlags::empty())?;
        self.armed.set(Some(at));
        Ok(())
    }
}
