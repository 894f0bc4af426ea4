//! What a run took, as the server and the kernel count.

use std::fs;

use dbduel_driver::{Connection, Dialect};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use super::peer::{Result, TICK_US, cpu_us};

/// Counters at one moment.
struct Look {
    statements: f64,
    user_us: f64,
    system_us: f64,
    server_us: Option<f64>,
    /// All processors together, busy and idle.
    machine_us: f64,
    idle_us: f64,
}

/// What one run of either program took.
#[derive(Clone, Copy)]
pub struct Run {
    /// Prepared executions that the server counted, per second.
    pub queries_per_s: f64,
    /// Processor time of the client program per query, microseconds.
    pub cpu_us: f64,
    /// Of it in user mode.
    pub user_us: f64,
    /// Processor time of the server per query, microseconds; unknown for a server elsewhere.
    pub server_us: Option<f64>,
    /// Share of the machine's processors that neither program used and that was not idle either.
    pub others: Option<f64>,
}

impl Look {
    fn now(connection: &mut Connection, server: Option<u32>) -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let stat = fs::read_to_string("/proc/stat")?;
        let ticks: Vec<f64> = stat
            .split_ascii_whitespace()
            .skip(1)
            .map_while(|word| word.parse().ok())
            // Guests, which come after these eight, are in the first two already.
            .take(8)
            .collect();
        Ok(Look {
            statements: executed(connection)?,
            user_us: usage.user_time().num_microseconds() as f64,
            system_us: usage.system_time().num_microseconds() as f64,
            server_us: server.and_then(cpu_us),
            machine_us: ticks.iter().sum::<f64>() * TICK_US,
            idle_us: ticks.iter().skip(3).take(2).sum::<f64>() * TICK_US,
        })
    }
}

/// Lets one of the two programs run as a child process; what that took in `seconds`.
pub fn counted(
    connection: &mut Connection,
    server: Option<u32>,
    seconds: f64,
    run: impl FnOnce() -> Result<()>,
) -> Result<Run> {
    let before = Look::now(connection, server)?;
    run()?;
    let after = Look::now(connection, server)?;
    let queries = after.statements - before.statements;
    if queries < 1.0 {
        return Err("the server counted no query; do its prepared statements work?".into());
    }
    let user_us = after.user_us - before.user_us;
    let client_us = user_us + after.system_us - before.system_us;
    let server_us = after.server_us.zip(before.server_us).map(|(a, b)| a - b);
    let others = server_us.map(|server_us| {
        let all_us = (after.machine_us - before.machine_us).max(1.0);
        let known_us = after.idle_us - before.idle_us + server_us + client_us;
        (1.0 - known_us / all_us).max(0.0)
    });
    Ok(Run {
        queries_per_s: queries / seconds,
        cpu_us: client_us / queries,
        user_us: user_us / queries,
        server_us: server_us.map(|us| us / queries),
        others,
    })
}

/// Prepared statements that the server has executed since it was started; PostgreSQL counts transactions, by sessions when
/// they end.
fn executed(connection: &mut Connection) -> Result<f64> {
    let (question, column) = match connection.dialect() {
        Dialect::PostgreSql => ("SELECT sum(xact_commit) FROM pg_stat_database", 0),
        Dialect::MySql | Dialect::Sqlite => ("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'", 1),
    };
    let answer = connection.query(question)?;
    let text = answer.text(0, column);
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| "the server does not count prepared executions".into())
}

impl Run {
    /// For a line of progress.
    pub fn words(&self) -> String {
        let Run {
            queries_per_s,
            cpu_us,
            user_us,
            server_us,
            others: _,
        } = self;
        let server = server_us.map_or_else(String::new, |us| format!(", server {us:.2} µs"));
        format!("{queries_per_s:.0}/s at {cpu_us:.2} µs ({user_us:.2} user){server}")
    }
}
