//! Answers of real servers, damaged: cut short, with bytes changed, removed, repeated and put in. Nothing
//! panics or stands still, no packet is taken that is larger than the limit, and the pieces in which the
//! bytes arrive make no difference.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use dbduel_testkit::damage;
use dbduel_wire::{
    Capabilities, Credentials, Greeting, Login, LoginOptions, LoginStep, PrepareParser, Prepared,
    ReplyParser, Row, RowFormat, Sink, Step, Transport, WireError,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

macro_rules! captured {
    ($($name:literal),*) => {
        &[$(include_str!(concat!("captured/", $name, ".txt"))),*]
    };
}

const CAPTURED: &[&str] = captured![
    "mysql-5.5.34-eof",
    "mysql-5.6.24-eof",
    "mysql-9.7.4",
    "mariadb-10.1.23-eof",
    "mariadb-10.11.19",
    "mariadb-10.11.19-eof",
    "mariadb-11.4.5"
];

/// Largest packet that the parsers take here.
const LIMIT: usize = 1 << 16;

/// Every answer of every capture.
fn answers() -> Vec<Vec<u8>> {
    let lines = CAPTURED.iter().flat_map(|text| text.lines());
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(_, hex)| {
            let pairs = hex.as_bytes().chunks(2);
            pairs
                .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
                .collect()
        })
        .collect()
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    (select(answers()), vec(damage::to_bytes(), 1..5)).prop_map(|(mut bytes, damages)| {
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        bytes
    })
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    select(vec![Capabilities::default(), Capabilities::DEPRECATE_EOF])
}

/// Counts rows and looks at every value.
#[derive(Debug, Default, PartialEq)]
struct Looked {
    rows: usize,
    good: usize,
    bad: usize,
}

impl Sink for Looked {
    fn row(&mut self, row: &Row<'_>) {
        self.rows += 1;
        for value in row.values() {
            match value {
                Ok(_) => self.good += 1,
                Err(_) => self.bad += 1,
            }
        }
    }
}

/// What a reply came to, fed in pieces of this size, after the first of which it may be done.
fn reply(
    bytes: &[u8],
    piece: usize,
    format: RowFormat,
    capabilities: Capabilities,
) -> (Result<Step, WireError>, Looked) {
    let mut parser = ReplyParser::with_limit(capabilities, LIMIT);
    parser.begin(format);
    let mut looked = Looked::default();
    for piece in bytes.chunks(piece.max(1)) {
        let mut rest = piece;
        while !rest.is_empty() {
            match parser.feed(rest, &mut looked) {
                Err(error) => return (Err(error), looked),
                Ok(fed) if fed.step == Step::NeedMore => {
                    assert_eq!(fed.consumed, rest.len(), "bytes are left over");
                    rest = &[];
                }
                Ok(fed) if fed.step == Step::LocalInfile => {
                    // Refused with an empty packet; the server goes on talking.
                    assert!(fed.consumed > 0 && fed.consumed <= rest.len());
                    rest = &rest[fed.consumed..];
                }
                Ok(fed) => {
                    assert!(fed.consumed <= rest.len());
                    return (Ok(fed.step), looked);
                }
            }
        }
    }
    (Ok(Step::NeedMore), looked)
}

proptest! {
    #[test]
    fn a_damaged_reply_neither_panics_nor_hangs_and_its_pieces_do_not_matter(
        bytes in damaged(),
        piece in 1..40_usize,
        is_text in any::<bool>(),
        capabilities in capabilities(),
    ) {
        let format = if is_text { RowFormat::Text } else { RowFormat::Binary };
        let whole = reply(&bytes, bytes.len(), format, capabilities);
        let pieces = reply(&bytes, piece, format, capabilities);
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn a_damaged_answer_to_prepare_neither_panics_nor_hangs(
        bytes in damaged(),
        piece in 1..40_usize,
        capabilities in capabilities(),
    ) {
        let mut parser = PrepareParser::new(capabilities);
        parser.begin();
        for piece in bytes.chunks(piece) {
            match parser.feed(piece) {
                Err(_) | Ok((_, Prepared::Done(_))) => break,
                Ok((used, Prepared::NeedMore)) => prop_assert_eq!(used, piece.len()),
            }
        }
    }

    #[test]
    fn a_damaged_login_neither_panics_nor_hangs(
        bytes in damaged(),
        more in damaged(),
        piece in 1..40_usize,
    ) {
        let _ = Greeting::parse(&bytes);
        let credentials = Credentials::new("user", "password");
        let mut login = Login::new(LoginOptions::new(credentials, Transport::Tcp));
        let bytes = [bytes, more].concat();
        'pieces: for piece in bytes.chunks(piece) {
            let mut rest = piece;
            // Each step either takes bytes or is one of the few answers that the client gives.
            for _ in 0..=2 * piece.len() + 8 {
                match login.feed(rest) {
                    Err(_) | Ok((_, LoginStep::Done(_) | LoginStep::StartTls(_))) => break 'pieces,
                    Ok((used, step)) => {
                        rest = &rest[used..];
                        if matches!(step, LoginStep::NeedMore) {
                            break;
                        }
                    }
                }
            }
            prop_assert!(rest.is_empty(), "bytes are left over");
        }
    }
}
