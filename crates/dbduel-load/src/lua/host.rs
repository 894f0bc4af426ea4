//! A loaded script as its owner sees it: options, commands, hooks, load.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use mlua::{IntoLuaMulti, MultiValue, Value};

use super::counts::Meter;
use super::error::ScriptError;
use super::load::{Load, LoadSettings};
use super::options::{self, DeclaredOption, OptionError, OptionValue};
use super::session::Session;
use super::settings::Settings;
use super::state::Context;
use crate::executor::{Executor, Task};

/// The random stream of commands, the same every time, so that data are.
const COMMAND_SEED: u64 = 1;

/// How a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// Once, in the global state.
    Plain,
    /// Once per client, in states of their own.
    Parallel,
}

/// What a script's states have in common, in a form that threads can be given.
#[derive(Clone)]
pub(super) struct Shareable {
    settings: Settings,
    opt: Arc<BTreeMap<String, OptionValue>>,
    globals: Arc<BTreeMap<String, String>>,
    declared: Arc<Vec<DeclaredOption>>,
    sequence: Arc<AtomicU32>,
    connections: Arc<AtomicUsize>,
    driver_used: Arc<AtomicBool>,
}

impl Shareable {
    pub(super) fn context(&self) -> Context {
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

    pub(super) fn seed(&self) -> u64 {
        self.settings.seed
    }
}

/// A script in its global state.
pub struct Host {
    shareable: Shareable,
    declared: Option<Vec<DeclaredOption>>,
    solo: Solo,
}

impl Host {
    /// Runs the script's text once.
    ///
    /// # Errors
    /// What is wrong with the script, with file, line and the calls that led there.
    pub fn load(settings: Settings) -> Result<Self, ScriptError> {
        let shareable = Shareable {
            settings,
            opt: Arc::default(),
            globals: Arc::default(),
            declared: Arc::default(),
            sequence: Arc::default(),
            connections: Arc::default(),
            driver_used: Arc::default(),
        };
        let solo = Solo::new(&shareable, 0)?;
        let declared = solo.session().state().declared_options()?;
        Ok(Host {
            shareable,
            declared,
            solo,
        })
    }

    /// What the script declares, sorted by name; `None` when it declares nothing at all, as scripts for sysbench 0.5.
    #[must_use]
    pub fn declared_options(&self) -> Option<&[DeclaredOption]> {
        self.declared.as_deref()
    }

    /// Gives the script its options, as they were written on the command line: names with `-` or `_`, the last of
    /// several wins, the others have their defaults. A script that declares none gets what is given as global texts.
    ///
    /// # Errors
    /// An option that nobody knows, or a value that it does not take.
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
        let mut opt = self.shareable.settings.options.clone();
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
        self.shareable.opt = Arc::new(opt);
        self.shareable.globals = Arc::new(globals);
        self.shareable.declared = Arc::new(declared.to_vec());
        self.solo
            .set_context(self.shareable.context())
            .map_err(|error| OptionError::Invalid {
                name: "options".to_owned(),
                value: error.to_string(),
                takes: "values that Lua can hold",
            })
    }

    /// How a command runs: one of the script's own, else the function `prepare`, `cleanup` or `help` if it defines it.
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

    /// Runs a command; a parallel one once for each of so many clients, all at the same time. False when a function
    /// returned false.
    ///
    /// # Errors
    /// What went wrong first.
    pub fn run_command(&mut self, name: &str, clients: u32) -> Result<bool, ScriptError> {
        match self.command(name) {
            Some(CommandKind::Plain) => {
                let answer = self.solo.call("run_command", name)?;
                Ok(is_yes(&answer))
            }
            Some(CommandKind::Parallel) => self.run_in_parallel(name, clients),
            None => Err(ScriptError::Lacks {
                function: name.to_owned(),
                script: self.shareable.settings.script.name().to_owned(),
            }),
        }
    }

