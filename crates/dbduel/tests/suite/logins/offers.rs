//! What each server offers: methods, TLS, and what is not spoken here.

use dbduel_wire::auth::Method;

/// How a product writes that an account has a method of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL 5: `IDENTIFIED BY` for the usual one, and `WITH` for others.
    OldMySql,
    /// MySQL 8 and later: `IDENTIFIED WITH … BY`.
    MySql,
    /// MariaDB 10.1: `IDENTIFIED BY`.
    OldMariaDb,
    /// MariaDB from 10.4 on: `IDENTIFIED VIA … USING`.
    MariaDb,
}

/// What becomes of a wish for TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsOffer {
    /// Its library speaks no version of this side's.
    Old,
    /// TLS 1.2 or 1.3.
    Current,
}

/// What a server knows.
pub struct Offer {
    pub server: &'static str,
    pub dialect: Dialect,
    /// Methods of accounts that this side can log in to.
    pub methods: &'static [Method],
    pub tls: TlsOffer,
    pub options: &'static [&'static str],
    /// Methods that are not spoken here, as the server names them, and the statements that make `stranger@'%'` for them.
    pub foreign: &'static [Foreign],
    /// Methods for which this build of the server leaves no way: it has no key, and its TLS is too old.
    pub out_of_reach: &'static [&'static str],
}

type Foreign = (&'static str, &'static [&'static str]);

const PAM: Foreign = ("dialog", &["CREATE USER stranger@'%' IDENTIFIED VIA pam"]);

/// Password hashes of before MySQL 4.1.
const OLD_MARIADB_HASH: Foreign = (
    "mysql_old_password",
    &[
        "SET GLOBAL secure_auth = 0",
        "CREATE USER stranger@'%' IDENTIFIED VIA mysql_old_password USING '0123456789abcdef'",
    ],
);
const OLD_MYSQL_HASH: Foreign = (
    "mysql_old_password",
    &[
        "SET GLOBAL secure_auth = 0",
        "SET GLOBAL old_passwords = 1",
        "CREATE USER stranger@'%' IDENTIFIED WITH mysql_old_password",
        "SET PASSWORD FOR stranger@'%' = OLD_PASSWORD('secret')",
        "SET GLOBAL old_passwords = 0",
    ],
);

pub const MARIADB_10_11: Offer = Offer {
    server: "mariadb-10.11",
    dialect: Dialect::MariaDb,
    methods: &[Method::Native, Method::Ed25519, Method::PeerUser],
    tls: TlsOffer::Current,
    options: &[
        "--plugin-load-add=auth_ed25519",
        "--plugin-load-add=auth_pam",
    ],
    foreign: &[PAM, OLD_MARIADB_HASH],
    out_of_reach: &[],
};

pub const MYSQL_9: Offer = Offer {
    server: "mysql-9.7",
    dialect: Dialect::MySql,
    methods: &[Method::CachingSha2, Method::Sha256, Method::PeerUser],
    tls: TlsOffer::Current,
    options: &[],
    foreign: &[],
    out_of_reach: &[],
};

/// Those beyond the two of every run.
pub const OTHERS: [Offer; 5] = [
    Offer {
        server: "mysql-5.5.34",
        dialect: Dialect::OldMySql,
        methods: &[Method::Native, Method::PeerUser],
        tls: TlsOffer::Old,
        options: &[],
        foreign: &[
            (
                "auth_test_plugin",
                &[
                    "INSTALL PLUGIN test_plugin_server SONAME 'auth_test_plugin.so'",
                    "CREATE USER stranger@'%' IDENTIFIED WITH test_plugin_server",
                ],
            ),
            OLD_MYSQL_HASH,
        ],
        out_of_reach: &[],
    },
    Offer {
        server: "mysql-5.6.24",
        dialect: Dialect::OldMySql,
        methods: &[Method::Native],
        tls: TlsOffer::Old,
        options: &[],
        foreign: &[OLD_MYSQL_HASH],
        out_of_reach: &["sha256_password"],
    },
    Offer {
        server: "mysql-8.0.33",
        dialect: Dialect::MySql,
        methods: &[
            Method::CachingSha2,
            Method::Native,
            Method::Sha256,
            Method::PeerUser,
        ],
        tls: TlsOffer::Current,
        options: &[],
        foreign: &[],
        out_of_reach: &[],
    },
    Offer {
        server: "mariadb-10.1.23",
        dialect: Dialect::OldMariaDb,
        methods: &[Method::Native],
        tls: TlsOffer::Old,
        options: &[],
        foreign: &[OLD_MARIADB_HASH],
        out_of_reach: &[],
    },
    Offer {
        server: "mariadb-11.8",
        options: &[
            "--plugin-load-add=auth_ed25519",
            "--plugin-load-add=auth_pam",
            "--plugin-load-add=auth_parsec",
        ],
        foreign: &[
            PAM,
            OLD_MARIADB_HASH,
            (
                "parsec",
                &["CREATE USER stranger@'%' IDENTIFIED VIA parsec USING PASSWORD('secret')"],
            ),
        ],
        ..MARIADB_10_11
    },
];
