//! The login against a server that plays every exchange, checked from the server's side.

use dbduel_wire::auth::Method;
use dbduel_wire::server::{
    ClientPacket, ReplyWriter, Terms, append_auth_switch, append_greeting, append_more_auth_data,
};
use dbduel_wire::{
    Capabilities, Completion, Credentials, Greeting, LoggedIn, Login, LoginError, LoginOptions,
    LoginStep, ServerError, Status, TlsWish, Transport,
};
use rsa::pkcs8::{EncodePublicKey, LineEnding};
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;

const CHALLENGE: &[u8] = b"abcdefghijklmnopqrst";
const OTHER: &[u8] = b"ABCDEFGHIJKLMNOPQRST";
const PASSWORD: &str = "s3cret";

fn greeting(method: &str) -> Greeting {
    Greeting {
        version_text: "8.4.0".to_owned(),
        connection_id: 12,
        capabilities: Capabilities(0x00FF_FFFF | Capabilities::DEPRECATE_EOF.0),
        collation: 255,
        status: Status::AUTOCOMMIT,
        auth_method: method.to_owned(),
        challenge: CHALLENGE.to_vec(),
    }
}

fn options(transport: Transport) -> LoginOptions {
    LoginOptions::new(Credentials::new("anna", PASSWORD), transport)
}

fn login(options: LoginOptions, greeting: &Greeting) -> (Login, Result<LoginStep, LoginError>) {
    let mut bytes = Vec::new();
    append_greeting(&mut bytes, greeting);
    let mut login = Login::new(options);
    let step = login.feed(&bytes).map(|(used, step)| {
        assert_eq!(used, bytes.len());
        step
    });
    (login, step)
}

#[track_caller]
fn sent(step: Result<LoginStep, LoginError>) -> Vec<u8> {
    match step {
        Ok(LoginStep::Send(bytes)) => bytes,
        other => panic!("nothing to send: {other:?}"),
    }
}

/// Feeds one packet made by `write` and returns the step.
fn answer(login: &mut Login, write: impl FnOnce(&mut Vec<u8>)) -> Result<LoginStep, LoginError> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    login.feed(&bytes).map(|(_, step)| step)
}

fn ok(sequence: u8) -> impl FnOnce(&mut Vec<u8>) {
    move |out| {
        let completion = Completion {
            status: Status::AUTOCOMMIT,
            ..Completion::default()
        };
        ReplyWriter::new(
            out,
            Terms {
                capabilities: Capabilities::default(),
                sequence,
            },
        )
        .ok(&completion);
    }
}

#[track_caller]
fn done(step: Result<LoginStep, LoginError>) -> LoggedIn {
    match step {
        Ok(LoginStep::Done(logged_in)) => logged_in,
        other => panic!("not logged in: {other:?}"),
    }
}

#[test]
fn the_login_packet_holds_user_answer_and_database() {
    // Compression would change all that follows; it is not spoken and so not asked for.
    let compression = Capabilities(1 << 5);
    let wanted = Capabilities::LOCAL_FILES | compression;
    let options = LoginOptions {
        database: Some("shop".to_owned()),
        wanted,
        ..options(Transport::Tcp)
    };
    let (mut login, step) = login(options, &greeting("mysql_native_password"));
    let bytes = sent(step);
    assert_eq!(bytes[3], 1, "it is the second packet");
    let Ok(ClientPacket::Login(packet)) = ClientPacket::parse(&bytes[4..]) else {
        panic!("{bytes:?}")
    };
    assert_eq!(
        (packet.user, packet.database),
        (&b"anna"[..], Some(&b"shop"[..]))
    );
    assert_eq!(
        packet.answer,
        Method::Native.answer(PASSWORD.as_bytes(), CHALLENGE)
    );
    assert_eq!(packet.auth_method, b"mysql_native_password");
    assert!(
        packet
            .capabilities
            .contains(Capabilities::LOCAL_FILES | Capabilities::DEPRECATE_EOF)
    );
    assert!(!packet.capabilities.contains(Capabilities::TLS));
    assert!(!packet.capabilities.contains(compression));
    let logged_in = done(answer(&mut login, ok(2)));
    assert_eq!((logged_in.method, logged_in.tls), (Method::Native, false));
    assert_eq!(logged_in.capabilities, packet.capabilities);
    assert_eq!(
        login.feed(b"more"),
        Err(LoginError::Unexpected),
        "nothing may follow"
    );
}

