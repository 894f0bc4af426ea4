-- How Rust and a script talk: the script asks by yielding, Rust resumes it with the answer.
--
-- Every chunk of the prelude is called with the table of native functions. Whatever waits for a server, for time or for
-- other clients is an `ask`; natives answer at once.

local host = ...
local yield, raw_resume, create = coroutine.yield, coroutine.resume, coroutine.create
local running, can_yield, as_text = coroutine.running, coroutine.isyieldable, tostring
-- What can be asked, by name; nothing else in a state is equal to one of these.
local op = host.op
local is_ours = {}
for _, question in pairs(op) do
   is_ours[question] = true
end

-- A script may have coroutines of its own. What they ask is passed on to whoever resumed them, up to the one that Rust
-- resumes; a plain yield ends there as always.
local function pass(co, ok, question, ...)
   if ok and is_ours[question] then
      return pass(co, raw_resume(co, yield(question, ...)))
   end
   return ok, question, ...
end

function coroutine.resume(co, ...)
   if type(co) ~= "thread" then
      error("bad argument #1 to 'resume' (coroutine expected)", 2)
   end
   return pass(co, raw_resume(co, ...))
end

local function unwrapped(ok, ...)
   if not ok then
      -- Lua puts the place of the call before a text, and passes on everything else as it is.
      error((...), 2)
   end
   return ...
end

function coroutine.wrap(...)
   local f = ...
   if type(f) ~= "function" then
      local given = select("#", ...) == 0 and "no value" or type(f)
      error("bad argument #1 to 'wrap' (function expected, got " .. given .. ")", 2)
   end
   local co = create(f)
   return function(...)
      return unwrapped(pass(co, raw_resume(co, ...)))
   end
end

-- What Rust resumes is the script's main thread, as far as the script knows.
local main
host.yield = yield

function coroutine.running()
   local co = running()
   return co ~= main and co or nil
end

function coroutine.isyieldable()
   return can_yield() and running() ~= main
end

function coroutine.yield(...)
   if running() == main then
      error("attempt to yield across C-call boundary", 2)
   end
   return yield(...)
end

-- The first place in the script itself, for errors that do not name one.
local function place()
   for level = 3, 40 do
      local info = debug.getinfo(level, "Sl")
      if not info then
         return nil
      end
      if info.what ~= "C" and info.source:sub(1, 1) == "@" then
         return info.short_src, info.currentline
      end
   end
end

-- Errors that are tables carry the wish to restart the event, or are the script's own business.
local function describe(err)
   if type(err) == "table" and err.dbduel_trace == nil and err.errcode == sysbench.error.RESTART_EVENT then
      return err
   end
   local file, line = place()
   local text
   if type(err) == "table" and err.sql_errmsg ~= nil then
      text = string.format("SQL error, errno = %s, state = '%s': %s", tostring(err.sql_errno), tostring(err.sql_state),
                           tostring(err.sql_errmsg))
   elseif type(err) == "string" then
      text = err
   elseif type(err) == "userdata" then
      -- An error of a native function.
      text = tostring(err):gsub("\nstack traceback:.*", ""):gsub("^runtime error: ", "")
   else
      text = "(error object is a " .. type(err) .. " value)"
   end
   return { dbduel_trace = debug.traceback("", 2), text = text, file = file, line = line }
end
host.describe = describe

-- Whether an error is about what the server answered, and not about the script.
local function by_server(text)
   return host.sql_failure ~= nil and text:find(host.sql_failure, 1, true) ~= nil
end

-- Memory that ran out is told by Lua as a text, without a look at the calls: then it is at least known what was running.
local function known(err, running)
   if type(err) == "table" then
      return err
   end
   -- What took the memory is garbage by now, and the words below need some.
   collectgarbage()
   local info = debug.getinfo(running, "S")
   return { text = tostring(err), dbduel_trace = ("in function <%s:%d>"):format(info.short_src, info.linedefined),
            file = info.short_src, line = info.linedefined }
end

local function finish(running, ok, ...)
   if ok then
      return op.done, ...
   end
   local err = known((...), running)
   if err.dbduel_trace == nil then
      -- The wish to restart, outside of an event.
      err = { dbduel_trace = "", text = string.format("SQL error, errno = %s, state = '%s': %s", tostring(err.sql_errno),
                                                      tostring(err.sql_state), tostring(err.sql_errmsg)) }
   end
   return op.failed, err.text, err.dbduel_trace, err.file, err.line, by_server(err.text)
end

-- What Rust makes a coroutine of.
function host.guarded(f, ...)
   main = running()
   return finish(f, xpcall(f, describe, ...))
end

-- An argument that must be a text, as the library's functions take it: a number is one too. For functions that scripts call.
local function checked_text(name, count, value)
   local kind = type(value)
   if kind == "number" then
      return as_text(value)
   elseif kind ~= "string" then
      local given = count == 0 and "no value" or kind
      error(("bad argument #1 to '%s' (string expected, got %s)"):format(name, given), 3)
   end
   return value
end

-- Modules and files: read by Rust, which keeps what it read, and run by Lua, so that they may ask as well.
package.loaders[2] = function(name)
   local path, tried = package.searchpath(name, package.path)
   if not path then
      return tried
   end
   local chunk, why = host.compile(path)
   if not chunk then
      error(("error loading module '%s' from file '%s':\n\t%s"):format(name, path, why), 0)
   end
   return chunk
end

-- Stands for a module while it is loaded. No table, because `module` would take that for the module's own.
local loading = newproxy()

