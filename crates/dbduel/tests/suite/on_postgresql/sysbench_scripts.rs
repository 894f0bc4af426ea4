//! What scripts of sysbench see of PostgreSQL: names, results, errors, and what follows them. Beside sysbench where it has an
//! answer; a lost connection ends it with a segmentation fault.

use super::cluster::shared;
use super::sysbench::Reached;
use crate::suite::sysbench::{figure, text};

/// What is seen of connections, statements, results and errors.
const SEEN: &str = r#"
local ffi = require("ffi")
local function seen(value)
   if value == nil then return "nil" end
   return type(value) == "cdata" and ffi.string(value) or tostring(value)
end
local function try(what, f)
   local ok, err = pcall(f)
   print(what, ok, type(err) == "string" and err or "")
   if type(err) == "table" then
      print("   ", err.errcode, err.sql_errno, seen(err.sql_state), seen(err.sql_errmsg), err.query)
   end
end
function prepare()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   print(drv:name(), db_driver, sysbench.opt.db_driver, sysbench.opt.pgsql_user)
   con:query("DROP TABLE IF EXISTS seen")
   print(con:query("CREATE TABLE seen (id INTEGER PRIMARY KEY, c CHAR(5) NOT NULL, b BIGINT, v VARCHAR(20))") == nil)
   con:bulk_insert_init("INSERT INTO seen VALUES ")
   for i = 1, 3 do con:bulk_insert_next(("(%d, 'a%d', NULL, 'it''s')"):format(i, i)) end
   con:bulk_insert_done()
   local rs = con:query("SELECT * FROM seen ORDER BY id")
   print(rs.nrows, rs.nfields)
   for i = 1, rs.nrows do print(unpack(rs:fetch_row(), 1, rs.nfields)) end
   print(con:query_row("SELECT id, c FROM seen WHERE id = 2"))
   print(con:query_row("SELECT id FROM seen WHERE id = 99"))
   local statement = con:prepare("INSERT INTO seen VALUES (?, ?, ?, ?)")
   local id = statement:bind_create(sysbench.sql.type.INT)
   local c = statement:bind_create(sysbench.sql.type.CHAR, 10)
   local b = statement:bind_create(sysbench.sql.type.BIGINT)
   local v = statement:bind_create(sysbench.sql.type.VARCHAR, 20)
   statement:bind_param(id, c, b, v)
   id:set(7) c:set("seven") b:set(4) v:set("it\"s ü")
   print(statement:execute() == nil)
   id:set(8) c:set("eight") b:set(-5) v:set("it\"s ä")
   statement:execute()
   print(con:query_row("SELECT c, b, v FROM seen WHERE id = 7"))
   print(con:query_row("SELECT c, b, v FROM seen WHERE id = 8"))
   try("taken, prepared", function() statement:execute() end)
   try("taken", function() con:query("INSERT INTO seen VALUES (1, 'x', 1, 'x')") end)
   try("syntax", function() con:query("SELEKT 1") end)
   try("null", function() con:query("INSERT INTO seen (id) VALUES (9)") end)
   try("too long", function() con:query("INSERT INTO seen (id, c) VALUES (9, 'abcdefghijk')") end)
   try("no table", function() con:query("DROP TABLE nosuch") end)
   -- After an error that is ignored the transaction has been rolled back.
   con:query("BEGIN")
   con:query("INSERT INTO seen VALUES (20, 'x', 1, 'x')")
   try("taken, in a transaction", function() con:query("INSERT INTO seen VALUES (1, 'x', 1, 'x')") end)
   print(con:query_row("SELECT count(*) FROM seen WHERE id = 20"))
   con:query("DROP TABLE seen")
end
function event() end
"#;

#[test(lab)]
fn scripts_see_what_they_see_in_sysbench() {
    let Some(cluster) = shared() else { return };
    let reached = Reached::create(&cluster, "seen");
    std::fs::write(reached.folder.path().join("seen.lua"), SEEN).unwrap();
    for mode in ["auto", "disable"] {
        let words = format!("--db-ps-mode={mode} prepare");
        let mine = reached.mine("seen.lua", &words);
        assert_eq!(mine.status.code(), Some(0), "{mine:?}");
        let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        let mine = lines(&text(&mine));
        let has = |line: &str| {
            assert!(
                mine.iter().any(|mine| mine == line),
                "{line} is not in {mine:#?}"
            );
        };
        has("pgsql\tpgsql\tpgsql\ttester");
        has("FATAL: failed query was: SELEKT 1");
        has("FATAL: PQexec() failed: 7 syntax error at or near \"SELEKT\"");
        has("eight\t-5\tit\"s ä");
        has(
            "   \t1\t0\t23505\tduplicate key value violates unique constraint \"seen_pkey\"\t<prepared statement>",
        );
        assert_eq!(mine.last().map(String::as_str), Some("0"), "{mine:#?}");
        if let Some(other) = reached.theirs("seen.lua", &words) {
            assert_eq!(mine, lines(&text(&other)), "{mode}");
        }
    }
}

