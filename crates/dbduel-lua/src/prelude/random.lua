-- Random numbers: the distributions are native, this only names them.

local host = ...
local native = host.random
local c = host.c
local ffi = require("ffi")

-- A function for each distribution: compiled code knows which one it calls.
local dice = ffi.cast("void *", native.dice)
local draw = ffi.cast("double (*)(void *, uint32_t, double, double)", native.draw)
local fill = ffi.cast("void (*)(void *, char *, size_t)", native.fill)
local DEFAULT, UNIFORM, GAUSSIAN = native.default, native.uniform, native.gaussian
local SPECIAL, PARETO, ZIPFIAN = native.special, native.pareto, native.zipfian

-- Where texts are made, one at a time.
local text, room = ffi.new("char[256]"), 256

local function from_template(template)
   local length = #template
   if length > room then
      text, room = ffi.new("char[?]", length), length
   end
   ffi.copy(text, template, length)
   fill(dice, text, length)
   return ffi.string(text, length)
end

-- Makes a text of a template in its place.
function host.fill(place, length)
   fill(dice, place, length)
end

-- Bounds may be numeric texts, as the options of old scripts are.
sysbench.rand = {
   default = function(low, high) return draw(dice, DEFAULT, tonumber(low), tonumber(high)) end,
   uniform = function(low, high) return draw(dice, UNIFORM, tonumber(low), tonumber(high)) end,
   gaussian = function(low, high) return draw(dice, GAUSSIAN, tonumber(low), tonumber(high)) end,
   special = function(low, high) return draw(dice, SPECIAL, tonumber(low), tonumber(high)) end,
   pareto = function(low, high) return draw(dice, PARETO, tonumber(low), tonumber(high)) end,
   zipfian = function(low, high) return draw(dice, ZIPFIAN, tonumber(low), tonumber(high)) end,
   unique = native.unique,
   string = from_template,
   varstring = native.varstring,
   uniform_double = native.uniform_double,
}

-- 64 bits do not fit into a Lua number.
function sysbench.rand.uniform_uint64()
   local high, low = native.halves()
   return ffi.cast("uint64_t", high) * 4294967296ULL + ffi.cast("uint64_t", low)
end

for _, name in ipairs { "default", "uniform", "gaussian", "special", "pareto", "zipfian", "unique", "uniform_double",
                        "uniform_uint64" } do
   c["sb_rand_" .. name] = sysbench.rand[name]
end
function c.sb_rand_str(template, buffer)
   template = type(template) == "string" and template or ffi.string(template)
   ffi.copy(buffer, template, #template)
   fill(dice, buffer, #template)
end
