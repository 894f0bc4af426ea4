//! Whatever the pieces in which bytes arrive, the result is the same; whatever the bytes, nothing panics or hangs.

use dbduel_wire::server::{Command, NullServer, ReplyWriter, Session, Shape, Terms, Turn};
use dbduel_wire::{
    Capabilities, Column, ColumnKind, ColumnType, Completion, Credentials, Date, DateTime,
    Greeting, Login, LoginOptions, LoginStep, PrepareParser, Prepared, ReplyParser, Row, RowFormat,
    SentTypes, ServerError, Sink, Skip, Statement, Status, Step, Summary, Time, Transport, Types,
    Value, WireError, command,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A value that owns its bytes.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Plain(Value<'static>),
    Bytes(Vec<u8>),
}

impl Owned {
    fn borrow(&self) -> Value<'_> {
        match self {
            Owned::Plain(value) => *value,
            Owned::Bytes(bytes) => Value::Bytes(bytes),
        }
    }

    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Bytes(bytes) => Owned::Bytes(bytes.to_vec()),
            Value::Null => Owned::Plain(Value::Null),
            Value::Signed(value) => Owned::Plain(Value::Signed(value)),
            Value::Unsigned(value) => Owned::Plain(Value::Unsigned(value)),
            Value::Float(value) => Owned::Plain(Value::Float(value)),
            Value::Double(value) => Owned::Plain(Value::Double(value)),
            Value::Date(value) => Owned::Plain(Value::Date(value)),
            Value::DateTime(value) => Owned::Plain(Value::DateTime(value)),
            Value::Time(value) => Owned::Plain(Value::Time(value)),
            Value::Text(text) => Owned::Bytes(text.as_bytes().to_vec()),
        }
    }
}

/// One result of a reply.
#[derive(Debug, Clone)]
enum Outcome {
    Changed(Completion),
    Rows {
        kinds: Vec<ColumnKind>,
        rows: Vec<Vec<Owned>>,
    },
}

#[derive(Debug, Clone)]
struct Reply {
    format: RowFormat,
    capabilities: Capabilities,
    outcomes: Vec<Outcome>,
    error: Option<ServerError>,
}

/// Everything a sink and a parser can tell about a reply.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    columns: Vec<(Vec<u8>, ColumnKind)>,
    rows: Vec<Vec<Result<Owned, WireError>>>,
    completions: Vec<Completion>,
}

impl Sink for Seen {
    fn column(&mut self, column: &Column<'_>) {
        self.columns.push((column.name.to_vec(), column.kind));
    }
    fn row(&mut self, row: &Row<'_>) {
        self.rows
            .push(row.values().map(|value| value.map(Owned::of)).collect());
    }
    fn completed(&mut self, completion: &Completion) {
        self.completions.push(*completion);
    }
}

fn moment() -> impl Strategy<Value = DateTime> {
    (
        any::<(u16, u8, u8, u8, u8, u8)>(),
        prop_oneof![Just(0), any::<u32>()],
    )
        .prop_map(
            |((year, month, day, hour, minute, second), microsecond)| DateTime {
                date: Date { year, month, day },
                hour,
                minute,
                second,
                microsecond,
            },
        )
}

fn span() -> impl Strategy<Value = Time> {
    (
        any::<(bool, u32, u8, u8, u8)>(),
        prop_oneof![Just(0), any::<u32>()],
    )
        .prop_map(
            |((negative, days, hours, minutes, seconds), microseconds)| Time {
                negative,
                days,
                hours,
                minutes,
                seconds,
                microseconds,
            },
        )
}

fn value() -> impl Strategy<Value = Owned> {
    prop_oneof![
        any::<i64>().prop_map(|value| Owned::Plain(Value::Signed(value))),
        any::<u64>().prop_map(|value| Owned::Plain(Value::Unsigned(value))),
        (-1e9..1e9f32).prop_map(|value| Owned::Plain(Value::Float(value))),
        (-1e99..1e99f64).prop_map(|value| Owned::Plain(Value::Double(value))),
        vec(any::<u8>(), 0..300).prop_map(Owned::Bytes),
        moment().prop_map(|value| Owned::Plain(Value::Date(value.date))),
        moment().prop_map(|value| Owned::Plain(Value::DateTime(value))),
        span().prop_map(|value| Owned::Plain(Value::Time(value))),
    ]
}

