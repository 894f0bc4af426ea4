//! One LuaJIT state: the libraries, the prelude, the limits, and the coroutine that runs in it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use dbduel_client::run::Meter;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::executor::pages;
use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value};

use super::answer::{Answer, Asked};
use super::chunks;
use super::compiled;
use super::coroutine::Coroutine;
use super::error::ScriptError;
use super::fiber::FiberContext;
use super::natives::{self, Shared};
use super::options::{self, DeclaredOption, OptionError, OptionKind, OptionValue};
use super::random::Dice;
use super::settings::{Message, Settings};
use super::watchdog::Watch;

/// The prelude, in the order of its dependencies.
const PRELUDE: [(&str, &str); 7] = [
    ("api", include_str!("prelude/api.lua")),
    ("library", include_str!("prelude/library.lua")),
    ("main", include_str!("prelude/main.lua")),
    ("random", include_str!("prelude/random.lua")),
    ("sql", include_str!("prelude/sql.lua")),
    ("legacy", include_str!("prelude/legacy.lua")),
    ("report", include_str!("prelude/report.lua")),
];

/// Removes functions from a script that is only inspected; runs after all others.
const CONFINED: (&str, &str) = ("confined", include_str!("prelude/confined.lua"));

/// The version of sysbench whose API this is.
const VERSION: &str = "1.0.20";

/// The function that parses a script's declared options, under sysbench's name.
const READ_OPTIONS: &str = "sysbench.cmdline.read_cmdline_options";

/// Number of states from which on gathering them is worthwhile.
const MANY: u32 = 4;

/// States created by all threads since they were last gathered.
static FRESH: AtomicU32 = AtomicU32::new(0);

/// Moves the process's memory onto large pages, if many states were created since the last call. Delays its caller,
/// and touches the memory of all threads: call it when all states exist and no client waits.
pub fn gather_states() {
    if FRESH.swap(0, Ordering::Relaxed) >= MANY {
        pages::gather();
    }
}

/// State common to all states of a script.
pub struct Context {
    pub(super) settings: Settings,
    /// `sysbench.opt`, complete.
    pub(super) opt: BTreeMap<String, OptionValue>,
    /// Options that a script without declared options gets as global texts.
    pub(super) globals: BTreeMap<String, String>,
    /// Options as written, when the script is not loaded yet and their types are unknown.
    pub(super) written: Vec<(String, Option<String>)>,
    /// Options that the script declares; empty until it was loaded once.
    pub(super) declared: Vec<DeclaredOption>,
    /// Sequence of `sysbench.rand.unique`.
    pub(super) sequence: Arc<AtomicU32>,
    /// Counts connections, so that each goes to the next address.
    pub(super) connections: Arc<AtomicUsize>,
    pub(super) driver_used: Arc<AtomicBool>,
}

impl Context {
    /// A context for a script whose options are known to be valid. Its declarations determine their types, so they are
    /// set in every state when it has loaded the script.
    pub fn new(settings: Settings, written: &[(String, Option<String>)]) -> Self {
        Context {
            opt: settings.options.clone(),
            globals: BTreeMap::new(),
            declared: Vec::new(),
            written: written.to_vec(),
            settings,
            sequence: Arc::default(),
            connections: Arc::default(),
            driver_used: Arc::default(),
        }
    }

    pub(super) fn cancel(&self) -> &Cancel {
        &self.settings.cancel
    }

    /// Shows the calls that led to an error.
    pub fn explain(&self, error: &ScriptError) {
        if let Some(trace) = error.trace() {
            self.settings.sink.show(Message::Debug(trace));
        }
    }

    /// Root of the clients' random streams.
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// The context with a sequence shared with others.
    pub fn with_sequence(self, sequence: Arc<AtomicU32>) -> Self {
        Context { sequence, ..self }
    }

