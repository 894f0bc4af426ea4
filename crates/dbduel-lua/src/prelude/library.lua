-- Functions of Lua's own library whose plain form would hold up the other clients of the thread, lose what they ask, or
-- write where somebody else does. They take, return and raise what those do.

local host = ...
local op, ask = host.op, host.ask
local running, can_yield, as_text, raw_yield = coroutine.running, coroutine.isyieldable, tostring, coroutine.yield

-- What lies between the script and Rust.
local ffi = require("ffi")
ffi.cdef "typedef struct { double rows; uint32_t generation, failed_connections, is_collector_stopped; } dbduel_edge;"
local edge = ffi.cast("dbduel_edge *", host.calls.edge)
host.edge = edge

-- A collector that stands still without having been told so is running a finaliser, which cannot wait for anything.
local collect = collectgarbage
function collectgarbage(option, ...)
   if option == "stop" then
      edge.is_collector_stopped = 1
   elseif option == "restart" then
      edge.is_collector_stopped = 0
   end
   return collect(option, ...)
end

-- What Rust resumes is the script's main thread, as far as the script knows.
local main

function host.enter_main()
   main = running()
end

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
   return raw_yield(...)
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

-- Without a file it runs standard input.
local load_file = loadfile
function dofile(...)
   local chunk, why
   if (...) == nil then
      chunk, why = load_file()
   else
      chunk, why = host.compile(checked_text("dofile", select("#", ...), (...)))
   end
   if not chunk then
      error(why, 0)
   end
   return chunk()
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

-- A child process is waited for without holding up the others; what it prints goes where the script's prints go.
local raw_execute = os.execute
function os.execute(command)
   if command == nil then
      return raw_execute()
   end
   command = checked_text("execute", 1, command)
   local seconds = tonumber(command:match("^%s*sleep%s+([%d.]+)%s*$") or "")
   if seconds then
      ask(op.sleep, seconds)
      return 0
   end
   return ask(op.execute_command, command)
end
