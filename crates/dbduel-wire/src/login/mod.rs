//! The login as a state machine: greeting, optional change to TLS, authentication.
//!
//! Waits are the driver's, who must bound them; the number of accepted packets is bounded here. It does no I/O and no
//! TLS itself: it returns the bytes to send and requests the start of TLS.

mod error;
mod options;

use std::fmt;

pub use error::LoginError;
pub use options::{LoginOptions, TlsWish, Transport};

use crate::auth::{self, Method};
use crate::bytes::{Cursor, printable, put_length_bytes, put_nul_bytes};
use crate::capability::{Capabilities, Status};
use crate::error::{ServerError, WireError};
use crate::greeting::Greeting;
use crate::packet::{self, Event, PAYLOAD_LIMIT, PacketReader};
use crate::reply::Completion;

/// `utf8mb4_general_ci`, supported by every server from MySQL 5.5 and MariaDB 10.1 on.
const COLLATION: u8 = 45;

/// Optional capabilities that a caller may ask for.
const OPTIONAL: Capabilities = Capabilities(
    Capabilities::LOCAL_FILES.0 | Capabilities::MULTI_STATEMENTS.0 | Capabilities::FOUND_ROWS.0,
);

/// The longest packet accepted during login.
const PACKET_LIMIT: usize = 1 << 16;

/// Longest name of an authentication method that is kept, bytes; servers' names have at most 64.
const METHOD_NAME_LIMIT: usize = 64;

/// Maximum number of packets accepted during login; limits a server that keeps switching methods.
const PACKETS_LIMIT: u32 = 32;

/// The driver's next step. Bytes to send may hold a password; debug output shows their number only.
#[derive(Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// Wait for more bytes.
    NeedMore,
    /// Send these bytes, then wait for more.
    Send(Vec<u8>),
    /// Send these bytes, do the TLS handshake, then call [`Login::tls_started`].
    StartTls(Vec<u8>),
    /// Logged in.
    Done(LoggedIn),
}

impl fmt::Debug for LoginStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginStep::NeedMore => formatter.write_str("NeedMore"),
            LoginStep::Send(bytes) => write!(formatter, "Send({} bytes)", bytes.len()),
            LoginStep::StartTls(bytes) => write!(formatter, "StartTls({} bytes)", bytes.len()),
            LoginStep::Done(logged_in) => formatter.debug_tuple("Done").field(logged_in).finish(),
        }
    }
}

/// A finished login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    /// The server's greeting.
    pub greeting: Greeting,
    /// The capabilities both sides agreed on.
    pub capabilities: Capabilities,
    /// Status bits of the new session.
    pub status: Status,
    /// The method of this side's last answer. A server that only checks the peer's user switches to none, and then it
    /// is the method that the login began with.
    pub method: Method,
    /// True when the connection changed to TLS.
    pub tls: bool,
}

#[derive(Debug)]
enum State {
    Greeting,
    Tls,
    Verdict,
    PublicKey,
    Over,
}

impl State {
    /// Explains an error: text of another protocol, read as a header, announces a long packet.
    fn explain(&self, error: WireError) -> WireError {
        match (self, error) {
            (State::Greeting, WireError::TooLong { .. }) => WireError::malformed(
                "greeting",
                "too long for one; is this a MySQL or MariaDB port?",
            ),
            _ => error,
        }
    }
}

/// A login in progress.
#[derive(Debug)]
pub struct Login {
    options: LoginOptions,
    reader: PacketReader,
    state: State,
    packets: u32,
    greeting: Option<Greeting>,
    capabilities: Capabilities,
    method: Method,
    challenge: Vec<u8>,
    tls: bool,
}

impl Login {
    /// A login that waits for the server's greeting.
    #[must_use]
    pub fn new(options: LoginOptions) -> Self {
        Login {
            options,
            reader: PacketReader::new(PACKET_LIMIT),
            state: State::Greeting,
            packets: 0,
            greeting: None,
            capabilities: Capabilities::default(),
            method: Method::Native,
            challenge: Vec::new(),
            tls: false,
        }
    }

