//! Lua chunks, compiled once per process: the first state that needs one compiles it, the others take its byte code.
//! With many clients, compiling would be most of the cost of creating them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua};

/// Maximum number of chunks kept; more than any script has.
const CHUNKS_MAX: usize = 256;

/// A chunk: text and byte code.
struct Chunk {
    text: Arc<[u8]>,
    code: Arc<[u8]>,
}

/// By the name that errors report.
static CHUNKS: Mutex<BTreeMap<String, Chunk>> = Mutex::new(BTreeMap::new());

fn chunks() -> MutexGuard<'static, BTreeMap<String, Chunk>> {
    CHUNKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text as a function of a state, under this name.
pub(super) fn function(lua: &Lua, name: &str, text: &[u8]) -> mlua::Result<Function> {
    let known = match chunks().get(name) {
        Some(chunk) if *chunk.text == *text => Some(Arc::clone(&chunk.code)),
        _ => None,
    };
    if let Some(code) = known {
        let chunk = lua.load(&*code).set_name(name);
        return chunk.set_mode(ChunkMode::Binary).into_function();
    }
    let chunk = lua.load(text).set_name(name);
    let function = chunk.set_mode(ChunkMode::Text).into_function()?;
    let chunk = Chunk {
        text: text.into(),
        // With the lines, which errors report.
        code: function.dump(false).into(),
    };
    let mut chunks = chunks();
    if chunks.len() < CHUNKS_MAX {
        chunks.insert(name.to_owned(), chunk);
    }
    Ok(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_its_name_and_its_content() {
        let answer = |text: &str| -> i64 {
            // SAFETY: the only byte code is what was compiled here.
            let lua = unsafe { Lua::unsafe_new() };
            let function = function(&lua, "=chunks test", text.as_bytes()).unwrap();
            function.call(()).unwrap()
        };
        assert_eq!((answer("return 1"), answer("return 1")), (1, 1));
        assert_eq!(answer("return 2"), 2);
        assert_eq!(answer("return 1"), 1);
    }
}
