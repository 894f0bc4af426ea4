//! Every mode of TLS, on servers with a certificate of each kind, with none, and with one that they made themselves.

use dbduel_driver::TlsMode;
use dbduel_driver::address::Address;

use super::accounts::{PASSWORD, create};
use super::certificates::Shown;
use super::offers::{Dialect, Offer, TlsOffer};
use super::place::{self, Place, log_in, verify_ca, verify_identity};
use super::row;

const ACCOUNT: (&str, &str) = ("private", PASSWORD);

/// What is to become of a login.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    /// In, and everyone on the way can read along.
    Clear,
    /// In, encrypted.
    Encrypted,
    /// Refused with a sentence that has this part.
    Refused(&'static str),
}
use Outcome::{Clear, Encrypted, Refused};

const WRONG_NAME: Outcome = Refused("subject alternative names, or use mode `verify-ca`");
const WRONG_AUTHORITY: Outcome = Refused("was not signed by the listed CA");
const OLD_VERSION: Outcome = Refused(place::OLD_VERSION);
const NOT_OFFERED: Outcome = Refused("TLS is required but the server does not offer it");
const UNCHECKED: Outcome = Refused("install a version 3 server certificate");
const NOT_THE_NAMED: Outcome = Refused("presents a CA certificate that is not listed");

fn check(offer: &Offer, shown: &str, cases: &[(&Address, TlsMode, Outcome)]) {
    for (address, tls, outcome) in cases {
        let seen = log_in(address, ACCOUNT, tls);
        row(offer, shown, address, tls, &seen);
        let is_so = match (&seen, outcome) {
            (Ok(seen), Clear) => seen.tls.is_empty(),
            (Ok(seen), Encrypted) => !seen.tls.is_empty(),
            (Err(why), Refused(part)) => why.contains(part),
            _ => false,
        };
        assert!(
            is_so,
            "{shown}, {address}, {tls:?}: {outcome:?}, not {seen:?}"
        );
    }
}

/// Every mode, with the server's certificate of each kind.
pub fn every_mode(place: &Place, offer: &Offer) {
    create(place, offer.dialect, ACCOUNT.0, offer.methods[0]);
    match offer.tls {
        TlsOffer::Old => {
            let old = [OLD_VERSION; 3];
            modes_that_look_at_nothing(place, offer, "TLS 1.1 at most", old);
        }
        TlsOffer::Current => every_certificate(place, offer),
    }
    // Beside the certificates that a user has made.
    if offer.dialect == Dialect::MySql {
        certificates_of_the_server(place, offer);
    }
}

fn without_tls(place: &Place, offer: &Offer) {
    let none = [Clear, NOT_OFFERED, NOT_OFFERED];
    modes_that_look_at_nothing(place, offer, "none", none);
}

fn modes_that_look_at_nothing(place: &Place, offer: &Offer, shown: &str, outcomes: [Outcome; 3]) {
    let ours = place.certificates().authority();
    let modes = [TlsMode::Preferred, TlsMode::Required, verify_ca(&ours)];
    for address in [place.unix(), place.tcp("127.0.0.1")] {
        check(offer, shown, &[(&address, TlsMode::Off, Clear)]);
        for (tls, outcome) in modes.iter().zip(outcomes) {
            check(offer, shown, &[(&address, tls.clone(), outcome)]);
        }
    }
}

