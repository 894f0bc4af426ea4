//! The stack that a script runs on, and how it is left for a request.
//!
//! A script makes a request by calling a function that returns with the answer. While it waits, its thread has other
//! clients to drive, so the script has its own stack, which is left in the middle of that call and entered there
//! again. A yield of Lua would also work, but each one leaves compiled code for the interpreter. The requests of every
//! event, asking for the next one and executing a prepared statement, are C functions that compiled code calls
//! directly.
//!
//! A script may make a request at any point, even in functions that Lua's library calls back. Finalisers run by the
//! collector may not: the collector can run in the middle of one of our native functions, which call no other code of
//! a script.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;
use std::rc::Rc;

use corosensei::Yielder;
use corosensei::stack::{DefaultStack, Stack as _};
use mlua::{LightUserData, Lua, Table, ffi};

use super::execution::{DECLARATIONS, Execution, GIVEN, Statement};

/// Address space of a stack, as large as a thread's; memory is used as the stack grows.
const STACK_BYTES: usize = 2 << 20;

/// Results of a function for compiled code. The prelude knows the numbers by these names.
#[derive(Clone, Copy)]
pub(super) enum CallStatus {
    No,
    Yes,
    /// There are rows; their number is in [`FiberContext`].
    Rows,
    /// More than a number can express: must be asked for in words.
    Words,
    /// The script is no longer waited for.
    Over,
    /// There is no caller to ask, or the stack cannot be left here.
    Refused,
}

const STATUS_NAMES: [(CallStatus, &str); 6] = [
    (CallStatus::No, "no"),
    (CallStatus::Yes, "yes"),
    (CallStatus::Rows, "rows"),
    (CallStatus::Words, "words"),
    (CallStatus::Over, "over"),
    (CallStatus::Refused, "refused"),
];

/// Why a script is suspended.
#[derive(Clone, Copy)]
pub(super) enum SuspendReason {
    /// Before its first step: the function and its arguments are on this state's stack.
    Before(*mut ffi::lua_State),
    /// A request in words, which are on this state's stack; the answer goes there too.
    Asks(*mut ffi::lua_State),
    /// It asks for the next event.
    Next,
    /// It executes a prepared statement.
    Execute(Execution),
    /// It has returned, with this status and number of words.
    Returned(c_int, c_int),
}

/// Exchange between a script and its driver, from one stack to the other.
///
/// Lua reads and writes the first four fields in place.
#[repr(C)]
pub(super) struct FiberContext {
    /// Number of rows of a prepared statement.
    rows: Cell<f64>,
    /// Distinguishes them from those of earlier statements.
    generation: Cell<u32>,
    /// Used by the prelude: number of connections with a remembered error.
    _failed_connections: Cell<u32>,
    /// True when the script has stopped the collector; otherwise a stopped collector is running a finaliser.
    is_collector_stopped: Cell<u32>,
    /// The main state, in which no coroutine runs.
    main: Cell<*mut ffi::lua_State>,
    status: Cell<CallStatus>,
    /// Number of answer words on the stack of the state that asked.
    words: Cell<c_int>,
    left: Cell<SuspendReason>,
    /// The yielder, which lies on the suspended stack, and whether control is on that stack.
    way_out: Cell<*const Yielder<(), ()>>,
    is_inside: Cell<bool>,
}

/// LuaJIT's `LUA_GCISRUNNING`, which mlua does not name.
const GC_IS_RUNNING: c_int = 9;

impl FiberContext {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(FiberContext {
            rows: Cell::new(0.0),
            generation: Cell::new(0),
            _failed_connections: Cell::new(0),
            is_collector_stopped: Cell::new(0),
            main: Cell::new(ptr::null_mut()),
            status: Cell::new(CallStatus::No),
            words: Cell::new(0),
            left: Cell::new(SuspendReason::Returned(ffi::LUA_OK, 0)),
            way_out: Cell::new(ptr::null()),
            is_inside: Cell::new(false),
        })
    }

    /// Gives the prelude its request functions. The context must outlive the state.
    pub(super) fn offer(&self, lua: &Lua, host: &Table) -> mlua::Result<()> {
        let edge = LightUserData(ptr::from_ref(self).cast_mut().cast());
        let calls = lua.create_table()?;
        calls.set("edge", edge)?;
        for (name, function) in [
            ("execute", execute as *mut c_void),
            ("next", next as *mut c_void),
        ] {
            calls.set(name, LightUserData(function))?;
        }
        for (status, name) in STATUS_NAMES {
            calls.set(name, status as i32)?;
        }
        let given = lua.create_table()?;
        for (number, name) in GIVEN {
            given.set(name, number)?;
        }
        calls.set("given", given)?;
        calls.set("declarations", DECLARATIONS)?;
        host.set("calls", calls)?;
        // SAFETY: the edge is on the stack that the function is made on.
        let ask: mlua::Function = unsafe {
            lua.exec_raw(edge, |state| {
                self.main.set(state);
                ffi::lua_pushcclosure(state, ask, 1);
            })
        }?;
        host.set("ask", ask)
    }

    pub(super) fn left(&self) -> SuspendReason {
        self.left.get()
    }

    /// Sets that the answer of this many words is on the stack of the state that asked.
    #[inline]
    pub(super) fn answer_words(&self, count: c_int) {
        self.words.set(count);
    }

    /// Sets the answer to a function for compiled code.
    #[inline]
    pub(super) fn answer(&self, status: CallStatus) {
        self.status.set(status);
    }

    /// Sets the answer to an execution with this many rows.
    #[inline]
    pub(super) fn answer_rows(&self, rows: u64, generation: u32) {
        self.rows.set(rows as f64);
        self.generation.set(generation);
        self.status.set(CallStatus::Rows);
    }

    /// True while the collector runs a script's finaliser.
    #[inline]
    fn is_collecting(&self) -> bool {
        // SAFETY: the state lives as long as the script runs in it; this only looks whether the collector stands still.
        let stands = unsafe { ffi::lua_gc(self.main.get(), GC_IS_RUNNING, 0) } == 0;
        stands && self.is_collector_stopped.get() == 0
    }

    /// Leaves the script's stack until it is entered again; false when it has not been entered, or cannot be left
    /// here.
    #[inline]
    fn leave(&self, left: SuspendReason) -> bool {
        if !self.is_inside.get() || self.is_collecting() {
            return false;
        }
        self.left.set(left);
        // SAFETY: the code that entered the stack waits for this, and the way out lies on it as long as the script does.
        unsafe { &*self.way_out.get() }.suspend(());
        true
    }

    /// Leaves by a function for compiled code; returns that function's result.
    #[inline]
    fn leave_compiled(&self, left: SuspendReason) -> i32 {
        match self.leave(left) {
            true => self.status.get() as i32,
            false => CallStatus::Refused as i32,
        }
    }
}

