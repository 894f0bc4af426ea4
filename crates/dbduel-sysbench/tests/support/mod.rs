//! A script and what it is run with, as an owner of a host gives them.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dbduel_client::run::{
    Gate, IgnoredErrors, IntervalStats, Limits as RunLimits, RunMetrics, Share,
};
use dbduel_driver::Protocol;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{Credentials, Tls, TlsMode};
use dbduel_lua::{Host, Limits, Message, OptionValue, Script, Servers, Settings, Shapes, Sink};
use dbduel_sysbench::bridge::LoadThreads;
use dbduel_sysbench::bridge::script::start;

pub const CLIENTS: u32 = 2;
const DEADLINE: Duration = Duration::from_secs(90);

/// Not a print macro, whose output the test harness would keep to itself.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What a script printed.
pub type Printed = Arc<Mutex<String>>;

/// A script that reaches no server.
pub fn alone(script: Script, command: &str, printed: &Printed) -> Settings {
    let printed = Arc::clone(printed);
    let options = [("threads", f64::from(CLIENTS)), ("percentile", 95.0)];
    Settings {
        script,
        argv: vec!["dbduel".to_owned()],
        command: Some(command.to_owned()),
        options: options
            .map(|(name, number)| (name.to_owned(), OptionValue::Number(number)))
            .into(),
        servers: Servers {
            dialect: dbduel_driver::Dialect::MySql,
            addresses: Vec::new(),
            credentials: Credentials::default(),
            database: String::new(),
            tls: Arc::new(Tls::new(TlsMode::Off)),
        },
        shapes: Shapes::default(),
        seed: 7,
        ignored_errors: IgnoredErrors::Codes(vec![1213, 1020, 1205]),
        protocol: Protocol::Prepared,
        is_compiled: true,
        statement_watch: None,
        dry_run: false,
        cancel: Cancel::default(),
        limits: Limits {
            computing: Duration::from_secs(60),
            ..Limits::default()
        },
        sink: Sink::new(move |message| {
            let mut printed = printed.lock().unwrap();
            match message {
                Message::Print(bytes) => printed.push_str(&String::from_utf8_lossy(bytes)),
                Message::Fatal(text) => printed.push_str(&format!("FATAL: {text}\n")),
                Message::Alert(text) => printed.push_str(&format!("ALERT: {text}\n")),
                Message::Debug(text) => printed.push_str(&format!("DEBUG: {text}\n")),
            }
        }),
    }
}

/// How many clients, on how many threads, and for how long.
#[derive(Clone, Copy)]
pub struct Size {
    pub clients: u32,
    pub threads: u32,
    pub limits: RunLimits,
}

pub fn load_of(events: u64) -> Size {
    Size {
        clients: CLIENTS,
        threads: 1,
        limits: RunLimits {
            events: Some(events),
            time: Some(Duration::from_secs(60)),
            per_second: None,
            warm_up: Duration::ZERO,
            seed: 7,
        },
    }
}

pub fn given(options: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    options
        .iter()
        .map(|(name, text)| ((*name).to_owned(), Some((*text).to_owned())))
        .collect()
}

/// Clients that are ready to begin.
pub struct Ready {
    gate: Arc<Gate>,
    ledger: Arc<RunMetrics>,
    threads: LoadThreads,
}

/// What a run brought.
#[derive(Debug)]
pub struct Done {
    pub interval_stats: IntervalStats,
    pub shares: Vec<Share>,
}

/// Starts the clients and waits until they are ready.
pub fn ready(host: &mut Host, size: Size) -> Result<Ready, String> {
    let clients = host.begin().map_err(|error| error.to_string())?;
    let gate = Arc::new(Gate::new(size.limits, size.clients));
    let ledger = Arc::new(RunMetrics::new(size.clients, size.threads));
    let threads = start(clients, size.clients, size.threads, &gate, &ledger).unwrap();
    let is_ready = gate.wait_until_ready(size.clients, Instant::now() + DEADLINE);
    match gate.failure() {
        Some(why) => Err(why),
        None if !is_ready => Err("the clients were not ready in time".to_owned()),
        None => Ok(Ready {
            gate,
            ledger,
            threads,
        }),
    }
}

impl Ready {
    pub fn begin(&self) {
        self.gate.open();
        self.threads.ring();
    }

    /// Ends the run by order.
    pub fn close(&self) {
        self.gate.close();
        self.threads.ring();
    }

    pub fn running(&self) -> u32 {
        self.gate.running()
    }

    /// What was counted since the last look.
    pub fn look(&self) -> IntervalStats {
        let mut fresh = IntervalStats::default();
        self.ledger.take(&mut fresh);
        fresh
    }

    /// Waits for the end.
    pub fn finish(self) -> Result<Done, String> {
        let ended = self.gate.wait_until_finished(Instant::now() + DEADLINE);
        if let Some(why) = self.gate.failure() {
            return Err(why);
        }
        assert!(ended.is_some(), "the run did not end");
        Ok(Done {
            interval_stats: self.look(),
            shares: self.ledger.shares(),
        })
    }
}

pub fn run(host: &mut Host, size: Size) -> Result<Done, String> {
    let ready = ready(host, size)?;
    ready.begin();
    let done = ready.finish()?;
    host.done().map_err(|error| error.to_string())?;
    Ok(done)
}
