//! Scripts run on stacks of their own and leave them in the middle of a call: from where they may, and how deep they may go.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use dbduel_load::lua::{Host, Script};
use dbduel_load::stand_in::Role;
use support::script::{Printed, Size, alone, load_of, run};
use support::stand_in;

/// What a script with a prepared statement and a connection prints in so many events of one client.
fn printed(text: &str, events: u64) -> String {
    let (_directory, server) = stand_in(Role::Null);
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
                    local executed = 0
                    table.sort({ 2, 1 }, function(a, b)
                        executed = executed + statement:execute().nrows
                        return a < b
                    end)
                    print(statement:execute().nrows, in_coroutine(), executed > 0)
                end";
    assert_eq!(printed(text, 3), "1\t1\ttrue\n".repeat(3));
}

#[test]
fn what_the_collector_runs_cannot_wait_for_the_server() {
    let text = "function event()
                    local finalised = {}
                    local proxy = newproxy(true)
                    getmetatable(proxy).__gc = function()
                        finalised[1], finalised[2] = pcall(con.query, con, 'SELECT 1')
                    end
                    proxy = nil
                    collectgarbage()
                    collectgarbage()
                    print(finalised[1], finalised[2])
                end";
    let why = "attempt to yield across C-call boundary";
    assert_eq!(printed(text, 1), format!("false\t{why}\n"));
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
