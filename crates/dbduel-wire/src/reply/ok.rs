//! OK and EOF packets: the end of a statement or of a list of rows.

use crate::bytes::Cursor;
use crate::capability::Status;
use crate::error::WireError;

/// Content of an OK packet. An EOF packet is one with zero rows affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completion {
    /// Rows inserted, changed or deleted (matched, with `FOUND_ROWS`).
    pub affected_rows: u64,
    /// First value generated for an AUTO_INCREMENT column, 0 if none.
    pub last_insert_id: u64,
    /// Status bits of the session.
    pub status: Status,
    /// Number of warnings.
    pub warnings: u16,
}

impl Completion {
    /// Parses an OK packet, leading byte (0x00, or 0xFE after rows) included. The info text is ignored.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when the packet ends early.
    #[inline]
    pub fn parse_ok(payload: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("OK packet", payload);
        cursor.u8()?;
        let affected_rows = cursor.length()?;
        let last_insert_id = cursor.length()?;
        let status = Status(cursor.u16()?);
        let warnings = cursor.u16()?;
        Ok(Completion {
            affected_rows,
            last_insert_id,
            status,
            warnings,
        })
    }

    /// Reads an EOF packet, the leading 0xFE included.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when the packet ends early.
    pub fn parse_eof(payload: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("EOF packet", payload);
        cursor.u8()?;
        let warnings = cursor.u16()?;
        let status = Status(cursor.u16()?);
        Ok(Completion {
            status,
            warnings,
            ..Completion::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ok_packet_is_read_up_to_its_info_text() {
        let packet = b"\x00\xfc\x2c\x01\x05\x03\x00\x02\x00Rows matched: 300";
        let completion = Completion::parse_ok(packet).unwrap();
        assert_eq!(
            (
                completion.affected_rows,
                completion.last_insert_id,
                completion.warnings
            ),
            (300, 5, 2)
        );
        assert_eq!(
            completion.status,
            Status::IN_TRANSACTION | Status::AUTOCOMMIT
        );
        for cut in 0..9 {
            assert!(
                Completion::parse_ok(&packet[..cut]).is_err(),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn an_eof_packet_holds_warnings_before_status() {
        let completion = Completion::parse_eof(b"\xfe\x01\x00\x0a\x00").unwrap();
        assert_eq!((completion.warnings, completion.status.0), (1, 0x0a));
        assert!(completion.status.contains(Status::MORE_RESULTS));
        assert!(Completion::parse_eof(b"\xfe\x01\x00\x0a").is_err());
    }
}
