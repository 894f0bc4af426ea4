//! A script as the workload of a contest, on a server that answers at once: its parameters, its classes, its end.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dbduel_client::preparations;
use dbduel_driver::address::Address;
use dbduel_driver::mock_server::Role;
use dbduel_driver::{Credentials, TlsMode};
use dbduel_load::order::{Answer, Order, SliceOrder};
use dbduel_record::plan::Parameters;
use dbduel_testkit::mock::{act, error, mock, scripted};
use dbduel_wire::server::Answer as Reply;
use dbduel_workloads::fill::{FillError, FillReport, FillWatch, Place, fill};
use dbduel_workloads::parameters;

use crate::support::{Load, SLICE_MAX_S, ok_in, open_order, slice_order};

/// Events that call a function before their first statement, after it, or not at all.
const MIXED: &str = r#"
sysbench.cmdline.options = { share = {"Of writes", 0.5} }
function thread_init() con = sysbench.sql.driver():connect(); n = 0 end
function reading() con:query("SELECT 1") end
function writing() con:query("SELECT 2"); con:query("SELECT 3") end
function event()
    n = n + 1
    if n % 4 == 0 then
        con:query("SELECT 4")
    elseif n % 2 == 0 then
        _G["writing"]()
    else
        reading()
    end
end
function prepare()
    local con = sysbench.sql.driver():connect()
    con:query("SELECT 5")
    con:query("SELECT SLEEP(60)")
end
"#;

fn given(folder: &tempfile::TempDir, more: &[(&str, &str)]) -> Parameters {
    given_text(MIXED, folder, more)
}

fn given_text(text: &str, folder: &tempfile::TempDir, more: &[(&str, &str)]) -> Parameters {
    let path = folder.path().join("mine.lua");
    std::fs::write(&path, text).unwrap();
    let mut given = Parameters::from([("script".to_owned(), path.to_str().unwrap().into())]);
    for (name, value) in more {
        given.insert((*name).to_owned(), (*value).into());
    }
    given
}

/// A load of one thread whose clients run the script.
fn opened(address: &Address, given: &Parameters, clients: u32) -> Load {
    let workload = dbduel_workloads::find("script").unwrap();
    let mut order = open_order(address, "oltp-read-only", clients);
    workload.name().clone_into(&mut order.workload.name);
    order.workload.parameters = parameters::resolve(workload, given).unwrap();
    let mut load = Load::start(1);
    load.order(&Order::Open(order));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    load
}

#[test]
fn functions_that_are_named_are_classes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let given = given(&folder, &[("classes", "reading, writing")]);
    let (_directory, server) = mock(Role::Null);
    let mut load = opened(&server.address(), &given, 2);
    // Of so many, one client has had several rounds of four.
    let slice = load.slice_until_ok(&slice_order(2, 0.5), 24);
    load.end();
    let classes: BTreeMap<&str, (u64, u64)> = slice
        .classes
        .iter()
        .map(|class| {
            (
                class.class.as_str(),
                (class.counts.ok, class.counts.statements),
            )
        })
        .collect();
    let (reads, read_statements) = classes["reading"];
    let (writes, write_statements) = classes["writing"];
    let (others, _) = classes["other"];
    assert_eq!(classes.len(), 3, "{classes:?}");
    assert!(reads > 0 && writes > 0 && others > 0, "{classes:?}");
    // Two events of four read and one writes; each client may be within such a round at either end.
    assert!(reads.abs_diff(2 * writes) <= 8, "{classes:?}");
    assert!(writes.abs_diff(others) <= 8, "{classes:?}");
    assert!(read_statements.abs_diff(reads) <= 4, "{classes:?}");
    assert!(write_statements.abs_diff(2 * writes) <= 8, "{classes:?}");
}

#[test]
fn what_a_client_prepares_is_counted_without_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let count = |workload: &str, given: &Parameters| {
        let workload = dbduel_workloads::find(workload).unwrap();
        let parameters = parameters::resolve(workload, given).unwrap();
        let counted = preparations(workload, &parameters, &folder.path().join("s.sock"));
        counted.unwrap()
    };
    let tables = Parameters::from([("tables".to_owned(), 3.into())]);
    // BEGIN, COMMIT and nine statements on each table.
    assert_eq!(count("oltp-read-write", &tables), Some(29));
    // More than a server takes by default.
    let tables = Parameters::from([("tables".to_owned(), 2_000.into())]);
    assert_eq!(count("oltp-read-write", &tables), Some(18_002));
    let script = |start: &str, more: &[(&str, &str)]| {
        let text = format!(
            "function thread_init() con = sysbench.sql.driver():connect() {start} end\n\
             function event() con:query('SELECT 1') end"
        );
        count("script", &given_text(&text, &folder, more))
    };
    let prepares = "for n = 1, 7 do con:prepare('SELECT ' .. n) end";
    assert_eq!(script(prepares, &[]), Some(7));
    assert_eq!(script(prepares, &[("statements", "text")]), Some(0));
    // Nothing that a script does outside of its state is done to count.
    let trace = folder.path().join("trace");
    let writes = format!("io.open('{}', 'w'):close()", trace.display());
    assert_eq!(script(&writes, &[]), None);
    assert!(!trace.exists());
}

