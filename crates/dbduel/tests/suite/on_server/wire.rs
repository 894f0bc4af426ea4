//! The codec on a real server, over its socket and over TCP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use dbduel_driver::address::Address;
use dbduel_wire::{
    Capabilities, ColumnKind, Date, DateTime, LoggedIn, Login, LoginOptions, LoginStep,
    PrepareParser, Prepared, ReplyParser, Row, RowFormat, ServerError, Sink, Skip, Statement, Step,
    Summary, Time, Transport, Types, Value, bulk_execute, command,
};

use super::server::{ALL, MARIADB, Server};

const TIMEOUT: Duration = Duration::from_secs(10);

trait Bytes: Read + Write {}
impl<T: Read + Write> Bytes for T {}

struct Client {
    stream: Box<dyn Bytes>,
    login: LoggedIn,
    parser: ReplyParser,
    out: Vec<u8>,
}

fn clients(server: &Server) -> Vec<Client> {
    [server.unix(), server.tcp()]
        .into_iter()
        .map(|address| {
            let (stream, transport): (Box<dyn Bytes>, Transport) = match address {
                Address::File { .. } => panic!("a file has no connections"),
                Address::Unix { path } => {
                    let stream = UnixStream::connect(path).unwrap();
                    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
                    (Box::new(stream), Transport::UnixSocket)
                }
                Address::Tcp { host, port } => {
                    let stream = TcpStream::connect((host, port)).unwrap();
                    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
                    (Box::new(stream), Transport::Tcp)
                }
            };
            Client::login(stream, LoginOptions::new(server.credentials(), transport))
        })
        .collect()
}

/// Owned copies of what a row may hold in these tests.
fn describe(value: Value<'_>) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Sink for Rows {
    fn row(&mut self, row: &Row<'_>) {
        self.0
            .push(row.values().map(|value| describe(value.unwrap())).collect());
    }
}

impl Client {
    fn login(mut stream: Box<dyn Bytes>, options: LoginOptions) -> Self {
        let mut machine = Login::new(LoginOptions {
            wanted: Capabilities::MULTI_STATEMENTS,
            ..options
        });
        let mut buffer = [0; 4096];
        let login = loop {
            let received = stream.read(&mut buffer).unwrap();
            assert!(received > 0, "closed during login");
            let (used, step) = machine.feed(&buffer[..received]).unwrap();
            match step {
                LoginStep::NeedMore => {}
                LoginStep::Send(bytes) => stream.write_all(&bytes).unwrap(),
                LoginStep::StartTls(_) => panic!("TLS was not asked for"),
                LoginStep::Done(login) => break login,
            }
            // `caching_sha2_password` may send its verdict and the OK in one piece.
            if used < received {
                let (_, step) = machine.feed(&buffer[used..received]).unwrap();
                let LoginStep::Done(login) = step else {
                    panic!("{step:?} after {used} of {received} bytes")
                };
                break login;
            }
        };
        let parser = ReplyParser::new(login.capabilities);
        Client {
            stream,
            login,
            parser,
            out: Vec::new(),
        }
    }

    /// Sends what is in `out` and reads one reply.
    fn reply(&mut self, format: RowFormat, sink: &mut dyn Sink) -> Result<Summary, ServerError> {
        self.stream.write_all(&self.out).unwrap();
        self.out.clear();
        self.parser.begin(format);
        let mut buffer = [0; 1000];
        loop {
            let received = self.stream.read(&mut buffer).unwrap();
            assert!(received > 0, "closed during a reply");
            let fed = self.parser.feed(&buffer[..received], sink).unwrap();
            assert_eq!(fed.consumed, received);
            if fed.step == Step::Done {
                return self.parser.outcome().map_err(Clone::clone);
            }
        }
    }

    fn is_mysql_5_5(&self) -> bool {
        let greeting = &self.login.greeting;
        !greeting.is_mariadb() && greeting.version().starts_with("5.5.")
    }

