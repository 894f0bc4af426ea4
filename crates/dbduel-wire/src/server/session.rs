//! One client's session from the server's view: greeting, login, requests.

use super::{ClientPacket, Command, Terms, append_greeting};
use crate::capability::{Capabilities, Status};
use crate::error::WireError;
use crate::greeting::Greeting;
use crate::packet::{Event, PAYLOAD_LIMIT, PacketReader};
use crate::reply::Completion;
use crate::server::ReplyWriter;

/// Capabilities of the mock server, without MariaDB's extended bits and TLS.
const CAPABILITIES: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0
        | Capabilities::CONNECT_WITH_DATABASE.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::MULTI_RESULTS.0
        | Capabilities::PREPARED_MULTI_RESULTS.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::LONG_AUTH_ANSWER.0
        | Capabilities::DEPRECATE_EOF.0,
);

/// Result of feeding bytes to a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<'a> {
    /// Nothing complete; all bytes are consumed.
    NeedMore,
    /// A login; the answer to it has been appended.
    LoggedIn,
    /// A request to be answered on these terms.
    Request(Command<'a>, Terms),
}

/// A session in progress.
#[derive(Debug)]
pub struct Session {
    reader: PacketReader,
    capabilities: Option<Capabilities>,
}

impl Session {
    /// A new session; appends the greeting to `out`.
    #[must_use]
    pub fn begin(connection_id: u32, version_text: &str, out: &mut Vec<u8>) -> Self {
        append_greeting(
            out,
            &Greeting {
                version_text: version_text.to_owned(),
                connection_id,
                capabilities: CAPABILITIES,
                collation: 45,
                status: Status::AUTOCOMMIT,
                auth_method: "mysql_native_password".to_owned(),
                // The answer to it is not checked.
                challenge: b"no-secret-challenge.".to_vec(),
            },
        );
        Session {
            reader: PacketReader::new(PAYLOAD_LIMIT),
            capabilities: None,
        }
    }

    /// Continues to read at `bytes[*position]`. The answer to the login is appended to `out`.
    ///
    /// # Errors
    /// [`WireError`] when the client violates the protocol or asks for TLS; the connection must be closed.
    pub fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        position: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<Turn<'a>, WireError> {
        if self.reader.is_between_packets() {
            // Every request counts its packets from 0 again.
            self.reader.skip_sequence_check();
        }
        let (payload, sequence) = match self.reader.next(bytes, position, |_| false)? {
            Event::Packet {
                payload,
                next_sequence,
            } => (payload, next_sequence),
            Event::NeedMore | Event::Skipped => return Ok(Turn::NeedMore),
        };
        if let Some(capabilities) = self.capabilities {
            return Ok(Turn::Request(
                Command::parse(payload)?,
                Terms {
                    capabilities,
                    sequence,
                },
            ));
        }
        match ClientPacket::parse(payload)? {
            ClientPacket::TlsRequest(_) => {
                Err(WireError::malformed("login", "TLS was not offered"))
            }
            ClientPacket::Login(login) => {
                let capabilities = login.capabilities & CAPABILITIES;
                self.capabilities = Some(capabilities);
                let status = Status::AUTOCOMMIT;
                ReplyWriter::new(
                    out,
                    Terms {
                        capabilities,
                        sequence,
                    },
                )
                .ok(&Completion {
                    status,
                    ..Completion::default()
                });
                Ok(Turn::LoggedIn)
            }
        }
    }
}
