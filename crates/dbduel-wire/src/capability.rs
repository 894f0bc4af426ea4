//! Capability bits of client and server, and the status bits of a reply.
//!
//! The lower 32 capability bits are MySQL's; MariaDB's extended ones follow as bits 32 to 63.

use std::ops::{BitAnd, BitOr};

/// A set of capability bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Set by every MySQL; MariaDB from 10.2 clears it to announce that its extended bits are in the greeting.
    pub const LONG_PASSWORD: Self = Self(1);
    /// Affected rows counts rows that matched, not rows that changed.
    pub const FOUND_ROWS: Self = Self(1 << 1);
    /// The login names a database.
    pub const CONNECT_WITH_DATABASE: Self = Self(1 << 3);
    /// The client answers `LOAD DATA LOCAL INFILE`.
    pub const LOCAL_FILES: Self = Self(1 << 7);
    /// The protocol of MySQL 4.1 and later; the only one spoken here.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// The connection can change to TLS after the greeting.
    pub const TLS: Self = Self(1 << 11);
    /// OK packets carry the status bits.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// Twenty-byte challenges.
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// One query text may hold several statements.
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    /// A text query may return several result sets.
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    /// A prepared statement may return several result sets.
    pub const PREPARED_MULTI_RESULTS: Self = Self(1 << 18);
    /// Authentication methods are named and can be switched.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// The login carries attributes of the client (program name and so on).
    pub const CONNECT_ATTRIBUTES: Self = Self(1 << 20);
    /// The login's authentication answer may be longer than 250 bytes.
    pub const LONG_AUTH_ANSWER: Self = Self(1 << 21);
    /// No EOF packet between columns and rows; rows end with an OK packet.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);
    /// MariaDB: supports `COM_STMT_BULK_EXECUTE`.
    pub const BULK_EXECUTE: Self = Self(1 << 34);

    /// The 32 bits common to all servers and MariaDB's extended ones, in the order of the wire.
    pub(crate) fn halves(self) -> ([u8; 4], [u8; 4]) {
        let [a, b, c, d, e, f, g, h] = self.0.to_le_bytes();
        ([a, b, c, d], [e, f, g, h])
    }

    /// True when every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set without the bits of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Capabilities {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Capabilities {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The server's status bits in OK and EOF packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status(pub u16);

impl Status {
    /// A transaction is open.
    pub const IN_TRANSACTION: Self = Self(1);
    /// Autocommit is on.
    pub const AUTOCOMMIT: Self = Self(1 << 1);
    /// Another result follows in the same reply.
    pub const MORE_RESULTS: Self = Self(1 << 3);

    /// True when every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Status {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
