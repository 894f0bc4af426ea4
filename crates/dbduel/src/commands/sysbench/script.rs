//! Everything that is no built-in test: scripts, run by the Lua host.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use dbduel_load::blocking::Tls;
use dbduel_load::conn::Protocol;
use dbduel_load::lua::{
    self, Cancel, CommandKind, Host, Limits, Message, Script, ScriptError, Settings, Sink,
    options_text,
};

use super::course::{Report, Reports};
use super::general::General;
use super::given::Written;
use super::page::Style;
use super::say::Voice;
use super::server::Servers;
use super::{Job, Stop, no_command, run as runs};

/// The largest script that is read from standard input, bytes.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;

/// Carries out the command of the job with a script; returns the exit code.
///
/// # Errors
/// What is wrong with the options or the script.
pub fn run(name: &str, job: &Job, rest: &[Written]) -> Result<u8, Stop> {
    let script = find(name)?;
    let mut host = Host::load(settings(script, job)?).map_err(|error| told(&error))?;
    host.set_options(rest)
        .map_err(|error| Stop::Usage(error.to_string()))?;
    let Some(command) = job.command.as_deref() else {
        // The script has been run once, and often that is all there is to do.
        return Ok(0);
    };
    let voice = job.general.voice;
    match (host.command(command), command) {
        (Some(kind), _) => {
            if kind == CommandKind::Parallel {
                voice.notice("Initializing worker threads...\n");
            }
            let is_done = host
                .run_command(command, job.general.threads)
                .map_err(|error| told(&error))?;
            Ok(u8::from(!is_done))
        }
        (None, "run") => drive(&mut host, &job.general),
        (None, "help") => match host.declared_options() {
            Some(declared) => {
                let stem = Path::new(name).file_stem().unwrap_or_default();
                let text = options_text(declared);
                voice.notice(&format!(
                    "{} options:\n{}",
                    stem.to_string_lossy(),
                    text.trim_end_matches('\n')
                ));
                voice.notice("");
                Ok(0)
            }
            None => Err(no_command(name, command)),
        },
        (None, other) => Err(no_command(name, other)),
    }
}

fn find(name: &str) -> Result<Script, Stop> {
    if name != "-" {
        return Script::find(name).map_err(|error| match error {
            ScriptError::NotFound { searched, .. } => Stop::Fatal(format!(
                "Cannot find benchmark '{name}': no such built-in test, file or module; modules were looked for in {searched}"
            )),
            other => told(&other),
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
    Ok(Script::from_text("-", text))
}

/// An error with the calls that led to it.
fn told(error: &ScriptError) -> Stop {
    Stop::Fatal(error.told())
}

fn settings(script: Script, job: &Job) -> Result<Settings, Stop> {
    let servers = Servers::read(&job.given, job.general.voice)?;
    let voice = job.general.voice;
    let mut argv = vec!["sysbench".to_owned()];
    argv.extend(job.words.iter().map(|word| {
        let is_password = word.replace('_', "-").starts_with("--mysql-password");
        if is_password {
            "--mysql-password=".to_owned()
        } else {
            word.clone()
        }
    }));
    Ok(Settings {
        script,
        argv,
        command: job.command.clone(),
        options: options(job),
        servers: lua::Servers {
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
        dry_run: servers.is_dry,
        limits: Limits::default(),
        cancel: Cancel::default(),
        sink: Sink::new(move |message| show(voice, message)),
    })
}

/// What scripts see in `sysbench.opt` besides their own options.
fn options(job: &Job) -> std::collections::BTreeMap<String, lua::OptionValue> {
    let mut options = job.given.values().clone();
    // Scripts print what they like, and the password is none of it.
    options.remove("mysql_password");
    let number = |value: u64| lua::OptionValue::Number(value as f64);
    let limits = &job.general.limits;
    // Old names count as the new ones.
    options.insert("threads".to_owned(), number(u64::from(job.general.threads)));
    options.insert("events".to_owned(), number(limits.events.unwrap_or(0)));
    let time = limits.time.unwrap_or_default().as_secs();
    options.insert("time".to_owned(), number(time));
    options
}

fn show(voice: Voice, message: Message<'_>) {
    match message {
        Message::Print(bytes) => {
            // A run goes on when nobody reads about it.
            let mut output = io::stdout().lock();
            let _ = output.write_all(bytes).and_then(|()| output.flush());
        }
        Message::Fatal(text) => voice.fatal(text),
        Message::Alert(text) => voice.alert(text),
    }
}

fn drive(host: &mut Host, general: &General) -> Result<u8, Stop> {
    runs::announce(general);
    general.voice.notice("Initializing worker threads...\n");
    let clients = host.begin().map_err(|error| told(&error))?;
    let mut reports = Hooks {
        host,
        reporter: None,
    };
    let code = runs::script(general, clients, &mut reports)?;
    if code == 0 {
        reports.host.done().map_err(|error| told(&error))?;
    }
    Ok(code)
}

/// The hooks of a script that print reports.
struct Hooks<'a> {
    host: &'a mut Host,
    /// The state that intermediate reports are printed by.
    reporter: Option<Host>,
}

impl Reports for Hooks<'_> {
    fn style(&self) -> Style {
        match self.host.used_driver() {
            true => Style::Sql,
            false => Style::Events,
        }
    }

    fn report(&mut self, kind: Report, stat: &[(&str, f64)]) -> Result<bool, Stop> {
        let hook = match kind {
            Report::Intermediate => "report_intermediate",
            Report::Checkpoint | Report::Final => "report_cumulative",
        };
        if !self.host.has_hook(hook) {
            return Ok(false);
        }
        let outcome = match kind {
            Report::Final => self.host.call_report_hook(hook, stat),
            Report::Intermediate | Report::Checkpoint => {
                let reporter = match &mut self.reporter {
                    Some(reporter) => reporter,
                    empty => empty.insert(self.host.reporter().map_err(|error| told(&error))?),
                };
                reporter.call_report_hook(hook, stat)
            }
        };
        outcome.map_err(|error| told(&error))?;
        Ok(true)
    }
}
