//! A hostile server during the login. The first byte chooses the transport and whether TLS is wanted.

#![no_main]

use dbduel_wire::{Credentials, Login, LoginOptions, LoginStep, TlsWish, Transport};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, mut bytes)) = data.split_first() else {
        return;
    };
    let transport = if choice & 1 == 0 {
        Transport::Tcp
    } else {
        Transport::UnixSocket
    };
    let tls = if choice & 2 == 0 {
        TlsWish::Off
    } else {
        TlsWish::Preferred
    };
    let mut login = Login::new(LoginOptions {
        tls,
        ..LoginOptions::new(Credentials::new("anna", "secret"), transport)
    });
    while let Ok((used, step)) = login.feed(bytes) {
        bytes = &bytes[used..];
        match step {
            LoginStep::NeedMore | LoginStep::Done(_) => break,
            LoginStep::Send(_) => {}
            LoginStep::StartTls(_) => {
                if login.tls_started().is_err() {
                    break;
                }
            }
        }
    }
});
