//! CRC-32 as servers compute it with `CRC32()` (ISO 3309, reflected), for servers without that function.

/// The remainder of every byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = remainder & 1;
            remainder >>= 1;
            if carry == 1 {
                remainder ^= 0xEDB8_8320;
            }
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

/// The checksum of these bytes.
pub(super) fn crc32<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    !bytes.fold(u32::MAX, |sum, byte| {
        TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ (sum >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_is_met() {
        assert_eq!(crc32(b"123456789".iter()), 0xCBF4_3926);
        assert_eq!(crc32([].iter()), 0);
    }
}
