//! The protocols' elementary numbers and strings, read from and appended to byte slices.

use crate::error::WireError;

/// The first `limit` bytes as text for display: control characters are replaced, since they would control a terminal.
pub(crate) fn printable(bytes: &[u8], limit: usize) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]);
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(shown).collect()
}

/// Reads a payload from front to back. Every read is checked; none can panic.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    packet: &'static str,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// `packet` names what is being read, for error messages.
    pub(crate) fn new(packet: &'static str, payload: &'a [u8]) -> Self {
        Cursor {
            packet,
            rest: payload,
        }
    }

    pub(crate) fn wrong(&self, problem: &'static str) -> WireError {
        WireError::malformed(self.packet, problem)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.wrong("ends too early")),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(self.wrong("ends too early")),
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of the PostgreSQL protocol, most significant byte first.
    #[inline]
    pub(crate) fn be_u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    /// As [`Cursor::be_u16`].
    #[inline]
    pub(crate) fn be_u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer: one byte below 251, otherwise a marker and 2, 3 or 8 bytes.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<u64, WireError> {
        match self.u8()? {
            small @ 0..=0xFA => Ok(u64::from(small)),
            0xFC => self.u16().map(u64::from),
            0xFD => {
                let [a, b, c] = self.array()?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xFE => self.u64(),
            _ => Err(self.wrong("0xFB or 0xFF where a length was due")),
        }
    }

    /// A string preceded by its length-encoded length.
    #[inline]
    pub(crate) fn length_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.length()?;
        // A length that does not fit memory cannot be in the payload either.
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A string that ends with NUL; the NUL is consumed and not returned.
    pub(crate) fn nul_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let Some(end) = self.rest.iter().position(|&byte| byte == 0) else {
            return Err(self.wrong("a string has no terminating NUL"));
        };
        let taken = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(taken)
    }
}

/// Appends a length-encoded integer.
#[inline]
pub(crate) fn put_length(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a string preceded by its length-encoded length.
#[inline]
pub(crate) fn put_length_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a string and a NUL. A NUL inside would end the string early on the other side, so it ends here too.
pub(crate) fn put_nul_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    out.extend_from_slice(&bytes[..end]);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_survive_the_round_trip_at_every_border() {
        for value in [
            0,
            1,
            0xFA,
            0xFB,
            0xFC,
            0xFFFF,
            0x1_0000,
            0xFF_FFFF,
            0x100_0000,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            put_length(&mut out, value);
            let mut cursor = Cursor::new("test", &out);
            assert_eq!(cursor.length().unwrap(), value);
            assert!(cursor.is_empty());
            for cut in 0..out.len() {
                assert!(Cursor::new("test", &out[..cut]).length().is_err());
            }
        }
    }

    #[test]
    fn markers_that_are_no_lengths_are_refused() {
        assert!(Cursor::new("test", &[0xFB]).length().is_err());
        assert!(Cursor::new("test", &[0xFF]).length().is_err());
    }

    #[test]
    fn a_length_beyond_the_payload_is_refused() {
        assert!(
            Cursor::new("test", &[0xFE, 255, 255, 255, 255, 255, 255, 255, 255, 1])
                .length_bytes()
                .is_err()
        );
        assert_eq!(
            Cursor::new("test", b"\x02abc").length_bytes().unwrap(),
            b"ab"
        );
    }

    #[test]
    fn strings_end_at_the_first_nul() {
        let mut cursor = Cursor::new("test", b"ab\0c");
        assert_eq!(cursor.nul_bytes().unwrap(), b"ab");
        assert!(cursor.nul_bytes().is_err());
        let mut out = Vec::new();
        put_nul_bytes(&mut out, b"x\0y");
        assert_eq!(out, b"x\0");
    }
}
