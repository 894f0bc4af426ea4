//! Servers that offer TLS and then violate the protocol.

use std::io::{Read as _, Write};

use dbduel_wire::server::append_greeting;
use dbduel_wire::{Capabilities, Greeting, Status};

use super::*;

/// Error of a login on a server that offers TLS and then answers `words`.
fn handshake_with(words: &'static [u8]) -> String {
    let (address, server) = server(move |mut stream| {
        let mut greeting = Vec::new();
        append_greeting(
            &mut greeting,
            &Greeting {
                version_text: "5.5.34".to_owned(),
                connection_id: 1,
                capabilities: Capabilities(0x00FF_FFFF),
                collation: 8,
                status: Status::AUTOCOMMIT,
                auth_method: "mysql_native_password".to_owned(),
                challenge: b"abcdefghijklmnopqrst".to_vec(),
            },
        );
        stream.write_all(&greeting).unwrap();
        // The request for TLS, and the beginning of the client's hello behind it.
        stream.read_exact(&mut [0; 36 + 5]).unwrap();
        stream.write_all(words).unwrap();
    });
    let options = ConnectOptions {
        tls: TlsMode::Preferred,
        ..ConnectOptions::default()
    };
    let error = Connection::connect(&address, &Credentials::default(), &options).unwrap_err();
    server.join().unwrap();
    let ConnectError::Tls { source, .. } = &error else {
        panic!("{error:?}");
    };
    source.to_string()
}

#[test]
fn a_handshake_that_fails_is_told_from_a_server_that_is_not_there() {
    let silent = handshake_with(b"");
    assert!(
        silent.contains("the server closed the connection"),
        "{silent}"
    );
    // An alert that the version is not spoken, in the version that is.
    let old = handshake_with(b"\x15\x03\x01\0\x02\x02\x46");
    assert!(old.contains("alert"), "{old}");
    // The same, in no version at all.
    let older = handshake_with(b"\x15\0\0\0\x02\x02\x46");
    for said in [silent, old, older] {
        assert!(
            said.contains("mode `off`") && said.contains("unencrypted"),
            "{said}"
        );
    }
    // That it cannot do with what it was offered, which no version has to do with.
    let unwilling = handshake_with(b"\x15\x03\x03\0\x02\x02\x28");
    for said in [unwilling, handshake_with(b"nothing that TLS would say")] {
        assert!(said.contains("the TLS handshake failed"), "{said}");
        assert!(!said.contains("mode `off`"), "{said}");
    }
}