fn outcome(format: RowFormat) -> impl Strategy<Value = Outcome> {
    let changed = any::<(u64, u64, u16)>().prop_map(|(affected_rows, last_insert_id, warnings)| {
        Outcome::Changed(Completion {
            affected_rows,
            last_insert_id,
            warnings,
            status: Status::AUTOCOMMIT,
        })
    });
    // The first row gives the columns their kinds; the others repeat its values or have NULL in their place.
    let rows =
        (vec(value(), 1..9), vec(vec(any::<bool>(), 9), 0..5)).prop_map(move |(model, nulls)| {
            let text = |value: &Owned| match (format, value) {
                (RowFormat::Text, Owned::Plain(value)) => {
                    Owned::Bytes(format!("{value:?}").into_bytes())
                }
                (_, value) => value.clone(),
            };
            let model: Vec<Owned> = model.iter().map(text).collect();
            let row = |nulls: &Vec<bool>| {
                model
                    .iter()
                    .zip(nulls)
                    .map(|(it, &null)| {
                        if null {
                            Owned::Plain(Value::Null)
                        } else {
                            it.clone()
                        }
                    })
                    .collect()
            };
            let kinds = model.iter().map(|value| value.borrow().kind()).collect();
            Outcome::Rows {
                kinds,
                rows: nulls.iter().map(row).collect(),
            }
        });
    prop_oneof![changed, rows]
}

fn reply() -> impl Strategy<Value = Reply> {
    let format = prop_oneof![Just(RowFormat::Text), Just(RowFormat::Binary)];
    let capabilities = prop_oneof![
        Just(Capabilities::default()),
        Just(Capabilities::DEPRECATE_EOF)
    ];
    let error = proptest::option::weighted(
        0.3,
        (any::<u16>(), "[ -~]{0,80}").prop_map(|(code, message)| ServerError {
            code,
            sqlstate: *b"HY000",
            message,
        }),
    );
    (format, capabilities, error).prop_flat_map(|(format, capabilities, error)| {
        vec(outcome(format), usize::from(error.is_none())..4).prop_map(move |outcomes| Reply {
            format,
            capabilities,
            outcomes,
            error: error.clone(),
        })
    })
}

impl Reply {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = ReplyWriter::new(
            &mut out,
            Terms {
                capabilities: self.capabilities,
                sequence: 1,
            },
        );
        for (index, outcome) in self.outcomes.iter().enumerate() {
            let last = index + 1 == self.outcomes.len() && self.error.is_none();
            let more = if last {
                Status::default()
            } else {
                Status::MORE_RESULTS
            };
            match outcome {
                Outcome::Changed(completion) => writer.ok(&Completion {
                    status: completion.status | more,
                    ..*completion
                }),
                Outcome::Rows { kinds, rows } => {
                    writer.columns(kinds.iter().map(|&kind| ("column", kind)));
                    for row in rows {
                        let values: Vec<Value<'_>> = row.iter().map(Owned::borrow).collect();
                        match self.format {
                            RowFormat::Text => writer.text_row(values.iter().map(Value::as_bytes)),
                            _ => writer.binary_row(&values),
                        }
                    }
                    writer.end(Status::AUTOCOMMIT | more, 1);
                }
            }
        }
        if let Some(error) = &self.error {
            writer.error(error);
        }
        out
    }

    fn expected_rows(&self) -> Vec<Vec<Result<Owned, WireError>>> {
        let rows = self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Changed(_) => None,
            Outcome::Rows { rows, .. } => Some(rows),
        });
        rows.flatten()
            .map(|row| row.iter().cloned().map(Ok).collect())
            .collect()
    }
}

