//! Bytes as real servers sent them: greeting, login, result sets, errors, prepared statements.
//!
//! The files in `captured/` hold one answer per line: a label and the bytes in hexadecimal. Those ending in `-eof`
//! were recorded without `DEPRECATE_EOF`.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use dbduel_wire::{
    Capabilities, Credentials, Greeting, Login, LoginOptions, LoginStep, PrepareParser, Prepared,
    ReplyParser, Row, RowFormat, Sink, Step, Transport, Value,
};

struct Capture {
    name: &'static str,
    text: &'static str,
}

macro_rules! captures {
    ($($name:literal),*) => {
        &[$(Capture { name: $name, text: include_str!(concat!("captured/", $name, ".txt")) }),*]
    };
}

const CAPTURES: &[Capture] = captures![
    "mysql-5.5.34-eof",
    "mysql-5.6.24-eof",
    "mysql-9.7.4",
    "mariadb-10.1.23-eof",
    "mariadb-10.11.19",
    "mariadb-10.11.19-eof",
    "mariadb-11.4.5"
];

impl Capture {
    fn bytes(&self, label: &str) -> Vec<u8> {
        let line = self
            .text
            .lines()
            .find_map(|line| line.strip_prefix(label)?.strip_prefix(' '))
            .unwrap();
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
        line.as_bytes()
            .chunks(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect()
    }

    fn greeting(&self) -> Greeting {
        Greeting::parse(&self.bytes("greeting")[4..]).unwrap()
    }

    /// MariaDB from 10.2 on.
    fn has_bulk(&self) -> bool {
        ["mariadb-10.11", "mariadb-11"]
            .iter()
            .any(|name| self.name.starts_with(name))
    }

    fn capabilities(&self) -> Capabilities {
        let without_eof = !self.name.ends_with("-eof");
        if without_eof {
            Capabilities::DEPRECATE_EOF
        } else {
            Capabilities::default()
        }
    }

    /// Parses an answer as one piece, byte by byte, and cut in two at every place, and returns what all agree on.
    #[track_caller]
    fn rows(&self, label: &str, format: RowFormat) -> (Vec<Vec<String>>, ReplyParser) {
        let bytes = self.bytes(label);
        let whole = parse(self.capabilities(), format, &[&bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(
            parse(self.capabilities(), format, &single).0,
            whole.0,
            "{}: {label} byte by byte",
            self.name
        );
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(
                parse(self.capabilities(), format, &[first, second]).0,
                whole.0,
                "{}: cut at {cut}",
                self.name
            );
        }
        whole
    }
}

#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Sink for Rows {
    fn row(&mut self, row: &Row<'_>) {
        let text = |value| match value {
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        };
        self.0
            .push(row.values().map(|value| text(value.unwrap())).collect());
    }
}

fn parse(
    capabilities: Capabilities,
    format: RowFormat,
    pieces: &[&[u8]],
) -> (Vec<Vec<String>>, ReplyParser) {
    let mut parser = ReplyParser::new(capabilities);
    let mut rows = Rows::default();
    parser.begin(format);
    for (index, piece) in pieces.iter().enumerate() {
        let fed = parser.feed(piece, &mut rows).unwrap();
        assert_eq!(fed.consumed, piece.len());
        let due = if index + 1 == pieces.len() {
            Step::Done
        } else {
            Step::NeedMore
        };
        assert_eq!(fed.step, due, "piece {index} of {}", pieces.len());
    }
    (rows.0, parser)
}

#[test]
fn greetings_tell_who_the_server_is() {
    let native = "mysql_native_password";
    let expected = [
        (false, "5.5.34", native, 0),
        (false, "5.6.24", native, 0),
        (false, "9.7.4-2", "caching_sha2_password", 0),
        (true, "10.1.23-MariaDB", native, 0),
        (true, "10.11.19-MariaDB-0+deb12u1", native, 0x1d),
        (true, "10.11.19-MariaDB-0+deb12u1", native, 0x1d),
        (true, "11.4.5-MariaDB", native, 0x1d),
    ];
    for (capture, expected) in CAPTURES.iter().zip(expected) {
        let greeting = capture.greeting();
        let extended = greeting.capabilities.0 >> 32;
        let facts = (
            greeting.is_mariadb(),
            greeting.version(),
            greeting.auth_method.as_str(),
            extended,
        );
        assert_eq!(facts, expected);
        assert_eq!(greeting.challenge.len(), 20, "{}", capture.name);
        assert!(!greeting.challenge.contains(&0), "{}", capture.name);
    }
    assert_eq!(CAPTURES.len(), expected.len());
}

#[test]
fn recorded_logins_succeed() {
    for capture in CAPTURES {
        let credentials = Credentials::new("dbduel", "whatever, the verdict is recorded");
        let mut login = Login::new(LoginOptions::new(credentials, Transport::UnixSocket));
        let greeting = capture.bytes("greeting");
        let (used, step) = login.feed(&greeting).unwrap();
        assert_eq!(used, greeting.len());
        assert!(
            matches!(step, LoginStep::Send(_)),
            "{}: {step:?}",
            capture.name
        );
        let verdict = capture.bytes("login");
        let (used, step) = login.feed(&verdict).unwrap();
        assert_eq!(used, verdict.len());
        let LoginStep::Done(done) = step else {
            panic!("{}: {step:?}", capture.name)
        };
        assert_eq!(done.greeting, capture.greeting());
        assert_eq!(
            done.capabilities.contains(Capabilities::BULK_EXECUTE),
            capture.has_bulk(),
            "{}",
            capture.name
        );
    }
}

#[test]
fn text_rows_are_read() {
    for capture in CAPTURES {
        let (rows, parser) = capture.rows("text", RowFormat::Text);
        assert_eq!(
            rows,
            [["1", "Null", "grüße"], ["2", "x", ""]],
            "{}",
            capture.name
        );
        let summary = parser.outcome().unwrap();
        assert_eq!(
            (summary.rows, summary.result_sets, summary.warnings),
            (2, 1, 0)
        );
        let (rows, parser) = capture.rows("several", RowFormat::Text);
        assert_eq!(rows, [vec!["7"], vec!["8", "9"]], "{}", capture.name);
        assert_eq!(parser.outcome().unwrap().result_sets, 2);
        let (rows, parser) = capture.rows("empty", RowFormat::Text);
        assert!(rows.is_empty());
        assert_eq!(parser.outcome().unwrap().result_sets, 1);
    }
}

#[test]
fn changes_and_errors_are_read() {
    for capture in CAPTURES {
        let (_, parser) = capture.rows("insert", RowFormat::Text);
        let summary = parser.outcome().unwrap();
        assert_eq!(
            (
                summary.affected_rows,
                summary.last_insert_id,
                summary.result_sets
            ),
            (3, 1, 0)
        );
        let (_, parser) = capture.rows("error", RowFormat::Text);
        let error = parser.outcome().unwrap_err();
        assert!(
            error.message.contains("nowhere"),
            "{}: {error}",
            capture.name
        );
        assert!(
            matches!(
                (error.code, error.sqlstate()),
                (1146, "42S02") | (1049, "42000")
            ),
            "{error}"
        );
    }
}

#[test]
fn prepared_statements_and_binary_rows_are_read() {
    for capture in CAPTURES {
        let bytes = capture.bytes("prepare");
        for cut in 0..bytes.len() {
            let mut parser = PrepareParser::new(capture.capabilities());
            assert_eq!(
                parser.feed(&bytes[..cut]).unwrap(),
                (cut, Prepared::NeedMore),
                "{}",
                capture.name
            );
            let (used, prepared) = parser.feed(&bytes[cut..]).unwrap();
            let Prepared::Done(Ok(statement)) = prepared else {
                panic!("{prepared:?}")
            };
            assert_eq!(
                (used, statement.parameters, statement.columns),
                (bytes.len() - cut, 1, 6)
            );
        }
        let mut parser = PrepareParser::new(capture.capabilities());
        let (_, prepared) = parser.feed(&capture.bytes("prepare-error")).unwrap();
        assert!(matches!(prepared, Prepared::Done(Err(error)) if error.code == 1064));

        let (rows, _) = capture.rows("execute", RowFormat::Binary);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            [&rows[0][..2], &rows[1][..2]],
            [["Signed(2)", "Null"], ["Signed(3)", "c"]],
            "{}",
            capture.name
        );
        assert_eq!(rows[0][2], "3.0");
        assert!(
            rows[0][3].contains("year: 2026, month: 11, day: 20"),
            "{}",
            rows[0][3]
        );
        // MySQL 5.5 has no fractions of seconds.
        let microseconds = if capture.name.starts_with("mysql-5.5") {
            0
        } else {
            250_000
        };
        assert!(
            rows[0][3].contains(&format!("microsecond: {microseconds}")),
            "{}",
            rows[0][3]
        );
        assert_eq!(rows[0][4], "Signed(-7)");
        assert!(
            rows[0][5].contains("negative: true") && rows[0][5].contains("seconds: 3"),
            "{}",
            rows[0][5]
        );
    }
}