    fn query(&mut self, sql: &str) -> Summary {
        command::query(&mut self.out, sql.as_bytes());
        self.reply(RowFormat::Text, &mut Skip).unwrap()
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, ServerError> {
        command::prepare(&mut self.out, sql.as_bytes());
        self.stream.write_all(&self.out).unwrap();
        self.out.clear();
        let mut parser = PrepareParser::new(self.login.capabilities);
        let mut buffer = [0; 1000];
        loop {
            let received = self.stream.read(&mut buffer).unwrap();
            let (consumed, prepared) = parser.feed(&buffer[..received]).unwrap();
            assert_eq!(consumed, received);
            if let Prepared::Done(outcome) = prepared {
                return outcome;
            }
        }
    }

    fn rows(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
        types: Types,
    ) -> Vec<Vec<String>> {
        command::execute(&mut self.out, statement, parameters, types).unwrap();
        let mut rows = Rows::default();
        self.reply(RowFormat::Binary, &mut rows).unwrap();
        rows.0
    }
}

#[test(on = ALL)]
fn every_kind_of_parameter_arrives_and_comes_back(server: &Server) {
    for mut client in clients(server) {
        client.query("SET SESSION sql_mode = ''");
        // MySQL 5.5 has no fractions of seconds.
        let (fraction, microsecond) = if client.is_mysql_5_5() {
            ("", 0)
        } else {
            ("(6)", 123_456)
        };
        client.query(&format!(
            "CREATE TEMPORARY TABLE mysql.dbduel_kinds (n INT PRIMARY KEY, a BIGINT, b BIGINT UNSIGNED, c DOUBLE, d FLOAT, \
             e BLOB, f VARCHAR(99) CHARACTER SET utf8, g DATE, h DATETIME{fraction}, i TIME{fraction}, j TINYINT, k SMALLINT UNSIGNED, \
             l MEDIUMINT, m INT UNSIGNED, o DECIMAL(9,3), p YEAR, q TIMESTAMP NULL)",
        ));
        let insert = client
            .prepare("INSERT INTO mysql.dbduel_kinds VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
            .unwrap();
        assert_eq!((insert.parameters, insert.columns), (17, 0));
        let date = Date {
            year: 2024,
            month: 2,
            day: 29,
        };
        let moment = DateTime {
            date,
            hour: 23,
            minute: 59,
            second: 58,
            microsecond,
        };
        let coarse = DateTime {
            microsecond: 0,
            ..moment
        };
        let span = Time {
            negative: true,
            days: 3,
            hours: 4,
            minutes: 5,
            seconds: 6,
            microseconds: microsecond,
        };
        let full = [
            Value::Signed(1),
            Value::Signed(i64::MIN),
            Value::Unsigned(u64::MAX),
            Value::Double(-1.5e300),
            Value::Float(0.25),
            Value::Bytes(&[0, 255, 10]),
            Value::Text("grüße"),
            Value::Date(date),
            Value::DateTime(moment),
            Value::Time(span),
            Value::Signed(-128),
            Value::Signed(65535),
            Value::Signed(-8_388_608),
            Value::Unsigned(4_294_967_295),
            Value::Text("-12345.678"),
            Value::Signed(2026),
            Value::DateTime(coarse),
        ];
        let mut nulls = [Value::Null; 17];
        nulls[0] = Value::Signed(2);
        for (parameters, types) in [(full, Types::Send), (nulls, Types::AsBefore)] {
            command::execute(&mut client.out, &insert, &parameters, types).unwrap();
            assert_eq!(
                client
                    .reply(RowFormat::Binary, &mut Skip)
                    .unwrap()
                    .affected_rows,
                1
            );
        }
        let select = client
            .prepare("SELECT * FROM mysql.dbduel_kinds WHERE n >= ? ORDER BY n")
            .unwrap();
        assert_eq!((select.parameters, select.columns), (1, 17));
        let rows = client.rows(&select, &[Value::Signed(0)], Types::Send);
        let mut expected: Vec<String> = full.iter().map(|&value| describe(value)).collect();
        expected[5] = String::from_utf8_lossy(&[0, 255, 10]).into_owned();
        expected[6] = "grüße".to_owned();
        expected[11] = describe(Value::Unsigned(65535));
        expected[14] = "-12345.678".to_owned();
        expected[15] = describe(Value::Unsigned(2026));
        assert_eq!(rows[0], expected);
        assert_eq!(rows[1][1..], vec!["Null".to_owned(); 16]);
        assert_eq!(
            client
                .rows(&select, &[Value::Signed(2)], Types::AsBefore)
                .len(),
            1
        );
        command::close(&mut client.out, &insert);
        command::execute(&mut client.out, &insert, &full, Types::Send).unwrap();
        assert_eq!(
            client.reply(RowFormat::Binary, &mut Skip).unwrap_err().code,
            1243,
            "closed statement"
        );
    }
}

#[test(on = ALL)]
fn large_parameters_and_rows_are_split_and_joined(server: &Server) {
    for mut client in clients(server) {
        let select = client.prepare("SELECT ?, LENGTH(?)").unwrap();
        for length in [(1 << 24) - 30, (1 << 24) + 5] {
            let long = vec![b'x'; length];
            let rows = client.rows(
                &select,
                &[Value::Bytes(&long), Value::Bytes(&long)],
                Types::Send,
            );
            assert_eq!(
                (rows[0][0].len(), &rows[0][1]),
                (length, &describe(Value::Signed(length as i64)))
            );
            command::execute(
                &mut client.out,
                &select,
                &[Value::Bytes(&long), Value::Null],
                Types::Send,
            )
            .unwrap();
            assert_eq!(client.reply(RowFormat::Binary, &mut Skip).unwrap().rows, 1);
        }
        // The longest payload of one frame and its neighbours: the query text is cut so that each occurs.
        for payload in [0xFF_FFFE, 0xFF_FFFF, 0x100_0000] {
            let sql = format!("SELECT LENGTH('{}')", "y".repeat(payload - 18));
            let mut rows = Rows::default();
            command::query(&mut client.out, sql.as_bytes());
            client.reply(RowFormat::Text, &mut rows).unwrap();
            assert_eq!(rows.0, [[(payload - 18).to_string()]]);
        }
    }
}

#[test(on = ALL)]
fn several_results_are_one_reply(server: &Server) {
    for mut client in clients(server) {
        let summary = client.query("SELECT 1 UNION SELECT 2; DO 0; SELECT 3; SET @x = 1");
        assert_eq!((summary.rows, summary.result_sets), (3, 2));
        command::query(&mut client.out, b"SELECT 1; SELECT * FROM nowhere.nothing");
        assert!(client.reply(RowFormat::Text, &mut Skip).is_err());
        assert_eq!(client.parser.summary().rows, 1);
        client.query("DO 0");
        command::quit(&mut client.out);
        client.stream.write_all(&client.out).unwrap();
        assert_eq!(
            client.stream.read(&mut [0; 10]).unwrap(),
            0,
            "the server closes after the farewell"
        );
    }
}

/// MySQL knows no such request.
#[test(on = &[MARIADB])]
fn many_rows_are_inserted_by_one_bulk_request(server: &Server) {
    for mut client in clients(server) {
        assert!(
            client
                .login
                .capabilities
                .contains(Capabilities::BULK_EXECUTE)
        );
        client.query("CREATE TEMPORARY TABLE mysql.dbduel_bulk (id BIGINT, v VARCHAR(99), d DATE)");
        let insert = client
            .prepare("INSERT INTO mysql.dbduel_bulk VALUES (?, ?, ?)")
            .unwrap();
        let day = Value::Date(Date {
            year: 2026,
            month: 11,
            day: 20,
        });
        let kinds: [ColumnKind; 3] = [Value::Signed(0).kind(), Value::Text("").kind(), day.kind()];
        let rows = (0..1000).map(|id| {
            [
                Value::Signed(id),
                if id % 2 == 0 {
                    Value::Null
                } else {
                    Value::Text("odd")
                },
                day,
            ]
        });
        bulk_execute(&mut client.out, &insert, &kinds, rows).unwrap();
        assert_eq!(
            client
                .reply(RowFormat::Binary, &mut Skip)
                .unwrap()
                .affected_rows,
            1000
        );
        let mut counted = Rows::default();
        command::query(
            &mut client.out,
            b"SELECT COUNT(*), COUNT(v), SUM(id), MAX(d) FROM mysql.dbduel_bulk",
        );
        client.reply(RowFormat::Text, &mut counted).unwrap();
        assert_eq!(counted.0, [["1000", "500", "499500", "2026-11-20"]]);
    }
}

#[test(on = ALL)]
fn a_statement_that_cannot_be_prepared_is_an_error_of_the_server(server: &Server) {
    for mut client in clients(server) {
        assert_eq!(client.prepare("SELEKT 1").unwrap_err().code, 1064);
        assert_eq!(client.prepare("DO 1").unwrap().columns, 0);
    }
}
