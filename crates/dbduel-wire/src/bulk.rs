//! MariaDB's `COM_STMT_BULK_EXECUTE`: one prepared statement, many rows of parameters, one request.
//!
//! Only for servers whose greeting has [`crate::Capabilities::BULK_EXECUTE`].

use crate::command::{CommandError, code, type_bytes};
use crate::packet;
use crate::prepare::Statement;
use crate::value::{ColumnKind, Value};

const SEND_TYPES: u16 = 128;

const VALUE_FOLLOWS: u8 = 0;
const IS_NULL: u8 = 1;

/// Appends an execution of `statement` for each of `rows`, whose values have the given kinds (see [`Value::kind`])
/// or are NULL. The whole request must stay below the server's `max_allowed_packet`; the caller chooses how many
/// rows that allows.
///
/// # Errors
/// [`CommandError`] when a row has another number of values or other kinds, or when there is no row; nothing is
/// appended then.
pub fn bulk_execute<'a, R: AsRef<[Value<'a>]>>(
    out: &mut Vec<u8>,
    statement: &Statement,
    kinds: &[ColumnKind],
    rows: impl IntoIterator<Item = R>,
) -> Result<(), CommandError> {
    let start = out.len();
    let mut outcome = check_count(statement, kinds.len());
    packet::append(out, 0, |out| {
        out.push(code::STMT_BULK_EXECUTE);
        out.extend_from_slice(&statement.id.to_le_bytes());
        out.extend_from_slice(&SEND_TYPES.to_le_bytes());
        for kind in kinds {
            out.extend_from_slice(&type_bytes(*kind));
        }
        if outcome.is_ok() {
            outcome = put_rows(out, statement, kinds, rows);
        }
    });
    if outcome.is_err() {
        out.truncate(start);
    }
    outcome
}

fn put_rows<'a, R: AsRef<[Value<'a>]>>(
    out: &mut Vec<u8>,
    statement: &Statement,
    kinds: &[ColumnKind],
    rows: impl IntoIterator<Item = R>,
) -> Result<(), CommandError> {
    let mut count = 0;
    for (row, values) in rows.into_iter().enumerate() {
        check_count(statement, values.as_ref().len())?;
        for (parameter, (value, kind)) in values.as_ref().iter().zip(kinds).enumerate() {
            if *value == Value::Null {
                out.push(IS_NULL);
                continue;
            }
            if value.kind() != *kind {
                return Err(CommandError::ParameterType { row, parameter });
            }
            out.push(VALUE_FOLLOWS);
            value.put(out);
        }
        count += 1;
    }
    if count == 0 {
        Err(CommandError::NoRows {
            statement: statement.id,
        })
    } else {
        Ok(())
    }
}

fn check_count(statement: &Statement, got: usize) -> Result<(), CommandError> {
    let expected = usize::from(statement.parameters);
    if got == expected {
        Ok(())
    } else {
        Err(CommandError::ParameterCount {
            statement: statement.id,
            expected,
            got,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATEMENT: Statement = Statement {
        id: 7,
        parameters: 2,
        columns: 0,
        warnings: 0,
    };
    const KINDS: [ColumnKind; 2] = [Value::Signed(0).kind(), Value::Text("").kind()];

    #[test]
    fn rows_follow_their_types() {
        let mut out = Vec::new();
        let rows = [
            [Value::Signed(5), Value::Text("ab")],
            [Value::Null, Value::Text("")],
        ];
        bulk_execute(&mut out, &STATEMENT, &KINDS, rows).unwrap();
        let expected =
            b"\x1b\0\0\0\xfa\x07\0\0\0\x80\0\x08\0\xfd\0\0\x05\0\0\0\0\0\0\0\0\x02ab\x01\0\0";
        assert_eq!(out, expected);
    }

    #[test]
    fn a_wrong_row_leaves_nothing_behind() {
        let mut out = b"before".to_vec();
        let wrong_kind = [
            [Value::Signed(5), Value::Text("")],
            [Value::Unsigned(5), Value::Text("")],
        ];
        let error = bulk_execute(&mut out, &STATEMENT, &KINDS, wrong_kind).unwrap_err();
        assert_eq!(
            error,
            CommandError::ParameterType {
                row: 1,
                parameter: 0
            }
        );
        assert!(bulk_execute(&mut out, &STATEMENT, &KINDS, [[Value::Null]]).is_err());
        assert!(bulk_execute(&mut out, &STATEMENT, &KINDS[..1], [[Value::Null]]).is_err());
        assert!(
            bulk_execute(
                &mut out,
                &STATEMENT,
                &KINDS,
                <[[Value<'_>; 2]; 0]>::default()
            )
            .is_err()
        );
        assert_eq!(out, b"before");
    }
}
