//! Scripts, run by the Lua host: every test that is not built in.

use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use dbduel_client::run::Gate;
use dbduel_driver::Protocol;
use dbduel_driver::Tls;
use dbduel_driver::cancel::Cancel;
use dbduel_lua::interpretation;
use dbduel_lua::{
    self, CommandKind, DeclaredOption, Host, Limits, Message, OptionError, OptionKind, Script,
    ScriptError, Settings, Sink, options_text,
};

use super::general::General;
use super::logger::Logger;
use super::page::Style;
use super::parsed_options::{Written, key};
use super::run_loop::{INTERRUPTED, Report, Reports};
use super::server::Servers;

use super::{Job, Stop, no_command, run as runs};

/// The name of a script that is read from standard input.
pub const STANDARD_INPUT: &str = "-";
/// The largest script that is read from standard input, bytes.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;

/// Executes the command of the job with a script; returns the exit code.
///
/// # Errors
/// Errors in the options or the script.
pub fn run(name: &str, job: &Job, rest: &[Written]) -> Result<u8, Stop> {
    let voice = job.general.voice;
    let script = find(name)?;
    let mut host = Host::load(settings(script, job)?).map_err(|error| fatal(voice, &error))?;
    let Some(command) = job.command.as_deref().filter(|_| name != STANDARD_INPUT) else {
        // The script has been run once, and often that is all there is to do. sysbench does no more with one from standard
        // input.
        return Ok(0);
    };
    set_options(&mut host, rest, voice)?;
    let threads = job.general.threads;
    if let Some(claim) = interpretation() {
        voice.warning(claim);
    }
    match (host.command(command), command) {
        (Some(kind), _) => {
            if kind == CommandKind::Parallel && threads > 1 {
                voice.notice("Initializing worker threads...\n");
            }
            let is_done = host
                .run_command(command, threads)
                .map_err(|error| fatal(voice, &error))?;
            Ok(u8::from(!is_done))
        }
        (None, "run") => drive(&mut host, &job.general),
        (None, "help") => match host.declared_options() {
            Some(declared) => {
                let text = options_text(declared);
                voice.notice(&format!(
                    "{} options:\n{}",
                    file_name(name),
                    text.trim_end_matches('\n')
                ));
                voice.notice("");
                Ok(0)
            }
            None => Err(no_command(&file_name(name), command)),
        },
        (None, other) => Err(no_command(&file_name(name), other)),
    }
}

/// The last part of a path, by which messages name a script.
fn file_name(path: &str) -> Cow<'_, str> {
    Path::new(path)
        .file_name()
        .map_or(Cow::Borrowed(path), |name| name.to_string_lossy())
}

/// Passes the script its options. Unknown ones of a configuration file are for other tests and ignored.
fn set_options(host: &mut Host, rest: &[Written], voice: Logger) -> Result<(), Stop> {
    let declared = |option: &Written| {
        let all = host.declared_options()?;
        all.iter().find(|known| key(&known.name) == option.name)
    };
    let is_legacy = host.declared_options().is_none();
    let (known, unknown): (Vec<&Written>, Vec<&Written>) = rest
        .iter()
        .partition(|option| option.is_from_a_word() || is_legacy || declared(option).is_some());
    unknown.into_iter().for_each(|option| option.ignore(voice));
    let pair = |option: &Written| {
        let kind = declared(option).map_or(OptionKind::String, |known| known.kind);
        option.warn_of_unread(kind, voice);
        Ok((option.name.clone(), option.text(kind)?))
    };
    let pairs = known.into_iter().map(pair);
    let pairs = pairs.collect::<Result<Vec<(String, Option<String>)>, Stop>>()?;
    host.set_options(&pairs).map_err(|error| {
        let (OptionError::Unknown { name, .. } | OptionError::Invalid { name, .. }) = &error;
        let written = rest.iter().rev().find(|option| option.name == key(name));
        match (&error, written) {
            (OptionError::Unknown { nearest, .. }, Some(written)) => {
                written.refuse_unknown(nearest.as_deref())
            }
            (OptionError::Invalid { takes, .. }, Some(written)) => {
                let declared = host.declared_options().unwrap_or_default();
                let is_switch = |option: &DeclaredOption| {
                    option.name == *name && option.kind == OptionKind::Bool
                };
                match declared.iter().any(is_switch) {
                    true => written.refuse(),
                    false => written.refuse_value(takes),
                }
            }
            (error, None) => Stop::Fatal(error.to_string()),
        }
    })
}

