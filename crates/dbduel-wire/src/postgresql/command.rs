//! Messages of the client. Each function appends one to a buffer and allocates only when that must grow.

use super::prepare::Statement;
use crate::command::CommandError;
use crate::value::Value;

/// Version 3.0.
const PROTOCOL: u32 = 196_608;
const SSL_REQUEST: u32 = 80_877_103;

/// Appends a message: `write` appends its body, the length is put before it.
#[inline]
fn message(out: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    body(out, write);
}

/// Appends a message without a tag, which only the first message of a connection lacks.
#[inline]
fn body(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = out.len() - start;
    put_length(out, start, length);
}

/// Fills in a length. One that the protocol cannot express would be 2 GiB, which no server accepts either.
#[inline]
fn put_length(out: &mut [u8], at: usize, length: usize) {
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a string and a NUL. A NUL inside would end the string early, so it ends here too.
fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    crate::bytes::put_nul_bytes(out, text);
}

/// Asks for TLS; the server answers with one byte, `S` or `N`.
pub fn ssl_request(out: &mut Vec<u8>) {
    body(out, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
}

/// Begins a session with these parameters.
pub fn startup(out: &mut Vec<u8>, parameters: &[(&str, &str)]) {
    body(out, |out| {
        out.extend_from_slice(&PROTOCOL.to_be_bytes());
        for (name, value) in parameters {
            put_string(out, name.as_bytes());
            put_string(out, value.as_bytes());
        }
        out.push(0);
    });
}

/// A password in clear text or hashed, with a final NUL.
pub(super) fn password(out: &mut Vec<u8>, text: &[u8]) {
    message(out, b'p', |out| put_string(out, text));
}

/// The first message of a SASL exchange.
pub(super) fn sasl_initial(out: &mut Vec<u8>, mechanism: &str, data: &[u8]) {
    message(out, b'p', |out| {
        put_string(out, mechanism.as_bytes());
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(data);
        put_length(out, start, data.len());
    });
}

/// Any further message of a SASL exchange.
pub(super) fn sasl_response(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'p', |out| out.extend_from_slice(data));
}

/// Runs statements as text (the simple protocol).
#[inline]
pub fn query(out: &mut Vec<u8>, sql: &[u8]) {
    message(out, b'Q', |out| put_string(out, sql));
}

/// Prepares a statement on the server under a name, and asks to describe its parameters and columns.
pub fn prepare(out: &mut Vec<u8>, name: u32, sql: &[u8]) {
    message(out, b'P', |out| {
        put_name(out, name);
        put_string(out, sql);
        // The server finds the types of all parameters.
        out.extend_from_slice(&0_u16.to_be_bytes());
    });
    message(out, b'D', |out| {
        out.push(b'S');
        put_name(out, name);
    });
    sync(out);
}

