//! Named random seeds: every random stream of a run is derived from the plan's one seed.

/// The seed of the stream called `path`, for example `"schedule/level/1"`.
///
/// The same root and path give the same seed in any order and on any machine, so neither thread order nor a resume
/// changes what is drawn. The bytes are hashed with FNV-1a (Fowler, Noll, Vo, 1991) and finished with the mixer of
/// SplitMix64 (Steele, Lea, Flood, 2014), because FNV alone gives similar seeds to similar paths.
#[must_use]
pub fn named_seed(root: u64, path: &str) -> u64 {
    let hash = path
        .bytes()
        .fold(root ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    mix(hash)
}

/// The finishing step of SplitMix64: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::named_seed;

    #[test]
    fn a_stream_is_named_by_its_root_and_its_path() {
        assert_eq!(named_seed(7, "client/1"), named_seed(7, "client/1"));
        assert_ne!(named_seed(7, "client/1"), named_seed(7, "client/2"));
        assert_ne!(named_seed(7, "client/1"), named_seed(8, "client/1"));
    }

    #[test]
    fn neighbouring_paths_give_distant_seeds() {
        let distance = (named_seed(7, "client/1") ^ named_seed(7, "client/2")).count_ones();
        assert!((16..=48).contains(&distance), "only {distance} bits differ");
    }
}
