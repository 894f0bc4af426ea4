//! Scripts on the command line, as sysbench's users write them.

use std::collections::BTreeMap;

use super::super::bare_server::BareServer;
use super::*;

/// A script in a folder of its own.
struct Script {
    folder: tempfile::TempDir,
}

impl Script {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.lua"), text).unwrap();
        Script { folder }
    }

    /// Runs it by `dbduel sysbench`.
    fn run(&self, words: &str) -> Output {
        ours(self.folder.path(), &self.words(words))
    }

    /// Runs it by both programs, which print the same lines apart from their first; returns those lines.
    #[track_caller]
    fn same(&self, words: &str) -> String {
        let lines = |output: &Output| {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            text(output)
        };
        let mine = lines(&self.run(words));
        if let Some(other) = theirs(self.folder.path(), &self.words(words)) {
            assert_eq!(mine, lines(&other), "{words}");
        }
        mine
    }

    fn words<'a>(&self, words: &'a str) -> Vec<&'a str> {
        ["x.lua"].into_iter().chain(words.split(' ')).collect()
    }
}

#[test]
fn only_commands_of_sysbench_are_commands() {
    let script = Script::new("function run() return 1 end function event() run() end");
    let output = script.run("--events=3 run");
    assert_eq!(figure(&output, "total number of events:"), 3.0);
    for command in ["print", "event", "type", "nonsense"] {
        let output = script.run(command);
        assert_eq!(output.status.code(), Some(1), "{command}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said, format!("Unknown command: {command}\n"));
    }
}

#[test]
fn unique_numbers_begin_where_the_seed_says() {
    let script = Script::new("function event() print(sysbench.rand.unique()) end");
    let numbers =
        |seed: u32| text(&script.run(&format!("--events=2 --rand-seed={seed} --verbosity=0 run")));
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
}

#[test(needs = &["mariadb-10.11"])]
fn a_second_run_inserts_other_unique_ids() {
    let server = BareServer::start("mariadb-10.11");
    server.query("CREATE TABLE sbtest.t (id BIGINT PRIMARY KEY)");
    let script = Script::new(
        "function thread_init() con = sysbench.sql.driver():connect() end
         function event() con:query('INSERT INTO t VALUES (' .. sysbench.rand.unique() .. ')') end",
    );
    let socket = server.socket().display().to_string();
    for _ in 0..2 {
        let output = script.run(&format!(
            "--mysql-socket={socket} --mysql-user=root --events=200 --threads=2 run"
        ));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    assert_eq!(server.query("SELECT COUNT(*) FROM sbtest.t"), "400");
}

#[test(needs = &["mariadb-10.11"])]
fn errors_of_statements_are_shown_as_by_sysbench() {
    let server = BareServer::start("mariadb-10.11");
    let script = Script::new(
        "function sysbench.hooks.sql_error_ignorable(e)
            print('hook', e.sql_errno, type(e.connection), e.connection)
         end
         function event()
            local con = sysbench.sql.driver():connect()
            print(type(con), db_query('SELECT 1'))
            print(pcall(function() con:query('DROP TABLE nowhere') end))
            sysbench.hooks.sql_error_ignorable = nil
            con = sysbench.sql.driver():connect()
            print(pcall(con.prepare, con, 'SELECT * FROM nowhere'))
            con:disconnect()
            print(pcall(con.query, con, 'SELECT 1'))
            print(pcall(con.query, con, 'SELECT 1'))
            con:disconnect()
         end",
    );
    let socket = server.socket().display().to_string();
    let lines = script.same(&format!(
        "--mysql-socket={socket} --mysql-user=root --events=1 --verbosity=1 run"
    ));
    let expected = "\
cdata
FATAL: mysql_drv_query() returned error 1051 (Unknown table 'sbtest.nowhere') for query 'DROP TABLE nowhere'
hook\t1051\tcdata\t<sql_connection>
false\tx.lua:7: SQL error, errno = 1051, state = '42S02': Unknown table 'sbtest.nowhere'
FATAL: mysql_stmt_prepare() failed
";
    assert!(lines.starts_with(expected), "{lines}");
    assert!(
        lines.contains("(last message repeated 1 times)\n"),
        "{lines}"
    );
}

#[test]
fn a_statement_without_a_result_set_returns_what_sysbench_returns() {
    let script = Script::new(
        "function event()
            local con = sysbench.sql.driver():connect()
            local stmt = con:prepare('x')
            for _, rs in ipairs { con:query('x'), stmt:execute() } do
               print(rs and 'true', rs == nil, rs ~= nil, nil == rs, rs == rs, rs)
            end
            print(con:query_row('x'))
         end",
    );
    let lines = script.same("--mysql-dry-run --events=1 --verbosity=0 run");
    let line = "true\ttrue\tfalse\ttrue\ttrue\t<sql_result>\n";
    assert_eq!(lines, format!("{line}{line}nil\n"));
}

#[test]
fn an_array_of_intermediate_reports_ends_before_the_final_block() {
    let script = Script::new(
        "local ffi = require('ffi') ffi.cdef 'int usleep(unsigned)'
         function event() ffi.C.usleep(10000) end
         sysbench.hooks.report_intermediate = sysbench.report_json",
    );
    let said = text(&script.run("--time=2 --report-interval=1 --histogram run"));
    let at = |part: &str| {
        said.find(part)
            .unwrap_or_else(|| panic!("no `{part}` in {said}"))
    };
    assert!(at("\n]\n") < at("Latency histogram"), "{said}");
    let array = &said[at("[\n")..at("\n]\n") + 2];
    let array: serde_json::Value = serde_json::from_str(array).unwrap();
    assert_eq!(array[0]["threads"], 1, "{array}");
}

#[test]
fn compilation_can_be_switched_off() {
    let script = Script::new("print((require('jit').status()))");
    assert!(text(&script.run("--luajit-cmd=off --verbosity=0")).starts_with("false"));
    assert!(text(&script.run("--verbosity=0")).starts_with("true"));
    assert_eq!(script.run("--luajit-cmd=nonsense").status.code(), Some(1));
}

/// Prints how often each of twenty parts of several ranges was drawn, and each character of a random text.
const DRAWS: &str = r######"
function event()
    for _, name in ipairs { "default", "uniform", "gaussian", "special", "pareto" } do
        for _, range in ipairs { 20, 1000, 100000 } do
            local parts = {}
            for i = 1, 20 do parts[i] = 0 end
            for _ = 1, 50000 do
                local part = math.floor((sysbench.rand[name](1, range) - 1) * 20 / range) + 1
                parts[part] = parts[part] + 1
            end
            print("DRAWS " .. name .. range .. " " .. table.concat(parts, " "))
        end
    end
    local letters = {}
    for i = 1, 36 do letters[i] = 0 end
    for _ = 1, 5000 do
        for byte in sysbench.rand.string("#####@@@@@"):gmatch(".") do
            local at = byte:match("%d") and tonumber(byte) + 1 or byte:byte() - 97 + 11
            letters[at] = letters[at] + 1
        end
    end
    print("DRAWS letters " .. table.concat(letters, " "))
    return true
end
"######;

fn draws(printed: &str) -> BTreeMap<String, Vec<f64>> {
    let lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix("DRAWS "));
    let read = |line: &str| {
        let (name, counts) = line.split_once(' ').unwrap();
        (
            name.to_owned(),
            counts
                .split(' ')
                .map(|count| count.parse().unwrap())
                .collect(),
        )
    };
    lines.map(read).collect()
}

#[test]
fn random_numbers_are_distributed_as_those_of_sysbench() {
    let script = Script::new(DRAWS);
    let words = script.words("--rand-seed=5 --events=1 run");
    let Some(theirs) = theirs(script.folder.path(), &words) else {
        return;
    };
    let theirs = draws(&text(&theirs));
    let ours = draws(&text(&ours(script.folder.path(), &words)));
    assert_eq!(ours.len(), 16);
    for (name, ours) in &ours {
        let theirs = &theirs[name];
        assert_eq!(ours.len(), theirs.len());
        // Two samples of equal size from one distribution: the sum of (a − b)² / (a + b) is chi-square distributed.
        let pairs = || ours.iter().zip(theirs).filter(|(a, b)| *a + *b > 0.0);
        let chi_square: f64 = pairs().map(|(a, b)| (a - b).powi(2) / (a + b)).sum();
        let freedom = pairs().count() as f64 - 1.0;
        // 99.99 % quantile by Wilson and Hilferty (1931).
        let limit = freedom
            * (1.0 - 2.0 / (9.0 * freedom) + 3.719 * (2.0 / (9.0 * freedom)).sqrt()).powi(3);
        assert!(
            chi_square < limit,
            "{name}: {chi_square} with {freedom} degrees of freedom: {ours:?}, {theirs:?}"
        );
    }
}