/// Feeds pieces until the parser is done or refuses; checks that it neither takes too much nor stands still.
fn feed<S: Sink>(
    parser: &mut ReplyParser,
    bytes: &[u8],
    sizes: &[usize],
    sink: &mut S,
) -> Result<(Step, usize), WireError> {
    let mut taken = 0;
    let mut step = Step::NeedMore;
    let mut sizes = sizes.iter().copied().chain(std::iter::repeat(usize::MAX));
    while taken < bytes.len() && step == Step::NeedMore {
        let size = sizes.next().unwrap_or(usize::MAX).min(bytes.len() - taken);
        let fed = parser.feed(&bytes[taken..taken + size], sink)?;
        assert!(fed.consumed <= size);
        assert!(
            fed.step != Step::NeedMore || fed.consumed == size,
            "bytes are left over while more are wanted"
        );
        taken += fed.consumed;
        step = fed.step;
    }
    Ok((step, taken))
}

type Everything = (
    Result<(Step, usize), WireError>,
    Seen,
    Summary,
    Option<ServerError>,
);

fn parse(reply: &Reply, bytes: &[u8], sizes: &[usize]) -> Everything {
    let mut parser = ReplyParser::with_limit(reply.capabilities, 1 << 20);
    parser.begin(reply.format);
    let mut seen = Seen::default();
    let fed = feed(&mut parser, bytes, sizes, &mut seen);
    (
        fed,
        seen,
        *parser.summary(),
        parser.outcome().err().cloned(),
    )
}

fn skip(
    reply: &Reply,
    bytes: &[u8],
    sizes: &[usize],
) -> (Result<(Step, usize), WireError>, Summary) {
    let mut parser = ReplyParser::with_limit(reply.capabilities, 1 << 20);
    parser.begin(reply.format);
    (
        feed(&mut parser, bytes, sizes, &mut Skip),
        *parser.summary(),
    )
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![vec(1..4usize, 0..4000), vec(1..200usize, 0..100)]
}

