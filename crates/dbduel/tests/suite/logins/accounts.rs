//! Accounts with every method that a product offers, and what becomes of whoever uses them rightly and wrongly.

use dbduel_driver::TlsMode;
use dbduel_driver::address::Address;
use dbduel_wire::auth::Method;
use serde_json::Value;

use super::offers::{Dialect, Offer, TlsOffer};
use super::place::{Place, administer, drive, log_in, said};
use super::row;
use super::tap::sent;

/// The password of all accounts that have one; not all of its letters are in ASCII.
pub const PASSWORD: &str = "Zürich 'n\" 7";

/// Part of every refusal for a wrong name or password.
const DENIED: &str = "server error 1045 (28000): Access denied for user";

impl Dialect {
    /// What makes it an account with [`PASSWORD`] for a method, behind its name.
    fn identified(self, method: Method) -> String {
        let password = PASSWORD.replace('\'', "''");
        let how = match (self, method) {
            (Dialect::OldMySql | Dialect::OldMariaDb, Method::Native) => {
                format!("BY '{password}'")
            }
            (Dialect::OldMySql | Dialect::MySql, Method::PeerUser) => "WITH auth_socket".to_owned(),
            (Dialect::MySql, _) => format!("WITH {} BY '{password}'", method.name()),
            (_, Method::Ed25519) => format!("VIA ed25519 USING PASSWORD('{password}')"),
            (_, Method::PeerUser) => "VIA unix_socket".to_owned(),
            _ => format!("VIA {} USING PASSWORD('{password}')", method.name()),
        };
        format!("IDENTIFIED {how}")
    }
}

/// Makes an account that may use the workload's tables.
pub fn create(place: &Place, dialect: Dialect, name: &str, method: Method) {
    let identified = dialect.identified(method);
    place.tell(&format!("CREATE USER {name}@'%' {identified}"));
    place.tell(&format!("GRANT ALL ON sbtest.* TO {name}@'%'"));
}

/// Nothing that the server asks for by itself is left out here.
pub fn every_method_is_known(place: &Place, offer: &Offer) {
    let plugins = place.ask(
        "SELECT GROUP_CONCAT(plugin_name) FROM information_schema.plugins \
         WHERE plugin_type = 'AUTHENTICATION' AND plugin_status = 'ACTIVE'",
    );
    println!("| {} | methods: {plugins} |", offer.server);
    for plugin in plugins.split(',') {
        let is_spoken = offer.methods.iter().any(|&method| {
            method.name() == plugin || offer.dialect.identified(method).contains(plugin)
        });
        let mut foreign = offer.foreign.iter().flat_map(|(_, statements)| *statements);
        assert!(
            is_spoken
                || offer.out_of_reach.contains(&plugin)
                || foreign.any(|statement| statement.contains(plugin)),
            "{}: `{plugin}` is not tried",
            offer.server
        );
    }
}

pub fn account_of(method: Method) -> String {
    format!("by_{method:?}").to_lowercase()
}

/// Every method over the socket and TCP, with TLS and without.
pub fn every_method(place: &Place, offer: &Offer) {
    for &method in offer.methods {
        if method == Method::PeerUser {
            peer_user(place, offer);
            continue;
        }
        let name = account_of(method);
        create(place, offer.dialect, &name, method);
        for address in [place.unix(), place.tcp("127.0.0.1")] {
            let modes = [TlsMode::Off, TlsMode::Required];
            let some = if offer.tls == TlsOffer::Current { 2 } else { 1 };
            for tls in &modes[..some] {
                let seen = log_in(&address, (&name, PASSWORD), tls);
                row(offer, method.name(), &address, tls, &seen);
                let seen = seen.unwrap_or_else(|why| panic!("{name}, {tls:?}: {why}"));
                assert_eq!(seen.method, method.name(), "{name}");
                assert_eq!(seen.tls.is_empty(), *tls == TlsMode::Off, "{seen:?}");
                for wrong in ["", "wrong", "Zürich 'n\" 77"] {
                    let why = administer(&address, (&name, wrong), tls).unwrap_err();
                    assert!(why.contains(DENIED) && why.contains(&name), "{why}");
                }
                let why = drive(&address, (&name, "wrong"), tls).unwrap_err();
                assert!(why.contains(DENIED), "{why}");
            }
            load(place, &address, (&name, PASSWORD));
            load_with_a_wrong_password(place, &address, &name);
        }
        // Nobody on the network reads a password.
        let (_, bytes) = sent(&place.tcp("127.0.0.1"), |tap| {
            administer(tap, (&name, PASSWORD), &TlsMode::Off).unwrap()
        });
        assert!(!contains(&bytes, PASSWORD.as_bytes()), "{name}");
    }
}

/// The command, with the password in the environment.
fn load(place: &Place, address: &Address, account: (&str, &str)) {
    let output = place.load(address, account, &[]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{account:?}: {}",
        said(&output)
    );
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    // How much it does in a moment is the machine's affair; what it does, it may do.
    assert_eq!(document["errors"], serde_json::json!([]), "{document}");
    assert_eq!(document["total"]["failed"], 0, "{document}");
}

/// The command, with a wrong password in a file, which comes before the right one in the environment.
fn load_with_a_wrong_password(place: &Place, address: &Address, name: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "wrong\n").unwrap();
    let file = file.path().display().to_string();
    let output = place.load(address, (name, PASSWORD), &["--password-file", &file]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [DENIED, "--password-file", "--tls"] {
        assert!(said.contains(part), "{said}");
    }
}

