//! The server's first packet: identity and capabilities.

use crate::bytes::{Cursor, printable};
use crate::capability::{Capabilities, Status};
use crate::error::WireError;

/// Prefix of MariaDB 10's version for compatibility with old replicas.
const REPLICATION_PREFIX: &str = "5.5.5-";

/// Longest version text kept, bytes.
const VERSION_TEXT_LIMIT: usize = 256;

/// The fields of a greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// The version text as sent, its first 256 bytes, with spaces for control characters.
    pub version_text: String,
    /// The server's id of this connection, as in the process list.
    pub connection_id: u32,
    /// Capabilities of the server.
    pub capabilities: Capabilities,
    /// Number of the server's default collation.
    pub collation: u8,
    /// Status bits at the time of connecting.
    pub status: Status,
    /// The authentication method the server proposes; empty when it names none.
    pub auth_method: String,
    /// Random challenge for the password.
    pub challenge: Vec<u8>,
}

impl Greeting {
    /// Reads the greeting.
    ///
    /// # Errors
    /// [`WireError::Malformed`] for another protocol version than 10 or a packet that ends early.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("greeting", payload);
        if cursor.u8()? != 10 {
            return Err(
                cursor.wrong("the protocol version is not 10; is this a MySQL or MariaDB port?")
            );
        }
        let version_text = printable(cursor.nul_bytes()?, VERSION_TEXT_LIMIT);
        let connection_id = cursor.u32()?;
        let mut challenge = cursor.bytes(8)?.to_vec();
        cursor.u8()?;
        let mut capabilities = u64::from(cursor.u16()?);
        let collation = cursor.u8()?;
        let status = Status(cursor.u16()?);
        capabilities |= u64::from(cursor.u16()?) << 16;
        let challenge_length = usize::from(cursor.u8()?);
        cursor.bytes(6)?;
        let extended = cursor.u32()?;
        if !Capabilities(capabilities).contains(Capabilities::LONG_PASSWORD) {
            capabilities |= u64::from(extended) << 32;
        }
        let second_part = cursor.bytes(
            challenge_length
                .saturating_sub(8)
                .max(13)
                .min(cursor.rest().len()),
        )?;
        challenge.extend_from_slice(second_part.strip_suffix(&[0]).unwrap_or(second_part));
        // Early 5.5 servers leave out the NUL behind the method's name.
        let name = cursor.rest();
        let name = &name[..name
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(name.len())];
        Ok(Greeting {
            version_text,
            connection_id,
            capabilities: Capabilities(capabilities),
            collation,
            status,
            auth_method: String::from_utf8_lossy(name).into_owned(),
            challenge,
        })
    }

    /// True for MariaDB, by its version text.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.version_text.to_ascii_lowercase().contains("mariadb")
    }

    /// The version text without MariaDB 10's compatibility prefix; equals `SELECT VERSION()`.
    #[must_use]
    pub fn version(&self) -> &str {
        let text = self.version_text.as_str();
        if self.is_mariadb() {
            text.strip_prefix(REPLICATION_PREFIX).unwrap_or(text)
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: &[u8] = b"\x0a8.0.33\0\x07\0\0\0abcdefgh\0\xff\xf7\xff\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0caching_sha2_password\0";

    #[test]
    fn a_greeting_is_read_and_every_shorter_one_refused_or_without_a_method() {
        let greeting = Greeting::parse(MYSQL).unwrap();
        assert_eq!(
            (
                greeting.version(),
                greeting.connection_id,
                greeting.collation
            ),
            ("8.0.33", 7, 255)
        );
        assert_eq!(greeting.challenge, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.auth_method, "caching_sha2_password");
        assert_eq!(greeting.capabilities, Capabilities(0xdfff_f7ff));
        for cut in 0..MYSQL.len() {
            if let Ok(greeting) = Greeting::parse(&MYSQL[..cut]) {
                assert!(greeting.auth_method.len() <= "caching_sha2_password".len());
                assert!(greeting.challenge.len() <= 20);
            }
        }
    }

    #[test]
    fn versions_are_those_that_a_query_would_tell() {
        let of = |text: &str| {
            let greeting = Greeting {
                version_text: text.to_owned(),
                ..Greeting::parse(MYSQL).unwrap()
            };
            (greeting.is_mariadb(), greeting.version().to_owned())
        };
        assert_eq!(
            of("5.5.5-10.4.8-MariaDB"),
            (true, "10.4.8-MariaDB".to_owned())
        );
        assert_eq!(of("5.5.5-m3"), (false, "5.5.5-m3".to_owned()));
    }

    #[test]
    fn another_protocol_is_refused() {
        assert!(Greeting::parse(b"\x09old").is_err());
        assert!(Greeting::parse(b"SSH-2.0").is_err());
    }
}
