-- How Rust and a script talk: the script asks, and Rust resumes it with the answer.
--
-- Every chunk of the prelude is called with the table of native functions, which answer at once. Whatever waits for a
-- server, for time or for other clients is asked for: in words by `ask`, and what every event needs by functions of C, which
-- compiled code calls directly and which answer with a number.

local host = ...
-- What can be asked, by name; nothing else in a state is equal to one of these.
local op, ask = host.op, host.ask

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
   return op.failed, err.text, err.dbduel_trace, err.file, err.line, by_server(err.text), host.running
end

-- What Rust makes a coroutine of.
function host.guarded(f, ...)
   host.enter_main()
   return finish(f, xpcall(f, describe, ...))
end

local ffi = require("ffi")
local calls = host.calls
local edge, next_event = host.edge, ffi.cast("int32_t (*)(void *)", calls.next)
local NO, YES, REFUSED = calls.no, calls.yes, calls.refused

-- For an answer that is none of those that the caller knows: the script cannot wait where it is, or nobody waits for it any
-- more, and then this does not come back.
function host.leave(told)
   if told == REFUSED then
      error("attempt to yield across C-call boundary", 3)
   end
   ask(op.over)
end

local function goes_on()
   local told = next_event(edge)
   if told ~= YES and told ~= NO then
      host.leave(told)
   end
   return told == YES
end

-- The loop of events, which a script may replace. An error leaves this function, which is why it is told whether it goes on
-- with an event that has begun.
local function events(thread_id, has_begun)
   while has_begun or goes_on() do
      has_begun = false
      if event(thread_id) then
         ask(op.abandon)
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
         if not ask(op.restart, err.connection and err.connection.id or 0) then
            -- The run is over, and this event would not end.
            ask(op.abandon)
            return
         end
         local hook = sysbench.hooks.before_restart_event
         if hook then
            hook(err)
         end
      elseif not ask(op.event_failed, err.text, err.dbduel_trace, err.file, err.line, by_server(err.text), host.running) then
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
         ask(op.class, number)
         return work(...)
      end
   end
end

-- `host.running` names the script's function that was called last, for errors.
function host.thread_main(thread_id)
   if thread_init then
      host.running = "thread_init"
      thread_init(thread_id)
   end
   ask(op.ready)
   host.running = "thread_run"
   thread_run(thread_id)
   ask(op.finished)
   if thread_done then
      host.running = "thread_done"
      thread_done(thread_id)
   end
end

function host.call_global(name, ...)
   local f = _G[name]
   if type(f) == "function" then
      host.running = name
      return f(...)
   end
end

-- What scripts call of sysbench and of the C library over `ffi`: a pause must not hold up the other clients of the thread.

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
   return ask(op.more)
end

function c.sb_event_start()
   ask(op.start)
end

function c.sb_event_stop()
   ask(op.stop)
end

function c.usleep(microseconds)
   ask(op.sleep, tonumber(microseconds) / 1e6)
   return 0
end

function c.sleep(seconds)
   ask(op.sleep, tonumber(seconds))
   return 0
end

c.SB_CNT_EVENT = ffi.C.SB_CNT_TRX
ffi.C = setmetatable(c, { __index = ffi.C })
host.c = c
