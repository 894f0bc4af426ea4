//! Scripts on a real server: what the API promises, errors, lost connections, rates, and a script as a workload.

use std::time::Duration;

use dbduel_client::run::{IgnoredErrors, Limits};
use dbduel_load::order::{Answer, Order};
use dbduel_lua::{Host, Script};
use dbduel_record::plan::Parameters;
use dbduel_workloads::fill::{Digest, FillWatch, clear, digest, fill};
use dbduel_workloads::parameters;

use super::database::Database;
use super::script_server::{connect, contents, host, number, settings, stock_scripts};
use super::server::{ALL, Server};
use crate::script_support::{CLIENTS, Printed, Size, load_of, ready, run};
use crate::support::{Load, open_order, slice_order};

#[test(on = ALL)]
fn the_api_keeps_its_promises(server: &Server) {
    let database = Database::create(server, "api");
    let printed = Printed::default();
    let script = Script::from_text(
        "api.lua",
        include_bytes!("../../../../dbduel-sysbench/tests/support/api.lua").to_vec(),
    );
    let mut host = host(&database, &script, "check", &[], &printed);
    let outcome = host.run_command("check", 1);
    let text = printed.lock().unwrap().clone();
    assert!(
        outcome.unwrap_or_else(|error| panic!("{error}\n{:?}\n{text}", error.trace())),
        "{text}"
    );
    assert!(text.contains("all is well"), "{text}");
    assert!(host.run_command("parallel", 3).unwrap());
}

/// Clients that printed at least this number at their end. How events fall to clients is up to chance.
fn clients_that_came_to(least: u32, printed: &Printed) -> u64 {
    let printed = printed.lock().unwrap();
    let numbers = printed.lines().map(|line| line.parse::<u32>().unwrap());
    numbers.filter(|number| *number >= least).count() as u64
}

#[test(on = ALL)]
fn an_ignored_error_restarts_the_event_and_rolls_back(server: &Server) {
    let database = Database::create(server, "restart");
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect(); n = 0 end
        function event()
            n = n + 1
            con:query("BEGIN")
            con:query("INSERT INTO t VALUES (" .. sysbench.tid .. ", " .. n .. ")")
            if n == 1 then con:query("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'waited'") end
            con:query("COMMIT")
        end
        restarts = 0
        function sysbench.hooks.before_restart_event(err)
            assert(err.sql_errno == 1205 and err.sql_errmsg == 'waited' and err.connection == con)
            restarts = restarts + 1
        end
        -- A client may have got no event.
        function thread_done() assert(restarts == math.min(n, 1)); print(n) end
    "#;
    let mut connection = connect(&database);
    connection
        .execute("CREATE TABLE t (client INT, n INT)")
        .unwrap();
    let printed = Printed::default();
    let script = Script::from_text("restart.lua", text.as_bytes().to_vec());
    let mut host = host(&database, &script, "run", &[], &printed);
    let counts = run(&mut host, load_of(20)).unwrap().interval_stats.counts;
    assert_eq!(
        (counts.events, counts.errors, counts.reconnects),
        (20, clients_that_came_to(1, &printed), 0)
    );
    // The first attempts are not there: sysbench 1.0 would have committed them with the next BEGIN.
    assert_eq!(number(&mut connection, "SELECT COUNT(*) FROM t"), 20);
    assert_eq!(
        number(&mut connection, "SELECT COUNT(*) FROM t WHERE n = 1"),
        0
    );
}

#[test(on = ALL)]
fn other_errors_end_the_run_with_place_and_query(server: &Server) {
    let database = Database::create(server, "fatal");
    let printed = Printed::default();
    let text = "function event()\n local con = sysbench.sql.driver():connect()\n con:query('SELECT * FROM nowhere')\nend";
    let script = Script::from_text("fatal.lua", text.as_bytes().to_vec());
    let mut host = host(&database, &script, "run", &[], &printed);
    let error = run(&mut host, load_of(5)).unwrap_err();
    assert!(
        error.contains("fatal.lua:3:") && error.contains("1146"),
        "{error}"
    );
    let printed = printed.lock().unwrap().clone();
    assert!(
        printed.contains("FATAL: mysql_drv_query() returned error 1146")
            && printed.contains("nowhere"),
        "{printed}"
    );
}