/// sysbench sends the value before a NULL again, and as text the end of a longer one behind a shorter one.
#[test(lab)]
fn a_null_is_null_and_a_shorter_text_has_nothing_of_the_longer_one_before() {
    let Some(cluster) = shared() else { return };
    let reached = Reached::create(&cluster, "values");
    let script = r#"
function event() end
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("DROP TABLE IF EXISTS t")
   con:query("CREATE TABLE t (id INTEGER PRIMARY KEY, b BIGINT, v VARCHAR(20))")
   local statement = con:prepare("INSERT INTO t VALUES (?, ?, ?)")
   local id = statement:bind_create(sysbench.sql.type.INT)
   local b = statement:bind_create(sysbench.sql.type.BIGINT)
   local v = statement:bind_create(sysbench.sql.type.VARCHAR, 20)
   statement:bind_param(id, b, v)
   id:set(1) b:set(9000000000) v:set("longer") statement:execute()
   id:set(2) b:set(nil) v:set("it's") statement:execute()
   id:set(3) b:set(-1) v:set(nil) statement:execute()
   local rs = con:query("SELECT * FROM t ORDER BY id")
   for i = 1, rs.nrows do print(unpack(rs:fetch_row(), 1, rs.nfields)) end
end
"#;
    std::fs::write(reached.folder.path().join("values.lua"), script).unwrap();
    for mode in ["auto", "disable"] {
        let output = reached.mine("values.lua", &format!("--db-ps-mode={mode} prepare"));
        let expected = "\n1\t9000000000\tlonger\n2\tnil\tit's\n3\t-1\tnil\n";
        assert!(text(&output).ends_with(expected), "{}", text(&output));
    }
}

#[test(lab)]
fn an_event_is_begun_again_after_the_errors_that_sysbench_ignores() {
    let Some(cluster) = shared() else { return };
    let mut reached = Reached::create(&cluster, "ignored");
    let script = r#"
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("DROP TABLE IF EXISTS t")
   con:query("CREATE TABLE t (id INTEGER PRIMARY KEY)")
   con:query("INSERT INTO t VALUES (0)")
end
function thread_init()
   con = sysbench.sql.driver():connect()
   attempts = 0
end
function event()
   attempts = attempts + 1
   con:query("BEGIN")
   con:query(("INSERT INTO t VALUES (%d)"):format(attempts))
   -- The first three attempts meet a key that is taken, the next a transaction that cannot be serialised.
   if attempts <= 3 then con:query("INSERT INTO t VALUES (0)") end
   if attempts == 4 then con:query("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$") end
   con:query("COMMIT")
end
"#;
    std::fs::write(reached.folder.path().join("again.lua"), script).unwrap();
    let mut labels = [
        "read:",
        "write:",
        "other:",
        "transactions:",
        "ignored errors:",
    ]
    .iter();
    let figures = |output| {
        labels
            .clone()
            .map(|label| figure(output, label))
            .collect::<Vec<_>>()
    };
    reached.same("again.lua", "prepare");
    let mine = reached.same("again.lua", "--events=10 --time=0 run");
    assert_eq!(
        figures(&mine),
        [0.0, 14.0, 24.0, 10.0, 4.0],
        "{}",
        text(&mine)
    );
    assert!(labels.next().is_some());
    // What the failed attempts had inserted is not there.
    reached.mine("again.lua", "prepare");
    let output = reached.mine("again.lua", "--events=10 --time=0 run");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        reached.value("SELECT count(*) FROM t WHERE id BETWEEN 1 AND 4"),
        "0"
    );
    assert_eq!(
        reached.value("SELECT count(*) FROM t WHERE id BETWEEN 5 AND 14"),
        "10"
    );
}

