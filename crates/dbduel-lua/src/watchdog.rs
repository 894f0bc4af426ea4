//! Ends scripts that compute for too long.
//!
//! LuaJIT can call a hook after so many instructions, but one that is always set slows every instruction down. So a
//! separate thread watches how long the others compute, and only when one is overdue does a signal to it set the hook:
//! `lua_sethook` may be called from a handler on the thread that runs the state, and not from another thread. Only the
//! time that control has been in a state counts.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::{self, Write as _};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use mlua::ffi;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Pause between two checks. A script is ended at most this much too late, plus the instructions below.
const PAUSE: Duration = Duration::from_millis(100);

/// Instructions from the signal to the error: enough for the script's error handler to report its position.
const INSTRUCTIONS: c_int = 1 << 14;

/// Ignored by threads that do not expect it.
const SIGNAL: Signal = Signal::SIGURG;

/// A thread that runs scripts.
struct Post {
    thread: libc::pid_t,
    /// The state that computes; null while none does.
    state: AtomicPtr<ffi::lua_State>,
    /// Counts the entries into a state.
    turn: AtomicU64,
    /// The entry that has lasted too long; 0 for none.
    overdue: AtomicU64,
    /// Longest time that the current state may compute, nanoseconds.
    bound_ns: AtomicU64,
}

/// The watchdog's record of a thread.
struct Seen {
    post: Weak<Post>,
    turn: u64,
    /// Checks at which the same entry continued. Not a time: while the whole process is stopped nothing becomes
    /// overdue.
    looks: u32,
}

/// The watched threads. While it is not empty the watchdog runs.
static POSTS: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

thread_local! {
    /// For the handler and the hook, hence without initialisation and drop.
    static HERE: Cell<*const Post> = const { Cell::new(ptr::null()) };
    static REGISTERED: Registered = const { Registered(Cell::new(None)) };
}

/// Keeps the target of `HERE` until the thread ends.
struct Registered(Cell<Option<Arc<Post>>>);

impl Drop for Registered {
    fn drop(&mut self) {
        HERE.set(ptr::null());
    }
}

/// Limits how long one state computes. It stays on its thread, as the state does.
pub(super) struct Watch {
    post: Arc<Post>,
    bound_ns: u64,
    stays_here: std::marker::PhantomData<*const Post>,
}

/// While it exists, control is in a state.
pub(super) struct Computing<'a>(&'a Post);

impl Watch {
    /// Registers the calling thread.
    pub(super) fn new(bound: Duration) -> io::Result<Self> {
        Ok(Watch {
            post: registered()?,
            bound_ns: u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX),
            stays_here: std::marker::PhantomData,
        })
    }

    /// Control enters a state, which must live until control returns.
    #[inline]
    pub(super) fn computing(&self, state: *mut ffi::lua_State) -> Computing<'_> {
        let post = &*self.post;
        post.bound_ns.store(self.bound_ns, Relaxed);
        // This thread alone writes it, so a sum needs no locked instruction.
        post.turn.store(post.turn.load(Relaxed) + 1, Relaxed);
        post.state.store(state, Relaxed);
        Computing(post)
    }
}

impl Drop for Computing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.state.store(ptr::null_mut(), Relaxed);
    }
}

impl Post {
    fn is_overdue(&self) -> bool {
        self.overdue.load(Relaxed) == self.turn.load(Relaxed)
    }
}

fn registered() -> io::Result<Arc<Post>> {
    REGISTERED.with(|registered| {
        let post = match registered.0.take() {
            Some(post) => post,
            None => register()?,
        };
        registered.0.set(Some(Arc::clone(&post)));
        HERE.set(Arc::as_ptr(&post));
        Ok(post)
    })
}

fn register() -> io::Result<Arc<Post>> {
    let post = Arc::new(Post {
        thread: nix::unistd::gettid().as_raw(),
        state: AtomicPtr::new(ptr::null_mut()),
        turn: AtomicU64::new(0),
        overdue: AtomicU64::new(0),
        bound_ns: AtomicU64::new(u64::MAX),
    });
    let mut posts = POSTS.lock().unwrap_or_else(PoisonError::into_inner);
    if posts.is_empty() {
        let handler = SigHandler::Handler(interrupt);
        let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler only reads atomics and calls what may be called from a handler.
        unsafe { sigaction(SIGNAL, &action) }?;
        std::thread::Builder::new()
            .name("script-watchdog".to_owned())
            .spawn(watch)?;
    }
    posts.push(Seen {
        post: Arc::downgrade(&post),
        turn: 0,
        looks: 0,
    });
    Ok(post)
}

/// Checks until no thread is left.
fn watch() {
    loop {
        std::thread::sleep(PAUSE);
        let mut posts = POSTS.lock().unwrap_or_else(PoisonError::into_inner);
        posts.retain_mut(Seen::look);
        if posts.is_empty() {
            return;
        }
    }
}

impl Seen {
    /// False when the thread is gone.
    fn look(&mut self) -> bool {
        let Some(post) = self.post.upgrade() else {
            return false;
        };
        let turn = post.turn.load(Relaxed);
        if post.state.load(Relaxed).is_null() || turn != self.turn {
            (self.turn, self.looks) = (turn, 0);
            return true;
        }
        self.looks = self.looks.saturating_add(1);
        let lasted = PAUSE * self.looks;
        if lasted.as_nanos() > u128::from(post.bound_ns.load(Relaxed)) {
            post.overdue.store(turn, Relaxed);
            // A thread that ended meanwhile is not there to be signalled, and one that got its number ignores it.
            // SAFETY: numbers go in and a number comes out.
            unsafe {
                libc::syscall(
                    libc::SYS_tgkill,
                    libc::getpid(),
                    post.thread,
                    SIGNAL as c_int,
                )
            };
        }
        true
    }
}

/// The signal handler, on the thread that computes.
extern "C" fn interrupt(_: c_int) {
    // SAFETY: what `HERE` names lives until the thread ends, and the state until control comes back from it, which
    // cannot happen while its thread is in here.
    unsafe {
        let Some(post) = HERE.get().as_ref() else {
            return;
        };
        let state = post.state.load(Relaxed);
        if !state.is_null() && post.is_overdue() {
            ffi::lua_sethook(state, Some(end), ffi::LUA_MASKCOUNT, INSTRUCTIONS);
        }
    }
}

/// The hook: raises an error in the script that computes, repeatedly if the script catches it.
unsafe extern "C-unwind" fn end(state: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: LuaJIT calls a hook with the state that runs, on its thread; see `interrupt` for `HERE`. Nothing that must
    // be dropped is alive when the error leaves this function.
    unsafe {
        let post = HERE.get().as_ref().filter(|post| post.is_overdue());
        let Some(post) = post else {
            // The next turn, of a script that came back at the last moment.
            ffi::lua_sethook(state, None, 0, 0);
            return;
        };
        let mut text = [0; 160];
        let room = text.len();
        let mut rest = &mut text[..];
        // A text that is too long is cut off.
        let _ = write!(
            rest,
            "the script has computed for more than {} s without a request to the server",
            Duration::from_nanos(post.bound_ns.load(Relaxed)).as_secs_f64()
        );
        let length = room - rest.len();
        ffi::lua_pushlstring(state, text.as_ptr().cast(), length);
        ffi::lua_error(state);
    }
}
