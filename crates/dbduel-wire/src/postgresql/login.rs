//! Login: optional TLS, the startup message, authentication, the session's parameters.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest as _, Md5};
use rsa::rand_core::{OsRng, RngCore as _};

use super::command;
use super::error::ServerError;
use super::message::{Event, MessageReader};
use super::scram::{MECHANISM, Scram};
use crate::bytes::{Cursor, printable};
use crate::credentials::Credentials;
use crate::error::WireError;
use crate::login::TlsWish;

/// The longest message of a login.
const LIMIT: usize = 64 << 10;

/// The most messages of a login; a server has about 15 parameters.
const MESSAGES_MAX: u32 = 1_000;

/// Bytes of randomness in a nonce.
const NONCE_BYTES: usize = 18;

/// Parameters of a login.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// User and password.
    pub credentials: Credentials,
    /// Database; the one with the user's name when `None`.
    pub database: Option<String>,
    /// Whether to change to TLS.
    pub tls: TlsWish,
}

/// Why the login failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The server's bytes violate the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The server refused.
    #[error(transparent)]
    Refused(ServerError),
    /// The server has no TLS.
    #[error("the server does not offer TLS, which is required")]
    NoTls,
    /// The server asks for an unsupported kind of authentication.
    #[error("the server asks for {0}; dbduel supports trust, password, md5 and SCRAM-SHA-256")]
    Method(String),
    /// The server's proof is missing or wrong.
    #[error("SCRAM-SHA-256 failed: the server cannot be trusted, because {0}")]
    Scram(&'static str),
    /// The server sent more bytes than expected.
    #[error("bytes arrived when none were due")]
    Unexpected,
    /// The server accepted the login before the exchange of proofs was complete.
    #[error("the server accepted the login without proving that it knows the password")]
    Unproven,
}

/// Next step of a login.
#[derive(Debug)]
pub enum LoginStep {
    /// More bytes.
    NeedMore,
    /// Send these bytes.
    Send(Vec<u8>),
    /// Change to TLS, then call [`Login::tls_started`].
    StartTls,
    /// Logged in.
    Done(LoggedIn),
}

/// The server's facts about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedIn {
    /// The server's version, such as `15.18 (Debian 15.18-0+deb12u1)`.
    pub server_version: String,
    /// The id of the server's process, which identifies the session.
    pub process: u32,
    /// Authentication method.
    pub method: &'static str,
}

#[derive(Debug)]
enum State {
    Begin,
    TlsAnswer,
    Authentication,
    Scram { scram: Scram, is_proven: bool },
    Parameters,
}

/// One login.
#[derive(Debug)]
pub struct Login {
    options: LoginOptions,
    reader: MessageReader,
    state: State,
    messages_left: u32,
    logged_in: LoggedIn,
}

impl Login {
    /// A login before its first bytes: [`Login::feed`] with no bytes begins.
    #[must_use]
    pub fn new(options: LoginOptions) -> Self {
        Login {
            options,
            reader: MessageReader::new(LIMIT),
            state: State::Begin,
            messages_left: MESSAGES_MAX,
            logged_in: LoggedIn {
                method: "trust",
                ..LoggedIn::default()
            },
        }
    }

