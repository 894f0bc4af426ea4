//! The clients of one contender on one thread: their slices, and the commits that the server acknowledged.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use dbduel_driver::executor::{Token, sleep_until, turn};
use dbduel_driver::session::Session;

use super::engine::work;
use super::pacing::{ClientWaits, RunClock as _};
use super::session_statistics::{Round, SessionStatistics};
use super::slice::SliceOfClient;
use super::{Client, ClientContext, ClientEnd, Slice};
use crate::commit_log::Acknowledged;

/// The life of one client in a contest, slice after slice.
pub(super) async fn live<C: Client>(
    group: &Group,
    context: &ClientContext,
    options: &C::Options,
) -> ClientEnd {
    let (mut conn, mut client) = context.open::<C>(options).await?;
    let session = match context.client {
        0 => Some(Session::ask(&mut conn).await?),
        _ => None,
    };
    let statistics = SessionStatistics::of(&conn);
    group.admit(session, &statistics);
    let mut round = 0;
    loop {
        let next = group.next_slice(context.client, &mut round, &statistics);
        let Some(slice) = &next.await else {
            statistics.flush(group, None, &mut conn).await?;
            continue;
        };
        group.enter(context.token);
        client.begin(slice.begin(context.client));
        // What is sent before has no place on the slice's clock, and its latency would come out too small.
        if Instant::now() < slice.start() {
            sleep_until(&context.reactor, context.token, slice.start()).await;
        }
        let waits = ClientWaits::new(
            &context.reactor,
            context.token,
            conn.dialect().is_in_process(),
        );
        let part = SliceOfClient::new(slice, group, &statistics);
        work(&part, waits, &mut conn, &mut client).await?;
        group.leave(context.token);
        if group.is_parked() {
            slice.left_by_all();
        }
    }
}

/// The clock by which single statements are measured: it stands still while their server is frozen.
pub struct StatementClock {
    group: Option<Rc<Group>>,
    origin: Instant,
}

impl StatementClock {
    /// The clock of a client; one outside of a contest always runs.
    pub(super) fn new(group: Option<Rc<Group>>) -> Self {
        StatementClock {
            group,
            origin: Instant::now(),
        }
    }

    /// Nanoseconds that have passed. A server is thawed shortly before its slice begins, from which on the clock runs.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.ns_of(Instant::now())
    }

    #[inline]
    fn ns_of(&self, now: Instant) -> u64 {
        let frozen = self.group.as_ref().map(|group| group.frozen_at(now));
        let passed = now.saturating_duration_since(self.origin);
        passed.saturating_sub(frozen.unwrap_or_default()).as_nanos() as u64
    }
}

/// The clients of one contender on one thread.
#[derive(Default)]
pub struct Group {
    slice: RefCell<Option<Rc<Slice>>>,
    /// Longest wait for the end of the slice's transactions after its measured part.
    drain: Cell<Duration>,
    /// When the wait for a transaction ends, which the last slice has awaited in vain; `None` without one.
    over_at: Cell<Option<Instant>>,
    /// When the clients were last halted, after which their server was frozen; `None` while a slice runs.
    halted: Cell<Option<Instant>>,
    /// Counts slices, so that a client takes part in each only once.
    round: Cell<u64>,
    opened: Cell<u32>,
    /// Clients whose sessions report to the server's statistics on request.
    reporting: Cell<u32>,
    /// Reports of their sessions that are awaited since the last slice ended.
    reports: Cell<Option<Round>>,
    /// The server's report on the session of the contender's first client, if that client is on this thread.
    session: RefCell<Option<Session>>,
    /// Tasks of the clients inside a slice, even one that was answered: inside a transaction or waiting for one.
    busy: RefCell<BTreeSet<Token>>,
    /// Total time between halts and next slices so far, in which the server was frozen.
    frozen: Cell<Duration>,
    /// Length of all slices so far.
    awake: Cell<Duration>,
    /// Value of `awake` when clients were first found inside a transaction at the end of a slice, since they were last
    /// outside.
    stuck: RefCell<BTreeMap<Token, Duration>>,
    /// Commits acknowledged since the last hand-over. Emptied at every tick.
    acknowledged: RefCell<Vec<Acknowledged>>,
}

impl Group {
    /// Clients that are connected and have prepared their statements.
    #[must_use]
    pub fn opened(&self) -> u32 {
        self.opened.get()
    }

    /// The server's report on the session of the contender's first client; once, and only on the thread that has this
    /// client.
    #[must_use]
    pub fn take_session(&self) -> Option<Session> {
        self.session.take()
    }