local function find_loader(name)
   local tried = ""
   for _, find in ipairs(package.loaders) do
      local loader = find(name)
      if type(loader) == "function" then
         return loader
      elseif type(loader) == "string" then
         tried = tried .. loader
      end
   end
   error(("module '%s' not found:%s"):format(name, tried), 3)
end

function require(...)
   local name, loaded = checked_text("require", select("#", ...), (...)), package.loaded
   if loaded[name] == loading then
      error(("loop or previous error loading module '%s'"):format(name), 2)
   elseif loaded[name] then
      return loaded[name]
   end
   local loader = find_loader(name)
   loaded[name] = loading
   local result = loader(name)
   if result ~= nil then
      loaded[name] = result
   elseif loaded[name] == loading then
      loaded[name] = true
   end
   return loaded[name]
end

-- Without a file it would read standard input, which is not the script's.
function dofile(...)
   local chunk, why = host.compile(checked_text("dofile", select("#", ...), (...)))
   if not chunk then
      error(why, 0)
   end
   return chunk()
end

-- The loop of events, which a script may replace. An error leaves the inner function, which is why it is told whether it
-- goes on with an event that has begun.
local NEXT = op.next

local function events(thread_id, has_begun)
   while has_begun or yield(NEXT) do
      has_begun = false
      if event(thread_id) then
         yield(op.abandon)
         return
      end
   end
end

function thread_run(thread_id)
   local ok, err = xpcall(events, describe, thread_id, false)
   while not ok do
      err = known(err, event)
      local restarts = err.errcode == sysbench.error.RESTART_EVENT and err.dbduel_trace == nil
      if restarts then
         if not yield(op.restart, err.connection and err.connection.id or 0) then
            -- The run is over, and this event would not end.
            yield(op.abandon)
            return
         end
         local hook = sysbench.hooks.before_restart_event
         if hook then
            hook(err)
         end
      elseif not yield(op.event_failed, err.text, err.dbduel_trace, err.file, err.line, by_server(err.text)) then
         error(err.text, 0)
      end
      ok, err = xpcall(events, describe, thread_id, restarts)
   end
end

-- A global function of the script that is the name of a class says so before it does its work.
function host.name_classes(names)
   for number, name in ipairs(names) do
      local work = _G[name]
      if type(work) ~= "function" then
         error("class " .. name .. ": the script has no global function of that name", 0)
      end
      _G[name] = function(...)
         yield(op.class, number)
         return work(...)
      end
   end
end

function host.thread_main(thread_id)
   if thread_init then
      thread_init(thread_id)
   end
   yield(op.ready)
   thread_run(thread_id)
   yield(op.finished)
   if thread_done then
      thread_done(thread_id)
   end
end

function host.call_global(name, ...)
   local f = _G[name]
   if type(f) == "function" then
      return f(...)
   end
end

-- Standard output goes through Rust, because the real one may belong to somebody else.
function print(...)
   local parts = { ... }
   for i = 1, select("#", ...) do
      -- The global one, which the script may have replaced.
      local part = tostring(parts[i])
      if type(part) ~= "string" and type(part) ~= "number" then
         error("'tostring' must return a string to 'print'", 2)
      end
      parts[i] = part
   end
   host.print(table.concat(parts, "\t") .. "\n")
end

local stdout, file = io.stdout, getmetatable(io.stdout).__index
local raw_write, raw_output, raw_file_write = io.write, io.output, file.write

-- What comes before an argument that cannot be written is written, as in C. To be called last, so that the error is at the
-- place of the script's call.
local function write(...)
   local parts = { ... }
   for i = 1, select("#", ...) do
      local kind = type(parts[i])
      if kind ~= "string" and kind ~= "number" then
         host.print(table.concat(parts, "", 1, i - 1))
         error(("bad argument #%d to 'write' (string expected, got %s)"):format(i, kind), 2)
      end
   end
   host.print(table.concat(parts))
   return true
end

function io.write(...)
   if raw_output() ~= stdout then
      return raw_write(...)
   end
   return write(...)
end

function file.write(self, ...)
   if self ~= stdout then
      return raw_file_write(self, ...)
   end
   return write(...)
end

-- A pause must not hold up the other clients of the thread.
local ffi = require("ffi")

ffi.cdef [[
typedef enum { SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT, SB_CNT_BYTES_READ,
               SB_CNT_BYTES_WRITTEN, SB_CNT_MAX } sb_counter_type;
typedef sb_counter_type sb_counter_type_t;
]]

local c = {}

function c.sb_counter_inc(_, kind)
   host.count(tonumber(kind), 1)
end

function c.sb_more_events()
   return yield(op.more)
end

function c.sb_event_start()
   yield(op.start)
end

function c.sb_event_stop()
   yield(op.stop)
end

function c.usleep(microseconds)
   yield(op.sleep, tonumber(microseconds) / 1e6)
   return 0
end

function c.sleep(seconds)
   yield(op.sleep, tonumber(seconds))
   return 0
end

c.SB_CNT_EVENT = ffi.C.SB_CNT_TRX
ffi.C = setmetatable(c, { __index = ffi.C })
host.c = c

-- A child process is waited for without holding up the others; what it prints goes where the script's prints go.
local raw_execute = os.execute
function os.execute(command)
   if command == nil then
      return raw_execute()
   end
   command = checked_text("execute", 1, command)
   local seconds = tonumber(command:match("^%s*sleep%s+([%d.]+)%s*$") or "")
   if seconds then
      yield(op.sleep, seconds)
      return 0
   end
   return yield(op.execute_command, command)
end