    /// The context with the written options converted to the types that the script declares.
    pub(super) fn completed(
        &self,
        declared: Option<Vec<DeclaredOption>>,
    ) -> Result<Self, OptionError> {
        let is_legacy = declared.is_none();
        let declared = declared.unwrap_or_default();
        let resolved = options::resolve(&declared, &self.written)?;
        let mut opt = self.opt.clone();
        opt.extend(
            resolved
                .values
                .into_iter()
                .map(|option| (option.key, option.value)),
        );
        let unknown = resolved.unknown.into_iter().filter(|_| is_legacy);
        let text = |text: Option<String>| text.unwrap_or_else(|| "on".to_owned());
        Ok(Context {
            settings: self.settings.clone(),
            opt,
            globals: unknown
                .map(|(name, value)| (options::key(&name), text(value)))
                .collect(),
            declared,
            written: Vec::new(),
            sequence: Arc::clone(&self.sequence),
            connections: Arc::clone(&self.connections),
            driver_used: Arc::clone(&self.driver_used),
        })
    }
}

/// A Lua state, in which one coroutine runs at a time.
pub(super) struct State {
    lua: Lua,
    host: Table,
    coroutine: Option<Coroutine>,
    edge: Rc<FiberContext>,
    /// A handle to the state, for functions that need one.
    main: *mut mlua::lua_State,
    watch: Watch,
    pub(super) shared: Rc<Shared>,
}