/// Executes a prepared statement with these values (Bind and Execute). [`sync`] must follow, for one execution or
/// several.
///
/// # Errors
/// [`CommandError::ParameterCount`] when the number of values is wrong; nothing is appended then.
#[inline]
pub fn execute(
    out: &mut Vec<u8>,
    statement: &Statement,
    values: &[Value<'_>],
) -> Result<(), CommandError> {
    let count = match u16::try_from(values.len()) {
        Ok(count) if values.len() == statement.parameters.len() => count,
        _ => {
            return Err(CommandError::ParameterCount {
                statement: statement.name,
                expected: statement.parameters.len(),
                got: values.len(),
            });
        }
    };
    message(out, b'B', |out| {
        // The portal without a name.
        out.push(0);
        put_name(out, statement.name);
        out.extend_from_slice(&count.to_be_bytes());
        let formats = out.len();
        out.resize(formats + 2 * values.len(), 0);
        out.extend_from_slice(&count.to_be_bytes());
        for (index, (value, kind)) in values.iter().zip(&statement.parameters).enumerate() {
            let start = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if matches!(value, Value::Null) {
                continue;
            }
            let is_binary = kind.put(out, value);
            out[formats + 2 * index + 1] = u8::from(is_binary);
            let length = out.len() - start - 4;
            put_length(out, start, length);
        }
        out.extend_from_slice(&statement.result_formats);
    });
    put_execute(out);
    Ok(())
}

/// Prepares a statement without a name and executes it with these values as text, whose types the server finds; `None` is NULL. The
/// answer describes its columns, as that to a query in text does. [`sync`] must follow.
///
/// # Errors
/// [`CommandError::ParameterCount`] for more values than the protocol can count; nothing is appended then.
pub fn execute_text(
    out: &mut Vec<u8>,
    sql: &[u8],
    values: &[Option<&[u8]>],
) -> Result<(), CommandError> {
    let Ok(count) = u16::try_from(values.len()) else {
        return Err(CommandError::ParameterCount {
            statement: 0,
            expected: usize::from(u16::MAX),
            got: values.len(),
        });
    };
    message(out, b'P', |out| {
        out.push(0);
        put_string(out, sql);
        out.extend_from_slice(&0_u16.to_be_bytes());
    });
    message(out, b'B', |out| {
        // The portal and the statement without names.
        out.extend_from_slice(&[0, 0]);
        // All values as text.
        out.extend_from_slice(&0_u16.to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        for value in values {
            let start = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if let Some(value) = value {
                out.extend_from_slice(value);
                put_length(out, start, value.len());
            }
        }
        // All columns as text.
        out.extend_from_slice(&0_u16.to_be_bytes());
    });
    message(out, b'D', |out| out.extend_from_slice(b"P\0"));
    put_execute(out);
    Ok(())
}

/// Executes the portal without a name, for all its rows.
#[inline]
fn put_execute(out: &mut Vec<u8>) {
    message(out, b'E', |out| {
        out.push(0);
        out.extend_from_slice(&0_u32.to_be_bytes());
    });
}

/// Ends a group of executions; the server answers all of them.
#[inline]
pub fn sync(out: &mut Vec<u8>) {
    message(out, b'S', |_| {});
}

/// Deallocates a prepared statement on the server. [`sync`] must follow.
pub fn close(out: &mut Vec<u8>, statement: &Statement) {
    message(out, b'C', |out| {
        out.push(b'S');
        put_name(out, statement.name);
    });
}

/// A piece of the input of a `COPY … FROM STDIN`.
pub fn copy_data(out: &mut Vec<u8>, piece: &[u8]) {
    message(out, b'd', |out| out.extend_from_slice(piece));
}

/// The end of the input.
pub fn copy_done(out: &mut Vec<u8>) {
    message(out, b'c', |_| {});
}

/// Makes a `COPY … FROM STDIN` fail, for this reason.
pub fn copy_fail(out: &mut Vec<u8>, why: &str) {
    message(out, b'f', |out| put_string(out, why.as_bytes()));
}

/// Ends the session; there is no answer.
pub fn terminate(out: &mut Vec<u8>) {
    message(out, b'X', |_| {});
}

/// The name of a statement: `s` and its number, without padding.
#[inline]
fn put_name(out: &mut Vec<u8>, number: u32) {
    let mut digits = [0; 10];
    let mut start = digits.len();
    let mut left = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (left % 10).to_le_bytes()[0];
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.push(b's');
    out.extend_from_slice(&digits[start..]);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_of_a_point_query_is_one_send() {
        let statement = Statement::described(1, &[23], &[1042]);
        let mut out = Vec::new();
        execute(&mut out, &statement, &[Value::Signed(5)]).unwrap();
        sync(&mut out);
        let bind = b"B\0\0\0\x18\0s1\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x05\0\0";
        let expected = [&bind[..], b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"].concat();
        assert_eq!(out, expected);
        assert_eq!(out.len(), 40);
    }

    #[test]
    fn nulls_have_no_bytes_and_texts_are_marked() {
        let statement = Statement::described(12, &[1043, 23], &[]);
        let mut out = Vec::new();
        execute(&mut out, &statement, &[Value::Text("ab"), Value::Null]).unwrap();
        let bind = b"B\0\0\0\x1d\0s12\0\0\x02\0\0\0\0\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
        assert_eq!(out[..bind.len()], bind[..]);
    }

    #[test]
    fn a_wrong_number_of_values_appends_nothing() {
        let statement = Statement::described(1, &[23], &[]);
        let mut out = Vec::new();
        assert!(execute(&mut out, &statement, &[]).is_err());
        assert!(out.is_empty());
    }

    #[test]
    fn a_statement_in_text_has_its_values_as_text() {
        let mut out = Vec::new();
        execute_text(&mut out, b"SELECT $1", &[Some(b"ab"), None]).unwrap();
        let parse = b"P\0\0\0\x11\0SELECT $1\0\0\0";
        let bind = b"B\0\0\0\x16\0\0\0\0\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
        let (describe, execute) = (b"D\0\0\0\x06P\0", b"E\0\0\0\x09\0\0\0\0\0");
        assert_eq!(out, [&parse[..], bind, describe, execute].concat());
        let too_many = vec![None; 1 << 16];
        assert!(execute_text(&mut out, b"", &too_many).is_err());
    }

    #[test]
    fn a_nul_ends_a_statement() {
        let mut out = Vec::new();
        query(&mut out, b"SELECT 1\0; DROP");
        assert_eq!(out, b"Q\0\0\0\x0dSELECT 1\0");
    }
}
