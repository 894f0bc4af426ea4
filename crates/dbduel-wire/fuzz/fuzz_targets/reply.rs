//! A hostile server after the login: replies and answers to prepare, in one piece and in many.
//!
//! The first byte chooses the format, the capabilities and the size of the pieces; the rest is what the server
//! sends. However it is cut, the result must be the same.

#![no_main]

use dbduel_wire::{
    Capabilities, PrepareParser, ReplyParser, Row, RowFormat, ServerError, Sink, Skip, Step,
    Summary, WireError,
};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Default, PartialEq)]
struct Sums {
    rows: u64,
    values: u64,
    errors: u64,
}

impl Sink for Sums {
    fn row(&mut self, row: &Row<'_>) {
        self.rows += 1;
        for value in row.values() {
            match value {
                Ok(_) => self.values += 1,
                Err(_) => self.errors += 1,
            }
        }
    }
}

type Seen = (Result<Step, WireError>, Summary, Option<ServerError>);

fn parse<S: Sink>(
    bytes: &[u8],
    size: usize,
    format: RowFormat,
    capabilities: Capabilities,
    sink: &mut S,
) -> Seen {
    let mut parser = ReplyParser::with_limit(capabilities, 1 << 16);
    parser.begin(format);
    let mut step = Ok(Step::NeedMore);
    for piece in bytes.chunks(size) {
        let mut rest = piece;
        while !rest.is_empty() && !matches!(step, Ok(Step::Done) | Err(_)) {
            step = parser.feed(rest, sink).map(|fed| {
                rest = &rest[fed.consumed..];
                fed.step
            });
        }
    }
    (step, *parser.summary(), parser.outcome().err().cloned())
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else {
        return;
    };
    let format = if choice & 1 == 0 {
        RowFormat::Text
    } else {
        RowFormat::Binary
    };
    let capabilities = if choice & 2 == 0 {
        Capabilities::default()
    } else {
        Capabilities::DEPRECATE_EOF
    };
    let size = usize::from(choice >> 2) + 1;

    let (mut whole, mut pieces) = (Sums::default(), Sums::default());
    let expected = parse(bytes, usize::MAX, format, capabilities, &mut whole);
    assert_eq!(
        parse(bytes, size, format, capabilities, &mut pieces),
        expected
    );
    assert_eq!(pieces, whole);
    let skipped = parse(bytes, size, format, capabilities, &mut Skip);
    assert_eq!(
        skipped,
        parse(bytes, usize::MAX, format, capabilities, &mut Skip)
    );

    let (mut whole, mut cut) = (
        PrepareParser::new(capabilities),
        PrepareParser::new(capabilities),
    );
    let expected = whole.feed(bytes).map(|(_, prepared)| prepared);
    let mut prepared = cut.feed(&[]).map(|(_, prepared)| prepared);
    for piece in bytes.chunks(size) {
        prepared = cut.feed(piece).map(|(_, prepared)| prepared);
    }
    assert_eq!(prepared, expected);
});
