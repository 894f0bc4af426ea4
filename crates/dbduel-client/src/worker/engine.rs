//! The loop of a client: it waits until a transaction is due, sends it, retries it if allowed, and records when it was
//! done.
//!
//! Slices of contests and runs share it. Clock reads, waits and retries are here, so that a workload needs none of
//! them. A transaction costs one clock read: the instant at which it was done is also the instant at which the next
//! one of a closed loop is due and sent.

use dbduel_driver::{ClientConnection, Effects, LostError, ServerError, StatementError};

use super::pacing::{ClientWaits, Pacing, RunClock as _};
use super::{Client, Readiness, Trace};
use crate::tally::{Class, Ended, Outcome, StatementDone};

/// Records the transactions of a client, and decides how to continue after their errors.
pub(super) trait Recording {
    /// Pacing of the transactions.
    type Pacing: Pacing;

    /// Pacing of the transactions.
    fn pacing(&self) -> &Self::Pacing;

    /// Called when a transaction is sent at `now_ns`.
    fn began(&self, class: Class, now_ns: u64);

    /// Called with the statements of one attempt, whether it succeeded or not.
    #[inline]
    fn attempted(&self, effects: Effects) {
        let _ = effects;
    }

    /// Called when the server refused a statement of an attempt; false when the client must not continue after such an
    /// error.
    fn erred(&self, error: &ServerError) -> bool;

    /// Called when the server refused to roll an attempt back.
    fn rollback_erred(&self, error: &ServerError) {
        let _ = error;
    }

    /// Whether a transaction that ended with this error is retried, after `retries` attempts beyond the first.
    fn tries_again(&self, error: &ServerError, retries: u64) -> bool;

    /// Called when the connection was lost in a transaction that was due at `due_ns`.
    fn interrupted(&self, due_ns: u64) {
        let _ = due_ns;
    }

    /// Makes the session of the client report to its server's statistics, where [`Pacing::wants_report`].
    ///
    /// # Errors
    /// When the connection is lost.
    fn report(&self, conn: &mut ClientConnection) -> impl Future<Output = Result<(), LostError>> {
        let _ = conn;
        std::future::ready(Ok(()))
    }

    /// Called when a transaction sent at `sent_ns` is done; false when the client has done enough on this connection.
    fn ended(&self, sent_ns: u64, ended: Ended, trace: Trace) -> bool;

    /// Called after [`Recording::ended`] with the statements of that transaction, where its workload measures single ones.
    fn statements(&self, done: &[StatementDone]) {
        let _ = done;
    }
}

/// Runs all transactions of a client, until none is due any more.
pub(super) async fn work<C: Client, R: Recording>(
    recording: &R,
    waits: ClientWaits<'_>,
    conn: &mut ClientConnection,
    client: &mut C,
) -> Result<(), LostError> {
    let pacing = recording.pacing();
    let mut now_ns = pacing.now_ns();
    loop {
        if waits.has_had_its_turn(pacing, now_ns) {
            now_ns = waits.end_turn(pacing).await;
        }
        if pacing.wants_report(now_ns) {
            recording.report(conn).await?;
            now_ns = pacing.now_ns();
        }
        let free_ns = match client.readiness() {
            Readiness::After(pause) => now_ns.saturating_add(pause.as_nanos() as u64),
            Readiness::Due(since_begin) => since_begin.as_nanos() as u64,
            Readiness::AskAgain(after) => {
                now_ns = waits.pause(pacing, after).await;
                if pacing.is_over(now_ns) {
                    return Ok(());
                }
                continue;
            }
            Readiness::Finished => return Ok(()),
        };
        let Some(due_ns) = pacing.take(free_ns) else {
            return Ok(());
        };
        while due_ns > now_ns {
            match waits.until_due(pacing, due_ns).await {
                Some(due_now_ns) => now_ns = due_now_ns,
                None => return Ok(()),
            }
            if pacing.wants_report(now_ns) {
                recording.report(conn).await?;
                now_ns = pacing.now_ns();
            }
        }
        let sent_ns = now_ns;
        let class = client.draw();
        let statements_before = conn.statements();
        recording.began(class, sent_ns);
        let (outcome, retries) = match try_until_done(recording, class, conn, client).await {
            Ok(done) => done,
            Err(lost) => {
                recording.interrupted(due_ns);
                return Err(lost);
            }
        };
        let trace = match outcome {
            Outcome::Ok => client.trace(),
            Outcome::Failed => Trace::Plain,
        };
        let statements = conn.statements() - statements_before;
        now_ns = pacing.now_ns();
        let ended = Ended {
            class,
            outcome,
            latency_ns: now_ns.saturating_sub(due_ns),
            done_ns: now_ns,
            retries,
            statements,
        };
        let goes_on = recording.ended(sent_ns, ended, trace);
        let statements = client.statements();
        if !statements.is_empty() {
            recording.statements(statements);
        }
        if !goes_on {
            return Ok(());
        }
        waits.seen_done(pacing, now_ns);
    }
}

/// Runs a transaction until it is committed or failed; returns its end and the attempts after the first. After every
/// error a rollback is sent: a lock wait timeout leaves the transaction open, and its earlier changes would be
/// committed by the next one.
#[inline]
async fn try_until_done<C: Client>(
    recording: &impl Recording,
    class: Class,
    conn: &mut ClientConnection,
    client: &mut C,
) -> Result<(Outcome, u64), LostError> {
    let mut retries = 0;
    loop {
        let before = conn.effects();
        let attempt = client.transaction(class, conn).await;
        recording.attempted(conn.effects() - before);
        let error = match attempt {
            Ok(()) => return Ok((Outcome::Ok, retries)),
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => error,
        };
        if !recording.erred(&error) {
            return Ok((Outcome::Failed, retries));
        }
        match conn.query(b"ROLLBACK").await {
            Ok(_) => {}
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => recording.rollback_erred(&error),
        }
        if !recording.tries_again(&error, retries) {
            return Ok((Outcome::Failed, retries));
        }
        retries += 1;
    }
}
