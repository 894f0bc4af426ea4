//! Bounds for the wait for a connection, since a server may accept one and never answer: a timeout, and the end of the
//! work that needs the connection.

use std::future::poll_fn;
use std::io::{Error, ErrorKind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::LostError;
use crate::executor::{Reactor, Token};

/// A timer of a task, removed when its wait ends or is dropped; otherwise a client that reconnects repeatedly would
/// pile them up.
struct Timer<'a> {
    reactor: &'a Reactor,
    token: Token,
    at: Instant,
}

impl<'a> Timer<'a> {
    fn set(reactor: &'a Reactor, token: Token, at: Instant) -> Self {
        reactor.wake_at(token, at);
        Timer { reactor, token, at }
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.reactor.forget_timer(self.token, self.at);
    }
}

/// Waits for a connection to be made, at most `timeout` from `since` on; the attempt is then dropped. The error states
/// the whole timeout, of which earlier attempts may have taken a part.
///
/// # Errors
/// Those of `opening`, or that there was no answer in time.
pub async fn within<T>(
    reactor: &Reactor,
    token: Token,
    since: Instant,
    timeout: Duration,
    opening: impl Future<Output = Result<T, LostError>>,
) -> Result<T, LostError> {
    let deadline = since + timeout;
    let _timer = Timer::set(reactor, token, deadline);
    let mut opening = pin!(opening);
    poll_fn(|context| match opening.as_mut().poll(context) {
        Poll::Pending if Instant::now() >= deadline => {
            let seconds = (timeout.as_secs_f64() * 100.0).round() / 100.0;
            let late = format!("no answer within {seconds} s");
            Poll::Ready(Err(Error::new(ErrorKind::TimedOut, late).into()))
        }
        polled => polled,
    })
    .await
}

/// Result of `opening`; `None` when `end` comes before, and the attempt is then dropped. `end` is asked at every poll,
/// because it may be moved: the code that moves it must have the task polled.
pub async fn unless_over<T>(
    reactor: &Reactor,
    token: Token,
    end: impl Fn() -> Option<Instant>,
    opening: impl Future<Output = T>,
) -> Option<T> {
    let mut timer: Option<Timer<'_>> = None;
    let mut opening = pin!(opening);
    poll_fn(|context| {
        if let Poll::Ready(opened) = opening.as_mut().poll(context) {
            return Poll::Ready(Some(opened));
        }
        let end = end();
        if end.is_some_and(|end| Instant::now() >= end) {
            return Poll::Ready(None);
        }
        if end != timer.as_ref().map(|timer| timer.at) {
            timer = end.map(|end| Timer::set(reactor, token, end));
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::executor::{Executor, turn};

    /// Result of a task, and the timers left over. `nudge` is called before every turn of the event loop.
    fn outcome_of<T: 'static>(
        make: impl FnOnce(Rc<Reactor>, Token) -> crate::executor::Task<T>,
        nudge: impl Fn(&Reactor, Token),
    ) -> (T, usize) {
        let mut executor = Executor::new().unwrap();
        let reactor = Rc::clone(executor.reactor());
        let token = executor.insert(|token| make(Rc::clone(&reactor), token));
        let mut ended = Vec::new();
        let mut outcome = executor.poll(token);
        while outcome.is_none() {
            nudge(&reactor, token);
            executor.turn(&mut ended).unwrap();
            outcome = ended.pop().map(|(_, outcome)| outcome);
        }
        (outcome.unwrap(), reactor.timers())
    }

    /// An opening that completes at the poll with this number.
    async fn opening(polls: u32) -> Result<u32, LostError> {
        for _ in 1..polls {
            turn().await;
        }
        Ok(polls)
    }

    #[test]
    fn what_is_ready_in_time_is_handed_on_and_what_is_not_is_an_error() {
        let wait_for = |polls| {
            let timeout = Duration::from_millis(20);
            let make = |reactor: Rc<Reactor>, token| -> crate::executor::Task<_> {
                Box::pin(async move {
                    within(&reactor, token, Instant::now(), timeout, opening(polls)).await
                })
            };
            outcome_of(make, |_, _| {})
        };
        let (ready, timers) = wait_for(1);
        assert_eq!((ready.unwrap(), timers), (1, 0));
        let (late, timers) = wait_for(u32::MAX);
        let why = late.unwrap_err().to_string();
        assert!(why.contains("no answer within 0.02 s"), "{why}");
        assert_eq!(timers, 0);
    }

    #[test]
    fn an_end_ends_the_wait_also_when_it_comes_sooner_than_was_said() {
        let far = Instant::now() + Duration::from_secs(3600);
        let wait_for = |polls, ends: [Option<Instant>; 2]| {
            let end = Rc::new(Cell::new(ends[0]));
            let asked = Rc::clone(&end);
            let make = |reactor: Rc<Reactor>, token| -> crate::executor::Task<_> {
                Box::pin(async move {
                    let opened = unless_over(&reactor, token, || asked.get(), opening(polls)).await;
                    opened.map(Result::unwrap)
                })
            };
            outcome_of(make, |reactor, token| {
                if end.replace(ends[1]) != ends[1] {
                    reactor.wake_at(token, Instant::now());
                    reactor.bell().ring();
                }
            })
        };
        let soon = || Some(Instant::now() + Duration::from_millis(5));
        assert_eq!(wait_for(1, [soon(), None]), (Some(1), 0));
        assert_eq!(wait_for(2, [None, Some(far)]), (Some(2), 0));
        for first in [None, Some(far), soon()] {
            assert_eq!(wait_for(u32::MAX, [first, soon()]), (None, 0));
        }
    }

    #[test]
    fn a_timeout_that_an_end_cuts_short_leaves_no_timer() {
        let far = Duration::from_secs(3600);
        let make = |reactor: Rc<Reactor>, token| -> crate::executor::Task<_> {
            Box::pin(async move {
                let began = Instant::now();
                let opening = within(&reactor, token, began, far, opening(u32::MAX));
                let end = || Some(began + Duration::from_millis(5));
                let opened = unless_over(&reactor, token, end, opening).await;
                opened.map(Result::unwrap)
            })
        };
        assert_eq!(outcome_of(make, |_, _| {}), (None, 0));
    }
}