proptest! {
    #[test]
    fn a_reply_is_read_as_it_was_written(reply in reply(), sizes in sizes(), tail in vec(any::<u8>(), 0..20)) {
        let bytes = reply.encode();
        let (fed, seen, summary, error) = parse(&reply, &[&bytes[..], &tail].concat(), &sizes);
        prop_assert_eq!(fed, Ok((Step::Done, bytes.len())), "what follows the reply is left alone");
        prop_assert_eq!(&seen.rows, &reply.expected_rows());
        prop_assert_eq!(&error, &reply.error);
        prop_assert_eq!(seen.completions.len(), reply.outcomes.len());
        let (skipped, sums) = skip(&reply, &bytes, &sizes);
        prop_assert_eq!(skipped, Ok((Step::Done, bytes.len())));
        prop_assert_eq!(sums, summary, "skipping counts the same");
    }

    #[test]
    fn a_reply_cut_short_anywhere_waits_for_the_rest(reply in reply()) {
        let bytes = reply.encode();
        for cut in 0..bytes.len() {
            prop_assert_eq!(parse(&reply, &bytes[..cut], &[]).0, Ok((Step::NeedMore, cut)));
            prop_assert_eq!(skip(&reply, &bytes[..cut], &[]).0, Ok((Step::NeedMore, cut)));
        }
    }

    #[test]
    fn a_damaged_reply_gives_the_same_result_in_all_pieces(
        reply in reply(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        sizes in sizes(),
    ) {
        let mut bytes = reply.encode();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        prop_assert_eq!(parse(&reply, &bytes, &sizes), parse(&reply, &bytes, &[]));
        prop_assert_eq!(skip(&reply, &bytes, &sizes), skip(&reply, &bytes, &[]));
    }

    #[test]
    fn parameters_are_read_as_they_were_written(values in vec(prop_oneof![value(), Just(Owned::Plain(Value::Null))], 0..20)) {
        let statement = Statement { id: 7, parameters: values.len() as u16, columns: 0, warnings: 0 };
        let borrowed: Vec<Value<'_>> = values.iter().map(Owned::borrow).collect();
        let mut kinds = Vec::new();
        let nothing = vec![Value::Null; values.len()];
        for (values, types) in [(&borrowed, Types::Send), (&borrowed, Types::AsBefore), (&nothing, Types::AsBefore)] {
            let mut out = Vec::new();
            command::execute(&mut out, &statement, values, types).unwrap();
            let Command::Execute { statement: 7, body } = Command::parse(&out[4..]).unwrap() else { panic!() };
            // A kind sent as NULL says nothing about later values, so only such statements repeat it.
            prop_assert_eq!(&body.parameters(statement.parameters, &mut kinds).unwrap(), values);
            for cut in 0..out.len().saturating_sub(4) {
                if let Ok(Command::Execute { body, .. }) = Command::parse(&out[4..4 + cut]) {
                    prop_assert!(statement.parameters == 0 || body.parameters(statement.parameters, &mut kinds.clone()).is_err());
                }
            }
        }
        prop_assert!(command::execute(&mut Vec::new(), &statement, &[&borrowed[..], &[Value::Null]].concat(), Types::Send).is_err());
    }

    #[test]
    fn values_of_changing_kinds_are_never_misread(
        rows in vec(vec(prop_oneof![value(), Just(Owned::Plain(Value::Null))], 3), 1..20),
    ) {
        let statement = Statement { id: 7, parameters: 3, columns: 0, warnings: 0 };
        let (mut sent, mut kinds) = (SentTypes::default(), Vec::new());
        for row in &rows {
            let values: Vec<Value<'_>> = row.iter().map(Owned::borrow).collect();
            let mut out = Vec::new();
            command::execute(&mut out, &statement, &values, sent.choose(&values)).unwrap();
            let Command::Execute { body, .. } = Command::parse(&out[4..]).unwrap() else { panic!() };
            prop_assert_eq!(&body.parameters(3, &mut kinds).unwrap(), &values);
        }
    }

    #[test]
    fn arbitrary_bytes_break_nothing(bytes in vec(any::<u8>(), 0..600), sizes in sizes(), framed in any::<bool>()) {
        let mut bytes = bytes;
        if framed && bytes.len() > 4 {
            // A proper header lets the content through to the parsers behind the framing.
            let length = bytes.len() as u32 - 4;
            bytes[..3].copy_from_slice(&length.to_le_bytes()[..3]);
        }
        for capabilities in [Capabilities::default(), Capabilities::DEPRECATE_EOF] {
            for format in [RowFormat::Text, RowFormat::Binary] {
                let reply = Reply { format, capabilities, outcomes: Vec::new(), error: None };
                prop_assert_eq!(parse(&reply, &bytes, &sizes), parse(&reply, &bytes, &[]));
            }
            let mut parser = PrepareParser::new(capabilities);
            if let Ok((used, _)) = parser.feed(&bytes) {
                prop_assert!(used <= bytes.len());
            }
        }
        let payload = bytes.get(4..).unwrap_or_default();
        let _ = Greeting::parse(payload);
        let kinds: Vec<ColumnKind> =
            payload.iter().map(|&code| ColumnKind { column_type: ColumnType(code), unsigned: code & 1 == 1 }).collect();
        for format in [RowFormat::Text, RowFormat::Binary] {
            prop_assert!(Row::new(payload, format, &kinds).values().count() <= kinds.len());
        }
        if let Ok(Command::Execute { body, .. }) = Command::parse(payload) {
            let _ = body.parameters(3, &mut kinds.clone());
        }
        let mut out = Vec::new();
        let _ = NullServer::begin(1, &mut out).feed(&bytes, &mut |_| Shape::default(), &mut out);
    }

    #[test]
    fn a_damaged_login_ends(damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), sizes in sizes()) {
        let mut bytes = Vec::new();
        let _ = Session::begin(1, "8.0.0", &mut bytes);
        bytes.extend_from_slice(b"\x1b\0\0\x02\xfecaching_sha2_password\0abcd\x02\0\0\x04\x01\x03\x02\0\0\x05\x01\x04");
        bytes.extend_from_slice(b"\x07\0\0\x06\0\0\0\x02\0\0\0");
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let run = |sizes: &[usize]| {
            let mut login = Login::new(LoginOptions::new(Credentials::new("anna", "secret"), Transport::UnixSocket));
            let mut sizes = sizes.iter().copied().chain(std::iter::repeat(usize::MAX));
            let mut taken = 0;
            let mut steps = Vec::new();
            while taken < bytes.len() {
                let size = sizes.next().unwrap().min(bytes.len() - taken);
                match login.feed(&bytes[taken..taken + size]) {
                    Ok((used, LoginStep::NeedMore)) => taken += used,
                    Ok((used, step)) => {
                        taken += used;
                        steps.push(Ok(step));
                    }
                    Err(error) => {
                        steps.push(Err(error));
                        break;
                    }
                }
            }
            steps
        };
        prop_assert_eq!(run(&sizes), run(&[]));
    }

    #[test]
    fn requests_reach_the_server_in_any_pieces(texts in vec("[ -~]{0,300}", 1..5), sizes in sizes()) {
        let mut greeting = Vec::new();
        let mut session = Session::begin(1, "8.0.0", &mut greeting);
        let mut login = Login::new(LoginOptions::new(Credentials::new("anna", "secret"), Transport::Tcp));
        let LoginStep::Send(mut bytes) = login.feed(&greeting).unwrap().1 else { panic!() };
        for text in &texts {
            command::query(&mut bytes, text.as_bytes());
        }
        let mut sizes = sizes.into_iter().chain(std::iter::repeat(usize::MAX));
        let (mut taken, mut arrived, mut out) = (0, Vec::new(), Vec::new());
        while taken < bytes.len() {
            let size = sizes.next().unwrap().min(bytes.len() - taken);
            let piece = &bytes[taken..taken + size];
            let mut position = 0;
            loop {
                match session.next(piece, &mut position, &mut out).unwrap() {
                    Turn::NeedMore => break,
                    Turn::LoggedIn => prop_assert!(matches!(login.feed(&out).unwrap().1, LoginStep::Done(_))),
                    Turn::Request(Command::Query(text), terms) => {
                        prop_assert_eq!(terms.sequence, 1);
                        arrived.push(String::from_utf8(text.to_vec()).unwrap());
                    }
                    Turn::Request(other, _) => prop_assert!(false, "{other:?}"),
                }
            }
            taken += size;
        }
        prop_assert_eq!(arrived, texts);
    }

    #[test]
    fn prepare_replies_are_read_in_any_pieces(
        parameters in 0..40u16,
        columns in 0..40u16,
        eof in any::<bool>(),
        sizes in sizes(),
    ) {
        let capabilities = if eof { Capabilities::default() } else { Capabilities::DEPRECATE_EOF };
        let statement = Statement { id: 9, parameters, columns, warnings: 3 };
        let mut bytes = Vec::new();
        ReplyWriter::new(&mut bytes, Terms { capabilities, sequence: 1 }).prepared(&statement, Value::Signed(0).kind());
        let length = bytes.len();
        bytes.extend_from_slice(b"next reply");
        let mut parser = PrepareParser::new(capabilities);
        let mut sizes = sizes.into_iter().chain(std::iter::repeat(usize::MAX));
        let mut taken = 0;
        loop {
            let size = sizes.next().unwrap().min(bytes.len() - taken);
            let (used, prepared) = parser.feed(&bytes[taken..taken + size]).unwrap();
            taken += used;
            if let Prepared::Done(outcome) = prepared {
                prop_assert_eq!(outcome, Ok(statement));
                break;
            }
        }
        prop_assert_eq!(taken, length);
    }
}
