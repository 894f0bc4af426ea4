//! A script and what it is run with, as an owner of a host gives them.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dbduel_load::blocking::{Credentials, TlsMode};
use dbduel_load::conn::Protocol;
use dbduel_load::lua::{
    Counts, Host, IgnoredErrors, Limits, LoadSettings, Message, OptionValue, Script, ScriptError,
    Servers, Settings, Shapes, Sink,
};

pub const CLIENTS: u32 = 2;

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
            addresses: Vec::new(),
            credentials: Credentials::default(),
            database: String::new(),
            tls: TlsMode::Off,
        },
        shapes: Shapes::default(),
        seed: 7,
        ignored_errors: IgnoredErrors::Codes(vec![1213, 1020, 1205]),
        protocol: Protocol::Prepared,
        dry_run: false,
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
            }
        }),
    }
}

pub fn load_of(events: u64) -> LoadSettings {
    LoadSettings {
        clients: CLIENTS,
        threads: 1,
        events,
        time: Some(Duration::from_secs(60)),
        warmup: Duration::ZERO,
        rate: None,
        init_timeout: Duration::from_secs(30),
    }
}

pub fn given(options: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    options
        .iter()
        .map(|(name, text)| ((*name).to_owned(), Some((*text).to_owned())))
        .collect()
}

pub fn run(host: &mut Host, load: LoadSettings) -> Result<Counts, ScriptError> {
    let load = host.start(load)?;
    load.begin();
    let counts = load.finish()?;
    host.done()?;
    Ok(counts)
}
