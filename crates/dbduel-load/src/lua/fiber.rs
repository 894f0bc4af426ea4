//! The stack that a script runs on, and how it leaves it to ask for something.
//!
//! A script asks by calling a function that returns with the answer. While it waits, its thread has other clients to drive,
//! so it has a stack of its own, which is left in the middle of that call and entered there again. A yield of Lua would do
//! as well, but at each one compiled code is left for the interpreter. What scripts do for every event, asking for the next
//! one and executing a prepared statement, are functions of C that compiled code calls directly.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;
use std::rc::Rc;

use corosensei::Yielder;
use corosensei::stack::DefaultStack;
use mlua::{LightUserData, Lua, Table, ffi};

use super::answer::Call;

/// Address space of a stack, as much as threads get; memory is taken as the stack grows. A little less than a large page
/// has, so that no stack is put onto one.
const STACK_BYTES: usize = (2 << 20) - (64 << 10);

/// What a function for compiled code returns. The prelude knows the numbers by these names.
#[derive(Clone, Copy)]
pub(super) enum Told {
    No,
    Yes,
    /// There are rows; how many is in [`Edge`].
    Rows,
    /// More than a number can say: it is to be asked for in words.
    Words,
    /// Nobody waits for the script any more.
    Over,
    /// Nobody drives the script, so there is nobody to ask.
    Refused,
}

const TOLD: [(Told, &str); 6] = [
    (Told::No, "no"),
    (Told::Yes, "yes"),
    (Told::Rows, "rows"),
    (Told::Words, "words"),
    (Told::Over, "over"),
    (Told::Refused, "refused"),
];

/// Where a script is off its stack.
#[derive(Clone, Copy)]
pub(super) enum Left {
    /// Before its first step: the function and its words are on this state's stack.
    Before(*mut ffi::lua_State),
    /// It asks in words, which are on this state's stack, as the answer is to be.
    Asks(*mut ffi::lua_State),
    /// It asks for the next event.
    Next,
    /// It executes the statement with this number.
    Execute(usize),
    /// It is back, with this status and so many words.
    Returned(c_int, c_int),
}

/// What is said between a script and whoever drives it: between one stack and the other.
///
/// Compiled code reads the first two fields where they lie.
#[repr(C)]
pub(super) struct Edge {
    /// How many rows a prepared statement had.
    rows: Cell<f64>,
    /// Tells them from those of earlier statements.
    generation: Cell<u32>,
    told: Cell<Told>,
    /// How many words of an answer are on the stack of the state that asked.
    words: Cell<c_int>,
    left: Cell<Left>,
    /// The way out, which lies on the stack that is left.
    way_out: Cell<*const Yielder<(), ()>>,
    is_inside: Cell<bool>,
    /// The values for the next execution.
    call: RefCell<Call>,
}

unsafe extern "C" {
    /// Whether a yield would get out of this state: false when a function of C or the collector waits for what runs in it.
    fn lua_isyieldable(state: *mut ffi::lua_State) -> c_int;
}

impl Edge {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Edge {
            rows: Cell::new(0.0),
            generation: Cell::new(0),
            told: Cell::new(Told::No),
            words: Cell::new(0),
            left: Cell::new(Left::Returned(ffi::LUA_OK, 0)),
            way_out: Cell::new(ptr::null()),
            is_inside: Cell::new(false),
            call: RefCell::default(),
        })
    }

    /// Gives the prelude what it asks with. The edge must outlive the state.
    pub(super) fn offer(&self, lua: &Lua, host: &Table) -> mlua::Result<()> {
        let edge = LightUserData(ptr::from_ref(self).cast_mut().cast());
        let calls = lua.create_table()?;
        calls.set("edge", edge)?;
        for (name, function) in [
            ("integer", integer as *mut c_void),
            ("double", double as *mut c_void),
            ("text", text as *mut c_void),
            ("null", null as *mut c_void),
            ("execute", execute as *mut c_void),
            ("next", next as *mut c_void),
        ] {
            calls.set(name, LightUserData(function))?;
        }
        for (told, name) in TOLD {
            calls.set(name, told as i32)?;
        }
        host.set("calls", calls)?;
        // SAFETY: the edge is on the stack that the function is made on.
        let ask: mlua::Function =
            unsafe { lua.exec_raw(edge, |state| ffi::lua_pushcclosure(state, ask, 1)) }?;
        host.set("ask", ask)
    }

    pub(super) fn left(&self) -> Left {
        self.left.get()
    }

    /// The answer of so many words is on the stack of the state that asked.
    #[inline]
    pub(super) fn answer_words(&self, count: c_int) {
        self.words.set(count);
    }

    /// The answer to a function for compiled code.
    #[inline]
    pub(super) fn answer(&self, told: Told) {
        self.told.set(told);
    }

    /// The answer to an execution with so many rows.
    #[inline]
    pub(super) fn answer_rows(&self, rows: u64, generation: u32) {
        self.rows.set(rows as f64);
        self.generation.set(generation);
        self.told.set(Told::Rows);
    }

    /// Takes the values of the execution.
    #[inline]
    pub(super) fn take_call(&self, call: &mut Call) {
        let mut own = self.call.borrow_mut();
        std::mem::swap(&mut *own, call);
        own.clear();
    }

    /// Leaves the script's stack until it is entered again; false when nobody has entered it.
    #[inline]
    fn leave(&self, left: Left) -> bool {
        if !self.is_inside.get() {
            return false;
        }
        self.left.set(left);
        // SAFETY: whoever entered the stack waits for this, and the way out lies on it as long as the script does.
        unsafe { &*self.way_out.get() }.suspend(());
        true
    }

    /// Leaves by a function for compiled code; what that returns.
    #[inline]
    fn leave_compiled(&self, left: Left) -> i32 {
        match self.leave(left) {
            true => self.told.get() as i32,
            false => Told::Refused as i32,
        }
    }
}

