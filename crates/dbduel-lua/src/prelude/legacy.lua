-- The names of sysbench 0.5, on top of the newer ones. The one connection is made when it is first needed.

local host = ...

thread_id = sysbench.tid
test = sysbench.cmdline.script_path
db_driver = host.driver_name
mysql_table_engine = mysql_table_engine or "innodb"
myisam_max_rows = myisam_max_rows or 1000000

local rand = sysbench.rand
sb_rand, sb_rand_str, sb_rand_uniform = rand.default, rand.string, rand.uniform
sb_rand_gaussian, sb_rand_special, sb_rand_pareto = rand.gaussian, rand.special, rand.pareto

function sb_rnd()
   local _, low = host.random.halves()
   return low
end

-- Numbers outside the range are thrown away; a small range takes long, so there is an end to it.
function sb_rand_uniq(a, b)
   a, b = tonumber(a or 0), tonumber(b or 4294967295)
   for _ = 1, 2 ^ 33 do
      local number = rand.unique()
      if number >= a and number <= b then
         return number
      end
   end
   error("sb_rand_uniq(): no number of the range is left", 2)
end

local DB = { DB_ERROR_NONE = 0, DB_ERROR_RESTART_TRANSACTION = 1, DB_ERROR_FAILED = 2 }
sysbench.db = DB
local con

function DB.connect()
   if not con then
      con = sysbench.sql.driver():connect()
   end
end

local function connected()
   DB.connect()
   return con
end

function DB.disconnect()
   if con then
      con:disconnect()
      con = nil
   end
end

-- Returns nothing, whatever the statement is.
function DB.query(query)
   connected():query(query)
end

function DB.bulk_insert_init(prefix)
   return connected():bulk_insert_init(prefix)
end

function DB.bulk_insert_next(tuple)
   return connected():bulk_insert_next(tuple)
end

function DB.bulk_insert_done()
   return connected():bulk_insert_done()
end

function DB.prepare(query)
   return { stmt = connected():prepare(query) }
end

-- In 0.5 a parameter is a table whose value is read at each execution.
function DB.bind_param(statement, params)
   local binds = {}
   for i, value in ipairs(params) do
      local kind = type(value)
      if kind == "number" then
         binds[i] = statement.stmt:bind_create(sysbench.sql.type.BIGINT)
      elseif kind == "string" then
         binds[i] = statement.stmt:bind_create(sysbench.sql.type.VARCHAR, 1048576)
      else
         error("Unsupported variable type: " .. kind, 2)
      end
   end
   statement.params, statement.binds = params, binds
   statement.stmt:bind_param(unpack(binds))
end

function DB.bind_result()
   return 0
end

function DB.execute(statement)
   for i, bind in ipairs(statement.binds or {}) do
      bind:set(statement.params[i])
   end
   return statement.stmt:execute()
end

-- Results are kept on this side from the beginning, and given up by the next statement.
function DB.store_results()
end

function DB.free_results(rs)
   if type(rs) == "cdata" and rs ~= nil then
      rs:free()
   end
end

function DB.close(statement)
   return statement.stmt:close()
end

for _, name in ipairs { "connect", "disconnect", "query", "bulk_insert_init", "bulk_insert_next", "bulk_insert_done",
                        "prepare", "bind_param", "bind_result", "execute", "store_results", "free_results", "close" } do
   _G["db_" .. name] = DB[name]
end
DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2
