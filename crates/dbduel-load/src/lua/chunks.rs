//! Texts of Lua, compiled once: the first state that needs one compiles it, the others take its byte code. With many
//! clients, compiling would be most of what it takes to make them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{ChunkMode, Function, Lua};

/// Byte code by the name of its chunk. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunks(Arc<Mutex<BTreeMap<String, Arc<[u8]>>>>);

impl Chunks {
    /// The chunk of that name as a function of a state; `text` is asked for when nobody has compiled it yet.
    pub(super) fn function<E: From<mlua::Error>>(
        &self,
        lua: &Lua,
        name: &str,
        text: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Function, E> {
        let known = self.lock().get(name).cloned();
        if let Some(code) = known {
            let chunk = lua.load(&*code).set_name(name);
            return Ok(chunk.set_mode(ChunkMode::Binary).into_function()?);
        }
        let chunk = lua.load(text()?).set_name(name);
        let function = chunk.set_mode(ChunkMode::Text).into_function()?;
        // With the lines, which errors are told by.
        let code = function.dump(false).into();
        self.lock().insert(name.to_owned(), code);
        Ok(function)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
