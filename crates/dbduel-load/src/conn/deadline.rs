//! A bound for the wait for a connection, which a server may accept and then never speak on.

use std::io::{Error, ErrorKind};
use std::task::Poll;
use std::time::{Duration, Instant};

use super::LostError;
use crate::executor::{Reactor, Token};

/// Waits for a connection that is being made, but not longer than `patience` from `since` on; what was begun is then
/// dropped. The error names the whole patience, of which earlier attempts may have taken a part.
///
/// # Errors
/// Those of `opening`, or that there was no answer in time.
pub(crate) async fn within<T>(
    reactor: &Reactor,
    token: Token,
    since: Instant,
    patience: Duration,
    opening: impl Future<Output = Result<T, LostError>>,
) -> Result<T, LostError> {
    let deadline = since + patience;
    reactor.wake_at(token, deadline);
    let mut opening = std::pin::pin!(opening);
    let opened = std::future::poll_fn(|context| match opening.as_mut().poll(context) {
        Poll::Pending if Instant::now() >= deadline => {
            let seconds = (patience.as_secs_f64() * 100.0).round() / 100.0;
            let late = format!("no answer within {seconds} s");
            Poll::Ready(Err(Error::new(ErrorKind::TimedOut, late).into()))
        }
        polled => polled,
    })
    .await;
    // A client that connects again and again would pile them up.
    reactor.forget_timer(token, deadline);
    opened
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::executor::{Executor, turn};

    /// What comes of an opening that ends at the poll with this number, and the timers that are left.
    fn wait_for(polls: u32) -> (Result<u32, LostError>, usize) {
        let mut executor = Executor::new().unwrap();
        let reactor = Rc::clone(executor.reactor());
        let token = executor.insert(|token| {
            let reactor = Rc::clone(&reactor);
            Box::pin(async move {
                let opening = async {
                    for _ in 1..polls {
                        turn().await;
                    }
                    Ok(polls)
                };
                let patience = Duration::from_millis(20);
                within(&reactor, token, Instant::now(), patience, opening).await
            })
        });
        let mut ended = Vec::new();
        let mut outcome = executor.poll(token);
        while outcome.is_none() {
            executor.turn(&mut ended).unwrap();
            outcome = ended.pop().map(|(_, outcome)| outcome);
        }
        (outcome.unwrap(), reactor.timers())
    }

    #[test]
    fn what_is_ready_in_time_is_handed_on_and_what_is_not_is_an_error() {
        let (ready, timers) = wait_for(1);
        assert_eq!((ready.unwrap(), timers), (1, 0));
        let (late, timers) = wait_for(u32::MAX);
        let why = late.unwrap_err().to_string();
        assert!(why.contains("no answer within 0.02 s"), "{why}");
        assert_eq!(timers, 0);
    }
}
