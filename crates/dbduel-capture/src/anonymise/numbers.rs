//! Numbers: a keyed map that keeps order and sign.
//!
//! A map that keeps the order of all whole numbers and their digits changes none of them, so numbers grow: by less than 3.2 %. The size of a
//! number stays visible, and only a number just below a power of ten gets a further digit.

use super::chain::MapKey;

/// Numbers up to this one stay: limits, flags and small counts choose plans.
pub(super) const KEPT_MAX: u64 = 999;
/// Parts of each power of two, which grow by a share of their own.
const PARTS: usize = 16;
/// Parts per power of two as a power of two.
const PART_BITS: u32 = 4;
/// The shares are so many halves of one.
const SHARE_BITS: u32 = 10;
/// Shares below this one.
const SHARES: u8 = 32;
/// Powers of two of numbers of 64 bits.
const OCTAVES: usize = 64;
/// The first one that grows.
const FIRST_OCTAVE: usize = 9;
/// The least that every number grows by is from 1 to this.
const LEAST_MAX: u8 = 29;

/// Limits of types, which stay: applications use them for "no limit", and columns hold nothing greater.
const TYPE_LIMITS: [u64; 12] = [
    32_767,
    32_768,
    65_535,
    8_388_607,
    8_388_608,
    16_777_215,
    2_147_483_647,
    2_147_483_648,
    4_294_967_295,
    9_223_372_036_854_775_807,
    9_223_372_036_854_775_808,
    u64::MAX,
];

/// A map of whole numbers.
pub(super) struct NumberMap {
    /// For each part what its first number grows by, and its share.
    parts: Vec<(u128, u8)>,
}

impl NumberMap {
    pub(super) fn new(key: &MapKey) -> Self {
        let mut random = [0; 1 + OCTAVES * PARTS];
        key.fill(&mut random);
        let (least, shares) = random.split_at(1);
        let mut grown = u128::from(least[0] % LEAST_MAX) + 1;
        let mut parts = Vec::with_capacity(shares.len());
        for (place, share) in shares.iter().enumerate() {
            let octave = place / PARTS;
            let share = match octave < FIRST_OCTAVE {
                true => 0,
                false => share % SHARES,
            };
            parts.push((grown, share));
            let length = (1_u128 << octave) >> PART_BITS;
            grown += (length * u128::from(share)) >> SHARE_BITS;
        }
        NumberMap { parts }
    }

    /// The replacement of a number.
    pub(super) fn replace(&self, number: u64) -> u128 {
        if number <= KEPT_MAX || TYPE_LIMITS.contains(&number) {
            return u128::from(number);
        }
        let octave = number.ilog2();
        let part = (number >> (octave - PART_BITS)) as usize % PARTS;
        let (grown, share) = self.parts[octave as usize * PARTS + part];
        let behind = number & ((1 << (octave - PART_BITS)) - 1);
        u128::from(number) + grown + ((u128::from(behind) * u128::from(share)) >> SHARE_BITS)
    }
}

/// The parts of a plain number: digits without a needless zero, and behind a point further ones.
pub(super) struct Plain<'a> {
    /// Digits before the point.
    pub(super) whole: &'a [u8],
    /// Digits behind it; `None` without a point.
    pub(super) fraction: Option<&'a [u8]>,
}

impl<'a> Plain<'a> {
    /// A number without a sign; `None` for any other text.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (whole, rest) = text.split_at(digits);
        let is_canonical = whole == b"0" || whole.first().is_some_and(|first| *first != b'0');
        let fraction = match rest.split_first() {
            None => None,
            Some((b'.', fraction)) => Some(fraction),
            Some(_) => return None,
        };
        let has_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
        (is_canonical && fraction.is_none_or(has_digits)).then_some(Plain { whole, fraction })
    }

    /// The whole part; `None` where it has more than 64 bits.
    pub(super) fn value(&self) -> Option<u64> {
        std::str::from_utf8(self.whole).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(byte: u8) -> NumberMap {
        NumberMap::new(&MapKey::derive(&[byte; 32], "test"))
    }

    #[test]
    fn small_numbers_and_limits_of_types_stay() {
        for number in [0, 1, 20, 999, 32_767, 4_294_967_295, u64::MAX] {
            assert_eq!(map(1).replace(number), u128::from(number));
        }
        assert_ne!(map(1).replace(123_456), map(2).replace(123_456));
    }

    #[test]
    fn plain_numbers_are_known() {
        for (text, whole, fraction) in [
            ("0", "0", None),
            ("12.50", "12", Some("50")),
            ("7.", "7", Some("")),
        ] {
            let plain = Plain::parse(text.as_bytes()).unwrap();
            assert_eq!(plain.whole, whole.as_bytes());
            assert_eq!(plain.fraction, fraction.map(str::as_bytes));
        }
        for text in ["", "007", "1e5", "-1", ".5", "1.2.3", "1 "] {
            assert!(Plain::parse(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn neighbours_stay_apart_at_every_border() {
        let map = map(3);
        let mut borders: Vec<u64> = (10..63).map(|octave| 1 << octave).collect();
        borders.extend((10..60).flat_map(|octave| {
            (1..16).map(move |part| (1 << octave) + part * (1 << (octave - 4)))
        }));
        for border in borders {
            let around: Vec<u64> = (border - 2..border + 3)
                .filter(|number| !TYPE_LIMITS.contains(number))
                .collect();
            for pair in around.windows(2) {
                assert!(map.replace(pair[0]) < map.replace(pair[1]), "{pair:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn order_stays_and_growth_is_bounded(one in 1000_u64..u64::MAX / 2, step in 1_u64..1 << 40, key in 0_u8..4) {
            let map = map(key);
            let other = one + step;
            prop_assume!(!TYPE_LIMITS.contains(&one) && !TYPE_LIMITS.contains(&other));
            let (low, high) = (map.replace(one), map.replace(other));
            prop_assert!(low < high);
            prop_assert!(low > u128::from(one));
            prop_assert!(low - u128::from(one) <= u128::from(one) * 32 / 1000 + 30);
        }
    }
}
