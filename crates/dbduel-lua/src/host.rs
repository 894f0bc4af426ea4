//! A loaded script from its owner's view: options, commands, hooks.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use dbduel_client::run::Gate;
use dbduel_driver::cancel::Cancel;
use dbduel_record::seed::named_seed;
use mlua::{MultiValue, Value};

use super::error::ScriptError;
use super::options::{self, DeclaredOption, OptionError, OptionValue};
use super::retry_deadline::{GRACE, RetryDeadline};
use super::settings::Settings;
use super::solo::Solo;
use super::state::Context;

/// How a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// Once, in the global state.
    Plain,
    /// Once per client, each in its own state.
    Parallel,
}

/// State common to all states of a script, in a form that can be sent to threads: its clients are created from it.
#[derive(Clone)]
pub struct ScriptClients {
    settings: Settings,
    opt: Arc<BTreeMap<String, OptionValue>>,
    globals: Arc<BTreeMap<String, String>>,
    declared: Arc<Vec<DeclaredOption>>,
    sequence: Arc<AtomicU32>,
    connections: Arc<AtomicUsize>,
    driver_used: Arc<AtomicBool>,
}

impl ScriptClients {
    /// Cancels the waits of all states of the script.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.settings.cancel.clone()
    }

    /// State shared by the states of its clients.
    pub fn context(&self) -> Context {
        Context {
            settings: self.settings.clone(),
            opt: (*self.opt).clone(),
            globals: (*self.globals).clone(),
            declared: (*self.declared).clone(),
            written: Vec::new(),
            sequence: Arc::clone(&self.sequence),
            connections: Arc::clone(&self.connections),
            driver_used: Arc::clone(&self.driver_used),
        }
    }
}

/// A script in its global state.
pub struct Host {
    clients: ScriptClients,
    declared: Option<Vec<DeclaredOption>>,
    solo: Solo,
    /// The gate of its run, once there is one.
    run: Rc<OnceCell<Arc<Gate>>>,
}

impl Host {
    /// Runs the script's text once.
    ///
    /// # Errors
    /// The error of the script, with file, line and the calls that led to it.
    pub fn load(settings: Settings) -> Result<Self, ScriptError> {
        let clients = ScriptClients {
            settings,
            opt: Arc::default(),
            globals: Arc::default(),
            declared: Arc::default(),
            sequence: Arc::default(),
            connections: Arc::default(),
            driver_used: Arc::default(),
        };
        let run = Rc::default();
        let solo = Solo::new(&clients, 0, until_over(&run))?;
        let declared = solo.session().state().declared_options()?;
        Ok(Host {
            clients,
            declared,
            solo,
            run,
        })
    }

    /// The declared options, sorted by name; `None` when the script declares nothing at all, like scripts for sysbench
    /// 0.5.
    #[must_use]
    pub fn declared_options(&self) -> Option<&[DeclaredOption]> {
        self.declared.as_deref()
    }

    /// Sets the script's options, as written on the command line: names with `-` or `_`, the last of several wins, the
    /// others have their defaults. A script that declares none gets the given ones as global texts.
    ///
    /// # Errors
    /// An unknown option, or an invalid value.
    pub fn set_options(&mut self, given: &[(String, Option<String>)]) -> Result<(), OptionError> {
        let declared = self.declared.as_deref().unwrap_or_default();
        let resolved = options::resolve(declared, given)?;
        let mut globals = BTreeMap::new();
        for (name, text) in &resolved.unknown {
            if self.declared.is_some() {
                return Err(options::unknown(name, declared));
            }
            globals.insert(
                options::key(name),
                text.clone().unwrap_or_else(|| "on".to_owned()),
            );
        }
        let mut opt = self.clients.settings.options.clone();
        for option in resolved.values {
            if let Some(given) = &option.given
                && !self.solo.session().state().accepts(&option.name, given)
            {
                return Err(OptionError::Invalid {
                    name: option.name,
                    value: given.clone(),
                    takes: "what the script allows",
                });
            }
            opt.insert(option.key, option.value);
        }
        self.clients.opt = Arc::new(opt);
        self.clients.globals = Arc::new(globals);
        self.clients.declared = Arc::new(declared.to_vec());
        self.solo
            .set_context(self.clients.context())
            .map_err(|error| OptionError::Invalid {
                name: "options".to_owned(),
                value: error.to_string(),
                takes: "values that Lua can hold",
            })
    }

    /// Kind of a command: one of the script's own, else the function `prepare`, `cleanup` or `help` if it defines it.
    #[must_use]
    pub fn command(&self, name: &str) -> Option<CommandKind> {
        let state = self.solo.session().state();
        let kind = state
            .host_function("command_kind")
            .and_then(|function| Ok(function.call::<Option<String>>(name)?));
        match kind.ok().flatten().as_deref() {
            Some("parallel") => Some(CommandKind::Parallel),
            Some(_) => Some(CommandKind::Plain),
            None => None,
        }
    }

    /// True when the script defines a global function of that name.
    #[must_use]
    pub fn defines(&self, function: &str) -> bool {
        self.solo.session().state().defines(function)
    }

