//! Functions that the prelude calls without a request: random numbers, rows, buffers, counters, messages.

use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dbduel_client::run::{Counts, Meter};
use dbduel_driver::{Dialect, ServerError};
use mlua::{IntoLua, LightUserData, Lua, MultiValue, Table, Value};
use nix::errno::Errno;

use super::answer::OPS;
use super::client_library::{
    LibraryCall, driver_name, failed_lines, not_prepared_lines, wrong_number_of_parameters,
};
use super::error::ScriptError;
use super::options::{DeclaredOption, options_text};
use super::random::{Dice, Which};
use super::rows::Rows;
use super::script::Script;
use super::settings::{Message, Sink};

/// A statement of rows is sent before it grows beyond this, bytes; as large as sysbench's.
const BULK_BYTES: usize = 512 << 10;

/// An object that Lua's collector has freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unused {
    Connection(usize),
    Statement(usize),
}

/// State shared by the natives of one state and the session that drives it.
pub(super) struct Shared {
    pub(super) dice: RefCell<Dice>,
    /// By id of the connection.
    pub(super) rows: RefCell<Vec<Rows>>,
    /// By id of the connection.
    bulks: RefCell<Vec<Option<Bulk>>>,
    pub(super) unused: RefCell<Vec<Unused>>,
    /// `None` when the counts are not used.
    meter: Option<Arc<Meter>>,
    pub(super) sink: Sink,
    pub(super) script: Script,
    pub(super) driver_used: Arc<AtomicBool>,
    /// Dialect of the servers, which decides how errors are described.
    pub(super) dialect: Dialect,
    /// The last server error that the script saw, and the library call that would have returned it in sysbench.
    pub(super) last_error: RefCell<Option<(ServerError, LibraryCall)>>,
    pub(super) declared: RefCell<Vec<DeclaredOption>>,
}

/// Rows being collected for one large INSERT.
struct Bulk {
    prefix: Vec<u8>,
    text: Vec<u8>,
    rows: usize,
}

/// Owned by Lua; when it is collected, the object that it refers to is no longer used.
struct Handle {
    thing: Unused,
    shared: Rc<Shared>,
}

impl mlua::UserData for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.unused.borrow_mut().push(self.thing);
    }
}

pub(super) fn handle(lua: &Lua, shared: &Rc<Shared>, thing: Unused) -> mlua::Result<Value> {
    lua.create_userdata(Handle {
        thing,
        shared: Rc::clone(shared),
    })?
    .into_lua(lua)
}

/// The element at `index`; the list grows as needed.
pub(super) fn at<T: Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

/// The table of natives for the prelude.
pub(super) fn table(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    let op = lua.create_table()?;
    for (question, name) in OPS {
        op.set(name, question.mark())?;
    }
    host.set("op", op)?;
    host.set("random", random(lua, shared)?)?;
    messages(lua, shared, &host)?;
    results(lua, shared, &host)?;
    bulk(lua, shared, &host)?;

    let own = Rc::clone(shared);
    // None, and why, for what cannot be read and what is no Lua.
    let compile = move |lua: &Lua, path: mlua::LuaString| {
        let Ok(path) = path.to_str() else {
            let path = path.to_string_lossy();
            let why = format!("cannot open {path}: the path is not in UTF-8");
            return Ok((None, Some(why)));
        };
        Ok(match own.script.required_function(lua, &path) {
            Ok(function) => (Some(function), None),
            Err(error) => (None, Some(in_the_words_of_lua(&error))),
        })
    };
    host.set("compile", lua.create_function(compile)?)?;
    let is_file = |_: &Lua, path: mlua::LuaString| {
        let path = std::path::PathBuf::from(path.to_string_lossy());
        Ok(path.is_file())
    };
    host.set("is_file", lua.create_function(is_file)?)?;
    let own = Rc::clone(shared);
    let count = move |_: &Lua, (code, count): (u32, u64)| {
        own.count(counted(code, count));
        Ok(())
    };
    host.set("count", lua.create_function(count)?)?;
    let own = Rc::clone(shared);
    let driver_used = move |_: &Lua, ()| {
        own.driver_used.store(true, Ordering::Relaxed);
        Ok(())
    };
    host.set("driver_used", lua.create_function(driver_used)?)?;
    host.set("driver_name", driver_name(shared.dialect))?;
    host.set(
        "wrong_number_of_parameters",
        wrong_number_of_parameters(shared.dialect),
    )?;
    Ok(host)
}

/// Error text of `loadfile`.
fn in_the_words_of_lua(error: &ScriptError) -> String {
    match error {
        ScriptError::Read { path, why } => match why.raw_os_error() {
            Some(code) => format!("cannot open {path}: {}", Errno::from_raw(code).desc()),
            None => format!("cannot open {path}: {why}"),
        },
        error => error.to_string(),
    }
}