/// Of a class that is no conflict, such as a unique violation under serializable isolation.
#[test]
fn an_error_after_which_a_script_restarts_its_event_is_a_retry_and_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                function event() con:query('INSERT INTO t VALUES (1)') end";
    let given = given_text(text, &folder, &[("ignore_errors", "1062")]);
    let (_directory, server) = scripted(vec![
        act(0, Reply::Proper),
        act(0, Reply::Proper),
        act(0, error(1062, b"23000")),
        act(0, Reply::Proper),
    ]);
    let mut load = opened(&server.address(), &given, 1);
    let order = SliceOrder {
        guard_s: 0.0,
        drain_s: 60.0,
        until_halted: false,
        ..slice_order(1, 0.3)
    };
    let slice = load.slice_until_ok(&order, 11);
    load.end();
    let counts = &slice.classes[0].counts;
    assert_eq!(counts.failed, 0, "{counts:?}");
    assert!(counts.retries > 0, "{counts:?}");
    assert!(slice.errors.iter().all(|error| error.is_conflict));
}

#[test]
fn a_client_that_sleeps_over_the_slice_of_another_contender_wakes_up() {
    let folder = tempfile::tempdir().unwrap();
    let over = folder.path().join("over");
    let text = "function event() os.execute('while [ ! -e OVER ]; do sleep 0.01; done') end";
    let text = text.replace("OVER", over.to_str().unwrap());
    let given = given_text(&text, &folder, &[]);
    let workload = dbduel_workloads::find("script").unwrap();
    let (_directory, server) = mock(Role::Null);
    let mut load = Load::start(1);
    for contender in ["sleeper", "other"] {
        let mut order = open_order(&server.address(), "oltp-read-only", 1);
        contender.clone_into(&mut order.contender);
        if contender == "sleeper" {
            workload.name().clone_into(&mut order.workload.name);
            order.workload.parameters = parameters::resolve(workload, &given).unwrap();
        }
        load.order(&Order::Open(order));
        let answer = load.answer();
        assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    }
    let slice = |contender: &str, drain_s| SliceOrder {
        contender: contender.to_owned(),
        guard_s: 0.0,
        drain_s,
        until_halted: false,
        ..slice_order(1, 0.1)
    };
    let cut_short = load.slice(&slice("sleeper", 0.05));
    assert_eq!(cut_short.classes[0].counts.unfinished, 1);
    load.slice_until_ok(&slice("other", 1.0), 1);
    std::fs::write(&over, "").unwrap();
    // Waits for the event that is still running, and is lost when that never ends.
    load.slice(&slice("sleeper", 60.0));
    load.end();
}

#[test]
fn a_client_whose_server_is_gone_is_given_up_when_the_slice_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                function event() con:query('SELECT 1') end";
    let given = given_text(text, &folder, &[("ignore_errors", "2006,2013")]);
    let (_directory, server) = mock(Role::Null);
    let mut load = opened(&server.address(), &given, 1);
    let slice = |measured_s| {
        Order::Slice(SliceOrder {
            drain_s: 0.2,
            until_halted: false,
            ..slice_order(1, measured_s)
        })
    };
    load.order(&slice(SLICE_MAX_S));
    let mut ticks = Vec::new();
    while ok_in(&ticks) == 0 {
        match load.answer() {
            Answer::Begun { .. } => {}
            Answer::Tick(tick) => ticks.push(tick),
            other => panic!("{other:?}"),
        }
    }
    drop(server);
    load.order(&Order::Stop);
    let mut answer = load.last_answer();
    // The slice may be answered right before.
    if matches!(answer, Answer::Slice(_)) {
        load.order(&slice(0.5));
        answer = load.last_answer();
    }
    // It would go on for minutes, through the slices of other contenders.
    let is_given_up =
        matches!(&answer, Answer::Lost { why, .. } if !why.contains("previous slice"));
    assert!(is_given_up, "{answer:?}");
    load.end();
}

#[test]
fn parameters_that_would_be_left_out_are_refused() {
    let workload = dbduel_workloads::find("script").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let refusal = |name: &str, value: &str| {
        let given = given(&folder, &[(name, value)]);
        parameters::resolve(workload, &given)
            .unwrap_err()
            .to_string()
    };
    let why = refusal("ignore_errors", "1213,deadlock");
    assert!(
        why.contains("ignore_errors") && why.contains("`deadlock`"),
        "{why}"
    );
    let why = refusal("classes", "reading,deleting");
    assert!(
        why.contains("classes") && why.contains("`deleting`"),
        "{why}"
    );
}

