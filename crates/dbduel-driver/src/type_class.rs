//! Classes of column types, in which products can be compared.

use dbduel_record::answers::TypeClass;
use dbduel_wire::{Column, ColumnType};

/// The number of the collation of binary strings of MySQL.
const BINARY: u16 = 63;
/// Types that have no constant in the codec, which reads them as bytes.
const BIT: u8 = 16;
const JSON: u8 = 245;
const OTHERS_OF_BYTES: [u8; 5] = [247, 248, 249, 250, 251];

/// The class of a column's type.
#[must_use]
pub fn type_class(column: &Column<'_>, is_postgresql: bool) -> TypeClass {
    let of_strings = match (is_postgresql, column.collation) {
        (true, _) => TypeClass::Other,
        (false, BINARY) => TypeClass::Bytes,
        (false, _) => TypeClass::Text,
    };
    match column.kind.column_type {
        ColumnType::TINY
        | ColumnType::SHORT
        | ColumnType::LONG
        | ColumnType::LONG_LONG
        | ColumnType::INT24
        | ColumnType::YEAR => TypeClass::Integer,
        ColumnType::DECIMAL | ColumnType::OLD_DECIMAL => TypeClass::Decimal,
        ColumnType::FLOAT | ColumnType::DOUBLE => TypeClass::Float,
        ColumnType::DATE | ColumnType::TIME | ColumnType::DATETIME | ColumnType::TIMESTAMP => {
            TypeClass::Time
        }
        ColumnType::VARCHAR | ColumnType::VAR_STRING | ColumnType::STRING | ColumnType::BLOB => {
            of_strings
        }
        ColumnType(BIT) => TypeClass::Bits,
        ColumnType(JSON) => TypeClass::Json,
        ColumnType(code) if OTHERS_OF_BYTES.contains(&code) => of_strings,
        ColumnType(_) => TypeClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use dbduel_wire::ColumnKind;

    use super::*;

    #[test]
    fn types_that_hold_the_same_are_one_class() {
        let class = |code, collation, is_postgresql| {
            let column = Column {
                table: b"",
                name: b"",
                collation,
                length: 0,
                kind: ColumnKind {
                    column_type: ColumnType(code),
                    unsigned: false,
                },
                flags: 0,
                decimals: 0,
            };
            type_class(&column, is_postgresql)
        };
        // `SELECT 1` is 3 in MariaDB and 8 in MySQL; GROUP_CONCAT is 251, 252 or 253.
        assert_eq!(
            [3, 8].map(|code| class(code, 63, false)),
            [TypeClass::Integer; 2]
        );
        let texts = [251, 252, 253].map(|code| class(code, 45, false));
        assert_eq!(texts, [TypeClass::Text; 3]);
        assert_eq!(class(252, 63, false), TypeClass::Bytes);
        assert_eq!(class(252, 0, true), TypeClass::Other);
        assert_eq!(class(5, 63, false), TypeClass::Float);
        assert_eq!(class(245, 63, false), TypeClass::Json);
    }
}
