//! Answers of real servers, damaged: cut short, with bytes changed, removed, repeated and put in. Nothing
//! panics or stands still, no packet is taken that is larger than the limit, and the pieces in which the
//! bytes arrive make no difference.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use dbduel_wire::{
    Capabilities, Credentials, Greeting, Login, LoginOptions, LoginStep, PrepareParser, Prepared,
    ReplyParser, Row, RowFormat, Sink, Step, Transport, WireError,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

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

/// One damage.
#[derive(Debug, Clone)]
enum Damage {
    Cut(Index),
    Change(Index, u8),
    Remove(Index, usize),
    Insert(Index, Vec<u8>),
    Repeat(Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        1 => place().prop_map(Damage::Cut),
        6 => (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Change(at, byte)),
        // Lengths and counts break at their borders.
        6 => (place(), select(vec![0, 1, 0x7f, 0x80, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff]))
            .prop_map(|(at, byte)| Damage::Change(at, byte)),
        2 => (place(), 1..8_usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        2 => (place(), vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => (place(), 1..64_usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let end = |at: usize, length: usize| (at + length).min(bytes.len());
        match self {
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Change(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Remove(at, length) => {
                let at = at.index(bytes.len());
                drop(bytes.drain(at..end(at, *length)));
            }
            Damage::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Repeat(at, length) => {
                let at = at.index(bytes.len());
                let again = bytes[at..end(at, *length)].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    (select(answers()), vec(damage(), 1..5)).prop_map(|(mut bytes, damages)| {
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