/// What comes of a filling that is cancelled as soon as it has gone so far.
fn cancelled_fill(
    address: &Address,
    parameters: &Parameters,
    has_begun: impl Fn() -> bool,
) -> Result<FillReport, FillError> {
    let workload = dbduel_workloads::find("script").unwrap();
    let credentials = Credentials::default();
    let place = Place {
        dialect: dbduel_driver::Dialect::MySql,
        address,
        credentials: &credentials,
        tls: &TlsMode::Off,
        database: "dbduel",
        connections: 1,
        deadline: Duration::from_secs(300),
    };
    let watch = FillWatch::default();
    std::thread::scope(|scope| {
        let filling = scope.spawn(|| fill(workload, parameters, &place, 1, &watch));
        let began = Instant::now();
        while !has_begun() && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        watch.cancel.cancel();
        filling.join().unwrap()
    })
}

#[test]
fn a_cancelled_prepare_sends_nothing_any_more() {
    let workload = dbduel_workloads::find("script").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let parameters = parameters::resolve(workload, &given(&folder, &[])).unwrap();
    // Answers the first question on a connection, such as that for the fill's lock, and then nothing.
    let acts = vec![
        dbduel_testkit::mock::act(0, dbduel_wire::server::Answer::Proper),
        dbduel_testkit::mock::act(0, dbduel_wire::server::Answer::Stall),
    ];
    let (_directory, server) = dbduel_testkit::mock::scripted(acts);
    let began = Instant::now();
    let outcome = cancelled_fill(&server.address(), &parameters, || server.heard().len() == 3);
    assert!(matches!(outcome, Err(FillError::Cancelled)), "{outcome:?}");
    assert!(
        began.elapsed() < Duration::from_secs(300),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(server.heard().len(), 3, "{:?}", server.heard());
}

#[test]
fn a_script_that_is_cancelled_in_compiled_code_is_closed_in_order() {
    /// Executions until LuaJIT has compiled the loop around them, and some more.
    const EXECUTED: usize = 500;
    /// With the login and the preparation, and the login, the begin of the session and the question of the connection that holds
    /// the fill's lock.
    const ANSWERED: usize = EXECUTED + 5;
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed");
    let text = format!(
        "function event() end
         function prepare()
             local con = sysbench.sql.driver():connect()
             local statement = con:prepare('SELECT c FROM sbtest1 WHERE id = ?')
             local id = statement:bind_create(sysbench.sql.type.INT)
             statement:bind_param(id)
             kept = newproxy(true)
             getmetatable(kept).__gc = function() io.open('{}', 'w'):close() end
             while true do
                 id:set(sysbench.rand.default(1, 100))
                 statement:execute()
             end
         end",
        closed.display()
    );
    let mut acts =
        vec![dbduel_testkit::mock::act(0, dbduel_wire::server::Answer::Proper); EXECUTED];
    acts.push(dbduel_testkit::mock::act(
        0,
        dbduel_wire::server::Answer::Stall,
    ));
    let (_directory, server) = dbduel_testkit::mock::scripted(acts);
    let workload = dbduel_workloads::find("script").unwrap();
    let given = given_text(&text, &folder, &[]);
    let parameters = parameters::resolve(workload, &given).unwrap();
    let outcome = cancelled_fill(&server.address(), &parameters, || {
        server.served().len() >= ANSWERED
    });
    assert!(matches!(outcome, Err(FillError::Cancelled)), "{outcome:?}");
    assert_eq!(server.served().len(), ANSWERED);
    assert!(closed.exists(), "the state was not closed");
}

/// True while a process does anything; one that is dead but not waited for does not.
fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, fields)| fields.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

#[test]
fn a_cancelled_prepare_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = folder.path().join("numbers");
    let text = format!(
        "function event() end\n\
         function prepare() os.execute('echo $$ > {0}; sleep 300 & echo $! >> {0}; wait') end",
        numbers.display()
    );
    let workload = dbduel_workloads::find("script").unwrap();
    let given = given_text(&text, &folder, &[]);
    let parameters = parameters::resolve(workload, &given).unwrap();
    let (_directory, server) = mock(Role::Null);
    let written = || std::fs::read_to_string(&numbers).unwrap_or_default();
    let outcome = cancelled_fill(&server.address(), &parameters, || {
        written().lines().count() == 2
    });
    assert!(matches!(outcome, Err(FillError::Cancelled)), "{outcome:?}");
    let numbers = written();
    assert_eq!(numbers.lines().count(), 2, "{numbers}");
    let began = Instant::now();
    while numbers.lines().any(is_alive) {
        assert!(
            began.elapsed() < dbduel_testkit::mock::PROMPT,
            "still there: {numbers}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