fn every_certificate(place: &Place, offer: &Offer) {
    let (number, name, socket) = (
        &place.tcp("127.0.0.1"),
        &place.tcp("localhost"),
        &place.unix(),
    );
    let (ours, strange) = (
        &place.certificates().authority(),
        &place.certificates().stranger(),
    );
    let cases = [
        (name, TlsMode::Off, Clear),
        (name, TlsMode::Preferred, Encrypted),
        (name, TlsMode::Required, Encrypted),
        (name, verify_ca(ours), Encrypted),
        (name, verify_identity(ours), Encrypted),
        (number, verify_ca(ours), Encrypted),
        (number, verify_identity(ours), WRONG_NAME),
        (name, verify_ca(strange), WRONG_AUTHORITY),
        (name, verify_identity(strange), WRONG_AUTHORITY),
        (socket, TlsMode::Off, Clear),
        (socket, TlsMode::Required, Encrypted),
        (socket, verify_identity(ours), Encrypted),
    ];
    check(offer, "signed, for localhost", &cases);

    place.show(Shown::Nameless);
    let cases = [
        (name, verify_ca(ours), Encrypted),
        (name, verify_identity(ours), WRONG_NAME),
    ];
    check(offer, "signed, common name localhost", &cases);

    place.show(Shown::VersionOne);
    let cases = [
        (name, TlsMode::Required, Encrypted),
        (name, verify_ca(ours), UNCHECKED),
    ];
    check(offer, "signed, of version 1", &cases);

    let own = &place.certificates().self_signed();
    place.show(Shown::SelfSigned);
    let cases = [
        (number, verify_ca(own), Encrypted),
        (name, verify_identity(own), Encrypted),
        (number, verify_identity(own), WRONG_NAME),
        (name, verify_ca(ours), NOT_THE_NAMED),
    ];
    check(offer, "its own authority", &cases);
    place.show(Shown::Named);
}

/// The files that MySQL makes with its data, also with the older version of TLS, and then files that are not there.
fn certificates_of_the_server(place: &Place, offer: &Offer) {
    let set = |option: &str, file: &str| place.tell(&format!("SET GLOBAL ssl_{option} = '{file}'"));
    let files = [("ca", "ca"), ("cert", "server-cert"), ("key", "server-key")];
    let before = files.map(|(option, _)| place.ask(&format!("SELECT @@ssl_{option}")));
    for (option, file) in files {
        set(option, &format!("{file}.pem"));
    }
    place.tell("ALTER INSTANCE RELOAD TLS");
    let name = &place.tcp("localhost");
    let ca = place.data().join("ca.pem");
    let cases = [
        (name, TlsMode::Required, Encrypted),
        (name, verify_ca(&ca), Encrypted),
        (name, verify_identity(&ca), WRONG_NAME),
    ];
    check(offer, "made by the server", &cases);
    place.tell("SET GLOBAL tls_version = 'TLSv1.2'");
    place.tell("ALTER INSTANCE RELOAD TLS");
    let seen = log_in(name, ACCOUNT, &verify_ca(&ca));
    row(offer, "made by the server", name, &verify_ca(&ca), &seen);
    assert!(seen.unwrap().tls.starts_with("TLSv1.2 "));
    set("cert", "nowhere.pem");
    place.tell("ALTER INSTANCE RELOAD TLS NO ROLLBACK ON ERROR");
    without_tls(place, offer);
    place.tell("SET GLOBAL tls_version = 'TLSv1.2,TLSv1.3'");
    for ((option, _), file) in files.iter().zip(before) {
        set(option, &file);
    }
    place.tell("ALTER INSTANCE RELOAD TLS");
}

/// Accounts that let nobody in without TLS, or without a certificate of his own.
pub fn demanding_accounts(place: &Place, offer: &Offer) {
    for (name, what) in [("encrypted", "SSL"), ("certified", "X509")] {
        create(place, offer.dialect, name, offer.methods[0]);
        place.tell(&match offer.dialect {
            Dialect::MySql | Dialect::MariaDb => format!("ALTER USER {name}@'%' REQUIRE {what}"),
            Dialect::OldMySql | Dialect::OldMariaDb => {
                format!("GRANT USAGE ON *.* TO {name}@'%' REQUIRE {what}")
            }
        });
        for tls in [TlsMode::Off, TlsMode::Required] {
            let is_met = what == "SSL" && tls != TlsMode::Off && offer.tls == TlsOffer::Current;
            let address = place.tcp("127.0.0.1");
            let seen = log_in(&address, (name, PASSWORD), &tls);
            let demands = format!("account demands {what}");
            row(offer, &demands, &address, &tls, &seen);
            assert_eq!(seen.is_ok(), is_met, "{what}, {tls:?}: {seen:?}");
        }
    }
}
