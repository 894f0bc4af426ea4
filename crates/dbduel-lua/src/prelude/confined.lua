-- For a script that is only looked at, such as for a plan: nothing is left that acts outside of its state, reads anything but
-- Lua, or waits. What it calls at its top level nevertheless is an error that says so.

local host = ...
local raw_load = load
local UNFIT = " is not available while the script is only looked at for its options (--run-script runs its top level)"

-- A library with these of its functions; asking for another is an error.
local function only(name, own)
   return setmetatable(own, {
      __metatable = false,
      __index = function(_, key)
         error(name .. "." .. tostring(key) .. UNFIT, 2)
      end,
   })
end

local function nothing() end

-- Nobody reads what it prints.
local function stream()
   local own
   own = {
      write = function() return own end, flush = nothing, setvbuf = nothing, close = nothing,
   }
   return only("io", own)
end

local closed = {
   os = only("os", { time = os.time, clock = os.clock, date = os.date, difftime = os.difftime, getenv = os.getenv }),
   io = only("io", { write = nothing, stdout = stream(), stderr = stream() }),
   ffi = only("ffi", { cdef = nothing, C = only("ffi.C", {}) }),
   debug = only("debug", { traceback = debug.traceback }),
   jit = only("jit", { on = nothing, off = nothing, flush = nothing, version = jit.version, arch = jit.arch, os = jit.os }),
}

-- Libraries of C are in the table of what is loaded, or wait in the other to be.
local loaded = package.loaded
for name in pairs(loaded) do
   if name:match("^jit") or closed[name] then
      loaded[name] = nil
   end
end
for name in pairs(package.preload) do
   package.preload[name] = nil
end
for name, library in pairs(closed) do
   loaded[name] = library
   _G[name] = library
end

-- Modules: those of Lua, by a search that opens nothing. The other loaders look for libraries of C.
package.loaders[3], package.loaders[4] = nil, nil
package.loadlib, package.cpath = nil, ""
function package.searchpath(name, path)
   local tried = ""
   for template in tostring(path):gmatch("[^;]+") do
      local file = template:gsub("?", (tostring(name):gsub("%.", "/"):gsub("%%", "%%%%")))
      if host.is_file(file) then
         return file
      end
      tried = tried .. "\n\tno file '" .. file .. "'"
   end
   return nil, tried
end

-- Texts only: byte code can do what no text can.
function load(chunk, name, _, environment)
   if environment == nil then
      return raw_load(chunk, name, "t")
   end
   return raw_load(chunk, name, "t", environment)
end
loadstring = load

function loadfile(path)
   if type(path) ~= "string" then
      error("standard input" .. UNFIT, 2)
   end
   return host.compile(path)
end

local run_file = dofile
function dofile(path)
   if type(path) ~= "string" then
      error("standard input" .. UNFIT, 2)
   end
   return run_file(path)
end

print = nothing
