//! Replies written byte by byte; the property tests cover whole families of them.

use super::*;
use crate::packet;

/// Packets with these payloads, numbered from 1.
fn reply(payloads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sequence = 1;
    for payload in payloads {
        sequence = packet::append(&mut out, sequence, |out| out.extend_from_slice(payload));
    }
    out
}

const COLUMN: &[u8] = b"\x03def\0\0\0\x01c\0\x0c\x3f\0\xff\0\0\0\xfd\0\0\0\0\0";
const EOF: &[u8] = b"\xfe\0\0\x02\0";

/// Counts rows and the bytes of their values.
#[derive(Default)]
struct Sizes(Vec<usize>);

impl Sink for Sizes {
    fn row(&mut self, row: &Row<'_>) {
        self.0.extend(
            row.values()
                .filter_map(|value| value.ok()?.as_bytes().map(<[u8]>::len)),
        );
    }
}

fn parser(capabilities: Capabilities, format: RowFormat) -> ReplyParser {
    let mut parser = ReplyParser::new(capabilities);
    parser.begin(format);
    parser
}

#[test]
fn an_error_among_columns_or_rows_ends_the_reply_also_when_skipping() {
    let error = b"\xff\x26\x05#70100Query execution was interrupted";
    for payloads in [
        &[b"\x02", COLUMN, error][..],
        &[b"\x01", COLUMN, EOF, b"\x01x", error],
    ] {
        let bytes = reply(payloads);
        for size in [bytes.len(), 1] {
            let mut parser = parser(Capabilities::default(), RowFormat::Text);
            let steps: Vec<Step> = bytes
                .chunks(size)
                .map(|it| parser.feed(it, &mut Skip).unwrap().step)
                .collect();
            assert_eq!(steps.last(), Some(&Step::Done));
            assert_eq!(parser.outcome().unwrap_err().code, 1318);
        }
    }
}

#[test]
fn the_end_of_rows_may_carry_a_text() {
    let end = b"\xfe\0\0\x02\0\0\0and more words than an EOF packet can hold";
    let bytes = reply(&[b"\x01", COLUMN, b"\x01x", end]);
    let mut parser = parser(Capabilities::DEPRECATE_EOF, RowFormat::Text);
    let fed = parser.feed(&bytes, &mut Skip).unwrap();
    assert_eq!((fed.step, fed.consumed), (Step::Done, bytes.len()));
    assert_eq!(parser.outcome().unwrap().rows, 1);
}

#[test]
fn a_row_whose_first_value_is_huge_is_not_the_end() {
    let length = 1 << 24;
    let mut row = Vec::from(*b"\xfe\0\0\0\x01\0\0\0\0");
    row.resize(row.len() + length, b'x');
    for (capabilities, payloads) in [
        (
            Capabilities::DEPRECATE_EOF,
            &[b"\x01", COLUMN, &row, b"\xfe\0\0\x02\0\0\0"][..],
        ),
        (Capabilities::default(), &[b"\x01", COLUMN, EOF, &row, EOF]),
    ] {
        let bytes = reply(payloads);
        let mut sizes = Sizes::default();
        let mut parser = parser(capabilities, RowFormat::Text);
        assert_eq!(parser.feed(&bytes, &mut sizes).unwrap().step, Step::Done);
        assert_eq!(sizes.0, [length]);
        parser.begin(RowFormat::Text);
        assert_eq!(parser.feed(&bytes, &mut Skip).unwrap().step, Step::Done);
        assert_eq!(parser.outcome().unwrap().rows, 1);
    }
}

#[test]
fn a_generated_number_is_kept_when_a_later_result_has_none() {
    let bytes = reply(&[b"\0\x01\x2a\x0a\0\x01\0", b"\0\x02\0\x02\0\x01\0"]);
    let mut parser = parser(Capabilities::default(), RowFormat::Text);
    assert_eq!(parser.feed(&bytes, &mut Skip).unwrap().step, Step::Done);
    let summary = parser.outcome().unwrap();
    assert_eq!(
        (
            summary.affected_rows,
            summary.last_insert_id,
            summary.warnings
        ),
        (3, 42, 2)
    );
}

#[test]
fn a_binary_row_begins_with_zero_also_when_it_is_skipped() {
    let bytes = reply(&[b"\x01", COLUMN, EOF, b"\x01x"]);
    let mut parser = parser(Capabilities::default(), RowFormat::Binary);
    let error = parser.feed(&bytes, &mut Skip).unwrap_err();
    assert!(
        matches!(error, WireError::Malformed { packet: "row", .. }),
        "{error}"
    );
    assert_eq!(parser.feed(b"", &mut Skip), Err(error), "the error stays");
    parser.begin(RowFormat::Text);
    assert_eq!(
        parser
            .feed(&reply(&[b"\0\0\0\x02\0\0\0"]), &mut Skip)
            .unwrap()
            .step,
        Step::Done
    );
}

#[test]
fn impossible_replies_are_refused() {
    for payloads in [
        &[&b""[..]][..],
        &[b"\0\0"],
        &[b"\xfe\0\0\0\0\0\0\0\x01"],
        &[b"\xfd\0\0\x01"],
        &[b"\x01", b"\x03def"],
        &[b"\x01", COLUMN, b"\x01x"],
        &[b"\x01", COLUMN, EOF, b""],
    ] {
        let mut parser = parser(Capabilities::default(), RowFormat::Text);
        assert!(
            parser
                .feed(&reply(payloads), &mut Sizes::default())
                .is_err(),
            "{payloads:?}"
        );
    }
}
