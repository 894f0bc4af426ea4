//! How much of a capture a replay runs.

use std::collections::BTreeMap;

use dbduel_text::{counts, percent};

/// Reasons that a sentence names; the others are counted together.
const REASONS_MAX: usize = 4;

/// Statements or transactions, and their time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Sum of their known durations when they were captured, nanoseconds.
    pub duration_ns: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, other: Amount) {
        *self = self.plus(other);
    }

    pub(crate) fn plus(self, other: Amount) -> Self {
        Amount {
            count: self.count.saturating_add(other.count),
            duration_ns: self.duration_ns.saturating_add(other.duration_ns),
        }
    }

    /// Share of the number of `all`; 0 of none.
    #[must_use]
    pub fn share_of(&self, all: &Amount) -> f64 {
        share(self.count, all.count)
    }

    /// Share of the time of `all`; 0 where no durations are known.
    #[must_use]
    pub fn share_of_time(&self, all: &Amount) -> f64 {
        share(self.duration_ns, all.duration_ns)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

/// What a replay runs of a capture's statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Statements of the transactions that clients draw.
    pub replayed: Amount,
    /// Statements that set something for their session: sent where a client's session lacks the setting.
    pub settings: Amount,
    /// Statements that are left out, by reason.
    pub left_out: BTreeMap<&'static str, Amount>,
    /// Transactions that clients draw, alone or as parts of sessions.
    pub transactions: u64,
    /// Sessions that clients draw; `None` where they draw transactions.
    pub sessions: Option<u64>,
}

impl Coverage {
    /// All statements of the capture.
    #[must_use]
    pub fn all(&self) -> Amount {
        let left_out = self.left_out.values();
        left_out.fold(self.replayed.plus(self.settings), |sum, one| sum.plus(*one))
    }

    /// What is replayed, in one sentence without values of statements.
    #[must_use]
    pub fn claim(&self) -> String {
        let all = self.all();
        let time = match all.duration_ns {
            0 => String::new(),
            _ => format!(
                ", {} of their time,",
                percent::of(self.replayed.share_of_time(&all))
            ),
        };
        let within = match self.sessions {
            Some(sessions) => format!(" of {}", counts::things(sessions, "session")),
            None => String::new(),
        };
        format!(
            "{} of {} captured statements{time} are replayed, in {}{within}; {} are settings of sessions, sent where they \
             change; {}.",
            percent::of(self.replayed.share_of(&all)),
            counts::of(all.count),
            counts::things(self.transactions, "transaction"),
            percent::of(self.settings.share_of(&all)),
            self.reasons(&all)
        )
    }

    fn reasons(&self, all: &Amount) -> String {
        let mut reasons: Vec<(&str, Amount)> = self
            .left_out
            .iter()
            .map(|(reason, amount)| (*reason, *amount))
            .collect();
        if reasons.is_empty() {
            return "none is left out".to_owned();
        }
        reasons.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.count));
        let further = reasons.split_off(reasons.len().min(REASONS_MAX));
        let rest = further
            .iter()
            .fold(Amount::default(), |sum, (_, amount)| sum.plus(*amount));
        if rest.count > 0 {
            reasons.push(("other reasons", rest));
        }
        let reasons: Vec<String> = reasons
            .iter()
            .map(|(reason, amount)| format!("{} {reason}", percent::of(amount.share_of(all))))
            .collect();
        format!("left out: {}", reasons.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_has_shares_of_count_and_time_and_the_reasons() {
        let amount = |count, duration_ns| Amount { count, duration_ns };
        let coverage = Coverage {
            replayed: amount(970, 991),
            settings: amount(20, 4),
            left_out: BTreeMap::from([
                ("SET GLOBAL", amount(3, 1)),
                ("torn transaction", amount(7, 4)),
            ]),
            transactions: 600,
            sessions: None,
        };
        assert_eq!(
            coverage.claim(),
            "97 % of 1,000 captured statements, 99.1 % of their time, are replayed, in 600 transactions; 2 % are settings of \
             sessions, sent where they change; left out: 0.7 % torn transaction, 0.3 % SET GLOBAL."
        );
        let without_times = Coverage {
            replayed: amount(5, 0),
            sessions: Some(1),
            ..Coverage::default()
        };
        assert_eq!(
            without_times.claim(),
            "100 % of 5 captured statements are replayed, in 0 transactions of 1 session; 0 % are settings of sessions, sent where \
             they change; none is left out."
        );
    }
}
