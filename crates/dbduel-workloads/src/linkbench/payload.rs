//! Payloads: length, content, and form as SQL.
//!
//! A payload repeats pieces of a short random text, the motif, so that one number sets how well it compresses: the
//! share of pieces that are random.

use dbduel_client::random::Random;

/// Longest piece of a payload, bytes.
const PIECE: usize = 128;
/// Standard deviation of the logarithm of the length.
const LENGTH_SIGMA: f64 = 1.0;
/// Bytes from one draw of 64 bits: few enough that the bias is negligible.
const BYTES_PER_DRAW: usize = 6;

/// The largest payload of a link, and of a node, bytes. Draws stay below it.
pub(super) const LINK_MAX: usize = 255;
pub(super) const NODE_MAX: usize = 1 << 20;

/// Properties of payloads of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PayloadRule {
    /// Median length, bytes.
    pub median: f64,
    /// Exclusive upper bound of the length, bytes.
    pub limit: usize,
    /// First byte of the alphabet, and its size.
    pub first_byte: u8,
    pub bytes: u64,
    /// Share of the pieces that are random; 1 makes all bytes independent.
    pub uniqueness: f64,
    /// Length of the motif, bytes.
    pub motif: usize,
}

/// Makes payloads. Its motif is drawn with the first one, unless it was chosen before.
#[derive(Debug, Clone)]
pub(super) struct Payloads {
    rule: PayloadRule,
    motif: Vec<u8>,
}

impl Payloads {
    pub(super) fn new(rule: PayloadRule) -> Self {
        Payloads {
            rule,
            motif: Vec::new(),
        }
    }

    /// Draws the motif, unless there is one.
    pub(super) fn choose_motif(&mut self, random: &mut Random) {
        if self.motif.is_empty() {
            self.motif.resize(self.rule.motif.max(1), 0);
            self.rule.fill(random, &mut self.motif);
        }
    }

    /// Overwrites `payload` with a new one.
    pub(super) fn draw(&mut self, random: &mut Random, payload: &mut Vec<u8>) {
        self.choose_motif(random);
        let length = self.length(random);
        payload.clear();
        payload.resize(length, 0);
        for piece in payload.chunks_mut(PIECE.min(self.motif.len())) {
            if random.uniform() < self.rule.uniqueness {
                self.rule.fill(random, piece);
            } else {
                let offsets = self.motif.len() - piece.len() + 1;
                let offset = random.below(offsets as u64) as usize;
                piece.copy_from_slice(&self.motif[offset..offset + piece.len()]);
            }
        }
    }

    /// A log-normal length.
    fn length(&self, random: &mut Random) -> usize {
        let length = (self.rule.median.ln() + LENGTH_SIGMA * normal(random))
            .exp()
            .round();
        (length as usize).min(self.rule.limit - 1)
    }
}

impl PayloadRule {
    /// Independent bytes of the alphabet.
    fn fill(&self, random: &mut Random, bytes: &mut [u8]) {
        for few in bytes.chunks_mut(BYTES_PER_DRAW) {
            let mut fraction = random.bits();
            for byte in few {
                let product = u128::from(fraction) * u128::from(self.bytes);
                *byte = self.first_byte + (product >> 64) as u8;
                fraction = product as u64;
            }
        }
    }
}

/// A standard normal number (Box & Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (2.0 * random.exponential()).sqrt();
    radius * (std::f64::consts::TAU * random.uniform()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: PayloadRule = PayloadRule {
        median: 8.0,
        limit: LINK_MAX,
        first_byte: 32,
        bytes: 69,
        uniqueness: 0.225,
        motif: 128,
    };

    #[test]
    fn lengths_are_log_normal_around_the_median() {
        for (median, limit) in [(8.0, LINK_MAX), (128.0, NODE_MAX)] {
            let payloads = Payloads::new(PayloadRule {
                median,
                limit,
                ..LINK
            });
            let mut random = Random::new(4);
            let mut lengths: Vec<usize> =
                (0..200_001).map(|_| payloads.length(&mut random)).collect();
            lengths.sort_unstable();
            let half = lengths[100_000] as f64;
            assert!((half / median - 1.0).abs() < 0.02, "median {half}");
            // One standard deviation above the median lies a factor of e.
            let upper = lengths[168_269] as f64;
            assert!(
                (upper / (median * std::f64::consts::E) - 1.0).abs() < 0.03,
                "{upper}"
            );
            assert!(lengths[200_000] < limit);
        }
    }

    #[test]
    fn bytes_are_of_the_alphabet_and_equally_frequent() {
        let rule = PayloadRule {
            uniqueness: 1.0,
            median: 100.0,
            ..LINK
        };
        let (mut payloads, mut random, mut payload) =
            (Payloads::new(rule), Random::new(5), Vec::new());
        let mut counts = [0_u32; 256];
        for _ in 0..5_000 {
            payloads.draw(&mut random, &mut payload);
            payload
                .iter()
                .for_each(|&byte| counts[usize::from(byte)] += 1);
        }
        let all: u32 = counts.iter().sum();
        assert_eq!(counts[32..=100].iter().sum::<u32>(), all);
        let expected = f64::from(all) / 69.0;
        let chi_square: f64 = counts[32..=100]
            .iter()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        // 99.9 % quantile of chi-square with 68 degrees of freedom.
        assert!(chi_square < 108.5, "{chi_square}");
    }

    #[test]
    fn old_pieces_come_from_the_motif_and_the_same_seed_repeats_them() {
        let rule = PayloadRule {
            uniqueness: 0.0,
            median: 60.0,
            ..LINK
        };
        let make = || {
            let (mut payloads, mut random, mut payload) =
                (Payloads::new(rule), Random::new(6), Vec::new());
            payloads.draw(&mut random, &mut payload);
            let motif = payloads.motif.clone();
            (motif, payload)
        };
        let (motif, payload) = make();
        assert!(
            payload.is_empty()
                || motif
                    .windows(payload.len().min(128))
                    .any(|window| payload.starts_with(window))
        );
        assert_eq!(make(), (motif, payload));
    }
}