#[test]
fn the_method_can_be_switched() {
    let (mut login, step) = login(options(Transport::Tcp), &greeting("unheard_of"));
    sent(step);
    let nonce = [0; 32];
    for (name, challenge, sequence) in [
        ("mysql_native_password", OTHER, 2),
        ("client_ed25519", &nonce[..], 4),
        ("caching_sha2_password", OTHER, 6),
    ] {
        // 20-byte challenges are sent with a NUL behind them, ed25519's is not.
        let tail: &[u8] = if challenge.len() == 20 { &[0] } else { &[] };
        let switch = |out: &mut Vec<u8>| {
            append_auth_switch(out, sequence, name, &[challenge, tail].concat());
        };
        let bytes = sent(answer(&mut login, switch));
        assert_eq!(bytes[3], sequence + 1);
        let method = Method::by_name(name).unwrap();
        assert_eq!(
            bytes[4..],
            method.answer(PASSWORD.as_bytes(), challenge),
            "{name}"
        );
    }
    let switch = |out: &mut Vec<u8>| {
        append_auth_switch(out, 8, "auth_socket", &[]);
    };
    assert_eq!(
        sent(answer(&mut login, switch)),
        [0, 0, 0, 9],
        "the system vouches: an empty answer"
    );
    assert_eq!(done(answer(&mut login, ok(10))).method, Method::PeerUser);
}

#[test]
fn methods_that_are_not_spoken_are_named() {
    for name in ["mysql_clear_password", "dialog", "parsec"] {
        let (mut login, step) = login(options(Transport::Tcp), &greeting("mysql_native_password"));
        sent(step);
        let switch = |out: &mut Vec<u8>| {
            append_auth_switch(out, 2, name, b"x");
        };
        assert_eq!(
            answer(&mut login, switch),
            Err(LoginError::UnknownMethod(name.to_owned()))
        );
    }
    let (mut login, step) = login(options(Transport::Tcp), &greeting("mysql_native_password"));
    sent(step);
    let old = login.feed(b"\x01\0\0\x02\xfe");
    assert_eq!(
        old,
        Err(LoginError::UnknownMethod("mysql_old_password".to_owned()))
    );
}

#[test]
fn a_server_drives_no_terminal_by_what_it_names() {
    let (mut login, step) = login(options(Transport::Tcp), &greeting("mysql_native_password"));
    sent(step);
    let name = format!("\u{1b}[2J{}", "x".repeat(50_000));
    let switch = |out: &mut Vec<u8>| {
        append_auth_switch(out, 2, &name, b"x");
    };
    let said = answer(&mut login, switch).unwrap_err().to_string();
    assert!(said.contains("` [2Jxxx") && said.len() < 300, "{said}");
    let old = Greeting {
        capabilities: Capabilities(1),
        version_text: format!("3.23\u{7}{}", "x".repeat(50_000)),
        ..greeting("")
    };
    let (_, step) = self::login(options(Transport::Tcp), &old);
    let said = step.unwrap_err().to_string();
    assert!(said.contains("`3.23 xxx") && said.len() < 400, "{said}");
}

#[test]
fn a_server_that_never_decides_is_left() {
    let (mut login, step) = login(options(Transport::Tcp), &greeting("mysql_native_password"));
    sent(step);
    let outcome = (0..1000).find_map(|round| {
        let switch = |out: &mut Vec<u8>| {
            append_auth_switch(out, (2 * round + 2) as u8, "mysql_native_password", OTHER);
        };
        answer(&mut login, switch).err()
    });
    assert_eq!(outcome, Some(LoginError::Endless));
}

#[test]
fn a_cached_password_is_accepted_at_once() {
    let (mut login, step) = login(options(Transport::Tcp), &greeting("caching_sha2_password"));
    sent(step);
    let both = |out: &mut Vec<u8>| {
        append_more_auth_data(out, 2, &[3]);
        ok(3)(out);
    };
    done(answer(&mut login, both));
}

#[test]
fn inside_the_machine_the_password_is_sent_as_it_is() {
    let (mut login, step) = login(
        options(Transport::UnixSocket),
        &greeting("caching_sha2_password"),
    );
    sent(step);
    let full = |out: &mut Vec<u8>| {
        append_more_auth_data(out, 2, &[4]);
    };
    let step = answer(&mut login, full);
    assert_eq!(
        format!("{step:?}"),
        "Ok(Send(11 bytes))",
        "the password stays hidden"
    );
    assert_eq!(sent(step), b"\x07\0\0\x03s3cret\0");
    done(answer(&mut login, ok(4)));
}

