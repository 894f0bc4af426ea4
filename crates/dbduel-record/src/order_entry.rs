//! Requirements of the specification behind the order-entry workload: shares of the mix, response times, keying and
//! think times, variation of the input.
//!
//! Names and numbers only. They are defined here because both halves need them: the clients draw from them, and the
//! judge compares them with the record.

/// Name of the workload.
pub const NAME: &str = "order-entry";

/// The class whose transactions count for the metric.
pub const NEW_ORDER: &str = CLASSES[0];

/// The five transaction classes, in the order of [`CONSTRAINTS`].
pub const CLASSES: &[&str] = &[
    "new-order",
    "payment",
    "order-status",
    "delivery",
    "stock-level",
];

/// Requirements of the specification (TPC-C revision 5.11, clauses 5.2.3 to 5.2.5) on one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constraint {
    /// Name of the transaction class.
    pub class: &'static str,
    /// Least share of all transactions, percent; New-Order has the remainder.
    pub share_min_percent: f64,
    /// Largest 90 % quantile of the latency, seconds. For Delivery it is the limit of the deferred
    /// execution, which is what its latency measures here.
    pub latency_p90_max_s: f64,
    /// Cards in a deck of 23.
    pub cards: u32,
    /// Time to enter the input, which is constant, seconds.
    pub keying_s: f64,
    /// Mean of the exponential think time that follows, seconds.
    pub think_mean_s: f64,
}

/// The constraints of all classes. The throughput (NOPM) is the number of committed or intentionally rolled
/// back `new-order` per minute.
pub const CONSTRAINTS: [Constraint; 5] = [
    Constraint {
        class: "new-order",
        share_min_percent: 0.0,
        latency_p90_max_s: 5.0,
        cards: 10,
        keying_s: 18.0,
        think_mean_s: 12.0,
    },
    Constraint {
        class: "payment",
        share_min_percent: 43.0,
        latency_p90_max_s: 5.0,
        cards: 10,
        keying_s: 3.0,
        think_mean_s: 12.0,
    },
    Constraint {
        class: "order-status",
        share_min_percent: 4.0,
        latency_p90_max_s: 5.0,
        cards: 1,
        keying_s: 2.0,
        think_mean_s: 10.0,
    },
    Constraint {
        class: "delivery",
        share_min_percent: 4.0,
        latency_p90_max_s: 80.0,
        cards: 1,
        keying_s: 2.0,
        think_mean_s: 5.0,
    },
    Constraint {
        class: "stock-level",
        share_min_percent: 4.0,
        latency_p90_max_s: 20.0,
        cards: 1,
        keying_s: 2.0,
        think_mean_s: 5.0,
    },
];

/// Terminals per warehouse, one for each of its districts.
pub const TERMINALS_PER_WAREHOUSE: u32 = 10;

/// Largest share of deliveries that may find a district without an undelivered order, percent (clause 5.5.1.6); a
/// single one is always allowed.
pub const SKIPPED_DELIVERIES_MAX_PERCENT: f64 = 1.0;

/// Share of the New-Orders that are rolled back on purpose, percent (clause 2.4.1.4).
pub const ROLLED_BACK_PERCENT: f64 = 1.0;

/// Allowed range of the measured share of rolled back New-Orders, percent (clause 5.5.1).
pub const ROLLED_BACK_RANGE_PERCENT: (f64, f64) = (0.9, 1.1);

/// Maximum number of New-Orders per minute and warehouse that terminals with the least keying and think times can
/// enter, and the fewest that a correctly sized database may show (clause 4.2).
pub const PACED_NOPM_PER_WAREHOUSE: (f64, f64) = (9.0, 12.86);

/// Disclaimer that must accompany every result.
pub const DISCLAIMER: &str =
    "order entry, derived from TPC-C; unaudited, not comparable with published TPC-C results";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deck_has_23_cards_and_satisfies_the_minimum_shares() {
        let cards: u32 = CONSTRAINTS.iter().map(|constraint| constraint.cards).sum();
        assert_eq!(cards, 23);
        for (constraint, class) in CONSTRAINTS.iter().zip(CLASSES) {
            assert_eq!(constraint.class, *class);
            let share = 100.0 * f64::from(constraint.cards) / f64::from(cards);
            assert!(share >= constraint.share_min_percent, "{class}: {share} %");
        }
    }
}