/// The stack of one script.
pub(super) struct Fiber(corosensei::Coroutine<(), (), (), DefaultStack>);

impl Fiber {
    /// A stack on which the function in `state` will run.
    ///
    /// # Errors
    /// When there is no address space for it.
    ///
    /// # Safety
    /// The context and the state outlive it; no other code runs in the state.
    pub(super) unsafe fn new(edge: &FiberContext, state: *mut ffi::lua_State) -> io::Result<Self> {
        let stack = DefaultStack::new(STACK_BYTES).map_err(|error| {
            let text = format!("no address space for the stack of a client's script: {error}");
            io::Error::new(error.kind(), text)
        })?;
        let lowest = stack.limit().get() as *mut c_void;
        // A large page would be taken whole. One that the kernel gives all the same costs memory and nothing else.
        // SAFETY: the range is the stack's own, and the call changes nothing of what is in it.
        unsafe { libc::madvise(lowest, STACK_BYTES, libc::MADV_NOHUGEPAGE) };
        edge.left.set(SuspendReason::Before(state));
        let edge = ptr::from_ref(edge);
        Ok(Fiber(corosensei::Coroutine::with_stack(
            stack,
            move |way_out, ()| {
                // SAFETY: both outlive this, and the function and its words are on the state's stack.
                unsafe {
                    let edge = &*edge;
                    edge.way_out.set(way_out);
                    let mut count = 0;
                    let given = edge.words.get();
                    let status = ffi::lua_resume(state, ptr::null_mut(), given, &raw mut count);
                    edge.left.set(SuspendReason::Returned(status, count));
                }
            },
        )))
    }

    /// Enters the stack and returns when it is left.
    #[inline]
    pub(super) fn enter(&mut self, edge: &FiberContext) {
        edge.is_inside.set(true);
        self.0.resume(());
        edge.is_inside.set(false);
    }

    /// Abandons the calls on the stack. A script in compiled code, where its state cannot be used for anything else,
    /// first runs until its next call of Lua.
    pub(super) fn give_up(&mut self, edge: &FiberContext) {
        while let SuspendReason::Next | SuspendReason::Execute(_) = edge.left() {
            edge.answer(CallStatus::Over);
            self.enter(edge);
        }
        // SAFETY: what is left on the stack are calls of Lua and of this file, which own nothing.
        unsafe { self.0.force_reset() };
    }
}

/// Makes a request in words, and returns the words of the answer.
unsafe extern "C-unwind" fn ask(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the function was made with the edge, which outlives the state; an error may leave from here, since nothing is
    // alive that must be dropped.
    unsafe {
        let edge = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<FiberContext>();
        let edge = &*edge;
        if !edge.leave(SuspendReason::Asks(state)) {
            ffi::lua_pushstring(state, c"attempt to yield across C-call boundary".as_ptr());
            ffi::lua_error(state);
        }
        edge.words.get()
    }
}

/// Executes a prepared statement.
///
/// # Safety
/// The context is that of the calling state, and the statement is one of the prelude's.
unsafe extern "C" fn execute(edge: *const FiberContext, statement: *const Statement) -> i32 {
    // SAFETY: as above; the statement is read before the script gets the outcome.
    unsafe { (&*edge).leave_compiled(SuspendReason::Execute(Execution::new(statement))) }
}

/// Asks for another event.
///
/// # Safety
/// As for [`execute`].
unsafe extern "C" fn next(edge: *const FiberContext) -> i32 {
    // SAFETY: as above.
    unsafe { &*edge }.leave_compiled(SuspendReason::Next)
}