    /// True when no client is inside a slice. After a halt, that may take until the server answers the transactions in
    /// flight.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.busy.borrow().is_empty()
    }

    /// True when the client with this task is inside a slice.
    #[must_use]
    pub fn is_busy(&self, token: Token) -> bool {
        self.busy.borrow().contains(&token)
    }

    /// Begins a slice for all parked clients, which resume at their next poll; others join when they are parked.
    /// `drain`: longest wait for counted transactions after its measured part.
    pub fn begin(&self, slice: Rc<Slice>, drain: Duration) {
        self.round.set(self.round.get() + 1);
        self.drain.set(drain);
        if let Some(halted) = self.halted.take() {
            let frozen = slice.start().saturating_duration_since(halted);
            self.frozen.set(self.frozen.get() + frozen);
        }
        self.reports.set(None);
        *self.slice.borrow_mut() = Some(slice);
    }

    /// Ends a slice for the sessions: they report to the server's statistics, those of waiting clients at their next
    /// poll. False where no session reports.
    pub fn ask_for_reports(&self) -> bool {
        self.reports.set(Some(Round {
            number: self.round.get(),
            waiting: self.reporting.get(),
            committed: (self.reporting.get() == self.opened.get()).then_some(0),
        }));
        self.reporting.get() > 0
    }

    /// When all requested reports are in: transactions committed between these reports and the previous ones; inner
    /// `None` when that is unknown for a session.
    #[must_use]
    pub fn take_reports(&self) -> Option<Option<u64>> {
        let round = self.reports.get().filter(|round| round.waiting == 0)?;
        self.reports.set(None);
        Some(round.committed)
    }

    /// The reports that are awaited.
    #[inline]
    pub(super) fn round_of_reports(&self) -> Option<Round> {
        self.reports.get()
    }

    /// Called when a session has reported in a round.
    pub(super) fn reported(&self, of: Round, committed: Option<u64>) {
        let Some(round) = self.reports.get().filter(|now| now.number == of.number) else {
            return;
        };
        self.reports.set(Some(Round {
            waiting: round.waiting.saturating_sub(1),
            committed: round.committed.zip(committed).map(|(sum, one)| sum + one),
            ..round
        }));
    }

    /// Returns the commits that the server acknowledged since the last call.
    #[must_use]
    pub fn take_acknowledged(&self) -> Vec<Acknowledged> {
        let mut kept = self.acknowledged.borrow_mut();
        let next = Vec::with_capacity(kept.len());
        std::mem::replace(&mut *kept, next)
    }

    /// Ends the slice for clients that have not begun with it.
    pub fn end(&self) {
        let now = Instant::now();
        if let Some(slice) = self.slice.take() {
            let awake = self.awake.get() + now.saturating_duration_since(slice.start());
            self.awake.set(awake);
            let mut stuck = self.stuck.borrow_mut();
            for token in &*self.busy.borrow() {
                stuck.entry(*token).or_insert(awake);
            }
            let over_at = slice.instant(slice.close_ns()) + self.drain.get();
            self.over_at.set(slice.is_overdue().then_some(over_at));
        }
    }

    /// Halts the clients: they begin nothing more.
    pub fn halt(&self) {
        self.halted.set(Some(Instant::now()));
    }

    /// The current slice.
    pub(super) fn running(&self) -> Option<Rc<Slice>> {
        self.slice.borrow().clone()
    }

    /// Total time for which the server has been frozen between slices.
    pub(super) fn frozen(&self) -> Duration {
        self.frozen.get()
    }

    /// Total time for which the server has been frozen at `now`, or is about to be thawed.
    fn frozen_at(&self, now: Instant) -> Duration {
        let running = self
            .halted
            .get()
            .map(|since| now.saturating_duration_since(since));
        self.frozen.get() + running.unwrap_or_default()
    }

    /// True when a client has been inside one transaction over slices that together lasted as long as the longest wait
    /// for a counted transaction.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        let stuck = self.stuck.borrow();
        let awake = self.awake.get();
        stuck
            .values()
            .any(|since| awake.saturating_sub(*since) >= self.drain.get())
    }

    /// When the wait for a transaction ends; `None` while unknown: before the first slice, when clients may only be
    /// busy connecting, and between slices, when transactions in flight continue in the next one.
    #[must_use]
    pub fn over_at(&self) -> Option<Instant> {
        match &*self.slice.borrow() {
            Some(slice) => Some(slice.instant(slice.close_ns()) + self.drain.get()),
            None => self.over_at.get(),
        }
    }

    /// Called when a client is connected and has prepared its statements; the contender's first one passes the
    /// server's report on its session.
    fn admit(&self, session: Option<Session>, statistics: &SessionStatistics) {
        if session.is_some() {
            self.session.replace(session);
        }
        let reporting = self.reporting.get() + u32::from(statistics.can_flush());
        self.reporting.set(reporting);
        self.opened.set(self.opened.get() + 1);
    }

    /// Waits for a slice that a client takes part in; `None` when its session must report before. `round` is the last
    /// slice that the client has seen.
    async fn next_slice(
        &self,
        client: u32,
        round: &mut u64,
        statistics: &SessionStatistics,
    ) -> Option<Rc<Slice>> {
        loop {
            if statistics.is_wanted(self.reports.get()) {
                return None;
            }
            if *round != self.round.get()
                && let Some(slice) = &*self.slice.borrow()
            {
                *round = self.round.get();
                if client < slice.spec().share.clients {
                    return Some(Rc::clone(slice));
                }
            }
            turn().await;
        }
    }

    /// Called when a client begins with a slice.
    fn enter(&self, token: Token) {
        self.busy.borrow_mut().insert(token);
    }

    /// Called when a client has ended all its work in a slice.
    fn leave(&self, token: Token) {
        self.busy.borrow_mut().remove(&token);
        self.stuck.borrow_mut().remove(&token);
    }

    /// Keeps an acknowledged commit until it is handed over.
    pub(super) fn keep(&self, acknowledged: Acknowledged) {
        self.acknowledged.borrow_mut().push(acknowledged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_statements_stands_still_while_the_server_is_frozen() {
        let group = Rc::new(Group::default());
        let clock = StatementClock::new(Some(Rc::clone(&group)));
        let at = |ms: u64| clock.origin + Duration::from_millis(ms);
        let ms_at = |ms: u64| clock.ns_of(at(ms)) / 1_000_000;
        assert_eq!(ms_at(5), 5);
        group.halted.set(Some(at(10)));
        // A reply may come before the next slice begins: the server is thawed before.
        assert_eq!((ms_at(12), ms_at(300)), (10, 10));
        group.halted.set(None);
        group.frozen.set(Duration::from_millis(290));
        assert_eq!((ms_at(300), ms_at(340)), (10, 50));
        let always = StatementClock::new(None);
        assert_eq!(
            always.ns_of(always.origin + Duration::from_secs(1)),
            1_000_000_000
        );
    }
}