    /// Takes bytes that arrived; returns how many were used and what to do. When not all were used, do it and
    /// feed the rest.
    ///
    /// # Errors
    /// [`LoginError`]; the connection is to be closed.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, LoginStep), LoginError> {
        let mut consumed = 0;
        let step = self.run(bytes, &mut consumed);
        if step.is_err() {
            self.state = State::Over;
        }
        Ok((consumed, step?))
    }

    /// Continues after the TLS handshake; returns the bytes to send through TLS.
    ///
    /// # Errors
    /// [`LoginError::Unexpected`] when TLS was not requested.
    pub fn tls_started(&mut self) -> Result<Vec<u8>, LoginError> {
        if !matches!(self.state, State::Tls) {
            return Err(LoginError::Unexpected);
        }
        self.tls = true;
        Ok(self.login_packet())
    }

    fn run(&mut self, bytes: &[u8], position: &mut usize) -> Result<LoginStep, LoginError> {
        loop {
            if matches!(self.state, State::Tls | State::Over) {
                return Err(LoginError::Unexpected);
            }
            // Owned, because answering needs the whole machine; a login has a handful of short packets.
            let event = self.reader.next(bytes, position, |_| false);
            let payload = match event.map_err(|error| self.state.explain(error))? {
                Event::Packet { payload, .. } => payload.to_vec(),
                Event::NeedMore | Event::Skipped => return Ok(LoginStep::NeedMore),
            };
            self.packets += 1;
            if self.packets > PACKETS_LIMIT {
                return Err(LoginError::Endless);
            }
            if payload.first() == Some(&0xFF) {
                return Err(LoginError::Refused(ServerError::parse(&payload)?));
            }
            let step = match self.state {
                State::Greeting => self.greeted(&payload)?,
                State::Verdict => self.verdict(&payload)?,
                State::PublicKey => self.public_key(&payload)?,
                State::Tls | State::Over => return Err(LoginError::Unexpected),
            };
            if step != LoginStep::NeedMore {
                return Ok(step);
            }
        }
    }

    fn greeted(&mut self, payload: &[u8]) -> Result<LoginStep, LoginError> {
        let greeting = Greeting::parse(payload)?;
        for (needed, lacking) in [
            (Capabilities::PROTOCOL_41, "the protocol of MySQL 4.1"),
            (Capabilities::SECURE_CONNECTION, "20-byte challenges"),
            (Capabilities::PLUGIN_AUTH, "named authentication methods"),
        ] {
            if !greeting.capabilities.contains(needed) {
                return Err(LoginError::TooOld {
                    version: greeting.version_text,
                    lacking,
                });
            }
        }
        let offers_tls = greeting.capabilities.contains(Capabilities::TLS);
        if self.options.tls == TlsWish::Required && !offers_tls {
            return Err(LoginError::NoTls);
        }
        let start_tls = offers_tls && self.options.tls != TlsWish::Off;
        self.capabilities = self.negotiate(greeting.capabilities, start_tls);
        // A server may propose a method we do not speak and switch to the user's own method later. One that answers no
        // challenge is not begun unasked either.
        self.method = Method::by_name(&greeting.auth_method)
            .filter(|&method| method != Method::Sha256)
            .unwrap_or(Method::Native);
        self.challenge.clone_from(&greeting.challenge);
        self.greeting = Some(greeting);
        if start_tls {
            let mut out = Vec::new();
            packet::append(&mut out, self.reader.next_sequence(), |out| {
                self.put_head(out);
            });
            self.state = State::Tls;
            return Ok(LoginStep::StartTls(out));
        }
        Ok(LoginStep::Send(self.login_packet()))
    }

    fn negotiate(&self, offered: Capabilities, start_tls: bool) -> Capabilities {
        let mut asked = Capabilities::LONG_PASSWORD
            | Capabilities::PROTOCOL_41
            | Capabilities::TRANSACTIONS
            | Capabilities::SECURE_CONNECTION
            | Capabilities::MULTI_RESULTS
            | Capabilities::PREPARED_MULTI_RESULTS
            | Capabilities::PLUGIN_AUTH
            | Capabilities::LONG_AUTH_ANSWER
            | Capabilities::DEPRECATE_EOF
            | Capabilities::BULK_EXECUTE
            | (self.options.wanted & OPTIONAL);
        if self.options.database.is_some() {
            asked = asked | Capabilities::CONNECT_WITH_DATABASE;
        }
        if start_tls {
            asked = asked | Capabilities::TLS;
        }
        asked & offered
    }

    /// The part common to a request for TLS and the login.
    fn put_head(&self, out: &mut Vec<u8>) {
        let (low, high) = self.capabilities.halves();
        out.extend_from_slice(&low);
        out.extend_from_slice(&PAYLOAD_LIMIT.to_le_bytes()[..4]);
        out.push(COLLATION);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&high);
    }

    fn login_packet(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let sequence = self.reader.next_sequence().wrapping_add(u8::from(self.tls));
        let answer = self.method.answer(
            self.options.credentials.password.as_bytes(),
            &self.challenge,
        );
        packet::append(&mut out, sequence, |out| {
            self.put_head(out);
            put_nul_bytes(out, self.options.credentials.user.as_bytes());
            // The answers spoken here have at most 64 bytes, for which both length formats are the same byte.
            put_length_bytes(out, &answer);
            if let Some(database) = &self.options.database {
                put_nul_bytes(out, database.as_bytes());
            }
            put_nul_bytes(out, self.method.name().as_bytes());
        });
        self.await_verdict(State::Verdict);
        out
    }

    fn await_verdict(&mut self, state: State) {
        self.reader.skip_sequence_check();
        self.state = state;
    }

    fn verdict(&mut self, payload: &[u8]) -> Result<LoginStep, LoginError> {
        let mut cursor = Cursor::new("answer to the login", payload);
        match cursor.u8()? {
            0x00 => self.done(payload),
            0x01 => self.more_data(cursor.rest()),
            0xFE if cursor.is_empty() => {
                Err(LoginError::UnknownMethod("mysql_old_password".to_owned()))
            }
            0xFE => {
                let name = printable(cursor.nul_bytes()?, METHOD_NAME_LIMIT);
                let challenge = cursor.rest();
                // 20-byte challenges come with a NUL; ed25519's 32 bytes are random to the last.
                let text = challenge.strip_suffix(&[0]).filter(|text| text.len() == 20);
                self.switch_method(name, text.unwrap_or(challenge))
            }
            _ => Err(cursor
                .wrong("neither OK, error, switch nor more data")
                .into()),
        }
    }

    fn done(&mut self, payload: &[u8]) -> Result<LoginStep, LoginError> {
        let status = Completion::parse_ok(payload)?.status;
        let greeting = self.greeting.take().ok_or(LoginError::Unexpected)?;
        self.state = State::Over;
        let (capabilities, method, tls) = (self.capabilities, self.method, self.tls);
        Ok(LoginStep::Done(LoggedIn {
            greeting,
            capabilities,
            status,
            method,
            tls,
        }))
    }

    fn switch_method(&mut self, name: String, challenge: &[u8]) -> Result<LoginStep, LoginError> {
        let Some(method) = Method::by_name(&name) else {
            return Err(LoginError::UnknownMethod(name));
        };
        self.method = method;
        self.challenge = challenge.to_vec();
        if method == Method::Sha256 {
            return Ok(self.password_itself(&[1], self.tls));
        }
        let answer = method.answer(
            self.options.credentials.password.as_bytes(),
            &self.challenge,
        );
        Ok(self.send(&answer, State::Verdict))
    }

    /// Only `caching_sha2_password` sends more data: 3 = cached answer accepted, 4 = the password itself is needed.
    fn more_data(&mut self, data: &[u8]) -> Result<LoginStep, LoginError> {
        match (self.method, data) {
            (Method::CachingSha2, [3]) => Ok(LoginStep::NeedMore),
            (Method::CachingSha2, [4]) => {
                let is_private = self.tls || self.options.transport == Transport::UnixSocket;
                Ok(self.password_itself(&[2], is_private))
            }
            _ => Err(WireError::malformed(
                "answer to the login",
                "unknown data for the authentication method",
            )
            .into()),
        }
    }

    /// The password where the server accepts it in clear text, otherwise the request for the key to encrypt it with.
    /// An empty password needs no key.
    fn password_itself(&mut self, request: &[u8], is_private: bool) -> LoginStep {
        let mut password = self.options.credentials.password.clone().into_bytes();
        if is_private || password.is_empty() {
            password.push(0);
            return self.send(&password, State::Verdict);
        }
        self.send(request, State::PublicKey)
    }

    fn public_key(&mut self, payload: &[u8]) -> Result<LoginStep, LoginError> {
        let Some((1, pem)) = payload.split_first().map(|(&first, rest)| (first, rest)) else {
            return Err(LoginError::PublicKey(
                "the server sent something other than its public key",
            ));
        };
        let password = self.options.credentials.password.as_bytes();
        let secret = auth::encrypt_password(password, &self.challenge, pem)
            .map_err(LoginError::PublicKey)?;
        Ok(self.send(&secret, State::Verdict))
    }

    fn send(&mut self, payload: &[u8], state: State) -> LoginStep {
        let mut out = Vec::new();
        packet::append(&mut out, self.reader.next_sequence(), |out| {
            out.extend_from_slice(payload);
        });
        self.await_verdict(state);
        LoginStep::Send(out)
    }
}
