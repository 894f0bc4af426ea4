//! Authentication methods: the client's answers to challenges.

mod ed25519;
mod native;
mod sha2;

pub(crate) use sha2::encrypt_password;

/// An authentication method that this client supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `mysql_native_password`: SHA-1 over a 20-byte challenge.
    Native,
    /// `caching_sha2_password`: SHA-256, with a full exchange when the server has nothing cached.
    CachingSha2,
    /// MySQL's `sha256_password`: the password itself, under TLS or encrypted with the server's public key. MySQL 8.0
    /// and 9 ask for it at random for unknown accounts, so as not to reveal that they do not exist.
    Sha256,
    /// MariaDB's `client_ed25519`: a signature with a key derived from the password.
    Ed25519,
    /// `unix_socket` (MariaDB) and `auth_socket` (MySQL): the operating system identifies the user.
    PeerUser,
}

impl Method {
    /// The method of that name, if supported.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "mysql_native_password" => Some(Method::Native),
            "caching_sha2_password" => Some(Method::CachingSha2),
            "sha256_password" => Some(Method::Sha256),
            "client_ed25519" => Some(Method::Ed25519),
            "unix_socket" | "auth_socket" => Some(Method::PeerUser),
            _ => None,
        }
    }

    /// Name of the method in a login.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Native => "mysql_native_password",
            Method::CachingSha2 => "caching_sha2_password",
            Method::Sha256 => "sha256_password",
            Method::Ed25519 => "client_ed25519",
            Method::PeerUser => "auth_socket",
        }
    }

    /// The answer to a challenge. Empty for an empty password, except that ed25519 signs even then; and empty for
    /// [`Method::Sha256`], which answers no challenge.
    #[must_use]
    pub fn answer(self, password: &[u8], challenge: &[u8]) -> Vec<u8> {
        match self {
            Method::Ed25519 => ed25519::sign(password, challenge).to_vec(),
            Method::PeerUser | Method::Sha256 => Vec::new(),
            _ if password.is_empty() => Vec::new(),
            Method::Native => native::scramble(password, challenge).to_vec(),
            Method::CachingSha2 => sha2::scramble(password, challenge).to_vec(),
        }
    }
}

fn xor<const N: usize>(mut left: [u8; N], right: [u8; N]) -> [u8; N] {
    for (byte, other) in left.iter_mut().zip(right) {
        *byte ^= other;
    }
    left
}
