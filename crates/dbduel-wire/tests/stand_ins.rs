//! The null server and the scripted server, driven from memory.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::time::Duration;

use dbduel_wire::command::code;
use dbduel_wire::packet::append;
use dbduel_wire::server::{Act, Action, Answer, Effect, NullServer, ScriptedServer, Shape};
use dbduel_wire::{
    Capabilities, Credentials, Login, LoginOptions, LoginStep, PrepareParser, Prepared,
    ReplyParser, RowFormat, ServerError, Skip, Statement, Step, Transport, Types, Value, WireError,
    command,
};

/// One placeholder, three columns, two rows; statements that begin with `c` change something.
fn shape(sql: &[u8]) -> Shape {
    if sql.first() == Some(&b'c') {
        Shape::default()
    } else {
        Shape {
            parameters: 1,
            columns: 3,
            rows: 2,
            ..Shape::default()
        }
    }
}

fn log_in(greeting: &[u8], exchange: impl FnOnce(&[u8]) -> Vec<u8>) -> Capabilities {
    let mut login = Login::new(LoginOptions::new(
        Credentials::new("anna", ""),
        Transport::Tcp,
    ));
    let LoginStep::Send(packet) = login.feed(greeting).unwrap().1 else {
        panic!("no answer to the greeting")
    };
    let LoginStep::Done(logged_in) = login.feed(&exchange(&packet)).unwrap().1 else {
        panic!("not logged in")
    };
    logged_in.capabilities
}

