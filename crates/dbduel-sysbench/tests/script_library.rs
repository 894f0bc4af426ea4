//! What scripts get instead of functions of Lua's own library is as those are: values, errors and their texts.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use dbduel_lua::{Host, Script};

use crate::support::{Printed, Size, alone, load_of, run};
use mlua::{Lua, LuaOptions, StdLib};

/// Bodies of functions whose results are compared. Where an error names the function there is no tail call, of which Lua
/// knows no name.
const CASES: &[&str] = &[
    // Commands.
    "return os.execute()",
    "return os.execute(nil)",
    "return os.execute('exit 3')",
    "return os.execute('kill -9 $$')",
    "return os.execute(5)",
    "return os.execute('true\\0false')",
    "return os.execute('sleep 0.01')",
    "return os.execute('sleep 1.2.3')",
    "return os.execute(('x'):rep(300000))",
    "return (os.execute({}))",
    "return (os.execute(true))",
    // Coroutines.
    "return coroutine.running()",
    "return coroutine.yield(1)",
    "return pcall(coroutine.yield, 1)",
    "return coroutine.status(coroutine.create(function() end)), coroutine.isyieldable()",
    "return coroutine.wrap(function() return type(coroutine.running()) end)()",
    "local co = coroutine.wrap(function(a) local b, c = coroutine.yield(a + 1) return b, c, nil end)
     return co(1), co(2, 3)",
    "return coroutine.wrap(function() error('inner') end)()",
    "return coroutine.wrap(function() error('inner', 0) end)()",
    "local ok, why = pcall(coroutine.wrap(function() error({ code = 7 }) end)) return ok, why.code",
    "local co = coroutine.wrap(function() end) co() return co()",
    "local co = coroutine.create(function() end) coroutine.resume(co) return coroutine.resume(co)",
    "return coroutine.resume(coroutine.create(function(...) return select('#', ...), ... end), nil, 1, nil)",
    "return coroutine.resume(coroutine.create(function() error('inner') end))",
    "return (coroutine.resume(5))",
    "return (coroutine.resume())",
    "return (coroutine.wrap(5))",
    "return (coroutine.wrap())",
    "local f = coroutine.wrap(function() error('inner') end) local x = f() return x",
    "local x = coroutine.yield(1) return x",
    // Output.
    "return print()",
    "local old = tostring
     tostring = function() return {} end
     local ok, why = pcall(print, 1)
     local ok2, why2 = pcall(function() print(1) end)
     tostring = old
     return ok, ok2, why2",
    "return io.write()",
    "return io.write('')",
    "return (io.write(nil))",
    "return (io.write('', {}))",
    "return (io.write('', nil, ''))",
    "return io.stdout:write('')",
    "return (io.stdout:write('', true))",
    "return io.type(io.stdout), io.output() == io.stdout, tostring(io.stdout):sub(1, 4), type(io.stdout)",
    "io.output(DIR .. '/out') local ok = io.write('one', 2) io.stdout:write('') io.close() io.output(io.stdout)
     return ok, io.open(DIR .. '/out'):read('*a')",
    "local f = io.open(DIR .. '/out', 'w') local ok = f:write('three', 4) f:close()
     return ok, io.open(DIR .. '/out'):read('*a'), pcall(f.write, f, 5)",
    "return io.open(DIR .. '/out', 'w'):write(nil)",
    // Modules.
    "return require('fine'), package.loaded.fine",
    "return require('silent'), require('silent')",
    "return require('negative'), package.loaded.negative, require('negative')",
    "return require('old').value, old == package.loaded.old",
    "return require('ring')",
    "return require('ring')",
    "return require('broken')",
    "return require('failing')",
    "return require('failing')",
    "return require('absent')",
    "return require(5)",
    "return (require())",
    "return (require(nil))",
    "return (require({}))",
    "package.preload.given = function(...) return select('#', ...) .. ... end return require('given')",
    "table.insert(package.loaders, 1, function(name) return name == 'own' and function() return 'loaded' end or nil end)
     local value = require('own') table.remove(package.loaders, 1) return value",
    "package.loaded.there = 'before' return require('there')",
    "local m = require('absent') return m",
    "local m = require('ring') return m",
    // Files.
    "return dofile(DIR .. '/three.lua')",
    "return dofile(DIR .. '/absent.lua')",
    "return dofile(DIR .. '/broken.lua')",
    "return dofile(DIR .. '/failing.lua')",
    "return (dofile({}))",
    "local ok, why = pcall(dofile, DIR .. '/absent.lua') return type(why)",
    // Not in UTF-8, and what it looks like is another file.
    "local ok, why = pcall(dofile, DIR .. '/\\255.lua') return ok, type(why)",
];

