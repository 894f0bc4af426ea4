-- The table `sysbench` without its databases and random numbers.

local host = ...

sysbench.error = { NONE = 0, RESTART_EVENT = 1 }
sysbench.hooks = {}
sysbench.opt = {}

local cmdline = sysbench.cmdline
for code, name in ipairs { "BOOL", "INT", "SIZE", "DOUBLE", "STRING", "LIST", "FILE", "MAX" } do
   cmdline["ARG_" .. name] = code
end
cmdline.ARG_NULL = 0
cmdline.PARALLEL_COMMAND = true

local kind_of = {
   boolean = cmdline.ARG_BOOL,
   number = cmdline.ARG_DOUBLE,
   string = cmdline.ARG_STRING,
   table = cmdline.ARG_LIST,
   ["nil"] = cmdline.ARG_STRING,
}

local function text_of(default, name)
   local kind = type(default)
   if kind == "nil" or kind == "string" then
      return default
   elseif kind == "boolean" then
      return default and "on" or "off"
   elseif kind == "number" then
      return tostring(default)
   elseif kind == "table" then
      return table.concat(default, ",")
   end
   error("the default of option " .. name .. " is a " .. kind, 0)
end

-- sysbench's words, with what is wrong where it has a line of its own library.
local function wrong(what)
   error('[string "sysbench.cmdline.lua"]: ' .. what .. ": wrong table structure in sysbench.cmdline.options", 0)
end

-- What the script declares, as a list sorted by name; nil when it declares nothing.
function host.declared_options()
   local options = cmdline.options
   if options == nil then
      return nil
   end
   if type(options) ~= "table" then
      wrong("it is a " .. type(options))
   end
   local list = {}
   for name, definition in pairs(options) do
      if type(name) ~= "string" or type(definition) ~= "table" or type(definition[1]) ~= "string" then
         wrong("'" .. tostring(name) .. "' is not {description, default, type}")
      end
      local default, kind = definition[2], definition[3]
      if type(default) == "table" and kind ~= nil and kind ~= cmdline.ARG_LIST then
         error("option " .. name .. " has a list as its default and another type", 0)
      end
      kind = kind or kind_of[type(default)]
      if type(kind) ~= "number" or kind < 0 or kind >= cmdline.ARG_MAX then
         error("option " .. name .. " has no type that sysbench knows", 0)
      end
      list[#list + 1] = { name = name, description = definition[1], default = text_of(default, name), kind = kind }
   end
   table.sort(list, function(a, b) return a.name < b.name end)
   return list
end

-- The validator of an option, if it has one: called with the name and the text.
function host.validate_option(name, text)
   local definition = cmdline.options and cmdline.options[name]
   local validate = definition and definition[4]
   if type(validate) ~= "function" then
      return true
   end
   return validate(name, text) and true or false
end

function cmdline.read_cmdline_options()
   return host.declared_options() ~= false
end

function cmdline.print_test_options()
   host.print(host.options_text())
end

function cmdline.command_defined(name)
   local commands = cmdline.commands
   return type(commands) == "table" and type(commands[name]) == "table" and commands[name][1] ~= nil
end

function cmdline.command_parallel(name)
   return cmdline.command_defined(name) and cmdline.commands[name][2] == cmdline.PARALLEL_COMMAND
end

-- Only `false` is a failure.
function cmdline.call_command(name)
   if not cmdline.command_defined(name) then
      return false
   end
   return cmdline.commands[name][1]() ~= false
end

function host.run_command(name)
   if cmdline.command_defined(name) then
      host.running = "sysbench.cmdline.call_command"
      return cmdline.call_command(name)
   end
   host.running = name
   return _G[name]() ~= false
end

-- Global functions that are commands; no other is one.
local command_functions = { prepare = true, cleanup = true, help = true }

function host.command_kind(name)
   if cmdline.command_defined(name) then
      return cmdline.command_parallel(name) and "parallel" or "plain"
   end
   return command_functions[name] and type(_G[name]) == "function" and "plain" or nil
end

function host.call_hook(name, argument)
   host.running = name
   return sysbench.hooks[name](argument)
end
