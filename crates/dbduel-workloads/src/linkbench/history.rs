//! Ends of long lists, remembered by a client so that it can continue reading.

use dbduel_client::random::Random;

/// Maximum number of lists that a client remembers.
const CAPACITY: usize = 2_048;

/// The end of a list that was longer than a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    pub id1: u64,
    /// Number of the link type, from 0.
    pub kind: u64,
    /// Time of the oldest link that was read.
    pub time: u64,
}

/// The lists remembered, one for each node and type.
#[derive(Debug, Default)]
pub(super) struct History {
    tails: Vec<Tail>,
}

impl History {
    pub(super) fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }

    /// A random list.
    pub(super) fn pick(&self, random: &mut Random) -> Option<Tail> {
        self.tails
            .get(random.below(self.tails.len() as u64) as usize)
            .copied()
    }

    /// Remembers the end of a list, replacing the previous one of that list, or a random other one when full.
    pub(super) fn remember(&mut self, tail: Tail, random: &mut Random) {
        match self.find(tail) {
            Some(index) => self.tails[index] = tail,
            None if self.tails.len() < CAPACITY => self.tails.push(tail),
            None => self.tails[random.below(CAPACITY as u64) as usize] = tail,
        }
    }

    /// Forgets a list that was read to its end.
    pub(super) fn forget(&mut self, tail: Tail) {
        if let Some(index) = self.find(tail) {
            self.tails.swap_remove(index);
        }
    }

    fn find(&self, tail: Tail) -> Option<usize> {
        self.tails
            .iter()
            .position(|known| (known.id1, known.kind) == (tail.id1, tail.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_one_place_and_places_are_limited() {
        let (mut history, mut random) = (History::default(), Random::new(1));
        assert_eq!(history.pick(&mut random), None);
        for id1 in 0..3_000 {
            history.remember(
                Tail {
                    id1,
                    kind: 0,
                    time: 5,
                },
                &mut random,
            );
            history.remember(
                Tail {
                    id1,
                    kind: 0,
                    time: 4,
                },
                &mut random,
            );
        }
        assert_eq!(history.tails.len(), CAPACITY);
        assert!(history.tails.iter().filter(|tail| tail.time == 4).count() > CAPACITY / 2);
        let tail = history.pick(&mut random).unwrap();
        history.forget(tail);
        assert_eq!(history.tails.len(), CAPACITY - 1);
        assert_eq!(history.find(tail), None);
    }
}