/// The stack of one script.
pub(super) struct Fiber(corosensei::Coroutine<(), (), (), DefaultStack>);

impl Fiber {
    /// A stack on which the function in `state` will run.
    ///
    /// # Safety
    /// The edge and the state outlive it; nobody else runs anything in the state.
    pub(super) unsafe fn new(edge: &Edge, state: *mut ffi::lua_State) -> io::Result<Self> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        edge.left.set(Left::Before(state));
        edge.told.set(Told::No);
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
                    edge.left.set(Left::Returned(status, count));
                }
            },
        )))
    }

    /// Enters the stack and comes back when it is left.
    #[inline]
    pub(super) fn enter(&mut self, edge: &Edge) {
        edge.is_inside.set(true);
        self.0.resume(());
        edge.is_inside.set(false);
    }

    /// Gives up what is on the stack. A script that is in compiled code, where its state cannot be used for anything else,
    /// gets as far as a call of Lua before.
    pub(super) fn give_up(&mut self, edge: &Edge) {
        if let Left::Next | Left::Execute(_) = edge.left() {
            edge.answer(Told::Over);
            self.enter(edge);
        }
        // SAFETY: what is left on the stack are calls of Lua and of this file, which own nothing.
        unsafe { self.0.force_reset() };
    }
}

/// Asks in words, and returns the words of the answer.
unsafe extern "C-unwind" fn ask(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the function was made with the edge, which outlives the state; an error may leave from here, since nothing is
    // alive that must be dropped.
    unsafe {
        let edge = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<Edge>();
        let edge = &*edge;
        // A script that is over comes from wherever it was.
        let may_leave = matches!(edge.told.get(), Told::Over) || lua_isyieldable(state) != 0;
        if !may_leave || !edge.leave(Left::Asks(state)) {
            ffi::lua_pushstring(state, c"attempt to yield across C-call boundary".as_ptr());
            ffi::lua_error(state);
        }
        edge.words.get()
    }
}

/// One value for the next execution, as this and the next three.
///
/// # Safety
/// The edge is that of the state that calls; so for all functions below.
unsafe extern "C" fn integer(edge: *const Edge, value: f64) {
    // SAFETY: as above.
    unsafe { &*edge }.call.borrow_mut().integer(value);
}

unsafe extern "C" fn double(edge: *const Edge, value: f64) {
    // SAFETY: as above.
    unsafe { &*edge }.call.borrow_mut().double(value);
}

/// # Safety
/// The text has so many bytes.
unsafe extern "C" fn text(edge: *const Edge, text: *const u8, length: usize) {
    // SAFETY: as above.
    let (edge, text) = unsafe { (&*edge, std::slice::from_raw_parts(text, length)) };
    edge.call.borrow_mut().text(text);
}

unsafe extern "C" fn null(edge: *const Edge) {
    // SAFETY: as above.
    unsafe { &*edge }.call.borrow_mut().null();
}

/// Executes a prepared statement with the values that were given.
unsafe extern "C" fn execute(edge: *const Edge, statement: u32) -> i32 {
    // SAFETY: as above.
    unsafe { &*edge }.leave_compiled(Left::Execute(statement as usize))
}

/// May there be another event?
unsafe extern "C" fn next(edge: *const Edge) -> i32 {
    // SAFETY: as above.
    unsafe { &*edge }.leave_compiled(Left::Next)
}