/// Counts for a code of sysbench's C interface.
fn counted(code: u32, count: u64) -> Counts {
    let mut counts = Counts::NONE;
    let counter = match code {
        0 => &mut counts.others,
        1 => &mut counts.reads,
        2 => &mut counts.writes,
        3 => &mut counts.events,
        4 => &mut counts.errors,
        5 => &mut counts.reconnects,
        6 => &mut counts.bytes_read,
        7 => &mut counts.bytes_written,
        _ => return counts,
    };
    *counter = count;
    counts
}

fn random(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    // What the state's owner shares with it outlives the state, which is dropped before it.
    let dice = (&raw const shared.dice).cast::<c_void>().cast_mut();
    table.set("dice", LightUserData(dice))?;
    table.set("draw", LightUserData(draw as *mut c_void))?;
    table.set("fill", LightUserData(fill as *mut c_void))?;
    for (number, which) in Which::ALL.iter().enumerate() {
        table.set(which.name(), number)?;
    }
    let own = Rc::clone(shared);
    table.set(
        "unique",
        lua.create_function(move |_, ()| Ok(own.dice.borrow().unique()))?,
    )?;
    let own = Rc::clone(shared);
    table.set(
        "uniform_double",
        lua.create_function(move |_, ()| Ok(own.dice.borrow_mut().uniform_double()))?,
    )?;
    let own = Rc::clone(shared);
    table.set(
        "halves",
        lua.create_function(move |_, ()| Ok(own.dice.borrow_mut().halves()))?,
    )?;
    let own = Rc::clone(shared);
    let varstring = move |lua: &Lua, (min, max): (u32, u32)| {
        let mut text = Vec::new();
        own.dice.borrow_mut().varstring(min, max, &mut text);
        lua.create_string(text)
    };
    table.set("varstring", lua.create_function(varstring)?)?;
    Ok(table)
}

/// Draws from a range. Stock scripts call this and the next function for their statements, over LuaJIT's interface to
/// C, because compiled code calls that directly.
///
/// # Safety
/// `dice` is that of the calling state.
unsafe extern "C" fn draw(dice: *const RefCell<Dice>, which: u32, low: f64, high: f64) -> f64 {
    let which = Which::ALL[which as usize % Which::ALL.len()];
    // SAFETY: as above; the state has one thread, and nothing that is called from here calls it.
    unsafe { &*dice }.borrow_mut().draw(which, low, high) as f64
}

/// Fills in a template of this many bytes, in place.
///
/// # Safety
/// As for [`draw`], and `text` has that many bytes, which no other code uses meanwhile.
unsafe extern "C" fn fill(dice: *const RefCell<Dice>, text: *mut u8, length: usize) {
    // SAFETY: as above.
    let (dice, text) = unsafe { (&*dice, std::slice::from_raw_parts_mut(text, length)) };
    dice.borrow_mut().fill(text);
}

fn messages(lua: &Lua, shared: &Rc<Shared>, host: &Table) -> mlua::Result<()> {
    let own = Rc::clone(shared);
    let print = move |_: &Lua, text: mlua::LuaString| {
        own.sink.show(Message::Print(&text.as_bytes()));
        Ok(())
    };
    host.set("print", lua.create_function(print)?)?;
    let own = Rc::clone(shared);
    let fatal = move |_: &Lua, text: String| {
        own.sink.show(Message::Fatal(&text));
        Ok(())
    };
    host.set("fatal", lua.create_function(fatal)?)?;
    let own = Rc::clone(shared);
    let alert = move |_: &Lua, text: String| {
        own.sink.show(Message::Alert(&text));
        Ok(())
    };
    host.set("alert", lua.create_function(alert)?)?;
    let own = Rc::clone(shared);
    let fatal_sql = move |_: &Lua, query: mlua::LuaString| {
        if let Some((error, call)) = &*own.last_error.borrow() {
            let query = query.to_string_lossy();
            let shown = (query != "<prepared statement>").then_some(query.as_str());
            for line in failed_lines(own.dialect, *call, error, shown) {
                own.sink.show(Message::Fatal(&line));
            }
        }
        Ok(())
    };
    host.set("fatal_sql", lua.create_function(fatal_sql)?)?;
    let own = Rc::clone(shared);
    let fatal_prepare = move |_: &Lua, _query: Value| {
        if let Some((error, LibraryCall::Prepare { needed })) = &*own.last_error.borrow() {
            for line in not_prepared_lines(own.dialect, error, *needed) {
                own.sink.show(Message::Fatal(&line));
            }
        }
        Ok(())
    };
    host.set("fatal_prepare", lua.create_function(fatal_prepare)?)?;
    let own = Rc::clone(shared);
    host.set(
        "options_text",
        lua.create_function(move |_, ()| Ok(options_text(&own.declared.borrow())))?,
    )
}