/// The operating system vouches: whoever runs this test gets in under that name, over the socket, and under no other.
fn peer_user(place: &Place, offer: &Offer) {
    let uid = nix::unistd::getuid();
    let own = nix::unistd::User::from_uid(uid).unwrap().unwrap().name;
    if offer.dialect == Dialect::OldMySql || offer.dialect == Dialect::MySql {
        place.tell("INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'");
    }
    create(place, offer.dialect, &own, Method::PeerUser);
    create(place, offer.dialect, "somebody_else", Method::PeerUser);
    if own == "root" {
        // The one for this machine stands before the one for all.
        place.tell(&match offer.dialect {
            Dialect::OldMySql => "UPDATE mysql.user SET plugin = 'auth_socket' \
                                  WHERE user = 'root' AND host = 'localhost'"
                .to_owned(),
            dialect => format!(
                "ALTER USER root@localhost {}",
                dialect.identified(Method::PeerUser)
            ),
        });
        place.tell("FLUSH PRIVILEGES");
    }
    let name = Method::PeerUser.name();
    let seen = log_in(&place.unix(), (&own, ""), &TlsMode::Off);
    row(offer, name, &place.unix(), &TlsMode::Off, &seen);
    seen.unwrap();
    load(place, &place.unix(), (&own, ""));
    if offer.dialect == Dialect::MariaDb {
        either_method(
            place,
            if own == "root" {
                "root@localhost"
            } else {
                &own
            },
        );
        log_in(&place.unix(), (&own, ""), &TlsMode::Off).unwrap();
    }
    for (address, user) in [
        (place.unix(), "somebody_else"),
        (place.tcp("127.0.0.1"), own.as_str()),
    ] {
        let seen = log_in(&address, (user, ""), &TlsMode::Off);
        row(
            offer,
            &format!("{name}, as {user}"),
            &address,
            &TlsMode::Off,
            &seen,
        );
        let why = seen.unwrap_err();
        assert!(why.contains("(28000)") && why.contains(user), "{why}");
    }
    let said = said(&place.load(&place.unix(), ("somebody_else", ""), &[]));
    assert!(said.contains("operating system's user"), "{said}");
}

/// MariaDB's root as packages set it up: a password that nobody has, or else the operating system's word. And an account
/// with either of two passwords.
fn either_method(place: &Place, peer: &str) {
    place.tell(&format!(
        "ALTER USER {peer} IDENTIFIED VIA mysql_native_password USING 'invalid' OR unix_socket"
    ));
    place.tell(
        "CREATE USER either@'%' IDENTIFIED VIA ed25519 USING PASSWORD('first') \
         OR mysql_native_password USING PASSWORD('second')",
    );
    place.tell("GRANT ALL ON sbtest.* TO either@'%'");
    let tcp = place.tcp("127.0.0.1");
    for (password, method) in [("first", Method::Ed25519), ("second", Method::Native)] {
        let seen = log_in(&tcp, ("either", password), &TlsMode::Off).unwrap();
        assert_eq!(seen.method, method.name());
    }
    let why = log_in(&tcp, ("either", "third"), &TlsMode::Off).unwrap_err();
    assert!(why.contains(DENIED), "{why}");
}

/// Accounts that are locked, whose password has run out, or that may not connect as often as a load does.
pub fn restricted_accounts(place: &Place, offer: &Offer) {
    let locks = matches!(offer.dialect, Dialect::MySql | Dialect::MariaDb);
    let restrictions = [
        ("locked", "ACCOUNT LOCK", "locked"),
        ("expired", "PASSWORD EXPIRE", "password"),
        (
            "single",
            "WITH MAX_USER_CONNECTIONS 1",
            "max_user_connections",
        ),
    ];
    for (name, restriction, word) in restrictions.into_iter().filter(|_| locks) {
        create(place, offer.dialect, name, offer.methods[0]);
        place.tell(&format!("ALTER USER {name}@'%' {restriction}"));
        let output = place.load(&place.unix(), (name, PASSWORD), &[]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.to_lowercase().contains(word), "{said}");
        assert!(!said.contains("--password-file"), "{said}");
        println!("| {} | {restriction} | {said} |", offer.server);
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Who is not known, who needs no password, and what a server asks for that is not spoken here.
pub fn odd_accounts(place: &Place, offer: &Offer) {
    let tcp = place.tcp("127.0.0.1");
    // A server that knows no such account may ask for any method of its own, so as not to tell.
    for number in 0..12 {
        let nobody = format!("nobody{number}");
        let why = administer(&tcp, (&nobody, PASSWORD), &TlsMode::Off).unwrap_err();
        assert!(why.contains(DENIED), "{why}");
    }
    place.tell("CREATE USER open@'%'");
    place.tell("GRANT ALL ON sbtest.* TO open@'%'");
    for address in [place.unix(), place.tcp("127.0.0.1")] {
        log_in(&address, ("open", ""), &TlsMode::Off).unwrap();
        let why = log_in(&address, ("open", "something"), &TlsMode::Off).unwrap_err();
        assert!(why.contains(DENIED), "{why}");
    }
    for (asked, statements) in offer.foreign {
        for statement in *statements {
            place.tell(statement);
        }
        let seen = log_in(&tcp, ("stranger", PASSWORD), &TlsMode::Off);
        row(offer, asked, &tcp, &TlsMode::Off, &seen);
        let why = seen.unwrap_err();
        assert!(
            why.contains(&format!("`{asked}`, which this client does not support")),
            "{why}"
        );
        place.tell("DROP USER stranger@'%'");
    }
}