/// The files that they load.
const FILES: &[(&str, &str)] = &[
    ("fine.lua", "return 'fine ' .. ..."),
    ("silent.lua", "x = 1"),
    ("negative.lua", "times = (times or 0) + 1 return false"),
    ("old.lua", "module('old', package.seeall) value = 9"),
    ("ring.lua", "local m = require('ring') return m"),
    ("broken.lua", "return return"),
    ("failing.lua", "error('no luck')"),
    ("three.lua", "return 1, nil, 3"),
    ("\u{fffd}.lua", "return 'another'"),
    ("5.lua", "return type(...)"),
];

/// Tells the results of all cases, one per line, from the function `event`.
fn script(folder: &Path) -> String {
    let mut text = format!(
        "DIR = '{0}' package.path = DIR .. '/?.lua' package.cpath = DIR .. '/?.so' tell = tell or print\n\
         local function show(...)\n\
         local words = {{}} for i = 1, select('#', ...) do words[i] = tostring((select(i, ...))) end\n\
         tell((table.concat(words, '|'):gsub('\\n', '/'))) end\n\
         function event()\n",
        folder.display()
    );
    for case in CASES {
        text.push_str(&format!(
            "show(pcall(function() {} end))\n",
            case.replace('\n', " ")
        ));
    }
    text.push_str("end\n");
    text
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// What Lua itself tells.
fn plain(text: &str) -> Vec<String> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&told);
    // SAFETY: it is given the script above and nothing else.
    let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) };
    let tell = lua.create_function(move |_, line: String| {
        own.lock().unwrap().push(line);
        Ok(())
    });
    lua.globals().set("tell", tell.unwrap()).unwrap();
    lua.load(text).set_name("@mine.lua").exec().unwrap();
    let event: mlua::Function = lua.globals().get("event").unwrap();
    event.call::<()>(()).unwrap();
    let told = told.lock().unwrap();
    told.clone()
}

/// What it tells as the script of a run.
fn hosted(text: &str) -> Vec<String> {
    let printed = Printed::default();
    let script = Script::from_text("mine.lua", text.as_bytes().to_vec());
    let mut host = Host::load(alone(script, "run", &printed)).unwrap();
    let size = Size {
        clients: 1,
        ..load_of(1)
    };
    run(&mut host, size).unwrap();
    let printed = printed.lock().unwrap();
    let lines = printed.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn functions_of_the_library_are_as_in_lua_itself() {
    let folder = folder();
    let text = script(folder.path());
    let (expected, found) = (plain(&text), hosted(&text));
    assert_eq!((expected.len(), found.len()), (CASES.len(), CASES.len()));
    let all = CASES.iter().zip(expected.iter().zip(&found));
    let different: Vec<_> = all
        .filter(|(_, (expected, found))| expected != found)
        .collect();
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn what_is_written_to_standard_output_is_the_scripts_print() {
    let text = r#"
        function event()
            io.write("one ", 2, "\n")
            io.stdout:write("three\n")
            io.output():write("four\n")
            pcall(io.write, "five\n", nil, "six")
            print(7, nil, "eight")
        end
    "#;
    assert_eq!(
        hosted(text),
        ["one 2", "three", "four", "five", "7\tnil\teight"]
    );
}
