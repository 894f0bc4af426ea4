//! Activity of a client's session that its server's statistics lack.
//!
//! A session of PostgreSQL reports its activity at most once a second, and not while it is frozen, so the statistics
//! of a turn lack most of the turn. From version 15 on it reports at once on request. Each client requests it of its
//! own session: in the guard, so that the transactions in a sampler's reading at the turn's opening are known, and
//! after the turn. The increase of the statistics in between is then that of the transactions counted here.

use std::cell::Cell;

use dbduel_driver::{ClientConnection, LostError};

use super::Group;

/// How long before a slice opens its sessions report. Less than the second after which they would report by
/// themselves.
const LEAD_NS: u64 = 500_000_000;

/// Report state of one client's session.
#[derive(Debug, Default)]
pub(super) struct SessionStatistics {
    /// Its server reports on request.
    can_flush: bool,
    /// Transactions committed since its last report; `None` where unknown.
    unreported: Cell<Option<u64>>,
    /// The last round of reports that it took part in.
    round: Cell<u64>,
}

/// Report state of one session in the guard of a slice.
#[derive(Debug, Default)]
pub(super) struct GuardReport {
    /// True when it has reported.
    is_done: Cell<bool>,
    /// True when a transaction began in the guard.
    is_used: Cell<bool>,
}

/// Reports of all sessions of a contender on one thread after a slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// Number that identifies the round.
    pub(super) number: u64,
    /// Sessions that have not reported yet.
    pub(super) waiting: u32,
    /// Transactions committed since their previous reports; `None` where unknown for a session.
    pub(super) committed: Option<u64>,
}

impl SessionStatistics {
    /// State of a client that has just connected.
    pub(super) fn of(conn: &ClientConnection) -> Self {
        SessionStatistics {
            can_flush: conn.flushes_statistics(),
            ..Self::default()
        }
    }

    pub(super) fn can_flush(&self) -> bool {
        self.can_flush
    }

    /// True when the session must report now, in this round.
    #[inline]
    pub(super) fn is_wanted(&self, round: Option<Round>) -> bool {
        self.can_flush && round.is_some_and(|round| round.number != self.round.get())
    }

    /// True when the session must report now, before the slice opens at `open_ns`.
    #[inline]
    pub(super) fn is_wanted_in_guard(
        &self,
        guard: &GuardReport,
        open_ns: u64,
        now_ns: u64,
    ) -> bool {
        self.can_flush
            && !guard.is_done.get()
            && now_ns < open_ns
            && now_ns.saturating_add(LEAD_NS) >= open_ns
    }

    /// Called when a transaction that was sent at `sent_ns` of a slice that opens at `open_ns` has ended.
    #[inline]
    pub(super) fn ended(
        &self,
        guard: &GuardReport,
        open_ns: u64,
        [sent_ns, done_ns]: [u64; 2],
        is_committed: bool,
    ) {
        if !self.can_flush {
            return;
        }
        if sent_ns < open_ns {
            guard.is_used.set(true);
        }
        // The session may have reported unasked before a sampler looked, and what it did in the guard is counted here.
        if done_ns >= open_ns && guard.is_used.get() && !guard.is_done.get() {
            self.unreported.set(None);
        }
        let unreported = self.unreported.get();
        self.unreported
            .set(unreported.map(|committed| committed + u64::from(is_committed)));
    }

    /// Makes the session report.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(super) async fn flush(
        &self,
        group: &Group,
        guard: Option<&GuardReport>,
        conn: &mut ClientConnection,
    ) -> Result<(), LostError> {
        let round = group.round_of_reports();
        let has_reported = conn.flush_statistics().await?;
        let committed = self.unreported.replace(has_reported.then_some(0));
        if let Some(guard) = guard {
            guard.is_done.set(true);
        }
        if let Some(round) = round.filter(|round| round.number != self.round.get()) {
            self.round.set(round.number);
            group.reported(round, committed.filter(|_| has_reported));
        }
        Ok(())
    }
}
