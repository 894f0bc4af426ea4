//! Servers that never answer, answer in part or never stop: every command ends, with the reason.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dbduel_wire::server::{Command as Request, ReplyWriter, Session, Turn};
use nix::sys::signal::Signal;

use super::super::bare_server::BareServer;
use super::*;

/// Far more than any command here may take; who is still there has no end.
const DEADLINE: Duration = Duration::from_secs(100);
/// From one byte of a trickle to the next.
const DROP: Duration = Duration::from_millis(100);

/// What a server does to its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hostility {
    /// Accepts connections and says nothing.
    Silence,
    /// Says half of its greeting.
    HalfGreeting,
    /// Says one byte of an endless greeting after the other.
    TricklingGreeting,
    /// Lets clients log in and answers nothing.
    NoAnswer,
    /// Answers with half of a packet.
    HalfAnswer,
    /// Answers with one byte of a long packet after the other.
    TricklingAnswer,
    /// Answers with rows without end.
    EndlessRows,
    /// Answers OK to everything but statements on a table.
    NoAnswerAboutTables,
}

impl Hostility {
    const BEFORE_LOGIN: [Hostility; 3] = [
        Hostility::Silence,
        Hostility::HalfGreeting,
        Hostility::TricklingGreeting,
    ];
    const AFTER_LOGIN: [Hostility; 5] = [
        Hostility::NoAnswer,
        Hostility::HalfAnswer,
        Hostility::TricklingAnswer,
        Hostility::EndlessRows,
        Hostility::NoAnswerAboutTables,
    ];

    /// Serves one client until it goes.
    fn serve(self, stream: &mut UnixStream) -> io::Result<()> {
        let mut out = Vec::new();
        let mut session = Session::begin(1, "8.0.0-hostile", &mut out);
        match self {
            Hostility::Silence => return hold(stream),
            Hostility::HalfGreeting => {
                stream.write_all(&out[..out.len() / 2])?;
                return hold(stream);
            }
            Hostility::TricklingGreeting => return trickle(stream, 0),
            _ => stream.write_all(&out)?,
        }
        let mut buffer = [0; 1 << 16];
        loop {
            let length = stream.read(&mut buffer)?;
            let (bytes, mut position) = (&buffer[..length], 0);
            while position < bytes.len() {
                out.clear();
                let turn = session.next(bytes, &mut position, &mut out);
                match turn.map_err(io::Error::other)? {
                    Turn::NeedMore => {}
                    Turn::LoggedIn => stream.write_all(&out)?,
                    Turn::Request(request, terms) => {
                        if !self.answers(&request) {
                            self.annoy(stream)?;
                        }
                        ReplyWriter::new(&mut out, terms)
                            .ok(&dbduel_wire::reply::Completion::default());
                        stream.write_all(&out)?;
                    }
                }
            }
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn answers(self, request: &Request<'_>) -> bool {
        let Request::Query(sql) = request else {
            return self == Hostility::NoAnswerAboutTables;
        };
        let is_about_tables = String::from_utf8_lossy(sql).contains("sbtest1");
        self == Hostility::NoAnswerAboutTables && !is_about_tables
    }

    fn annoy(self, stream: &mut UnixStream) -> io::Result<()> {
        match self {
            Hostility::HalfAnswer => stream.write_all(&[100, 0, 0, 1, 0, 0])?,
            Hostility::TricklingAnswer => return trickle(stream, 1),
            Hostility::EndlessRows => {
                // One column without a name, and then rows of one empty value.
                stream.write_all(&[1, 0, 0, 1, 1])?;
                let column = b"\x03def\0\0\0\0\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0";
                stream.write_all(&[u8::try_from(column.len()).unwrap(), 0, 0, 2])?;
                stream.write_all(column)?;
                for sequence in (0..=u8::MAX).cycle().skip(3) {
                    stream.write_all(&[1, 0, 0, sequence, 0])?;
                }
            }
            _ => {}
        }
        hold(stream)
    }
}

/// Says nothing until the client goes.
fn hold(stream: &mut UnixStream) -> io::Result<()> {
    io::copy(stream, &mut io::sink()).map(drop)
}

/// Begins a packet as long as packets can be, with this number in its exchange.
fn trickle(stream: &mut UnixStream, sequence: u8) -> io::Result<()> {
    stream.write_all(&[0xfe, 0xff, 0xff, sequence])?;
    loop {
        stream.write_all(&[10])?;
        thread::sleep(DROP);
    }
}

/// Accepts connections at a socket until the test's process ends, and has each served by a thread.
fn listen(socket: &Path, serve: impl Fn(UnixStream) + Send + Sync + 'static) {
    let listener = UnixListener::bind(socket).unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
}

/// A command that runs.
struct Running {
    label: String,
    process: Child,
}

impl Running {
    fn start(folder: &Path, label: String, socket: &Path, words: &str) -> Self {
        let mut command = program();
        command
            .arg("sysbench")
            .args(words.split(' '))
            .arg(format!("--mysql-socket={}", socket.display()))
            .args(["--db-statement-check=1", "--thread-init-timeout=2"])
            .current_dir(folder)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let process = command.spawn().unwrap();
        Running { label, process }
    }

    /// Waits for the end; the exit code, and all that was said. A command without an end is killed and fails the test.
    #[track_caller]
    fn end(mut self, deadline: Instant) -> (String, i32, String) {
        while self.process.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                signal(&self.process, Signal::SIGKILL);
                let output = self.process.wait_with_output().unwrap();
                panic!("{} has no end: {output:?}", self.label);
            }
            thread::sleep(Duration::from_millis(20));
        }
        let output = self.process.wait_with_output().unwrap();
        let said = text(&output) + &String::from_utf8_lossy(&output.stderr);
        (self.label, output.status.code().unwrap_or(-1), said)
    }
}

