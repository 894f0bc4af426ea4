//! A server's half of the login: greeting, the client's answer, and the packets of an exchange between the two.

use crate::bytes::{Cursor, put_nul_bytes};
use crate::capability::Capabilities;
use crate::error::WireError;
use crate::greeting::Greeting;
use crate::packet;

/// Appends a greeting.
pub fn append_greeting(out: &mut Vec<u8>, greeting: &Greeting) {
    packet::append(out, 0, |out| {
        let (low, high) = greeting.capabilities.halves();
        let (first, second) = greeting.challenge.split_at(greeting.challenge.len().min(8));
        out.push(10);
        put_nul_bytes(out, greeting.version_text.as_bytes());
        out.extend_from_slice(&greeting.connection_id.to_le_bytes());
        out.extend_from_slice(first);
        out.resize(out.len() + 8 - first.len() + 1, 0);
        out.extend_from_slice(&low[..2]);
        out.push(greeting.collation);
        out.extend_from_slice(&greeting.status.0.to_le_bytes());
        out.extend_from_slice(&low[2..]);
        out.push(u8::try_from(greeting.challenge.len() + 1).unwrap_or(u8::MAX));
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&high);
        put_nul_bytes(out, second);
        put_nul_bytes(out, greeting.auth_method.as_bytes());
    });
}

/// Appends a request to use another authentication method.
pub fn append_auth_switch(out: &mut Vec<u8>, sequence: u8, method: &str, challenge: &[u8]) -> u8 {
    packet::append(out, sequence, |out| {
        out.push(0xFE);
        put_nul_bytes(out, method.as_bytes());
        out.extend_from_slice(challenge);
    })
}

/// Appends data of an authentication method, such as a request for the password or a public key.
pub fn append_more_auth_data(out: &mut Vec<u8>, sequence: u8, data: &[u8]) -> u8 {
    packet::append(out, sequence, |out| {
        out.push(1);
        out.extend_from_slice(data);
    })
}

/// A client's answer to the greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientPacket<'a> {
    /// It wants TLS first.
    TlsRequest(Capabilities),
    /// It logs in.
    Login(ClientLogin<'a>),
}

/// A client's login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientLogin<'a> {
    /// The capabilities it chose.
    pub capabilities: Capabilities,
    /// The longest packet it accepts, bytes.
    pub packet_limit: u32,
    /// Number of its collation.
    pub collation: u8,
    /// User name.
    pub user: &'a [u8],
    /// Its answer to the challenge.
    pub answer: &'a [u8],
    /// Default database, if it names one.
    pub database: Option<&'a [u8]>,
    /// Authentication method of the answer; empty if not named.
    pub auth_method: &'a [u8],
}

impl<'a> ClientPacket<'a> {
    /// Reads a client's answer to the greeting.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when it ends early or speaks a protocol older than that of MySQL 4.1.
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("login", payload);
        let mut capabilities = Capabilities(u64::from(cursor.u32()?));
        if !capabilities.contains(Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION) {
            return Err(cursor.wrong("the client does not speak the protocol of MySQL 4.1"));
        }
        let packet_limit = cursor.u32()?;
        let collation = cursor.u8()?;
        cursor.bytes(19)?;
        let extended = cursor.u32()?;
        if !capabilities.contains(Capabilities::LONG_PASSWORD) {
            capabilities.0 |= u64::from(extended) << 32;
        }
        if cursor.is_empty() && capabilities.contains(Capabilities::TLS) {
            return Ok(ClientPacket::TlsRequest(capabilities));
        }
        let user = cursor.nul_bytes()?;
        let answer = if capabilities.contains(Capabilities::LONG_AUTH_ANSWER) {
            cursor.length_bytes()?
        } else {
            let length = cursor.u8()?;
            cursor.bytes(usize::from(length))?
        };
        let with_database = capabilities.contains(Capabilities::CONNECT_WITH_DATABASE);
        let database = if with_database {
            Some(cursor.nul_bytes()?)
        } else {
            None
        };
        let named = capabilities.contains(Capabilities::PLUGIN_AUTH);
        let auth_method = if named { cursor.nul_bytes()? } else { &[] };
        Ok(ClientPacket::Login(ClientLogin {
            capabilities,
            packet_limit,
            collation,
            user,
            answer,
            database,
            auth_method,
        }))
    }
}