#[test(on = ALL)]
fn a_killed_connection_is_made_again_when_its_error_is_ignored(server: &Server) {
    let database = Database::create(server, "killed");
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect(); prepare() ; n = 0 end
        function prepare() stmt = con:prepare("SELECT 1") end
        function event()
            n = n + 1
            if n == 3 then pcall(con.query, con, "KILL CONNECTION_ID()") end
            stmt:execute()
        end
        function sysbench.hooks.before_restart_event(err)
            assert(err.sql_errno == 2013 or err.sql_errno == 2006, err.sql_errno)
            prepare()
        end
        function thread_done() print(n) end
    "#;
    let printed = Printed::default();
    let script = Script::from_text("killed.lua", text.as_bytes().to_vec());
    let mut settings = settings(&database, script, "run", &printed);
    settings.ignored_errors = IgnoredErrors::Codes(vec![2013, 2006, 1317, 1927]);
    let mut host = Host::load(settings).unwrap();
    host.set_options(&[]).unwrap();
    let counts = run(&mut host, load_of(20)).unwrap().interval_stats.counts;
    assert_eq!(counts.events, 20);
    let killed = clients_that_came_to(3, &printed);
    assert_eq!(counts.reconnects, killed, "{counts:?}");
    assert!(killed > 0, "twenty events, two clients");
}

#[test(on = ALL, lab)]
fn a_rate_is_kept_and_an_interval_is_a_difference(server: &Server) {
    let database = Database::create(server, "rate");
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                function event() con:query('SELECT 1') end";
    let script = Script::from_text("rate.lua", text.as_bytes().to_vec());
    let mut host = host(&database, &script, "run", &[], &Printed::default());
    let size = Size {
        limits: Limits {
            events: None,
            time: Some(Duration::from_secs(2)),
            per_second: Some(200.0),
            ..load_of(0).limits
        },
        ..load_of(0)
    };
    let load = ready(&mut host, size).unwrap();
    load.begin();
    std::thread::sleep(Duration::from_secs(1));
    let half = load.look().counts;
    assert_eq!(load.running(), CLIENTS);
    let rest = load.finish().unwrap().interval_stats;
    let events = half.events + rest.counts.events;
    // A Poisson count of 400 has a standard deviation of 20.
    assert!((300..500).contains(&events), "{events}");
    assert_eq!(rest.latencies.len(), rest.counts.events);
    assert_eq!(half.reads + rest.counts.reads, events);
}

#[test(on = ALL)]
fn a_script_is_a_workload_like_any_other(server: &Server) {
    let database = Database::create(server, "workload");
    if stock_scripts().is_empty() {
        return;
    }
    let workload = dbduel_workloads::find("script").unwrap();
    let given = Parameters::from([
        ("script".to_owned(), "oltp_read_write".into()),
        ("threads".to_owned(), 3.into()),
        ("options.tables".to_owned(), 3.into()),
        ("options.table-size".to_owned(), 500.into()),
    ]);
    let parameters = parameters::resolve(workload, &given).unwrap();
    assert_eq!(parameters["options.table_size"], 500);
    assert_eq!(parameters["options.point_selects"], 10);
    assert_eq!(
        parameters::resolve(workload, &parameters).unwrap(),
        parameters
    );

    let place = database.place(2);
    let filled = || -> Digest {
        fill(workload, &parameters, &place, 1, &FillWatch::default()).unwrap();
        digest(workload, &parameters, &place, &FillWatch::default()).unwrap()
    };
    let first = filled();
    assert_eq!(first.rows, 1500);
    let mut load = Load::start(1);
    let mut order = open_order(&database.address, "oltp-read-write", 3);
    workload.name().clone_into(&mut order.workload.name);
    order.user.clone_from(&database.credentials.user);
    order.password.clone_from(&database.credentials.password);
    order.database.clone_from(&database.name);
    order.workload.parameters.clone_from(&parameters);
    load.order(&Order::Open(order));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    for _ in 0..2 {
        let slice = load.slice_until_ok(&slice_order(3, 0.5), 20);
        let class = &slice.classes[0];
        assert!(
            class.counts.ok > 0 && class.counts.failed == 0,
            "{:?}",
            slice.errors
        );
        // Of those that were not done in time, some statements may have been.
        let most = 20 * (class.counts.ok + class.counts.unfinished);
        assert!(
            (20 * class.counts.ok..=most).contains(&class.counts.statements)
                || class.counts.retries > 0,
            "{} statements in {} transactions and {} unfinished ones",
            class.counts.statements,
            class.counts.ok,
            class.counts.unfinished
        );
    }
    load.end();
    clear(workload, &parameters, &place, &FillWatch::default()).unwrap();
    assert!(contents(&database).is_empty());
    assert_eq!(filled(), first, "the same data every time");
}