    /// Takes bytes that arrived; returns the number of consumed bytes, and the next step.
    ///
    /// # Errors
    /// [`LoginError`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, LoginStep), LoginError> {
        match self.state {
            State::Begin if self.options.tls == TlsWish::Off => return Ok((0, self.startup())),
            State::Begin => {
                let mut out = Vec::new();
                command::ssl_request(&mut out);
                self.state = State::TlsAnswer;
                return Ok((0, LoginStep::Send(out)));
            }
            State::TlsAnswer => {
                return match (bytes.first(), self.options.tls) {
                    (None, _) => Ok((0, LoginStep::NeedMore)),
                    (Some(b'S'), _) => Ok((1, LoginStep::StartTls)),
                    (Some(b'N'), TlsWish::Required) => Err(LoginError::NoTls),
                    (Some(b'N'), _) => Ok((1, self.startup())),
                    // Too many connections, say.
                    (Some(b'E'), _) => self.messages(bytes),
                    (Some(_), _) => Err(wrong("neither S nor N in answer to a TLS request").into()),
                };
            }
            _ => {}
        }
        self.messages(bytes)
    }

    /// Continues after the TLS handshake; returns the bytes to send.
    pub fn tls_started(&mut self) -> Vec<u8> {
        match self.startup() {
            LoginStep::Send(bytes) => bytes,
            _ => Vec::new(),
        }
    }

    fn startup(&mut self) -> LoginStep {
        let mut out = Vec::new();
        let mut parameters = vec![
            ("user", self.options.credentials.user.as_str()),
            ("client_encoding", "UTF8"),
            ("application_name", "dbduel"),
        ];
        if let Some(database) = &self.options.database {
            parameters.push(("database", database));
        }
        command::startup(&mut out, &parameters);
        self.state = State::Authentication;
        LoginStep::Send(out)
    }

    fn messages(&mut self, bytes: &[u8]) -> Result<(usize, LoginStep), LoginError> {
        let mut position = 0;
        loop {
            let skip = |tag| matches!(tag, b'N' | b'A' | b'v');
            let event = self.reader.next(bytes, &mut position, skip)?;
            if event != Event::NeedMore {
                self.messages_left = self
                    .messages_left
                    .checked_sub(1)
                    .ok_or_else(|| wrong("it does not end"))?;
            }
            let (tag, body) = match event {
                Event::NeedMore => return Ok((position, LoginStep::NeedMore)),
                Event::Skipped { .. } => continue,
                Event::Message { tag, body } => (tag, body),
            };
            match tag {
                b'E' => return Err(LoginError::Refused(ServerError::parse(body)?)),
                b'R' => {
                    let answer = authenticate(
                        &self.options.credentials,
                        &mut self.state,
                        &mut self.logged_in,
                        body,
                    )?;
                    if let Some(answer) = answer {
                        return Ok((position, LoginStep::Send(answer)));
                    }
                }
                b'S' => {
                    let mut body = Cursor::new("ParameterStatus", body);
                    if body.nul_bytes()? == b"server_version" {
                        self.logged_in.server_version = printable(body.nul_bytes()?, 256);
                    }
                }
                b'K' => {
                    let mut body = Cursor::new("BackendKeyData", body);
                    self.logged_in.process = body.be_u32()?;
                }
                b'Z' if matches!(self.state, State::Parameters) => {
                    return Ok((
                        position,
                        LoginStep::Done(std::mem::take(&mut self.logged_in)),
                    ));
                }
                _ => return Err(wrong("a message of another kind").into()),
            }
        }
    }
}

/// Reads one message of the authentication; returns what to send, if anything.
fn authenticate(
    credentials: &Credentials,
    state: &mut State,
    logged_in: &mut LoggedIn,
    body: &[u8],
) -> Result<Option<Vec<u8>>, LoginError> {
    let mut body = Cursor::new("Authentication", body);
    let request = body.be_u32()?;
    let password = credentials.password.as_str();
    let mut out = Vec::new();
    match (request, &mut *state) {
        (
            0,
            State::Scram {
                is_proven: false, ..
            },
        ) => return Err(LoginError::Unproven),
        (0, State::Authentication | State::Scram { .. }) => {
            *state = State::Parameters;
            return Ok(None);
        }
        (3, State::Authentication) => {
            logged_in.method = "password";
            command::password(&mut out, password.as_bytes());
        }
        (5, State::Authentication) => {
            logged_in.method = "md5";
            let hash = md5_answer(&credentials.user, password, &body.be_u32()?.to_be_bytes());
            command::password(&mut out, hash.as_bytes());
        }
        (10, State::Authentication) => {
            let mut offers = body.rest().split(|&byte| byte == 0);
            if !offers.any(|offer| offer == MECHANISM.as_bytes()) {
                return Err(LoginError::Method("SASL without SCRAM-SHA-256".to_owned()));
            }
            logged_in.method = "scram-sha-256";
            let mut nonce = [0; NONCE_BYTES];
            OsRng.fill_bytes(&mut nonce);
            let scram = Scram::new(password, BASE64.encode(nonce));
            command::sasl_initial(&mut out, MECHANISM, scram.first().as_bytes());
            *state = State::Scram {
                scram,
                is_proven: false,
            };
        }
        (
            11,
            State::Scram {
                scram,
                is_proven: false,
            },
        ) => {
            let second = scram.second(body.rest()).map_err(LoginError::Scram)?;
            command::sasl_response(&mut out, second.as_bytes());
        }
        (12, State::Scram { scram, is_proven }) => {
            scram.check(body.rest()).map_err(LoginError::Scram)?;
            *is_proven = true;
            return Ok(None);
        }
        (other, _) => return Err(LoginError::Method(method_name(other))),
    }
    Ok(Some(out))
}

fn method_name(request: u32) -> String {
    match request {
        2 => "Kerberos 5".to_owned(),
        7 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("authentication {other} out of turn"),
    }
}

/// `md5` and the hash of the stored hash and the salt.
fn md5_answer(user: &str, password: &str, salt: &[u8]) -> String {
    let hex = |hash: &[u8]| -> String { hash.iter().map(|byte| format!("{byte:02x}")).collect() };
    let stored = Md5::new().chain_update(password).chain_update(user);
    let stored = hex(&stored.finalize());
    let salted = Md5::new().chain_update(stored).chain_update(salt);
    format!("md5{}", hex(&salted.finalize()))
}