    /// A thread for each client, since what commands do may take long without a pause.
    fn run_in_parallel(&self, name: &str, clients: u32) -> Result<bool, ScriptError> {
        let shareable = &self.shareable;
        // Lua's values stay on their thread.
        let run = |tid| -> Result<bool, ScriptError> {
            let answer = Solo::new(shareable, tid)?.call("run_command", name)?;
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
                let error = "a thread panicked; this is a fault of dbduel";
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

    /// Calls `init` if the script has it, then starts the clients and initialises them. They wait for
    /// [`Load::begin`].
    ///
    /// # Errors
    /// What went wrong first; also when the script has no function `event`.
    pub fn start(&mut self, load: LoadSettings) -> Result<Load, ScriptError> {
        if !self.defines("event") {
            return Err(ScriptError::Lacks {
                function: "event".to_owned(),
                script: self.shareable.settings.script.name().to_owned(),
            });
        }
        self.solo.call("call_global", "init")?;
        Load::start(&self.shareable, load)
    }

    /// Calls `done`, if the script has it.
    ///
    /// # Errors
    /// What the script raises.
    pub fn done(&mut self) -> Result<(), ScriptError> {
        self.solo.call("call_global", "done").map(drop)
    }

    /// True when `sysbench.hooks` has a function of that name.
    #[must_use]
    pub fn has_hook(&self, name: &str) -> bool {
        self.solo.session().state().has_hook(name)
    }

    /// Calls a hook of reports with a table of these numbers.
    ///
    /// # Errors
    /// What the hook raises.
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
        self.solo.call("call_hook", (name, table)).map(drop)
    }

    /// Another state with the same script and options, as sysbench's reporting thread has one.
    ///
    /// # Errors
    /// What the script raises.
    pub fn reporter(&self) -> Result<Host, ScriptError> {
        Ok(Host {
            shareable: self.shareable.clone(),
            declared: self.declared.clone(),
            solo: Solo::new(&self.shareable, 0)?,
        })
    }

    /// True when the script has asked for a database driver, in any of its states.
    #[must_use]
    pub fn used_driver(&self) -> bool {
        self.shareable.driver_used.load(Ordering::Relaxed)
    }
}

/// The first value is not `false`.
fn is_yes(values: &MultiValue) -> bool {
    !matches!(values.front(), Some(Value::Boolean(false)))
}

/// What a call leaves: the session, and what came of it.
type Called<T> = (Box<Session>, Result<T, ScriptError>);

/// One session on an event loop of its own, driven by whoever calls.
struct Solo {
    executor: Executor<Called<MultiValue>>,
    session: Option<Box<Session>>,
}

impl Solo {
    fn new(shareable: &Shareable, tid: u32) -> Result<Self, ScriptError> {
        let mut executor = Executor::new()?;
        // Connections know the task that waits for them by its token: the only one, now and later.
        let mut token = None;
        let task: Task<Called<MultiValue>> = Box::pin(std::future::pending());
        executor.insert(|own| {
            token = Some(own);
            task
        });
        let Some(token) = token else {
            return Err(std::io::Error::other("an event loop gave no token").into());
        };
        executor.remove(token);
        let context = Rc::new(shareable.context());
        let reactor = Rc::clone(executor.reactor());
        let session = Box::new(Session::new(
            context,
            tid,
            Arc::<Meter>::default(),
            reactor,
            token,
        )?);
        session.seed(COMMAND_SEED.wrapping_add(u64::from(tid)));
        let mut solo = Solo {
            executor,
            session: Some(session),
        };
        solo.run(|mut session| {
            Box::pin(async move {
                let outcome = session.load(&mut None).await;
                (session, outcome.map(|()| MultiValue::new()))
            })
        })?;
        Ok(solo)
    }

    fn session(&self) -> &Session {
        self.session
            .as_ref()
            .expect("a session is away only while it is called")
    }

    fn set_context(&mut self, context: Context) -> Result<(), ScriptError> {
        match &mut self.session {
            Some(session) => session.set_context(Rc::new(context)),
            None => Ok(()),
        }
    }

    /// Calls a function of the prelude.
    fn call(&mut self, name: &str, words: impl IntoLuaMulti) -> Result<MultiValue, ScriptError> {
        let words = words.into_lua_multi(self.session().state().lua())?;
        let name = name.to_owned();
        self.run(|mut session| {
            Box::pin(async move {
                let outcome = session.call_host(&name, words).await;
                (session, outcome)
            })
        })
    }

    fn run(
        &mut self,
        make: impl FnOnce(Box<Session>) -> Task<Called<MultiValue>>,
    ) -> Result<MultiValue, ScriptError> {
        let Some(session) = self.session.take() else {
            return Err(std::io::Error::other("the script is being called already").into());
        };
        let token = self.executor.insert(|_| make(session));
        let mut called = self.executor.poll(token);
        let mut ended = Vec::new();
        while called.is_none() {
            self.executor.turn(&mut ended)?;
            called = ended.pop().map(|(_, called)| called);
        }
        let Some((session, outcome)) = called else {
            return Err(std::io::Error::other("a call ended without an outcome").into());
        };
        self.session = Some(session);
        outcome
    }
}
