//! Column definitions of a result set.

use crate::bytes::Cursor;
use crate::error::WireError;
use crate::value::{ColumnKind, ColumnType};

/// Maximum number of columns of a result set; servers stop at 4096.
pub const COLUMN_LIMIT: u64 = u16::MAX as u64;

const UNSIGNED: u16 = 1 << 5;

/// A column definition from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// The table's name or alias.
    pub table: &'a [u8],
    /// The column's name or alias.
    pub name: &'a [u8],
    /// The collation's number; 63 for binary data.
    pub collation: u16,
    /// The greatest length of a value, in bytes.
    pub length: u32,
    /// Type and sign.
    pub kind: ColumnKind,
    /// Flag bits as sent (not null, key, unsigned, …).
    pub flags: u16,
    /// Digits after the point.
    pub decimals: u8,
}

impl<'a> Column<'a> {
    /// Parses a column definition.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when the packet ends early or its fixed part has an invalid length.
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("column definition", payload);
        let _catalog = cursor.length_bytes()?;
        let _schema = cursor.length_bytes()?;
        let table = cursor.length_bytes()?;
        let _original_table = cursor.length_bytes()?;
        let name = cursor.length_bytes()?;
        let _original_name = cursor.length_bytes()?;
        if cursor.length()? < 12 {
            return Err(cursor.wrong("its fixed part is shorter than 12 bytes"));
        }
        let collation = cursor.u16()?;
        let length = cursor.u32()?;
        let column_type = ColumnType(cursor.u8()?);
        let flags = cursor.u16()?;
        let decimals = cursor.u8()?;
        let kind = ColumnKind {
            column_type,
            unsigned: flags & UNSIGNED != 0,
        };
        Ok(Column {
            table,
            name,
            collation,
            length,
            kind,
            flags,
            decimals,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_and_every_shorter_one_refused() {
        let packet = b"\x03def\x04shop\x01o\x06orders\x02id\x05o_id_\x0c\x3f\x00\x0b\x00\x00\x00\x03\x20\x00\x00\x00\x00";
        let column = Column::parse(packet).unwrap();
        assert_eq!((column.table, column.name), (&b"o"[..], &b"id"[..]));
        assert_eq!(
            (column.collation, column.length, column.decimals),
            (63, 11, 0)
        );
        assert_eq!(
            column.kind,
            ColumnKind {
                column_type: ColumnType::LONG,
                unsigned: true
            }
        );
        // The last two bytes are filler.
        for cut in 0..packet.len() - 2 {
            assert!(Column::parse(&packet[..cut]).is_err(), "cut at {cut}");
        }
    }
}