#[test]
fn over_plain_tcp_the_password_is_encrypted() {
    let key = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 512).unwrap();
    let pem = key
        .to_public_key()
        .to_public_key_pem(LineEnding::LF)
        .unwrap();
    let full = |out: &mut Vec<u8>| {
        append_more_auth_data(out, 2, &[4]);
    };
    let switch = |out: &mut Vec<u8>| {
        append_auth_switch(out, 2, "sha256_password", &[CHALLENGE, &[0]].concat());
    };
    type Ask<'a> = (Method, &'a dyn Fn(&mut Vec<u8>), u8);
    let asks: [Ask<'_>; 2] = [
        (Method::CachingSha2, &full, 2),
        (Method::Sha256, &switch, 1),
    ];
    for (method, ask, request) in asks {
        let (mut login, step) = login(options(Transport::Tcp), &greeting("caching_sha2_password"));
        sent(step);
        assert_eq!(
            sent(answer(&mut login, ask)),
            [1, 0, 0, 3, request],
            "the request for the key"
        );
        let public = |out: &mut Vec<u8>| {
            append_more_auth_data(out, 4, pem.as_bytes());
        };
        let bytes = sent(answer(&mut login, public));
        let mixed = key.decrypt(Oaep::new::<Sha1>(), &bytes[4..]).unwrap();
        let password: Vec<u8> = mixed
            .iter()
            .zip(CHALLENGE)
            .map(|(byte, other)| byte ^ other)
            .collect();
        assert_eq!(password, b"s3cret\0");
        assert_eq!(done(answer(&mut login, ok(6))).method, method);
    }
}

/// Other than with `caching_sha2_password`: servers take it in clear under TLS alone.
#[test]
fn by_sha256_password_only_tls_lets_the_password_travel_as_it_is() {
    let switch = |sequence| {
        move |out: &mut Vec<u8>| {
            append_auth_switch(out, sequence, "sha256_password", &[OTHER, &[0]].concat());
        }
    };
    let (mut inside, step) = login(
        options(Transport::UnixSocket),
        &greeting("caching_sha2_password"),
    );
    sent(step);
    assert_eq!(
        sent(answer(&mut inside, switch(2))),
        [1, 0, 0, 3, 1],
        "the request for the key"
    );
    for transport in [Transport::Tcp, Transport::UnixSocket] {
        let wanted = LoginOptions {
            tls: TlsWish::Required,
            ..options(transport)
        };
        let (mut login, step) = login(wanted, &greeting("caching_sha2_password"));
        assert!(matches!(step, Ok(LoginStep::StartTls(_))), "{step:?}");
        login.tls_started().unwrap();
        assert_eq!(
            sent(answer(&mut login, switch(3))),
            b"\x07\0\0\x04s3cret\0",
            "{transport:?}"
        );
    }
}

#[test]
fn nothing_is_encrypted_for_a_server_before_it_asks_for_that_method() {
    let (mut login, step) = login(options(Transport::Tcp), &greeting("sha256_password"));
    let bytes = sent(step);
    let Ok(ClientPacket::Login(packet)) = ClientPacket::parse(&bytes[4..]) else {
        panic!("{bytes:?}")
    };
    assert_eq!(packet.auth_method, b"mysql_native_password");
    let nobody = LoginOptions::new(Credentials::new("anna", ""), Transport::Tcp);
    let switch = |out: &mut Vec<u8>| {
        append_auth_switch(out, 2, "sha256_password", &[OTHER, &[0]].concat());
    };
    assert_eq!(sent(answer(&mut login, switch)), [1, 0, 0, 3, 1]);
    let mut login = Login::new(nobody);
    let mut bytes = Vec::new();
    append_greeting(&mut bytes, &greeting("sha256_password"));
    sent(login.feed(&bytes).map(|(_, step)| step));
    assert_eq!(
        sent(answer(&mut login, switch)),
        [1, 0, 0, 3, 0],
        "who has no password needs no key"
    );
}

#[test]
fn a_key_that_is_none_ends_the_login() {
    let (mut login, step) = login(options(Transport::Tcp), &greeting("caching_sha2_password"));
    sent(step);
    let full = |out: &mut Vec<u8>| {
        append_more_auth_data(out, 2, &[4]);
    };
    sent(answer(&mut login, full));
    let public = |out: &mut Vec<u8>| {
        append_more_auth_data(out, 4, b"-----BEGIN NOTHING-----");
    };
    assert!(matches!(
        answer(&mut login, public),
        Err(LoginError::PublicKey(_))
    ));
}

