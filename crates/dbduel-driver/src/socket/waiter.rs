//! How a connection waits for its socket: on the event loop of its thread, or blocking until a deadline.

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::cancel::Cancel;
use crate::executor::{Interest, Reactor, Token, turn};

/// Maximum number of bytes that one read of a blocking connection returns.
const READ_BUFFER: usize = 64 << 10;

/// The longest time to a deadline, so that adding it to an instant cannot overflow.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Time between two checks for cancellation in a blocking wait.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// How a connection waits.
pub trait Waiter {
    /// Registers the socket.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn watch(&self, socket: BorrowedFd<'_>, interest: Interest) -> io::Result<()>;

    /// Changes the interest of the socket.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn rewatch(&self, socket: BorrowedFd<'_>, interest: Interest) -> io::Result<()>;

    /// Waits until the socket may be ready.
    fn wait(
        &self,
        socket: BorrowedFd<'_>,
        interest: Interest,
    ) -> impl Future<Output = io::Result<()>>;

    /// Waits for a time.
    fn pause(&self, time: Duration) -> impl Future<Output = io::Result<()>>;

    /// The read buffer; not to be kept across a wait.
    fn buffer(&self) -> RefMut<'_, Box<[u8]>>;

    /// Restarts the deadline: the server has answered, or gets a new request.
    fn restart(&self);

    /// When waiting ends with an error; `None` without a deadline.
    fn deadline(&self) -> Option<Instant>;

    /// Cancellation of its waits.
    fn cancel(&self) -> Cancel;
}

/// The error of a wait that ended without an answer.
#[cold]
pub(crate) fn deadline_passed() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the deadline passed")
}

/// A task on an event loop; waits do not block its thread. It has no deadline: the owner of the task drops it when
/// time is up.
#[derive(Debug)]
pub struct OnLoop {
    pub(crate) reactor: Rc<Reactor>,
    pub(crate) token: Token,
}

impl Waiter for OnLoop {
    fn watch(&self, socket: BorrowedFd<'_>, interest: Interest) -> io::Result<()> {
        self.reactor.watch(socket, self.token, interest)
    }

    fn rewatch(&self, socket: BorrowedFd<'_>, interest: Interest) -> io::Result<()> {
        self.reactor.rewatch(socket, self.token, interest)
    }

    #[inline]
    async fn wait(&self, _socket: BorrowedFd<'_>, _interest: Interest) -> io::Result<()> {
        turn().await;
        Ok(())
    }

    async fn pause(&self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        self.reactor.wake_at(self.token, until);
        while Instant::now() < until {
            turn().await;
        }
        Ok(())
    }

    #[inline]
    fn buffer(&self) -> RefMut<'_, Box<[u8]>> {
        self.reactor.buffer()
    }

    #[inline]
    fn restart(&self) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn cancel(&self) -> Cancel {
        Cancel::never()
    }
}

/// Blocks the thread in system calls, until a deadline at most. Its futures are ready when polled once.
#[derive(Debug)]
pub struct Blocking {
    deadline: Cell<Instant>,
    /// Time for one answer.
    timeout: Cell<Duration>,
    cancel: Cancel,
    buffer: RefCell<Box<[u8]>>,
}

impl Blocking {
    pub(crate) fn new(timeout: Duration, cancel: Cancel) -> Self {
        let blocking = Blocking {
            deadline: Cell::new(Instant::now()),
            timeout: Cell::new(timeout),
            cancel,
            buffer: RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()),
        };
        blocking.restart();
        blocking
    }

    /// Time for each answer from now on.
    pub(crate) fn set_timeout(&self, timeout: Duration) {
        self.timeout.set(timeout);
    }

    /// Time for one system call: until the deadline, or the next check for cancellation.
    fn left(&self) -> io::Result<Duration> {
        if self.cancel.is_set() {
            return Err(io::Error::other("the wait for a reply was cancelled"));
        }
        let left = self
            .deadline
            .get()
            .saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(deadline_passed());
        }
        Ok(left.min(LOOK_PAUSE))
    }
}

impl Waiter for Blocking {
    fn watch(&self, _socket: BorrowedFd<'_>, _interest: Interest) -> io::Result<()> {
        Ok(())
    }

    fn rewatch(&self, _socket: BorrowedFd<'_>, _interest: Interest) -> io::Result<()> {
        Ok(())
    }

    async fn wait(&self, socket: BorrowedFd<'_>, interest: Interest) -> io::Result<()> {
        // Bytes that arrive meanwhile must not end a wait for room: they are not read here.
        let events = match interest {
            Interest::Read => PollFlags::POLLIN,
            Interest::ReadAndWrite => PollFlags::POLLOUT,
        };
        loop {
            // A part of a millisecond would be none.
            let left = self.left()? + Duration::from_millis(1);
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(socket, events)], left) {
                Ok(1..) => return Ok(()),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn pause(&self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(self.left()?));
        }
    }

    fn buffer(&self) -> RefMut<'_, Box<[u8]>> {
        self.buffer.borrow_mut()
    }

    fn restart(&self) {
        let now = Instant::now();
        let deadline = now.checked_add(self.timeout.get().min(YEAR));
        self.deadline.set(deadline.unwrap_or(now));
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline.get())
    }

    fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}