const SCRIPT: &str = "
    function prepare() sysbench.sql.driver():connect():query('DROP TABLE sbtest1') end
    function thread_init() con = sysbench.sql.driver():connect() end
    function event() con:query('SELECT * FROM sbtest1') end";

#[test]
fn no_server_holds_a_command_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.lua"), SCRIPT).unwrap();
    let mut running = Vec::new();
    let all = Hostility::BEFORE_LOGIN
        .iter()
        .chain(&Hostility::AFTER_LOGIN);
    for (number, &hostility) in all.enumerate() {
        let socket = folder.path().join(number.to_string());
        listen(&socket, move |mut stream| {
            drop(hostility.serve(&mut stream));
        });
        let mut start = |words: &str| {
            let label = format!("{words} with {hostility:?}");
            running.push((
                hostility,
                Running::start(folder.path(), label, &socket, words),
            ));
        };
        start("oltp_read_write --table-size=10 prepare");
        start("oltp_point_select --db-ps-mode=disable --time=1 run");
        start("x.lua --time=1 run");
        if !Hostility::BEFORE_LOGIN.contains(&hostility) {
            start("oltp_read_write cleanup");
            start("x.lua prepare");
        }
    }
    let deadline = Instant::now() + DEADLINE;
    for (hostility, command) in running {
        let (label, code, said) = command.end(deadline);
        assert!(matches!(code, 1 | 2), "{label}: {code}: {said}");
        let is_silent = matches!(
            hostility,
            Hostility::NoAnswer | Hostility::HalfAnswer | Hostility::TricklingAnswer
        );
        // Sessions are set before statements are watched: what waits for that is no statement of the test's.
        let is_explained = said.contains("no answer for ")
            && said.contains("and the server does not")
            || said.contains("cannot connect to ") && said.contains("the deadline passed")
            || said.contains("Worker threads failed to initialize");
        assert!(is_explained || !is_silent, "{label}: {said}");
    }
}

/// A script with a statement that takes several checks.
const SLOW: &str = "
    function thread_init() con = sysbench.sql.driver():connect() end
    function event() print('rows', con:query('SELECT SLEEP(6)').nrows) end
    function prepare() thread_init() event() end";

#[test(lab, needs = &["mariadb-10.11"])]
fn a_statement_that_a_server_executes_is_waited_for_and_one_that_it_has_lost_is_not() {
    let server = BareServer::start("mariadb-10.11");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("slow.lua"), SLOW).unwrap();
    std::fs::write(folder.path().join("x.lua"), SCRIPT).unwrap();
    server.query("CREATE TABLE sbtest.sbtest1 (id INT)");
    // Forwards everything but the answers to statements on the table.
    let leaky = folder.path().join("leaky");
    let target = server.socket();
    listen(&leaky, move |client| forward(client, &target));
    let deadline = Instant::now() + DEADLINE;
    let end = |socket: &Path, words: &str| {
        let words = format!("{words} --mysql-user=root");
        Running::start(folder.path(), words.clone(), socket, &words).end(deadline)
    };
    for command in ["--events=1 run", "prepare"] {
        let (label, code, said) = end(&server.socket(), &format!("slow.lua {command}"));
        assert_eq!(code, 0, "{label}: {said}");
        assert!(said.contains("rows\t1"), "{label}: {said}");
    }
    for words in [
        "x.lua --time=1 run",
        "oltp_read_only --db-ps-mode=disable --time=1 run",
        "oltp_read_only cleanup",
    ] {
        let (label, code, said) = end(&leaky, words);
        assert_eq!(code, 1, "{label}: {said}");
        assert!(
            said.contains("the server no longer executes the statement"),
            "{label}: {said}"
        );
    }
}

/// Forwards between a client and a server, but nothing from the server once the client has named the table.
fn forward(mut client: UnixStream, target: &Path) {
    let mut server = UnixStream::connect(target).unwrap();
    let is_lost = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let order = std::sync::atomic::Ordering::SeqCst;
    let (mut answers, mut reader) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let lost = Arc::clone(&is_lost);
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            if !lost.load(order) && answers.write_all(&buffer[..length]).is_err() {
                return;
            }
        }
    });
    let mut buffer = [0; 1 << 16];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let is_about_table = buffer[..length].windows(7).any(|part| part == b"sbtest1");
        is_lost.fetch_or(is_about_table, order);
        if server.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
}
