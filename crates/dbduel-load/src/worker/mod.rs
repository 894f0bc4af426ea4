//! One client: it takes what is due, sends it, tries again what may be tried again, and says when it
//! was done.
//!
//! Here are the clock reads, the retries and the accounting, so that a workload needs none of them. A
//! transaction costs one clock read: the instant at which it was done is also the instant at which the
//! next one of a closed loop is due and sent.

mod client;
mod group;
mod run;
mod slice;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use dbduel_record::seed::named_seed;
use dbduel_wire::{Credentials, ServerError};

use crate::conn::{Conn, LostError, StatementError};
use crate::executor::{Reactor, Task, Token, turn};
use crate::session::Session;
use crate::tally::{Class, Ended, Outcome};
pub use client::{Begin, Client, Trace};
pub use group::{Group, Opening};
pub(crate) use run::{ClientExit, Rules, RunContext};
pub use slice::{Slice, SliceSpec};

/// `ER_CHECKREAD`: the row changed since the transaction's snapshot (MariaDB with
/// `innodb_snapshot_isolation`).
const RECORD_CHANGED: u16 = 1020;
/// `ER_LOCK_WAIT_TIMEOUT`.
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// SQLSTATE class of errors after which the transaction is rolled back and may be tried again. Deadlocks
/// (1213) are in it, so are the snapshot conflicts of MyRocks and the certification failures of Galera
/// and group replication.
const TRANSACTION_ROLLBACK: &[u8] = b"40";

/// A client's place: its number, its thread's reactor and its contender's group.
pub struct ClientContext {
    /// Number of the client, from 0, over all threads.
    pub client: u32,
    /// Its task.
    pub token: Token,
    /// The waits of its thread.
    pub reactor: Rc<Reactor>,
    /// The clients of the same contender and thread.
    pub group: Rc<Group>,
}

impl ClientContext {
    /// The client as a task of its thread's executor. It ends only when its connection is lost.
    pub fn boxed<C: Client>(self, options: C::Options) -> Task<LostError> {
        if let Some(run) = self.group.run() {
            return Box::pin(run::live::<C>(run, self, options));
        }
        Box::pin(async move {
            let Err(lost) = self.live::<C>(options).await;
            lost
        })
    }

    async fn live<C: Client>(
        self,
        options: C::Options,
    ) -> Result<std::convert::Infallible, LostError> {
        let (mut conn, mut client) = self.open::<C>(options).await?;
        let session = match self.client {
            0 => Some(Session::ask(&mut conn).await?),
            _ => None,
        };
        self.group.admit(session);
        let mut round = 0;
        loop {
            let slice = self.next_slice(&mut round).await;
            self.group.enter();
            let SliceSpec { seed, share, .. } = *slice.spec();
            let seed = named_seed(seed, &format!("client/{}", self.client));
            client.begin(Begin {
                seed,
                client: self.client,
                clients: share.clients,
            });
            self.work(&slice, &mut conn, &mut client).await?;
            self.group.leave();
        }
    }

    /// Connects and prepares the client's statements.
    pub(crate) async fn open<C: Client>(
        &self,
        options: C::Options,
    ) -> Result<(Conn, C), LostError> {
        let Opening {
            order,
            sequence,
            tls,
        } = self.group.opening();
        let credentials = Credentials::new(order.user.clone(), order.password.clone());
        let reactor = Rc::clone(&self.reactor);
        let mut conn = Conn::open(
            reactor,
            self.token,
            &order.address,
            credentials,
            &order.database,
            tls,
        )
        .await?;
        match C::open(&mut conn, options, Arc::clone(sequence)).await {
            Ok(client) => Ok((conn, client)),
            Err(StatementError::Lost(lost)) => Err(lost),
            Err(StatementError::Server(error)) => Err(LostError::Prepare(error)),
        }
    }

    /// Parks until a slice begins in which this client takes part.
    async fn next_slice(&self, round: &mut u64) -> Rc<Slice> {
        loop {
            if let Some(slice) = self.group.next_slice(self.client, round) {
                return slice;
            }
            turn().await;
        }
    }

