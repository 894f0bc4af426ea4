//! Choice of the next operation.

use dbduel_client::random::Random;
use dbduel_client::tally::Class;

/// An operation: its class, and the parameter that sets its share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub class: &'static str,
    pub parameter: &'static str,
}

const fn operation(class: &'static str, parameter: &'static str) -> Operation {
    Operation { class, parameter }
}

/// The ten operations, in the order in which a uniform number is compared with their cumulative shares.
pub(super) const OPERATIONS: [Operation; 10] = [
    operation("add-link", "addlink"),
    operation("delete-link", "deletelink"),
    operation("update-link", "updatelink"),
    operation("count-link", "countlink"),
    operation("multiget-link", "getlink"),
    operation("get-links-list", "getlinklist"),
    operation("add-node", "addnode"),
    operation("update-node", "updatenode"),
    operation("delete-node", "deletenode"),
    operation("get-node", "getnode"),
];

pub(super) const ADD_LINK: Class = Class(0);
pub(super) const DELETE_LINK: Class = Class(1);
pub(super) const UPDATE_LINK: Class = Class(2);
pub(super) const COUNT_LINK: Class = Class(3);
pub(super) const MULTIGET_LINK: Class = Class(4);
pub(super) const GET_LINKS_LIST: Class = Class(5);
pub(super) const ADD_NODE: Class = Class(6);
pub(super) const UPDATE_NODE: Class = Class(7);
pub(super) const DELETE_NODE: Class = Class(8);
pub(super) const GET_NODE: Class = Class(9);
/// Continuation of a list read earlier. The original program counts it as `get-links-list` and records no time for it.
pub(super) const GET_LINKS_HISTORY: Class = Class(10);

/// The classes: the operations, and the continuation of long lists.
pub(super) const CLASSES: &[&str] = &[
    OPERATIONS[0].class,
    OPERATIONS[1].class,
    OPERATIONS[2].class,
    OPERATIONS[3].class,
    OPERATIONS[4].class,
    OPERATIONS[5].class,
    OPERATIONS[6].class,
    OPERATIONS[7].class,
    OPERATIONS[8].class,
    OPERATIONS[9].class,
    "get-links-history",
];

/// The shares of the operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mix {
    /// Percent of an operation and all before it.
    cumulative: [f64; OPERATIONS.len()],
    history_percent: f64,
}

impl Mix {
    pub(super) fn new(percentages: [f64; OPERATIONS.len()], history_percent: f64) -> Self {
        let mut sum = 0.0;
        Mix {
            cumulative: percentages.map(|percent| {
                sum += percent;
                sum
            }),
            history_percent,
        }
    }

    /// The next operation; `has_history` when there is a long list to continue.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random, has_history: bool) -> Class {
        let at = random.uniform() * 100.0;
        let last = self.cumulative.len() - 1;
        let class = Class(
            self.cumulative
                .iter()
                .position(|&share| at < share)
                .unwrap_or(last),
        );
        if class == GET_LINKS_LIST && random.uniform() * 100.0 < self.history_percent && has_history
        {
            return GET_LINKS_HISTORY;
        }
        class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_the_operations_by_their_constants() {
        for (class, name) in [
            (ADD_LINK, "add-link"),
            (DELETE_LINK, "delete-link"),
            (UPDATE_LINK, "update-link"),
            (COUNT_LINK, "count-link"),
            (MULTIGET_LINK, "multiget-link"),
            (GET_LINKS_LIST, "get-links-list"),
            (ADD_NODE, "add-node"),
            (UPDATE_NODE, "update-node"),
            (DELETE_NODE, "delete-node"),
            (GET_NODE, "get-node"),
            (GET_LINKS_HISTORY, "get-links-history"),
        ] {
            assert_eq!(CLASSES[class.0], name);
        }
    }

    #[test]
    fn history_is_read_only_when_there_is_one() {
        let mut shares = [0.0; OPERATIONS.len()];
        shares[GET_LINKS_LIST.0] = 100.0;
        let mix = Mix::new(shares, 25.0);
        let mut random = Random::new(8);
        assert!((0..1_000).all(|_| mix.draw(&mut random, false) == GET_LINKS_LIST));
        let history = (0..10_000)
            .filter(|_| mix.draw(&mut random, true) == GET_LINKS_HISTORY)
            .count();
        assert!((2_300..2_700).contains(&history), "{history}");
    }
}
