//! The clients of one contender on one thread: the slices that they take part in, and what the server acknowledged.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::engine::work;
use super::pacing::{ClientWaits, Pacing as _};
use super::slice::SliceOfGroup;
use super::{Client, ClientContext, ClientEnd, Slice};
use crate::commit_log::Acknowledged;
use crate::executor::{sleep_until, turn};
use crate::session::Session;

/// One client of a contest: it takes part in one slice after the other.
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
    group.admit(session);
    let mut round = 0;
    loop {
        let slice = &*group.next_slice(context.client, &mut round).await;
        group.enter();
        client.begin(slice.begin(context.client));
        if context.client == 0 && slice.is_guarded() {
            conn.checkpoint()?;
        }
        // What is sent before has no place on the slice's clock, and its latency would come out too small.
        if Instant::now() < slice.start() {
            sleep_until(&context.reactor, context.token, slice.start()).await;
        }
        let waits = ClientWaits::new(
            &context.reactor,
            context.token,
            conn.dialect().is_in_process(),
        );
        work(
            &SliceOfGroup { slice, group },
            waits,
            &mut conn,
            &mut client,
        )
        .await?;
        group.leave();
        if group.is_parked() {
            slice.left_by_all();
        }
    }
}

/// The clients of one contender on one thread.
#[derive(Default)]
pub struct Group {
    slice: RefCell<Option<Rc<Slice>>>,
    /// How long the end of the slice's transactions is waited for after its measured part.
    drain: Cell<Duration>,
    /// When the last slice was over; none before the first.
    ended: Cell<Option<Instant>>,
    /// Counts slices, so that a client takes part in each only once.
    round: Cell<u64>,
    opened: Cell<u32>,
    /// What the server says of the session of the contender's first client, if that is on this thread.
    session: RefCell<Option<Session>>,
    /// Clients inside a transaction or waiting for one.
    busy: Cell<u32>,
    /// What the server acknowledged since it was last asked for. Emptied at every tick.
    acknowledged: RefCell<Vec<Acknowledged>>,
}

impl Group {
    /// Clients that are connected and have prepared their statements.
    #[must_use]
    pub fn opened(&self) -> u32 {
        self.opened.get()
    }

    /// What the server says of the session of the contender's first client; once, and only on the
    /// thread that has this client.
    #[must_use]
    pub fn take_session(&self) -> Option<Session> {
        self.session.take()
    }

    /// True when no client is inside a slice. After a slice whose transactions did not all end within
    /// its drain, that may take until the server answers them.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.busy.get() == 0
    }

    /// Begins a slice for all parked clients, which go on when they are polled next. `drain`: longest wait for transactions
    /// in flight at its end.
    pub fn begin(&self, slice: Rc<Slice>, drain: Duration) {
        self.round.set(self.round.get() + 1);
        self.drain.set(drain);
        *self.slice.borrow_mut() = Some(slice);
    }

    /// Hands out what the server acknowledged since the last call.
    #[must_use]
    pub fn take_acknowledged(&self) -> Vec<Acknowledged> {
        let mut kept = self.acknowledged.borrow_mut();
        let next = Vec::with_capacity(kept.len());
        std::mem::replace(&mut *kept, next)
    }

    /// The slice is over for clients that have not begun with it.
    pub fn end(&self) {
        *self.slice.borrow_mut() = None;
        self.ended.set(Some(Instant::now()));
    }

    /// From when on a transaction that a slice has begun is not waited for; none before the first slice, when clients may be
    /// busy with their connections alone.
    #[must_use]
    pub fn over_at(&self) -> Option<Instant> {
        match &*self.slice.borrow() {
            Some(slice) => Some(slice.instant(slice.end_ns()) + self.drain.get()),
            None => self.ended.get(),
        }
    }

    /// A client is connected and has prepared its statements; the contender's first one brings what the server
    /// says of its session.
    fn admit(&self, session: Option<Session>) {
        if session.is_some() {
            self.session.replace(session);
        }
        self.opened.set(self.opened.get() + 1);
    }

    /// Waits for a slice that a client takes part in. `round` is the last slice that the client has looked at.
    async fn next_slice(&self, client: u32, round: &mut u64) -> Rc<Slice> {
        loop {
            if *round != self.round.get()
                && let Some(slice) = &*self.slice.borrow()
            {
                *round = self.round.get();
                if client < slice.spec().share.clients {
                    return Rc::clone(slice);
                }
            }
            turn().await;
        }
    }

    /// A client begins with a slice.
    fn enter(&self) {
        self.busy.set(self.busy.get() + 1);
    }

    /// A client has ended all that it did in a slice.
    fn leave(&self) {
        self.busy.set(self.busy.get() - 1);
    }

    /// Keeps what the server acknowledged until it is asked for.
    pub(super) fn keep(&self, acknowledged: Acknowledged) {
        self.acknowledged.borrow_mut().push(acknowledged);
    }
}