    /// Runs a command; a parallel one once for each of so many clients, all at the same time, or in the global state
    /// for a single one. False when a function returned false.
    ///
    /// # Errors
    /// The first error.
    pub fn run_command(&mut self, name: &str, clients: u32) -> Result<bool, ScriptError> {
        match self.command(name) {
            Some(CommandKind::Parallel) if clients > 1 => self.run_in_parallel(name, clients),
            Some(_) => {
                let answer = self.solo.call("run_command", name)?;
                Ok(is_yes(&answer))
            }
            None => Err(ScriptError::Lacks {
                function: name.to_owned(),
                script: self.clients.settings.script.name().to_owned(),
            }),
        }
    }

    /// Runs a command on one thread per client, since commands may run long without a pause.
    fn run_in_parallel(&self, name: &str, clients: u32) -> Result<bool, ScriptError> {
        let own = &self.clients;
        // Lua's values stay on their thread.
        let run = |tid| -> Result<bool, ScriptError> {
            let answer =
                Solo::new(own, tid, RetryDeadline::endless())?.call("run_command", name)?;
            Ok(is_yes(&answer))
        };
        let outcomes: Vec<Result<bool, ScriptError>> = std::thread::scope(|scope| {
            let start = |tid| {
                let builder = std::thread::Builder::new().name(format!("command-{tid}"));
                builder.spawn_scoped(scope, move || run(tid))
            };
            // All are started before the first is waited for.
            let threads: Vec<_> = (0..clients).map(start).collect();
            let broke = |_| {
                let error = "a thread panicked; this is a bug in dbduel";
                Err(std::io::Error::other(error).into())
            };
            let wait = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
                thread?.join().unwrap_or_else(broke)
            };
            threads.into_iter().map(wait).collect()
        });
        let mut all = true;
        for outcome in outcomes {
            all &= outcome?;
        }
        Ok(all)
    }

    /// Calls `init` if the script has it; returns the source of a run's clients. The numbers of `sysbench.rand.unique`
    /// begin at a position that the seed determines: runs with different seeds draw different numbers, unless one
    /// draws so many that it reaches the other's position.
    ///
    /// # Errors
    /// Errors of the script; also when it has no function `event`.
    pub fn begin(&mut self) -> Result<ScriptClients, ScriptError> {
        let first = named_seed(self.clients.settings.seed, "unique") as u32;
        self.clients.sequence.store(first, Ordering::Relaxed);
        // As in sysbench, `init` comes first: in a module for other scripts it says so.
        self.solo.call("call_global", "init")?;
        if !self.defines("event") {
            return Err(ScriptError::Lacks {
                function: "event".to_owned(),
                script: self.clients.settings.script.name().to_owned(),
            });
        }
        Ok(self.clients.clone())
    }

    /// Calls `done`, if the script has it.
    ///
    /// # Errors
    /// Errors of the script.
    pub fn done(&mut self) -> Result<(), ScriptError> {
        self.solo.call("call_global", "done").map(drop)
    }

    /// Binds later calls to the run of this gate: once that is over, lost connections are not made again.
    pub fn belong_to(&mut self, gate: &Arc<Gate>) {
        // The first run is the only one.
        let _ = self.run.set(Arc::clone(gate));
    }

    /// True when `sysbench.hooks` has a function of that name.
    #[must_use]
    pub fn has_hook(&self, name: &str) -> bool {
        self.solo.session().state().has_hook(name)
    }

    /// Calls a report hook with a table of these numbers.
    ///
    /// # Errors
    /// Errors of the hook; [`ScriptError::Over`] when it lost its connection and the run is over,
    /// [`ScriptError::Cancelled`] when it was cancelled, after which it cannot be called again.
    pub fn call_report_hook(
        &mut self,
        name: &str,
        stat: &[(&str, f64)],
    ) -> Result<(), ScriptError> {
        let table = self
            .solo
            .session()
            .state()
            .lua()
            .create_table_from(stat.iter().copied())?;
        let called = self.solo.call("call_hook", (name, table));
        match (called, self.solo.lost_when_over()) {
            (Err(error @ ScriptError::Cancelled), _) | (Err(error), None) => Err(error),
            (Err(_), Some(why)) => Err(ScriptError::Over { why }),
            (Ok(_), _) => Ok(()),
        }
    }

    /// Another state with the same script and options, like that of sysbench's reporting thread.
    ///
    /// # Errors
    /// Errors of the script.
    pub fn reporter(&self) -> Result<Host, ScriptError> {
        Ok(Host {
            clients: self.clients.clone(),
            declared: self.declared.clone(),
            solo: Solo::new(&self.clients, 0, until_over(&self.run))?,
            run: Rc::clone(&self.run),
        })
    }

    /// True when the script has asked for a database driver, in any of its states.
    #[must_use]
    pub fn used_driver(&self) -> bool {
        self.clients.driver_used.load(Ordering::Relaxed)
    }
}

/// A deadline at the end of the run, as far as it is known at the start.
fn until_over(run: &Rc<OnceCell<Arc<Gate>>>) -> RetryDeadline {
    let run = Rc::clone(run);
    RetryDeadline::until(move || run.get()?.over_at(), GRACE)
}

/// True unless the first value is `false`.
fn is_yes(values: &MultiValue) -> bool {
    !matches!(values.front(), Some(Value::Boolean(false)))
}
