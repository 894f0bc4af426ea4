//! `caching_sha2_password`: the password crosses once, and after that the server remembers it.

use dbduel_driver::TlsMode;
use dbduel_driver::address::Address;
use dbduel_wire::auth::Method;

use super::accounts::{PASSWORD, account_of};
use super::place::{Place, administer, drive};
use super::tap::sent;

/// How the password got across.
#[derive(Debug, PartialEq, Eq)]
enum Exchange {
    /// Not at all: the server remembered it.
    Fast,
    /// As it is.
    Clear,
    /// Under the server's key.
    Encrypted,
}

/// Full when the server has nothing cached, and fast the next time, for both ways in.
pub fn full_and_fast(place: &Place) {
    let name = account_of(Method::CachingSha2);
    let account = (name.as_str(), PASSWORD);
    exchanges(place, |address, tls| {
        administer(address, account, tls).is_ok()
    });
    exchanges(place, |address, tls| drive(address, account, tls).is_ok());
}

fn exchanges(place: &Place, logs_in: impl Fn(&Address, &TlsMode) -> bool) {
    for (address, full) in [
        (place.unix(), Exchange::Clear),
        (place.tcp("127.0.0.1"), Exchange::Encrypted),
    ] {
        // It forgets whose password it has seen.
        place.tell("FLUSH PRIVILEGES");
        for expected in [full, Exchange::Fast] {
            let (is_in, bytes) = sent(&address, |tap| logs_in(tap, &TlsMode::Off));
            assert!(is_in, "{address}, {expected:?}");
            assert_eq!(exchange(&bytes), expected, "{address}");
        }
    }
    place.tell("FLUSH PRIVILEGES");
    for _ in ["full", "fast"] {
        assert!(logs_in(&place.tcp("127.0.0.1"), &TlsMode::Required));
    }
}

/// Read from what the client sent.
fn exchange(bytes: &[u8]) -> Exchange {
    let clear = [PASSWORD.as_bytes(), &[0]].concat();
    match of_login(bytes)[1..] {
        [] => Exchange::Fast,
        [password] if *password == clear => Exchange::Clear,
        [[2], secret] if secret.len() == 256 => Exchange::Encrypted,
        ref other => panic!("the client answered {other:?}"),
    }
}

/// The payloads of the login's packets. The first of a command begins to count anew.
fn of_login(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut packets = Vec::new();
    while let [a, b, c, 1..=u8::MAX, rest @ ..] = bytes {
        let length = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
        let (payload, more) = rest.split_at(length);
        packets.push(payload);
        bytes = more;
    }
    packets
}