fn find(name: &str) -> Result<Script, Stop> {
    if name != STANDARD_INPUT {
        return Script::find(name).map_err(|error| match error {
            ScriptError::NotFound { .. } => Stop::Fatal(format!(
                "Cannot find benchmark '{name}': no such built-in test, file or module"
            )),
            other => Stop::Fatal(other.line()),
        });
    }
    let mut text = Vec::new();
    io::stdin()
        .lock()
        .take(SCRIPT_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(|error| {
            Stop::Fatal(format!("cannot read a script from standard input: {error}"))
        })?;
    Ok(Script::from_text(STANDARD_INPUT, text))
}

/// An error in one line; its stack trace goes to the debugging messages.
fn fatal(voice: Logger, error: &ScriptError) -> Stop {
    if let Some(trace) = error.trace() {
        voice.debug(trace);
    }
    Stop::Fatal(error.line())
}

fn settings(script: Script, job: &Job) -> Result<Settings, Stop> {
    let servers = Servers::read(&job.given, job.general.voice)?;
    let voice = job.general.voice;
    let mut argv = vec!["sysbench".to_owned()];
    argv.extend(job.words.iter().cloned());
    Ok(Settings {
        script,
        argv,
        command: job.command.clone(),
        options: options(job),
        is_compiled: job
            .given
            .choice("luajit-cmd", &[("", true), ("on", true), ("off", false)])?,
        servers: dbduel_lua::Servers {
            dialect: servers.dialect,
            addresses: servers.addresses,
            credentials: servers.credentials,
            database: servers.database,
            tls: Arc::new(Tls::new(servers.tls)),
        },
        shapes: job.general.shapes,
        seed: job.general.seed,
        ignored_errors: servers.ignored,
        protocol: match servers.is_prepared {
            true => Protocol::Prepared,
            false => Protocol::Text,
        },
        statement_watch: servers.statement_watch,
        dry_run: servers.is_dry,
        limits: Limits::default(),
        cancel: Cancel::default(),
        sink: Sink::new(move |message| show(voice, message)),
    })
}

/// The content of `sysbench.opt` besides a script's own options.
fn options(job: &Job) -> std::collections::BTreeMap<String, dbduel_lua::OptionValue> {
    let mut options = job.given.values().clone();
    let number = |value: u64| dbduel_lua::OptionValue::Number(value as f64);
    let limits = &job.general.limits;
    // Old names count as the new ones.
    options.insert("threads".to_owned(), number(u64::from(job.general.threads)));
    options.insert("events".to_owned(), number(limits.events.unwrap_or(0)));
    let time = limits.time.unwrap_or_default().as_secs();
    options.insert("time".to_owned(), number(time));
    options
}

fn show(voice: Logger, message: Message<'_>) {
    match message {
        Message::Print(bytes) => {
            // A run continues when its output is not read.
            let mut output = io::stdout().lock();
            let _ = output.write_all(bytes).and_then(|()| output.flush());
        }
        Message::Fatal(text) => voice.fatal(text),
        Message::Alert(text) => voice.alert(text),
        Message::Debug(text) => voice.debug(text),
    }
}

fn drive(host: &mut Host, general: &General) -> Result<u8, Stop> {
    let voice = general.voice;
    let clients = host.begin().map_err(|error| fatal(voice, &error))?;
    let cancel = clients.cancel();
    runs::announce(general);
    voice.notice("Initializing worker threads...\n");
    let mut reports = Hooks {
        host,
        reporter: None,
        given_up: false,
        cancel,
        voice,
    };
    let code = runs::script(general, clients, &mut reports)?;
    if code == 0 {
        match reports.host.done() {
            Err(ScriptError::Cancelled) => return Ok(INTERRUPTED),
            done => done.map_err(|error| fatal(voice, &error))?,
        }
    }
    Ok(code)
}

/// The hooks of a script that print reports.
struct Hooks<'a> {
    host: &'a mut Host,
    /// Lua state that prints intermediate reports.
    reporter: Option<Host>,
    /// True when a hook was cancelled: hooks are not called again.
    given_up: bool,
    cancel: Cancel,
    voice: Logger,
}

impl Reports for Hooks<'_> {
    fn style(&self) -> Style {
        match self.host.used_driver() {
            true => Style::Sql,
            false => Style::Events,
        }
    }

    fn belong_to(&mut self, gate: &Arc<Gate>) {
        self.host.belong_to(gate);
    }

    fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    fn end_intermediate(&mut self) {
        self.reporter = None;
    }

    fn report(&mut self, kind: Report, stat: &[(&str, f64)]) -> Result<bool, Stop> {
        let hook = match kind {
            Report::Intermediate => "report_intermediate",
            Report::Checkpoint | Report::Final => "report_cumulative",
        };
        if self.given_up || !self.host.has_hook(hook) {
            return Ok(false);
        }
        let outcome = match kind {
            Report::Final => self.host.call_report_hook(hook, stat),
            Report::Intermediate | Report::Checkpoint => {
                let reporter = match &mut self.reporter {
                    Some(reporter) => reporter,
                    empty => {
                        let reporter = self.host.reporter();
                        empty.insert(reporter.map_err(|error| fatal(self.voice, &error))?)
                    }
                };
                reporter.call_report_hook(hook, stat)
            }
        };
        match outcome {
            // The figures are not lost for that.
            Err(ScriptError::Over { .. }) => Ok(false),
            Err(ScriptError::Cancelled) => {
                self.given_up = true;
                Ok(false)
            }
            outcome => outcome
                .map(|()| true)
                .map_err(|error| fatal(self.voice, &error)),
        }
    }
}