fn wrong(problem: &'static str) -> WireError {
    WireError::malformed("login", problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(tls: TlsWish) -> Login {
        Login::new(LoginOptions {
            credentials: Credentials::new("anna", "secret"),
            database: Some("shop".to_owned()),
            tls,
        })
    }

    fn sent(step: (usize, LoginStep)) -> Vec<u8> {
        match step {
            (_, LoginStep::Send(bytes)) => bytes,
            other => panic!("{other:?}"),
        }
    }

    const OK: &[u8] = b"R\0\0\0\x08\0\0\0\0";
    const END: &[u8] = b"S\0\0\0\x18server_version\x0016.1\0K\0\0\0\x0c\0\0\0\x07abcdZ\0\0\0\x05I";

    fn logged_in(mut login: Login) -> LoggedIn {
        match login.feed(&[OK, END].concat()).unwrap() {
            (used, LoginStep::Done(logged_in)) => {
                assert_eq!(used, OK.len() + END.len());
                logged_in
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_trusted_user_needs_no_password() {
        let mut login = login(TlsWish::Off);
        let startup = sent(login.feed(&[]).unwrap());
        assert!(startup.starts_with(&[0, 0, 0]) && startup.ends_with(b"database\0shop\0\0"));
        let logged_in = logged_in(login);
        assert_eq!(logged_in.server_version, "16.1");
        assert_eq!(logged_in.process, 7);
        assert_eq!(logged_in.method, "trust");
    }

    #[test]
    fn passwords_are_sent_in_clear_or_hashed_as_the_server_asks() {
        let mut clear = login(TlsWish::Off);
        clear.feed(&[]).unwrap();
        let answer = sent(clear.feed(b"R\0\0\0\x08\0\0\0\x03").unwrap());
        assert_eq!(answer, b"p\0\0\0\x0bsecret\0");
        let mut hashed = login(TlsWish::Off);
        hashed.feed(&[]).unwrap();
        let answer = sent(hashed.feed(b"R\0\0\0\x0c\0\0\0\x05salt").unwrap());
        // md5(md5("secretanna") + "salt"), computed with `md5sum`.
        assert_eq!(answer[5..], *b"md5f2871a3fd1753476439ec81baf6908be\0");
        assert_eq!(logged_in(hashed).method, "md5");
    }

    #[test]
    fn tls_comes_before_everything_when_it_is_asked_for() {
        let mut wanted = login(TlsWish::Required);
        assert_eq!(
            sent(wanted.feed(&[]).unwrap()),
            b"\0\0\0\x08\x04\xd2\x16\x2f"
        );
        assert!(matches!(
            wanted.feed(b"S").unwrap(),
            (1, LoginStep::StartTls)
        ));
        assert!(wanted.tls_started().ends_with(b"shop\0\0"));
        let mut refused = login(TlsWish::Required);
        refused.feed(&[]).unwrap();
        assert_eq!(refused.feed(b"N").unwrap_err(), LoginError::NoTls);
        let mut preferred = login(TlsWish::Preferred);
        preferred.feed(&[]).unwrap();
        assert!(sent(preferred.feed(b"N").unwrap()).ends_with(b"shop\0\0"));
        let mut full = login(TlsWish::Preferred);
        full.feed(&[]).unwrap();
        let refusal = b"E\0\0\0\x15SFATAL\0C53300\0M\0\0";
        let error = full.feed(refusal).unwrap_err();
        assert!(matches!(error, LoginError::Refused(error) if error.sqlstate() == "53300"));
    }

    #[test]
    fn a_server_that_skips_its_proof_is_not_trusted() {
        let mut login = login(TlsWish::Off);
        login.feed(&[]).unwrap();
        let offer = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";
        let first = sent(login.feed(offer).unwrap());
        assert!(first[5..].starts_with(b"SCRAM-SHA-256\0\0\0\0\x20n,,n=,r="));
        assert_eq!(login.feed(OK).unwrap_err(), LoginError::Unproven);
    }

    #[test]
    fn other_methods_are_named() {
        let mut login = login(TlsWish::Off);
        login.feed(&[]).unwrap();
        let error = login.feed(b"R\0\0\0\x08\0\0\0\x07").unwrap_err();
        assert!(error.to_string().contains("GSSAPI"), "{error}");
    }

    #[test]
    fn a_login_that_does_not_end_is_given_up() {
        let mut login = login(TlsWish::Off);
        login.feed(&[]).unwrap();
        let notices = b"N\0\0\0\x05\0".repeat(2_000);
        assert!(matches!(login.feed(&notices), Err(LoginError::Wire(_))));
    }
}
