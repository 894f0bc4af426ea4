//! Checksums of blocks (proofs): each block ends with the hash of its other bytes and of its place.

/// Bytes of a proof.
const BYTES: usize = 16;

/// The smallest block that can hold a proof.
pub(super) const BLOCK_BYTES_MIN: u64 = 2 * BYTES as u64;

fn hash(content: &[u8], offset: u64) -> [u8; BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(content);
    let mut proof = [0; BYTES];
    hasher.finalize_xof().fill(&mut proof);
    proof
}

/// Writes proofs into the blocks of `bytes`, which are at `offset` of their file.
pub(super) fn put(bytes: &mut [u8], offset: u64, block_bytes: u64) {
    for (number, block) in (0_u64..).zip(bytes.chunks_mut(block_bytes as usize)) {
        if (block.len() as u64) < BLOCK_BYTES_MIN {
            continue;
        }
        let (content, place) = block.split_at_mut(block.len() - BYTES);
        place.copy_from_slice(&hash(content, offset + number * block_bytes));
    }
}

/// The offset of the first block whose proof is wrong.
pub(super) fn first_wrong(bytes: &[u8], offset: u64, block_bytes: u64) -> Option<u64> {
    (0_u64..)
        .zip(bytes.chunks(block_bytes as usize))
        .filter(|(_, block)| block.len() as u64 >= BLOCK_BYTES_MIN)
        .map(|(number, block)| (offset + number * block_bytes, block))
        .find(|(at, block)| {
            let (content, place) = block.split_at(block.len() - BYTES);
            hash(content, *at) != place
        })
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_or_moved_block_is_found() {
        let mut bytes = vec![7; 3 * 512];
        put(&mut bytes, 4096, 512);
        assert_eq!(first_wrong(&bytes, 4096, 512), None);
        assert_eq!(first_wrong(&bytes, 8192, 512), Some(8192));
        bytes[600] ^= 1;
        assert_eq!(first_wrong(&bytes, 4096, 512), Some(4096 + 512));
    }
}