fn statement(capabilities: Capabilities, reply: &[u8]) -> Statement {
    let mut parser = PrepareParser::new(capabilities);
    match parser.feed(reply).unwrap() {
        (used, Prepared::Done(Ok(statement))) if used == reply.len() => statement,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_null_server_answers_pipelined_requests() {
    let mut out = Vec::new();
    let mut server = NullServer::begin(1, &mut out);
    let greeting = std::mem::take(&mut out);
    let capabilities = log_in(&greeting, |packet| {
        assert!(server.feed(packet, &mut shape, &mut out).unwrap());
        std::mem::take(&mut out)
    });
    let mut requests = Vec::new();
    command::prepare(&mut requests, b"select");
    server.feed(&requests, &mut shape, &mut out).unwrap();
    let statement = statement(capabilities, &std::mem::take(&mut out));
    assert_eq!((statement.parameters, statement.columns), (1, 3));

    requests.clear();
    command::execute(&mut requests, &statement, &[Value::Signed(5)], Types::Send).unwrap();
    command::query(&mut requests, b"change");
    command::query(&mut requests, b"select");
    append(&mut requests, 0, |out| out.push(code::PING));
    command::close(&mut requests, &statement);
    append(&mut requests, 0, |out| out.push(code::RESET_CONNECTION));
    command::execute(&mut requests, &statement, &[Value::Signed(5)], Types::Send).unwrap();
    // In pieces, as they may arrive.
    for piece in requests.chunks(7) {
        assert!(server.feed(piece, &mut shape, &mut out).unwrap());
    }
    let mut parser = ReplyParser::new(capabilities);
    let mut rest = &out[..];
    let mut reply = |format| {
        parser.begin(format);
        let fed = parser.feed(rest, &mut Skip).unwrap();
        assert_eq!(fed.step, Step::Done);
        rest = &rest[fed.consumed..];
        parser
            .outcome()
            .map_err(|error| error.code)
            .map(|summary| (summary.rows, summary.affected_rows))
    };
    assert_eq!(reply(RowFormat::Binary), Ok((2, 0)));
    assert_eq!(reply(RowFormat::Text), Ok((0, 1)));
    assert_eq!(reply(RowFormat::Text), Ok((2, 0)));
    assert_eq!(reply(RowFormat::Text), Ok((0, 0)), "ping");
    assert_eq!(reply(RowFormat::Text), Ok((0, 0)), "reset");
    assert_eq!(
        reply(RowFormat::Binary),
        Err(1243),
        "the reset forgot the statement"
    );
    assert!(rest.is_empty());
    requests.clear();
    command::quit(&mut requests);
    assert!(!server.feed(&requests, &mut shape, &mut out).unwrap());
}

#[test]
fn a_client_that_never_stops_preparing_is_refused_at_some_point() {
    let mut out = Vec::new();
    let mut server = NullServer::begin(1, &mut out);
    let greeting = std::mem::take(&mut out);
    let capabilities = log_in(&greeting, |packet| {
        server.feed(packet, &mut shape, &mut out).unwrap();
        std::mem::take(&mut out)
    });
    let mut request = Vec::new();
    command::prepare(&mut request, b"change");
    let mut parser = PrepareParser::new(capabilities);
    let refused = (0..100_000).find_map(|_| {
        out.clear();
        server.feed(&request, &mut shape, &mut out).unwrap();
        parser.begin();
        match parser.feed(&out).unwrap().1 {
            Prepared::Done(outcome) => outcome.err(),
            Prepared::NeedMore => panic!("incomplete"),
        }
    });
    assert_eq!(refused.unwrap().code, 1461);
}

#[test]
fn the_script_is_played_and_begins_again() {
    let deadlock = ServerError {
        code: 1213,
        sqlstate: *b"40001",
        message: "Deadlock".to_owned(),
    };
    let act = |after, answer| Act {
        after: Duration::from_millis(after),
        answer,
    };
    let script = vec![
        act(0, Answer::Proper),
        act(20, Answer::Ok { affected_rows: 9 }),
        act(5, Answer::Error(deadlock.clone())),
        act(7, Answer::Payload(vec![0xFE])),
        act(1, Answer::Bytes(b"nonsense".to_vec())),
    ];
    let mut out = Vec::new();
    let mut server = ScriptedServer::begin(1, script, &mut out);
    let mut once = |bytes: &[u8]| {
        let [
            Action {
                after,
                effect: Effect::Send(bytes),
            },
        ] = &server.feed(bytes, &mut shape).unwrap()[..]
        else {
            panic!("not one answer")
        };
        (after.as_millis(), bytes.clone())
    };
    let capabilities = log_in(&out, |packet| once(packet).1);
    let mut request = Vec::new();
    command::query(&mut request, b"select");
    let mut parser = ReplyParser::new(capabilities);
    let mut outcome = |bytes: &[u8]| {
        parser.begin(RowFormat::Text);
        let fed = parser.feed(bytes, &mut Skip)?;
        assert_eq!(fed.step, Step::Done);
        Ok(parser
            .outcome()
            .map_err(Clone::clone)
            .map(|summary| (summary.rows, summary.affected_rows)))
    };
    for _ in 0..2 {
        let answers: Vec<_> = (0..5).map(|_| once(&request)).collect();
        let delays: Vec<_> = answers.iter().map(|answer| answer.0).collect();
        assert_eq!(delays, [0, 20, 5, 7, 1]);
        assert_eq!(outcome(&answers[0].1), Ok(Ok((2, 0))));
        assert_eq!(outcome(&answers[1].1), Ok(Ok((0, 9))));
        assert_eq!(outcome(&answers[2].1), Ok(Err(deadlock.clone())));
        assert!(matches!(
            outcome(&answers[3].1),
            Err(WireError::Malformed { .. })
        ));
        assert_eq!(answers[4].1, b"nonsense");
    }
}

#[test]
fn a_stalled_server_hears_nothing_and_a_torn_answer_ends_the_connection() {
    let start = |answer| {
        let mut out = Vec::new();
        let script = vec![Act {
            after: Duration::from_secs(1),
            answer,
        }];
        let mut server = ScriptedServer::begin(1, script, &mut out);
        log_in(&out, |packet| {
            match server.feed(packet, &mut shape).unwrap().remove(0).effect {
                Effect::Send(bytes) => bytes,
                Effect::Close => panic!("closed during login"),
            }
        });
        server
    };
    let mut request = Vec::new();
    command::query(&mut request, b"select");
    let mut stalled = start(Answer::Stall);
    assert_eq!(stalled.feed(&request, &mut shape).unwrap(), []);
    assert_eq!(stalled.feed(&request, &mut shape).unwrap(), []);

    let after = Duration::from_secs(1);
    let close = Action {
        after,
        effect: Effect::Close,
    };
    let torn = start(Answer::Torn { bytes: 3 })
        .feed(&request, &mut shape)
        .unwrap();
    assert_eq!(
        torn,
        [
            Action {
                after,
                effect: Effect::Send(vec![1, 0, 0])
            },
            close.clone()
        ]
    );
    assert_eq!(
        start(Answer::Close).feed(&request, &mut shape).unwrap(),
        [close]
    );
}