fn results(lua: &Lua, shared: &Rc<Shared>, host: &Table) -> mlua::Result<()> {
    let own = Rc::clone(shared);
    let fetch_row = move |lua: &Lua, (connection, generation): (usize, u32)| {
        let mut rows = own.rows.borrow_mut();
        let row = lua.create_table()?;
        let mut outcome = Ok(());
        let next = at(&mut rows, connection).next_row(generation, |column, value| {
            if let (Some(bytes), Ok(())) = (value, &outcome) {
                outcome = lua
                    .create_string(bytes)
                    .and_then(|text| row.raw_set(column + 1, text));
            }
        });
        outcome?;
        match next {
            Ok(true) => Ok((Value::Table(row), Value::Nil)),
            Ok(false) => Ok((Value::Nil, Value::Nil)),
            Err(why) => Ok((Value::Nil, why.into_lua(lua)?)),
        }
    };
    host.set("fetch_row", lua.create_function(fetch_row)?)?;
    let own = Rc::clone(shared);
    let free_result = move |_: &Lua, (connection, generation): (usize, u32)| {
        Ok(at(&mut own.rows.borrow_mut(), connection).free(generation))
    };
    host.set("free_result", lua.create_function(free_result)?)?;
    let own = Rc::clone(shared);
    let more_results = move |_: &Lua, connection: usize| {
        Ok(at(&mut own.rows.borrow_mut(), connection).has_more_sets())
    };
    host.set("more_results", lua.create_function(more_results)?)?;
    let own = Rc::clone(shared);
    let next_result = move |_: &Lua, connection: usize| {
        let next = at(&mut own.rows.borrow_mut(), connection).next_set();
        Ok(next.map_or_else(MultiValue::new, |shape| {
            [
                shape.columns as f64,
                shape.rows as f64,
                f64::from(shape.generation),
            ]
            .map(Value::Number)
            .into_iter()
            .collect()
        }))
    };
    host.set("next_result", lua.create_function(next_result)?)
}

fn bulk(lua: &Lua, shared: &Rc<Shared>, host: &Table) -> mlua::Result<()> {
    let own = Rc::clone(shared);
    let bulk_init = move |_: &Lua, (connection, prefix): (usize, mlua::LuaString)| {
        let prefix = prefix.as_bytes().to_vec();
        if prefix.len() >= BULK_BYTES {
            return Ok(false);
        }
        let mut text = Vec::with_capacity(BULK_BYTES);
        text.extend_from_slice(&prefix);
        *at(&mut own.bulks.borrow_mut(), connection) = Some(Bulk {
            prefix,
            text,
            rows: 0,
        });
        Ok(true)
    };
    host.set("bulk_init", lua.create_function(bulk_init)?)?;
    // True: it does not fit, so take the statement and come again. None: there is no beginning.
    let own = Rc::clone(shared);
    let bulk_next = move |_: &Lua, (connection, tuple): (usize, mlua::LuaString)| {
        let mut bulks = own.bulks.borrow_mut();
        let Some(bulk) = at(&mut bulks, connection) else {
            return Ok(None);
        };
        let tuple = tuple.as_bytes();
        if bulk.rows > 0 && bulk.text.len() + tuple.len() + 1 >= BULK_BYTES {
            return Ok(Some(true));
        }
        if bulk.rows > 0 {
            bulk.text.push(b',');
        }
        bulk.text.extend_from_slice(&tuple);
        bulk.rows += 1;
        Ok(Some(false))
    };
    host.set("bulk_next", lua.create_function(bulk_next)?)?;
    let own = Rc::clone(shared);
    let bulk_take = move |lua: &Lua, connection: usize| {
        let mut bulks = own.bulks.borrow_mut();
        let Some(bulk) = at(&mut bulks, connection)
            .as_mut()
            .filter(|bulk| bulk.rows > 0)
        else {
            return Ok(None);
        };
        let statement = lua.create_string(&bulk.text)?;
        bulk.text.clear();
        bulk.text.extend_from_slice(&bulk.prefix);
        bulk.rows = 0;
        Ok(Some(statement))
    };
    host.set("bulk_take", lua.create_function(bulk_take)?)?;
    let own = Rc::clone(shared);
    let bulk_done = move |_: &Lua, connection: usize| {
        *at(&mut own.bulks.borrow_mut(), connection) = None;
        Ok(())
    };
    host.set("bulk_done", lua.create_function(bulk_done)?)
}

impl Shared {
    pub(super) fn new(
        dice: Dice,
        dialect: Dialect,
        sink: Sink,
        script: Script,
        driver_used: Arc<AtomicBool>,
        meter: Option<Arc<Meter>>,
    ) -> Rc<Self> {
        Rc::new(Shared {
            dice: RefCell::new(dice),
            rows: RefCell::default(),
            bulks: RefCell::default(),
            unused: RefCell::default(),
            meter,
            sink,
            script,
            driver_used,
            dialect,
            last_error: RefCell::default(),
            declared: RefCell::default(),
        })
    }

    #[inline]
    pub(super) fn count(&self, counts: Counts) {
        if let Some(meter) = &self.meter {
            meter.add(counts);
        }
    }
}
