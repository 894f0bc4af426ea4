//! A single-threaded executor on epoll.
//!
//! One per load thread. A task is one boxed future for the whole life of a client; it is polled when its
//! socket has news or its timer is due, and nothing is allocated, locked or boxed in between. There are
//! no wakers: an event names its task by token. So every future in here must tolerate spurious polls,
//! and waits by [`turn`] in a loop around its condition.
//!
//! On epoll and not io_uring, because the cost is in waking the server's threads and not in system calls;
//! the figures are in `docs/load-path.md`.

pub mod pages;
pub mod policy;
mod reactor;
pub mod thread;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::event::epoll::Event;

use reactor::Source;
pub use reactor::{Bell, Interest, Polled, Reactor, Token};

/// Maximum number of events taken from the kernel at once. With more, the last of them would only wait longer for the first.
const EVENTS_PER_TURN: usize = 256;

/// A task: a future with its result.
pub type Task<T> = Pin<Box<dyn Future<Output = T>>>;

/// The tasks of one thread.
pub struct Executor<T> {
    tasks: Vec<Option<Task<T>>>,
    /// Tokens of the tasks that have ended since the last turn. Owners may not know yet and would mistake another task
    /// for theirs, so no other task gets these tokens meanwhile.
    resting: Vec<Token>,
    reactor: Rc<Reactor>,
    events: Vec<Event>,
}

/// Events of a turn apart from the progress of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Another thread rang the bell.
    pub rung: bool,
}

impl<T> Executor<T> {
    /// An executor without tasks, which sleeps whenever there is nothing to do.
    ///
    /// # Errors
    /// When the kernel refuses the descriptors that an event loop needs.
    pub fn new() -> io::Result<Self> {
        Self::polling(Duration::ZERO)
    }

    /// An executor without tasks. Each wait polls for `busy_poll` before it sleeps, which occupies a processor and
    /// wakes up on time; with zero it sleeps at once.
    ///
    /// # Errors
    /// When the kernel refuses the descriptors that an event loop needs.
    pub fn polling(busy_poll: Duration) -> io::Result<Self> {
        Ok(Executor {
            tasks: Vec::new(),
            resting: Vec::new(),
            reactor: Rc::new(Reactor::new(busy_poll)?),
            events: Vec::with_capacity(EVENTS_PER_TURN),
        })
    }

    /// The reactor that the tasks wait on.
    #[must_use]
    pub fn reactor(&self) -> &Rc<Reactor> {
        &self.reactor
    }

    /// Adds a task, which is made knowing its own token. It is not polled yet.
    pub fn insert(&mut self, make: impl FnOnce(Token) -> Task<T>) -> Token {
        let mut places = self.tasks.iter().enumerate();
        let free = places
            .position(|(index, task)| task.is_none() && !self.resting.contains(&Token(index)));
        let index = free.unwrap_or_else(|| {
            self.tasks.push(None);
            self.tasks.len() - 1
        });
        let token = Token(index);
        self.tasks[index] = Some(make(token));
        token
    }

    /// Polls these tasks once; those that ended are appended to `ended`.
    pub fn poll_all(&mut self, tokens: &[Token], ended: &mut Vec<(Token, T)>) {
        for &token in tokens {
            self.poll_into(token, ended);
        }
    }

    /// Ends a task at its current wait; what it owns, such as its socket, is closed with it. The token of a task that
    /// has ended may be used again from now on.
    pub fn remove(&mut self, token: Token) {
        self.resting.retain(|resting| *resting != token);
        if let Some(slot) = self.tasks.get_mut(token.0) {
            *slot = None;
        }
    }

    /// Polls a task. Returns its result if it ended.
    #[inline]
    pub fn poll(&mut self, token: Token) -> Option<T> {
        let slot = self.tasks.get_mut(token.0)?;
        match slot
            .as_mut()?
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Pending => None,
            Poll::Ready(output) => {
                *slot = None;
                self.resting.push(token);
                Some(output)
            }
        }
    }

    /// Waits until something happens, then polls every task that it concerns once. Tasks that ended are
    /// appended to `ended`.
    ///
    /// # Errors
    /// When the kernel refuses to wait, which means a broken descriptor.
    pub fn turn(&mut self, ended: &mut Vec<(Token, T)>) -> io::Result<Turn> {
        self.reactor.wait(&mut self.events)?;
        self.reactor.begin_turn(Instant::now());
        self.resting.clear();
        let mut rung = false;
        for index in 0..self.events.len() {
            match self.reactor.source(self.events[index]) {
                Source::Bell => rung = true,
                Source::Timer => {}
                Source::Task(token) => self.poll_into(token, ended),
            }
        }
        while let Some(token) = self.reactor.due_timer() {
            self.poll_into(token, ended);
        }
        Ok(Turn { rung })
    }

    #[inline]
    fn poll_into(&mut self, token: Token, ended: &mut Vec<(Token, T)>) {
        if let Some(output) = self.poll(token) {
            ended.push((token, output));
        }
    }
}

/// Yields once; the task continues when it is polled again, for whatever reason.
pub fn turn() -> impl Future<Output = ()> {
    let mut waited = false;
    poll_fn(move |_| {
        if waited {
            return Poll::Ready(());
        }
        waited = true;
        Poll::Pending
    })
}

/// Waits for an instant, and at least for the next turn of the event loop.
pub async fn sleep_until(reactor: &Reactor, token: Token, until: Instant) {
    reactor.wake_at(token, until);
    turn().await;
    while Instant::now() < until {
        turn().await;
    }
}

#[cfg(test)]
mod tests;
