//! A terminal's next transaction, and its waits.

use std::time::Duration;

use dbduel_client::random::Random;
use dbduel_client::tally::Class;
use dbduel_record::order_entry::CONSTRAINTS;

use super::settings::MixRule;

/// Think times are truncated at this multiple of their mean (TPC-C 5.2.5.4).
const THINK_MAX: f64 = 10.0;

/// A terminal's choice of transactions.
#[derive(Debug)]
pub(super) enum Mix {
    /// Remaining cards, drawn from the end.
    Deck(Vec<Class>),
    /// Percentages in the order of the classes.
    Weighted([u64; 5]),
}

impl Mix {
    pub(super) fn new(rule: MixRule) -> Self {
        match rule {
            MixRule::Deck => Mix::Deck(Vec::new()),
            MixRule::Weighted(weights) => Mix::Weighted(weights),
        }
    }

    /// Takes a new deck, so that the following draws are independent of the earlier ones.
    pub(super) fn restart(&mut self) {
        if let Mix::Deck(cards) = self {
            cards.clear();
        }
    }

    pub(super) fn draw(&mut self, random: &mut Random) -> Class {
        match self {
            Mix::Deck(cards) => {
                if cards.is_empty() {
                    shuffle_deck(cards, random);
                }
                cards.pop().unwrap_or(Class(0))
            }
            Mix::Weighted(weights) => {
                let mut left = random.below(100);
                for (class, weight) in weights.iter().enumerate() {
                    if left < *weight {
                        return Class(class);
                    }
                    left -= weight;
                }
                Class(0)
            }
        }
    }
}

/// All cards, shuffled (Fisher & Yates).
fn shuffle_deck(cards: &mut Vec<Class>, random: &mut Random) {
    for (class, constraint) in CONSTRAINTS.iter().enumerate() {
        cards.extend((0..constraint.cards).map(|_| Class(class)));
    }
    for last in (1..cards.len()).rev() {
        cards.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// Time to type the input of a transaction.
pub(super) fn keying(class: Class) -> Duration {
    Duration::from_secs_f64(CONSTRAINTS[class.0].keying_s)
}

/// Think time after a transaction.
pub(super) fn think(class: Class, random: &mut Random) -> Duration {
    let mean_s = CONSTRAINTS[class.0].think_mean_s;
    Duration::from_secs_f64(mean_s * random.exponential().min(THINK_MAX))
}

/// First wait of a terminal when a slice begins: a random part of the keying and think time of an average transaction;
/// otherwise all terminals would start at once.
pub(super) fn first_wait(random: &mut Random) -> Duration {
    let cards: u32 = CONSTRAINTS.iter().map(|constraint| constraint.cards).sum();
    let deck_s: f64 = CONSTRAINTS
        .iter()
        .map(|constraint| {
            f64::from(constraint.cards) * (constraint.keying_s + constraint.think_mean_s)
        })
        .sum();
    Duration::from_secs_f64(random.uniform() * deck_s / f64::from(cards))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(rule: MixRule, draws: usize) -> [f64; 5] {
        let (mut mix, mut random) = (Mix::new(rule), Random::new(1));
        let mut counts = [0_u32; 5];
        for _ in 0..draws {
            counts[mix.draw(&mut random).0] += 1;
        }
        counts.map(|count| f64::from(count) / draws as f64)
    }

    #[test]
    fn every_deck_has_all_its_cards() {
        let shares = shares(MixRule::Deck, 23 * 50);
        for (share, constraint) in shares.iter().zip(CONSTRAINTS) {
            assert!(
                (share * 23.0 - f64::from(constraint.cards)).abs() < 1e-9,
                "{shares:?}"
            );
        }
    }

    #[test]
    fn decks_are_shuffled() {
        let (mut mix, mut random) = (Mix::new(MixRule::Deck), Random::new(1));
        let mut deck = || (0..23).map(|_| mix.draw(&mut random).0).collect::<Vec<_>>();
        assert_ne!(deck(), deck());
    }

    #[test]
    fn weights_are_percentages() {
        let shares = shares(MixRule::Weighted([45, 43, 4, 4, 4]), 100_000);
        for (share, weight) in shares.iter().zip([0.45, 0.43, 0.04, 0.04, 0.04]) {
            assert!((share - weight).abs() < 0.006, "{shares:?}");
        }
    }

    #[test]
    fn think_times_have_their_mean_and_the_cycle_is_that_of_the_deck() {
        let mut random = Random::new(2);
        let mean_s = |draw: &mut dyn FnMut() -> Duration| {
            (0..100_000).map(|_| draw().as_secs_f64()).sum::<f64>() / 1e5
        };
        let think_s = mean_s(&mut || think(Class(0), &mut random));
        assert!((think_s - 12.0).abs() < 0.15, "{think_s}");
        let mut random = Random::new(3);
        // Half of 20.70 s.
        let first_s = mean_s(&mut || first_wait(&mut random));
        assert!((first_s - 10.35).abs() < 0.1, "{first_s}");
    }
}
