//! Connections of scripts that break, and limits of servers.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_lua::{Host, Script};
use dbduel_testkit::mock::{act, mock, scripted};
use dbduel_wire::server::Answer;

use crate::support::{Done, Printed, Size, alone, load_of, run};

/// Runs events of one client on a server; also returns what the script printed.
fn events(server: &MockServer, count: u64, text: &str) -> (Result<Done, String>, String) {
    let printed = Printed::default();
    let script = Script::from_text("mine.lua", text.as_bytes().to_vec());
    let mut settings = alone(script, "run", &printed);
    settings.servers.addresses = vec![server.address()];
    let size = Size {
        clients: 1,
        ..load_of(count)
    };
    let mut host = Host::load(settings).unwrap();
    host.set_options(&[]).unwrap();
    let done = run(&mut host, size);
    let printed = printed.lock().unwrap().clone();
    (done, printed)
}

/// A server that answers so many statements of each connection, and closes it at the next one.
fn closing_after(statements: usize) -> (tempfile::TempDir, MockServer) {
    let mut acts = vec![act(0, Answer::Proper); statements];
    acts.push(act(0, Answer::Close));
    scripted(acts)
}

#[test]
fn a_script_reconnects_after_a_lost_connection() {
    let (_folder, server) = closing_after(1);
    let text = r#"
        function event()
            local con = sysbench.sql.driver():connect()
            local statement = con:prepare("SELECT 1")
            con:query("SELECT 1")
            -- The connection breaks, and stays broken.
            assert(not pcall(con.query, con, "SELECT 1") and con.sql_errno == 2013, con.sql_errno)
            assert(not pcall(con.query, con, "SELECT 1") and con.sql_errno == 2006, con.sql_errno)
            assert(not pcall(statement.execute, statement) and con.sql_errno == 2006, con.sql_errno)
            assert(not pcall(con.prepare, con, "SELECT 1") and con.sql_errno == 2006, con.sql_errno)
            assert(con:reconnect() == true)
            con:query("SELECT 1")
            con:disconnect()
        end
    "#;
    let (done, printed) = events(&server, 1, text);
    let counts = done
        .unwrap_or_else(|why| panic!("{why}\n{printed}"))
        .interval_stats
        .counts;
    assert_eq!((counts.events, counts.reads), (1, 2), "{counts:?}");
    assert_eq!((counts.errors, counts.reconnects), (4, 1), "{counts:?}");
    assert_eq!(server.connections(), 2);
    assert!(!printed.contains("closed connection"), "{printed}");
}

#[test]
fn a_hook_reconnects_after_a_lost_connection() {
    let (_folder, server) = closing_after(5);
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect() end
        function event() con:query("SELECT 1") end
        function sysbench.hooks.sql_error_ignorable(err)
            return err.sql_errno == 2013 and err.connection:reconnect()
        end
    "#;
    let (done, printed) = events(&server, 10, text);
    let counts = done
        .unwrap_or_else(|why| panic!("{why}\n{printed}"))
        .interval_stats
        .counts;
    // Five events on the first connection, and four behind the ROLLBACK on the second one.
    assert_eq!((counts.events, counts.reads), (10, 10), "{counts:?}");
    assert_eq!((counts.errors, counts.reconnects), (2, 2), "{counts:?}");
    assert_eq!(server.connections(), 3);
}

#[test]
fn a_limit_of_prepared_statements_is_compared_with_the_number_needed() {
    let (_folder, server) = mock(Role::Null);
    let text = r#"
        function thread_init()
            local con, kept = sysbench.sql.driver():connect(), {}
            while true do kept[#kept + 1] = con:prepare("SELECT 1") end
        end
        function event() end
    "#;
    let (done, printed) = events(&server, 1, text);
    assert!(done.unwrap_err().contains("SQL API error"));
    // The options of the script say two clients, and the limit of this server is 16382 per session.
    assert!(
        printed.contains("MySQL error: 1461") && printed.contains("prepare at least 32766;"),
        "{printed}"
    );
    assert!(printed.contains("--db-ps-mode=disable"), "{printed}");
}