#[test(lab)]
fn clients_that_lock_the_same_rows_go_on_after_a_deadlock() {
    let Some(cluster) = shared() else { return };
    let mut reached = Reached::create(&cluster, "deadlock");
    let sizes = "--table-size=10 --threads=8 --time=3 --rand-type=uniform";
    reached.mine("oltp_write_only", &format!("{sizes} prepare"));
    let script = "/usr/share/sysbench/oltp_write_only.lua";
    let mut tests = vec!["oltp_write_only"];
    if std::path::Path::new(script).exists() {
        tests.push(script);
    }
    for test in tests {
        let output = reached.mine(test, &format!("{sizes} --index-updates=4 run"));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(
            figure(&output, "ignored errors:") > 0.0,
            "{}",
            text(&output)
        );
        assert!(figure(&output, "transactions:") > 0.0, "{}", text(&output));
        assert_eq!(
            reached.value("SELECT count(*) FROM sbtest1"),
            "10",
            "{test}"
        );
    }
}

#[test(lab)]
fn what_goes_wrong_is_said_and_ends_the_run() {
    let Some(cluster) = shared() else { return };
    let reached = Reached::create(&cluster, "wrong");
    let ends_itself = "function event() sysbench.sql.driver():connect():query('SELECT pg_terminate_backend(pg_backend_pid())') end";
    std::fs::write(reached.folder.path().join("end.lua"), ends_itself).unwrap();
    std::fs::write(
        reached.folder.path().join("other.lua"),
        "function event() sysbench.sql.driver('mysql') end",
    )
    .unwrap();
    for (test, more, said) in [
        (
            "oltp_read_only",
            "run",
            "relation \"sbtest1\" does not exist",
        ),
        (
            "end.lua",
            "--events=1 run",
            "server closed the connection unexpectedly",
        ),
        (
            "other.lua",
            "--events=1 run",
            "invalid database driver name: 'mysql'; give --db-driver=mysql",
        ),
        (
            "oltp_read_only",
            "--db-driver=oracle run",
            "invalid database driver name: 'oracle'",
        ),
        (
            "oltp_read_only",
            "--pgsql-db=nosuch run",
            "database \"nosuch\" does not exist",
        ),
        (
            "end.lua",
            "--pgsql-db=nosuch run",
            "Connection to database failed: connection to server on socket",
        ),
        (
            "oltp_read_only",
            "--pgsql-host=/nonexistent run",
            "unable to connect to PostgreSQL server on socket '/nonexistent/.s.PGSQL.",
        ),
        (
            "oltp_read_only",
            "--pgsql-host=127.0.0.1 --pgsql-port=1 run",
            "unable to connect to PostgreSQL server on host '127.0.0.1', port 1",
        ),
    ] {
        let output = reached.mine(test, more);
        assert_eq!(output.status.code(), Some(1), "{test} {more}: {output:?}");
        assert!(
            text(&output).contains(said),
            "{test} {more}: {}",
            text(&output)
        );
    }
}

/// The account may log in with TLS only, as the rules of the tests' server say for its port.
#[test(lab)]
fn connections_use_tls_as_libpq_does() {
    let Some(cluster) = shared() else { return };
    let reached = Reached::create(&cluster, "encrypted");
    let script = "function prepare() local con = sysbench.sql.driver():connect() \
        print(con:query_row('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')) end";
    std::fs::write(reached.folder.path().join("tls.lua"), script).unwrap();
    let words = "--pgsql-host=127.0.0.1 prepare";
    let mine = reached.same("tls.lua", words);
    assert_eq!(mine.status.code(), Some(0), "{mine:?}");
    assert!(text(&mine).ends_with("\nt\n"), "{}", text(&mine));
    let output = reached.same("tls.lua", "--pgsql-db=dbname=encrypted prepare");
    assert!(text(&output).ends_with("\nf\n"), "{}", text(&output));
    let folder = reached.folder.path();
    let (_, port) = cluster.folder_and_port();
    let port = format!("--pgsql-port={port}");
    let refused = [
        "tls.lua",
        "--db-driver=pgsql",
        "--pgsql-host=127.0.0.1",
        &port,
        "--pgsql-user=tester",
        "--pgsql-db=dbname=encrypted password=secret sslmode=disable",
        "prepare",
    ];
    let output = crate::suite::sysbench::ours(folder, &refused);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output).contains("no pg_hba.conf entry"),
        "{}",
        text(&output)
    );
    let required = refused.map(|word| match word {
        word if word.contains("sslmode") => {
            "--pgsql-db=dbname=encrypted password=secret sslmode=require"
        }
        word => word,
    });
    let output = crate::suite::sysbench::ours(folder, &required);
    assert!(text(&output).ends_with("\nt\n"), "{}", text(&output));
}
