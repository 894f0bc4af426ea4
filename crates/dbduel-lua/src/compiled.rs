//! Whether LuaJIT may compile scripts.
//!
//! Compiled loops do not check hooks, unless LuaJIT was built to do so (`LUAJIT_ENABLE_CHECKHOOK`, as `dbduel-luajit`
//! builds it), and where the kernel refuses executable memory nothing is compiled at all. Without compiled loops that
//! check hooks the watchdog could not end them, so scripts are then interpreted: bounded as well, and slower. LuaJIT
//! has no function that reports how it was built, so it is tested.

use std::ffi::c_void;
use std::sync::OnceLock;

use mlua::{LightUserData, Lua, LuaOptions, StdLib, ffi};

/// Calls from one loop; far more than LuaJIT needs before it compiles a loop.
const CALLS: u32 = 4096;

/// The call that sets the hook.
const SETS_HOOK: u32 = CALLS / 2;

struct Probe {
    state: *mut ffi::lua_State,
    calls: u32,
}

/// True when loops are compiled and still end for a hook. Tested once.
#[must_use]
pub fn is_interruptible() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    // What cannot even be tried out is not to be relied on.
    *ANSWER.get_or_init(|| probe().unwrap_or(false))
}

/// Runs a loop that sets a hook to end itself, and checks whether it ends before its last iteration.
fn probe() -> mlua::Result<bool> {
    // SAFETY: the only code that runs in the state is the one below, which needs the interface to C.
    let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) };
    let mut probe = Probe {
        state: std::ptr::null_mut(),
        calls: 0,
    };
    // SAFETY: nothing is done with the state, and it is used no longer than `lua` lives.
    unsafe { lua.exec_raw::<()>((), |state| probe.state = state) }?;
    // Both are cast: a loop in which the plain word is passed on is never compiled, and every interpreted loop ends.
    let text = "local call, probe, calls = ...
                local ffi = require('ffi')
                call, probe = ffi.cast('void (*)(void *)', call), ffi.cast('void *', probe)
                for _ = 1, calls do call(probe) end";
    let place = (&raw mut probe).cast::<c_void>();
    let words = (
        LightUserData(called as *mut c_void),
        LightUserData(place),
        CALLS,
    );
    // The hook is an error, if only after the loop.
    let outcome = lua.load(text).set_name("=probe").call::<()>(words);
    // SAFETY: no other code writes it, now that the loop is over.
    let calls = unsafe { (*place.cast::<Probe>()).calls };
    // An interpreted loop ends as well, and says nothing of compiled ones.
    let is_compiled = "return require('jit.util').traceinfo(1) ~= nil";
    let is_compiled = lua.load(is_compiled).set_name("=probe").eval::<bool>()?;
    Ok(is_compiled && outcome.is_err() && calls < CALLS)
}

/// The function that the loop calls, compiled or not.
unsafe extern "C" fn called(probe: *mut Probe) {
    // SAFETY: the loop passes on what it was given, which lives until the loop is over. A hook may be set whatever the state
    // is doing.
    unsafe {
        (*probe).calls += 1;
        if (*probe).calls == SETS_HOOK {
            ffi::lua_sethook((*probe).state, Some(end), ffi::LUA_MASKCOUNT, 1);
        }
    }
}

unsafe extern "C-unwind" fn end(state: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: LuaJIT calls a hook with the state that runs; nothing that must be dropped is alive when the error leaves.
    unsafe {
        ffi::lua_sethook(state, None, 0, 0);
        ffi::lua_pushboolean(state, 1);
        ffi::lua_error(state);
    }
}

/// The finding that scripts are interpreted in this process; `None` if they are not.
#[must_use]
pub fn interpretation() -> Option<&'static str> {
    claim_if(is_interruptible())
}

fn claim_if(compiles: bool) -> Option<&'static str> {
    (!compiles).then_some(
        "LuaJIT cannot compile scripts here, because its compiled loops could not be interrupted, so it interprets them: clients \
         take about 50 % more processor time, and throughput that they limit is lower.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_build_compiles_scripts() {
        assert!(
            is_interruptible(),
            "scripts are only interpreted: LuaJIT was built without LUAJIT_ENABLE_CHECKHOOK, or the kernel refuses memory \
             that can be executed"
        );
    }

    #[test]
    fn interpreted_scripts_are_told() {
        assert_eq!(claim_if(true), None);
        assert!(claim_if(false).unwrap().contains("interprets them"));
    }
}