#[test]
fn tls_comes_before_the_login() {
    let (mut login, step) = login(
        LoginOptions {
            tls: TlsWish::Preferred,
            ..options(Transport::Tcp)
        },
        &greeting("caching_sha2_password"),
    );
    let Ok(LoginStep::StartTls(request)) = step else {
        panic!("{step:?}")
    };
    assert_eq!((request.len(), request[3]), (36, 1));
    assert!(matches!(
        ClientPacket::parse(&request[4..]),
        Ok(ClientPacket::TlsRequest(_))
    ));
    let bytes = login.tls_started().unwrap();
    assert_eq!(bytes[3], 2);
    assert!(matches!(
        ClientPacket::parse(&bytes[4..]),
        Ok(ClientPacket::Login(_))
    ));
    assert_eq!(login.tls_started(), Err(LoginError::Unexpected));
    let full = |out: &mut Vec<u8>| {
        append_more_auth_data(out, 3, &[4]);
    };
    assert_eq!(
        sent(answer(&mut login, full)),
        b"\x07\0\0\x04s3cret\0",
        "under TLS it may be sent as it is"
    );
    assert!(done(answer(&mut login, ok(5))).tls);
}

#[test]
fn clear_bytes_behind_the_request_for_tls_are_refused() {
    let options = LoginOptions {
        tls: TlsWish::Required,
        ..options(Transport::Tcp)
    };
    let (mut login, step) = login(options, &greeting("caching_sha2_password"));
    assert!(matches!(step, Ok(LoginStep::StartTls(_))));
    assert_eq!(answer(&mut login, ok(2)), Err(LoginError::Unexpected));
}

#[test]
fn a_server_without_tls_is_refused_only_if_tls_is_required() {
    let plain = |method: &str| {
        let with_tls = greeting(method);
        Greeting {
            capabilities: with_tls.capabilities.without(Capabilities::TLS),
            ..with_tls
        }
    };
    let preferred = LoginOptions {
        tls: TlsWish::Preferred,
        ..options(Transport::Tcp)
    };
    sent(login(preferred, &plain("caching_sha2_password")).1);
    let required = LoginOptions {
        tls: TlsWish::Required,
        ..options(Transport::Tcp)
    };
    assert_eq!(
        login(required, &plain("caching_sha2_password")).1,
        Err(LoginError::NoTls)
    );
}

#[test]
fn refusals_keep_the_servers_words() {
    let mut login = Login::new(options(Transport::Tcp));
    let refused = login.feed(b"\x17\0\0\0\xff\x10\x04Too many connections");
    let error = ServerError {
        code: 1040,
        sqlstate: *b"HY000",
        message: "Too many connections".to_owned(),
    };
    assert_eq!(refused, Err(LoginError::Refused(error)));
}

#[test]
fn servers_from_another_age_are_named_as_such() {
    let old = Greeting {
        capabilities: Capabilities(1),
        version_text: "3.23.58".to_owned(),
        ..greeting("")
    };
    let (_, step) = login(options(Transport::Tcp), &old);
    assert!(matches!(step, Err(LoginError::TooOld { version, .. }) if version == "3.23.58"));
}

#[test]
fn mariadb_gets_its_extended_capabilities_back() {
    let bits =
        Capabilities(0x00FF_FFFF).without(Capabilities::LONG_PASSWORD) | Capabilities::BULK_EXECUTE;
    let mariadb = Greeting {
        capabilities: bits,
        version_text: "5.5.5-10.11.5-MariaDB".to_owned(),
        ..greeting("mysql_native_password")
    };
    assert_eq!(mariadb.version(), "10.11.5-MariaDB");
    let bytes = sent(login(options(Transport::Tcp), &mariadb).1);
    let Ok(ClientPacket::Login(packet)) = ClientPacket::parse(&bytes[4..]) else {
        panic!("{bytes:?}")
    };
    assert!(packet.capabilities.contains(Capabilities::BULK_EXECUTE));
}

#[test]
fn another_protocol_is_named_as_the_likely_cause() {
    for text in [
        &b"SSH-2.0-OpenSSH_9.9 something"[..],
        b"220 mail.example ESMTP ready and so on",
        b"\x05\0\0\0\x09abcd",
    ] {
        let error = Login::new(options(Transport::Tcp)).feed(text).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("is this a MySQL or MariaDB port?"),
            "{error}"
        );
    }
}
