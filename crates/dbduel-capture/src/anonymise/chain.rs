//! Keyed pseudo-random shifts that depend on what precedes.

/// A secret from which each map has its own.
#[derive(Clone)]
pub(super) struct MapKey([u8; super::KEY_BYTES]);

impl MapKey {
    /// The key of one map; `purpose` must be that of no other.
    pub(super) fn derive(key: &[u8; super::KEY_BYTES], purpose: &str) -> Self {
        MapKey(blake3::derive_key(purpose, key))
    }

    /// As many pseudo-random bytes as `bytes` has.
    pub(super) fn fill(&self, bytes: &mut [u8]) {
        blake3::Hasher::new_keyed(&self.0)
            .finalize_xof()
            .fill(bytes);
    }
}

/// Bytes of a hash that lead to the next one; the rest decides about shifts.
const LINK_BYTES: usize = 16;

/// A chain of keyed hashes over a text. Equal beginnings have equal shifts, so what they are replaced by is equal, too.
pub(super) struct Chain<'k> {
    key: &'k MapKey,
    state: [u8; 32],
}

impl<'k> Chain<'k> {
    /// The chain at the beginning of a text.
    pub(super) fn new(key: &'k MapKey) -> Self {
        Chain {
            key,
            state: *blake3::keyed_hash(&key.0, b"").as_bytes(),
        }
    }

    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.state[LINK_BYTES..LINK_BYTES + 8]);
        u64::from_le_bytes(bytes)
    }

    /// A shift for a class of `size` characters: from 1 to `size - 1`, so that the character changes.
    pub(super) fn shift(&self, size: u32) -> u32 {
        match size {
            0 | 1 => 0,
            _ => (self.number() % u64::from(size - 1)) as u32 + 1,
        }
    }

    /// A bit.
    pub(super) fn bit(&self) -> u8 {
        (self.number() & 1) as u8
    }

    /// Goes on behind a character; `character` is the same for all that shall have the same replacement.
    pub(super) fn pass(&mut self, character: u32) {
        let mut input = [0; LINK_BYTES + 4];
        input[..LINK_BYTES].copy_from_slice(&self.state[..LINK_BYTES]);
        input[LINK_BYTES..].copy_from_slice(&character.to_le_bytes());
        self.state = *blake3::keyed_hash(&self.key.0, &input).as_bytes();
    }
}
