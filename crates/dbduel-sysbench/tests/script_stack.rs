//! Scripts run on stacks of their own and leave them in the middle of a call: from where they may, and how deep they may go.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use dbduel_driver::mock_server::Role;
use dbduel_lua::{Host, Script};
use dbduel_testkit::mock::mock;

use crate::support::{Printed, Size, alone, load_of, run};

/// What a script with a prepared statement and a connection prints in so many events of one client.
fn printed(text: &str, events: u64) -> String {
    told_by(Role::Null, text, events)
}

/// The same with a server of this role.
fn told_by(role: Role, text: &str, events: u64) -> String {
    let (_directory, server) = mock(role);
    let begin = "function thread_init()
                     con = sysbench.sql.driver():connect()
                     statement = con:prepare('SELECT c FROM sbtest1 WHERE id = ?')
                     id = statement:bind_create(sysbench.sql.type.INT)
                     statement:bind_param(id)
                     id:set(7)
                 end\n";
    let printed = Printed::default();
    let script = Script::from_text("mine.lua", format!("{begin}{text}").into_bytes());
    let mut settings = alone(script, "run", &printed);
    settings.servers.addresses = vec![server.address()];
    let mut host = Host::load(settings).unwrap();
    let size = Size {
        clients: 1,
        ..load_of(events)
    };
    run(&mut host, size).unwrap_or_else(|error| panic!("{error}"));
    let printed = printed.lock().unwrap();
    printed.clone()
}

#[test]
fn statements_are_executed_from_coroutines_and_in_the_middle_of_library_functions() {
    let text = "function event()
                    local in_coroutine = coroutine.wrap(function() coroutine.yield(statement:execute().nrows) end)
                    local rows = 0
                    table.sort({ 2, 1 }, function(a, b)
                        rows = rows + statement:execute().nrows + con:query('SELECT c FROM sbtest1 WHERE id = 7').nrows
                        return a < b
                    end)
                    print(statement:execute().nrows, in_coroutine(), rows > 0)
                end";
    assert_eq!(printed(text, 3), "1\t1\ttrue\n".repeat(3));
}

#[test]
fn what_the_collector_runs_cannot_wait_for_the_server() {
    let text = "local function finally(f)
                    local proxy = newproxy(true)
                    getmetatable(proxy).__gc = f
                    proxy = nil
                    collectgarbage()
                    collectgarbage()
                end
                local function query() return con:query('SELECT 1') end
                local function execute() return statement:execute() end
                local function in_coroutine() return coroutine.wrap(query)() end
                function event()
                    for _, f in ipairs { query, execute, in_coroutine } do
                        finally(function() print(pcall(f)) end)
                    end
                    local ffi = require('ffi')
                    ffi.gc(ffi.new('int[1]'), function() print(pcall(query)) end)
                    collectgarbage()
                    collectgarbage()
                    print(statement:execute().nrows)
                    collectgarbage('stop')
                    print(statement:execute().nrows)
                    collectgarbage('restart')
                end";
    let refused = "false\tattempt to yield across C-call boundary\n";
    assert_eq!(printed(text, 1), format!("{}1\n1\n", refused.repeat(4)));
}

#[test]
fn a_statement_has_the_parameters_that_it_was_last_given_and_no_others() {
    let text = "function event()
                    print(pcall(statement.bind_param, statement, nil))
                    local two = con:prepare('SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?')
                    print((pcall(two.execute, two)))
                    print(statement:execute().nrows)
                    two:bind_param(id, id)
                    print((pcall(two.bind_param, two, id, require('ffi').typeof(id))))
                    two:execute()
                    print(pcall(two.execute))
                end";
    let refused = "false\tbad argument #1 to 'bind_param' (a parameter expected, got nil)\n";
    let unbound = "ALERT: the statement's parameters are not bound\nfalse\n";
    let no_statement = "false\tbad argument #1 to 'execute' (a statement expected, got nil)\n";
    let expected = format!("{refused}{unbound}1\nfalse\n{no_statement}");
    assert_eq!(printed(text, 1), expected);
}

#[test]
fn an_error_of_the_server_is_told_in_the_middle_of_a_library_function() {
    let error = dbduel_testkit::mock::error(1213, b"40001");
    let text = "function event()
                    print(pcall(table.sort, { 2, 1 }, function(a, b)
                        statement:execute()
                        return a < b
                    end))
                    print(con.sql_errno, con.sql_state)
                end";
    let outcome = told_by(
        Role::Scripted(vec![dbduel_testkit::mock::act(0, error)]),
        text,
        1,
    );
    let (first, second) = outcome.split_once('\n').unwrap();
    assert!(first.starts_with("false\ttable: "), "{first}");
    assert_eq!(second, "1213\t40001\n");
}

#[test]
fn calls_may_be_nested_as_deep_as_on_a_stack_of_a_thread() {
    // Each call of gsub takes a buffer of 8 kB on the stack. Lua itself counts its own calls and not those.
    let text = "local function deep(levels)
                    if levels == 0 then
                        return statement:execute().nrows
                    end
                    local rows
                    local _ = ('x'):gsub('x', function() rows = deep(levels - 1) end)
                    return rows
                end
                local function endless() return 1 + endless() end
                function event() print(deep(150), (select(2, pcall(endless)):match('stack overflow'))) end";
    assert_eq!(printed(text, 2), "1\tstack overflow\n".repeat(2));
}
