-- Random numbers: the distributions are native, this only names them.

local host = ...
local native = host.random
local c = host.c
local ffi = require("ffi")

sysbench.rand = {
   default = native.default,
   uniform = native.uniform,
   gaussian = native.gaussian,
   special = native.special,
   pareto = native.pareto,
   zipfian = native.zipfian,
   unique = native.unique,
   string = native.string,
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
   ffi.copy(buffer, native.string(template), #template)
end