impl State {
    /// A state with the API and without the script. `tid` is the client's number.
    pub(super) fn new(
        context: &Context,
        tid: u32,
        meter: Option<Arc<Meter>>,
    ) -> Result<Self, ScriptError> {
        let settings = &context.settings;
        // SAFETY: scripts get all libraries, debug and ffi among them, because sysbench gives them; a script can break
        // the process as it can there, and is trusted as much as a program that one runs. The prelude needs them too, and
        // takes them away from a script that is only looked at.
        let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) };
        lua.set_memory_limit(settings.limits.memory_bytes)?;
        if !settings.is_compiled || !compiled::is_interruptible() {
            lua.load("require('jit').off()").exec()?;
        }
        // What a state begins with stays, so collecting meanwhile would be in vain.
        lua.gc_stop();
        let mut main = std::ptr::null_mut();
        // SAFETY: nothing is done with the state, and it is used no longer than `lua` lives.
        unsafe { lua.exec_raw::<()>((), |state| main = state) }?;
        let shared = Shared::new(
            Dice::new(&settings.shapes, Arc::clone(&context.sequence)),
            settings.servers.dialect,
            settings.sink.clone(),
            settings.script.clone(),
            Arc::clone(&context.driver_used),
            meter,
        );
        let host = natives::table(&lua, &shared)?;
        let edge = FiberContext::new();
        edge.offer(&lua, &host)?;
        let state = State {
            lua,
            host,
            coroutine: None,
            edge,
            main,
            watch: Watch::new(settings.limits.computing)?,
            shared,
        };
        state.describe_command_line(settings, tid)?;
        let confined = settings.limits.confined.then_some(CONFINED);
        for (name, text) in PRELUDE.into_iter().chain(confined) {
            let name = format!("=dbduel {name}");
            let chunk = chunks::function(&state.lua, &name, text.as_bytes())?;
            chunk.call::<()>(&state.host)?;
        }
        let package: Table = state.lua.globals().get("package")?;
        package.set("path", settings.script.search_path())?;
        state.lua.gc_restart();
        FRESH.fetch_add(1, Ordering::Relaxed);
        Ok(state)
    }

    fn describe_command_line(&self, settings: &Settings, tid: u32) -> mlua::Result<()> {
        let cmdline = self.lua.create_table()?;
        let argv = self.lua.create_table()?;
        for (number, word) in settings.argv.iter().enumerate() {
            argv.set(number, word.as_str())?;
        }
        cmdline.set("argv", argv)?;
        cmdline.set("command", settings.command.as_deref())?;
        cmdline.set("script_path", settings.script.name())?;
        let sysbench = self.lua.create_table()?;
        sysbench.set("cmdline", cmdline)?;
        sysbench.set("tid", tid)?;
        sysbench.set("version", VERSION)?;
        sysbench.set("version_string", format!("sysbench {VERSION}"))?;
        self.lua.globals().set("sysbench", sysbench)
    }

    /// Sets `sysbench.opt` and the globals that stand for options.
    pub(super) fn set_options(&self, context: &Context) -> Result<(), ScriptError> {
        let opt = self.lua.create_table()?;
        for (name, value) in &context.opt {
            let value = match value {
                OptionValue::Bool(on) => Value::Boolean(*on),
                OptionValue::Number(number) => Value::Number(*number),
                OptionValue::Text(text) => Value::String(self.lua.create_string(text)?),
                OptionValue::List(list) => Value::Table(
                    self.lua
                        .create_sequence_from(list.iter().map(String::as_str))?,
                ),
            };
            if name == "threads" {
                self.lua.globals().set("num_threads", &value)?;
            }
            opt.set(name.as_str(), value)?;
        }
        let sysbench: Table = self.lua.globals().get("sysbench")?;
        sysbench.set("opt", opt)?;
        for (name, text) in &context.globals {
            self.lua.globals().set(name.as_str(), text.as_str())?;
        }
        (*self.shared.declared.borrow_mut()).clone_from(&context.declared);
        Ok(())
    }

    /// A function of the prelude.
    pub(super) fn host_function(&self, name: &str) -> Result<Function, ScriptError> {
        Ok(self.host.get(name)?)
    }

    pub(super) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// True when the script defines a global function of that name.
    pub(super) fn defines(&self, function: &str) -> bool {
        let value = self.lua.globals().get::<Value>(function);
        matches!(value, Ok(Value::Function(_)))
    }

    /// True when `sysbench.hooks` has a function of that name.
    pub(super) fn has_hook(&self, name: &str) -> bool {
        let hooks = self
            .lua
            .globals()
            .get::<Table>("sysbench")
            .and_then(|table| table.get::<Table>("hooks"));
        let hook = hooks.and_then(|hooks| hooks.get::<Value>(name));
        matches!(hook, Ok(Value::Function(_)))
    }

    /// True unless the script's own validation rejects the text.
    pub(super) fn accepts(&self, name: &str, text: &str) -> bool {
        let validate = self.host_function("validate_option");
        self.bounded(|| {
            validate.is_ok_and(|validate| validate.call::<bool>((name, text)).unwrap_or(false))
        })
    }

    /// The declared options; `None` when the script declares nothing at all.
    pub(super) fn declared_options(&self) -> Result<Option<Vec<DeclaredOption>>, ScriptError> {
        let declared = self.host_function("declared_options")?.call(());
        let list: Option<Vec<Table>> =
            declared.map_err(|error| ScriptError::in_function(READ_OPTIONS, error))?;
        let read = |table: Table| {
            Ok(DeclaredOption {
                name: table.get("name")?,
                description: table.get("description")?,
                kind: OptionKind::from_code(table.get("kind")?),
                default: table.get("default")?,
            })
        };
        let list = list.map(|list| list.into_iter().map(read).collect::<mlua::Result<Vec<_>>>());
        Ok(list.transpose()?)
    }

    /// Makes the next resumption run `function`. The previous call is abandoned.
    pub(super) fn begin(
        &mut self,
        function: Function,
        words: impl mlua::IntoLuaMulti,
    ) -> Result<Answer, ScriptError> {
        self.give_up();
        let guarded = self.host_function("guarded")?;
        let thread = self.lua.create_thread(guarded)?;
        self.coroutine = Some(Coroutine::new(thread, &self.edge)?);
        let mut words = words.into_lua_multi(&self.lua)?;
        words.push_front(Value::Function(function));
        Ok(Answer::Words(words))
    }

    /// Resumes the script with an answer until its next request.
    #[inline]
    pub(super) fn resume(&self, answer: Answer) -> Result<Asked, ScriptError> {
        let Some(coroutine) = &self.coroutine else {
            return Err(mlua::Error::runtime("nothing runs in this state").into());
        };
        let _computing = self.watch.computing(self.main);
        coroutine.resume(&self.lua, answer)
    }

    /// Abandons the running call. While it waits in compiled code, nothing else may be done in the state.
    pub(super) fn give_up(&mut self) {
        if let Some(coroutine) = self.coroutine.take() {
            self.bounded(|| drop(coroutine));
        }
    }

    /// Runs code that calls functions of the script outside a coroutine, within the limits.
    fn bounded<T>(&self, run: impl FnOnce() -> T) -> T {
        let _computing = self.watch.computing(self.main);
        run()
    }
}

impl Drop for State {
    /// Prints at the end of a state need the state to still exist.
    fn drop(&mut self) {
        self.give_up();
        if let Ok(close) = self.host.get::<Function>("close") {
            // No receiver is left.
            let _ = self.bounded(|| close.call::<()>(()));
        }
    }
}