    /// The client's whole work in one slice.
    async fn work<C: Client>(
        &self,
        slice: &Slice,
        conn: &mut Conn,
        client: &mut C,
    ) -> Result<(), LostError> {
        let mut now_ns = self.wait_for_start(slice).await;
        while let Some(due_ns) = slice.take(now_ns.saturating_add(client.pause().as_nanos() as u64))
        {
            if due_ns > now_ns {
                now_ns = self.wait_until(slice, due_ns).await;
                if slice.is_over(now_ns) {
                    slice.give_back(due_ns);
                    break;
                }
                // It was free in time, so the delay is ours.
                slice.lagged(now_ns - due_ns);
            }
            let class = client.draw();
            let statements_before = conn.statements();
            let sent_ns = now_ns;
            slice.began(class, sent_ns);
            let (outcome, retries) = try_until_done(slice, class, conn, client).await?;
            let trace = match outcome {
                Outcome::Ok => client.trace(),
                Outcome::Failed => Trace::Plain,
            };
            if let Trace::Committed(commitment) = trace {
                self.group.keep(commitment);
            }
            let statements = conn.statements() - statements_before;
            now_ns = slice.now_ns();
            slice.ended(Ended {
                class,
                outcome,
                due_ns,
                done_ns: now_ns,
                retries,
                statements,
            });
            if outcome == Outcome::Ok {
                slice.served(now_ns - sent_ns);
            }
            if trace == Trace::RolledBack {
                slice.rolled_back();
            }
            slice.lagged(now_ns.saturating_sub(slice.ns_of(self.reactor.turn_began())));
        }
        Ok(())
    }

    /// Waits until the slice starts; returns when it was seen to have started. What is sent before has no place on the
    /// slice's clock, and its latency would come out too small.
    async fn wait_for_start(&self, slice: &Slice) -> u64 {
        let start = slice.spec().start;
        if Instant::now() < start {
            self.reactor.wake_at(self.token, start);
        }
        while Instant::now() < start {
            turn().await;
        }
        slice.now_ns()
    }

    /// Waits for an instant or the end of the slice; returns when that was.
    async fn wait_until(&self, slice: &Slice, due_ns: u64) -> u64 {
        self.reactor.wake_at(self.token, slice.instant(due_ns));
        loop {
            turn().await;
            let now_ns = slice.now_ns();
            if now_ns >= due_ns || slice.is_over(now_ns) {
                return now_ns;
            }
        }
    }
}

/// Runs a transaction until it is committed or given up; returns how it ended and the attempts after
/// the first. After every error a rollback is sent: a lock wait timeout leaves the transaction open, and
/// what it did before would be committed by the next one.
async fn try_until_done<C: Client>(
    slice: &Slice,
    class: Class,
    conn: &mut Conn,
    client: &mut C,
) -> Result<(Outcome, u64), LostError> {
    let mut retries = 0;
    loop {
        let error = match client.transaction(class, conn).await {
            Ok(()) => return Ok((Outcome::Ok, retries)),
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => error,
        };
        slice.erred(&error);
        match conn.query(b"ROLLBACK").await {
            Ok(_) => {}
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => slice.erred(&error),
        }
        if !may_try_again(&error) || retries >= u64::from(slice.spec().retries) {
            return Ok((Outcome::Failed, retries));
        }
        retries += 1;
    }
}

/// True for errors that say nothing about the statement, only that somebody else was in the way.
fn may_try_again(error: &ServerError) -> bool {
    error.sqlstate.starts_with(TRANSACTION_ROLLBACK)
        || matches!(error.code, RECORD_CHANGED | LOCK_WAIT_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicts_with_others_are_tried_again() {
        let error = |code, sqlstate: &[u8; 5]| ServerError {
            code,
            sqlstate: *sqlstate,
            message: String::new(),
        };
        assert!(may_try_again(&error(1213, b"40001")));
        assert!(may_try_again(&error(1205, b"HY000")));
        assert!(may_try_again(&error(1020, b"HY000")));
        assert!(may_try_again(&error(3101, b"40000")));
        assert!(!may_try_again(&error(1062, b"23000")));
        assert!(!may_try_again(&error(1146, b"42S02")));
    }
}
