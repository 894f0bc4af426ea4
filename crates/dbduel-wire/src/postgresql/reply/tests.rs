//! Answers of a server, in pieces of every size, and invalid bytes.

use super::*;
use crate::reply::Skip;
use crate::value::Value;

/// Keeps every value as text.
#[derive(Default)]
struct Seen(Vec<String>);

impl Sink for Seen {
    fn result_set(&mut self, columns: usize) {
        self.0.push(format!("columns {columns}"));
    }
    fn row(&mut self, row: &Row<'_>) {
        for value in row.values() {
            self.0.push(match value {
                Ok(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
                other => format!("{other:?}"),
            });
        }
    }
    fn completed(&mut self, completion: &Completion) {
        self.0.push(format!("done {}", completion.affected_rows));
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn error(fields: &str) -> Vec<u8> {
    message(b'E', fields.replace('|', "\0").as_bytes())
}

const READY: &[u8] = b"Z\0\0\0\x05I";

/// Feeds an answer in pieces of every size; it must end exactly at its end.
fn fed(
    answer: &[u8],
    begin: impl Fn(&mut ReplyParser),
) -> (Vec<String>, Result<Summary, ServerError>) {
    let mut first = None;
    for piece in (1..=answer.len()).rev() {
        let (mut parser, mut seen) = (ReplyParser::default(), Seen::default());
        begin(&mut parser);
        let mut step = Step::NeedMore;
        for bytes in answer.chunks(piece) {
            step = parser.feed(bytes, &mut seen).unwrap();
        }
        assert_eq!(step, Step::Done, "pieces of {piece}");
        let outcome = (seen.0, parser.outcome());
        assert_eq!(*first.get_or_insert_with(|| outcome.clone()), outcome);
    }
    first.unwrap()
}

#[test]
fn the_answer_to_an_execution_has_binary_rows() {
    let row = b"\0\x03\0\0\0\x04\xff\xff\xff\xfe\xff\xff\xff\xff\0\0\0\x02ab";
    let answer = [
        &message(b'2', b""),
        &message(b'D', row),
        &message(b'C', b"FETCH 1\0"),
        READY,
    ]
    .concat();
    let statement = Statement::described(1, &[], &[23, 23, 1042]);
    let (seen, outcome) = fed(&answer, |parser| {
        parser.begin_executions();
        parser.expect(&statement);
    });
    assert_eq!(
        seen,
        ["columns 3", "Ok(Signed(-2))", "Ok(Null)", "ab", "done 0"]
    );
    let summary = outcome.unwrap();
    assert_eq!(
        (summary.rows, summary.result_sets, summary.affected_rows),
        (1, 1, 0)
    );
}

#[test]
fn rows_that_nobody_wants_are_counted() {
    let answer = [
        &message(b'2', b""),
        &message(b'D', b"nonsense"),
        &message(b'C', b"FETCH 1\0"),
        READY,
    ]
    .concat();
    let mut parser = ReplyParser::default();
    parser.begin_executions();
    parser.expect(&Statement::described(1, &[], &[23]));
    assert_eq!(parser.feed(&answer, &mut Skip), Ok(Step::Done));
    assert_eq!(parser.outcome().unwrap().rows, 1);
}

#[test]
fn a_query_in_text_describes_its_rows_and_may_have_several_results() {
    let description = b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    let answer = [
        &message(b'S', b"TimeZone\0UTC\0"),
        &message(b'T', description),
        &message(b'D', b"\0\x01\0\0\0\x02-7"),
        &message(b'C', b"FETCH 1\0"),
        &message(b'N', b"SWARNING\0\0"),
        &message(b'C', b"INSERT 0 12\0"),
        &message(b'I', b""),
        READY,
    ]
    .concat();
    let (seen, outcome) = fed(&answer, ReplyParser::begin_query);
    assert_eq!(seen, ["columns 1", "-7", "done 0", "done 12", "done 0"]);
    assert_eq!(outcome.unwrap().affected_rows, 12);
}

#[test]
fn an_error_ends_when_the_server_is_ready_again_and_a_fatal_one_at_once() {
    let refused = [&error("SERROR|C23505|Mtaken||")[..], READY].concat();
    let (_, outcome) = fed(&refused, ReplyParser::begin_query);
    assert_eq!(outcome.unwrap_err().sqlstate(), "23505");
    let (_, outcome) = fed(&error("SFATAL|C57P01|Mbye||"), ReplyParser::begin_query);
    assert!(outcome.unwrap_err().is_fatal);
}

#[test]
fn what_follows_an_answer_belongs_to_the_next() {
    let notice = message(b'N', b"SNOTICE\0\0");
    let mut parser = ReplyParser::default();
    parser.begin_query();
    let first = [&message(b'C', b"BEGIN\0"), READY, &notice[..3]].concat();
    assert_eq!(parser.feed(&first, &mut Skip), Ok(Step::Done));
    parser.begin_query();
    let second = [&notice[3..], &message(b'C', b"UPDATE 3\0"), READY].concat();
    assert_eq!(parser.feed(&second, &mut Skip), Ok(Step::Done));
    assert_eq!(parser.outcome().unwrap().affected_rows, 3);
    // An error between answers is that of the next request.
    let mut parser = ReplyParser::default();
    parser.begin_query();
    let first = [&message(b'C', b"BEGIN\0"), READY].concat();
    parser.feed(&first, &mut Skip).unwrap();
    parser.outcome().unwrap();
    parser.begin_query();
    let fatal = error("SFATAL|C57P01|Mbye||");
    assert_eq!(parser.feed(&fatal, &mut Skip), Ok(Step::Done));
    assert!(parser.outcome().is_err());
}

#[test]
fn a_commit_that_rolls_back_is_noticed() {
    let mut parser = ReplyParser::default();
    for (tag, rolled_back) in [(&b"ROLLBACK\0"[..], true), (b"COMMIT\0", false)] {
        parser.begin_query();
        let answer = [&message(b'C', tag), READY].concat();
        parser.feed(&answer, &mut Skip).unwrap();
        assert_eq!(parser.rolled_back(), rolled_back);
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_stays_so() {
    for answer in [
        message(b'?', b""),
        message(b'D', b"\0\0"),
        message(b'2', b""),
        message(b'Z', b"X"),
        message(b'T', b"\0\x05"),
        [READY, READY].concat(),
        vec![b'C', 0, 0, 0, 0],
    ] {
        let mut parser = ReplyParser::default();
        parser.begin_query();
        let refused = parser.feed(&answer, &mut Skip).unwrap_err();
        assert_eq!(parser.feed(READY, &mut Skip), Err(refused), "{answer:?}");
    }
}

#[test]
fn a_row_with_other_columns_than_described_is_an_error_when_it_is_read() {
    let kinds = Statement::described(1, &[], &[23, 20]).columns;
    for row in [
        &b""[..],
        b"\0\x01\0\0\0\x04\0\0\0\x01",
        b"\0\x02\0\0\0\x02\0\x01",
        b"\0\x02\xff\xff\xff\xfe",
        b"\0\x02\x7f\xff\xff\xffab",
    ] {
        let row = Row::new(row, RowFormat::PostgresBinary, &kinds);
        assert!(row.values().any(|value| value.is_err()), "{row:?}");
    }
}

#[test]
fn counts_in_tags_do_not_overflow() {
    assert_eq!(
        affected_rows(b"UPDATE 99999999999999999999999\0", false),
        u64::MAX
    );
    assert_eq!(affected_rows(b"INSERT 0 100\0", true), 100);
    assert_eq!(affected_rows(b"FETCH 100\0", true), 0);
    assert_eq!(affected_rows(b"MERGE 100\0", false), 100);
    assert_eq!(affected_rows(b"CREATE TABLE\0", false), 0);
}
