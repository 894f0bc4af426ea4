-- Drivers, connections, statements and results.

local host = ...
local ffi = require("ffi")
local ask, op = host.ask, host.op
local CONNECT, DISCONNECT, RECONNECT, QUERY = op.connect, op.disconnect, op.reconnect, op.query
local PREPARE, CLOSE = op.prepare, op.close
local setmetatable, type, error, select, unpack = setmetatable, type, error, select, unpack

local sql = {}
sysbench.sql = sql
sql.type = { NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
             DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12 }
sql.error = { NONE = 0, IGNORABLE = 1, FATAL = 2 }

local function class(name)
   local methods = {}
   return methods, { __index = methods, __tostring = function() return "<" .. name .. ">" end, __metatable = false }
end

local driver, driver_mt = class("sql_driver")
local connection, connection_mt = class("sql_connection")
local statement, statement_mt = class("sql_statement")
local param, param_mt = class("sql_param")
local result, result_mt = class("sql_result")

function sql.driver(name)
   if name == nil or name == "" then
      name = sysbench.opt.db_driver
      if name == nil or name == "" then
         name = "mysql"
      end
   end
   if name ~= "mysql" then
      host.fatal("invalid database driver name: '" .. tostring(name) .. "'")
      error("failed to initialize the DB driver", 2)
   end
   host.driver_used()
   return setmetatable({ sname = name, lname = "MySQL driver" }, driver_mt)
end

function driver:name()
   return self.sname
end

function driver:connect()
   local id, handle = ask(CONNECT)
   if not id then
      error("connection creation failed", 2)
   end
   return setmetatable({ id = id, handle = handle, driver = self, error = 0, sql_errno = 0 }, connection_mt)
end

-- Turns an answer into what the script gets: a result, nothing, or an error.
local function settle(con, query, ok, a, b, c, d)
   if ok == true then
      con.error = 0
      if a then
         return setmetatable({ nfields = a, nrows = b, generation = c, con = con }, result_mt)
      end
      return nil
   end
   if ok == nil then
      -- Wrong use: there is no error of the server to look at.
      con.error, con.sql_errno, con.sql_state, con.sql_errmsg = 2, 0, nil, nil
      host.alert(a)
   else
      con.sql_errno, con.sql_state, con.sql_errmsg = a, b, c
      con.error = d and 1 or 2
   end
   return con:check_error(nil, query)
end

function connection:check_error(rs, query)
   if rs ~= nil or self.error == 0 then
      return rs
   end
   if self.sql_state == nil or self.sql_errmsg == nil then
      error("SQL API error", 2)
   end
   local problem = { connection = self, query = query, sql_errno = self.sql_errno, sql_state = self.sql_state,
                     sql_errmsg = self.sql_errmsg }
   local hook = sysbench.hooks.sql_error_ignorable
   if self.error == 1 or (type(hook) == "function" and hook(problem)) then
      problem.errcode = sysbench.error.RESTART_EVENT
      error(problem, 2)
   end
   host.fatal_sql(query)
   host.sql_failure = ("SQL error, errno = %d, state = '%s': %s"):format(self.sql_errno, self.sql_state, self.sql_errmsg)
   error(host.sql_failure, 2)
end

function connection:disconnect()
   local ok, why = ask(DISCONNECT, self.id)
   if not ok then
      host.alert(why)
   end
   return true
end

function connection:reconnect()
   local ok, why = ask(RECONNECT, self.id)
   if ok == nil then
      host.alert(why)
   end
   return assert(ok ~= false)
end

function connection:query(query)
   local ok, a, b, c, d = ask(QUERY, self.id, query)
   return settle(self, query, ok, a, b, c, d)
end

function connection:query_row(query)
   local rs = self:query(query)
   if rs == nil or rs.nrows == 0 then
      return nil
   end
   return unpack(rs:fetch_row(), 1, rs.nfields)
end

function connection:more_results()
   return host.more_results(self.id)
end

function connection:next_result()
   local nfields, nrows, generation = host.next_result(self.id)
   if not nfields then
      return nil
   end
   return setmetatable({ nfields = nfields, nrows = nrows, generation = generation, con = self }, result_mt)
end

function connection:bulk_insert_init(prefix)
   return assert(host.bulk_init(self.id, prefix), "db_bulk_insert_init() failed")
end

-- A full buffer is sent as one statement; its error is the script's.
local function flush(self)
   local query = host.bulk_take(self.id)
   if query then
      settle(self, query, ask(QUERY, self.id, query))
   end
   return true
end

function connection:bulk_insert_next(tuple)
   local full = host.bulk_next(self.id, tuple)
   if full == nil then
      host.alert("attempt to call bulk_insert_next() before bulk_insert_init()")
      error("db_bulk_insert_next() failed", 2)
   end
   if full then
      flush(self)
      host.bulk_next(self.id, tuple)
   end
   return true
end

function connection:bulk_insert_done()
   flush(self)
   host.bulk_done(self.id)
   return true
end

function connection:prepare(query)
   local ok, a, b, c, d = ask(PREPARE, self.id, query)
   if ok ~= true then
      return settle(self, query, ok, a, b, c, d)
   end
   self.error = 0
   return setmetatable({ id = a, placeholders = b, handle = c, connection = self, binds = {}, count = 0,
                         execute = statement.execute,
                         result = setmetatable({ nfields = 0, nrows = 0, generation = 0, con = self }, result_mt) },
                       statement_mt)
end

-- Numbers travel as BIGINT or DOUBLE, text as VARCHAR.
local INTEGER, DOUBLE, TEXT = sql.type.BIGINT, sql.type.DOUBLE, sql.type.VARCHAR
local sent_as = { INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE, DOUBLE, nil, nil, nil, nil, TEXT, TEXT }

function statement:bind_create(kind, max_len)
   local sent = sent_as[kind]
   if not sent then
      error("Unsupported argument type: " .. tostring(kind), 2)
   end
   if sent == TEXT and type(max_len) ~= "number" then
      error("bind_create() of a text needs its greatest length", 2)
   end
   -- The methods stand in the object, which saves the way over its metatable at each call.
   return setmetatable({ type = sent, max_len = sent == TEXT and max_len or 8, set = param.set,
                         set_rand_str = param.set_rand_str }, param_mt)
end

function param:set(value)
   local kind, given = self.type, type(value)
   if kind == INTEGER then
      if given == "number" or given == "nil" then
         self.value = value
      elseif given == "cdata" then
         -- All 64 bits, which a Lua number would not hold.
         self.value = tostring(value):match("^%-?%d+") or tonumber(value)
      elseif given == "boolean" then
         self.value = value and 1 or 0
      else
         error("cannot bind a " .. given .. " to an integer", 2)
      end
   elseif kind == DOUBLE then
      if given ~= "number" and given ~= "nil" and given ~= "cdata" then
         error("cannot bind a " .. given .. " to a double", 2)
      end
      self.value = given == "cdata" and tonumber(value) or value
   elseif given == "nil" then
      self.value = nil
   else
      if given ~= "string" then
         error("cannot bind a " .. given .. " to a text", 2)
      end
      self.value = #value > self.max_len and value:sub(1, self.max_len) or value
   end
end

function param:set_rand_str(template)
   if self.type ~= TEXT then
      error("Unsupported argument type: " .. self.type, 2)
   end
   if #template > self.max_len then
      template = template:sub(1, self.max_len)
   end
   self.value = sysbench.rand.string(template)
end

function statement:bind_param(...)
   local count = select("#", ...)
   if count < 1 then
      return nil
   end
   if count ~= self.placeholders then
      host.fatal("Wrong number of parameters to mysql_stmt_bind_param")
      return 1
   end
   local binds = { ... }
   for i = 1, count do
      if getmetatable(binds[i]) ~= false or not binds[i].set then
         error(("bad argument #%d to 'bind_param' (a parameter expected, got %s)"):format(i, type(binds[i])), 2)
      end
   end
   self.binds, self.count = binds, count
   return 0
end

local calls, edge = host.calls, host.edge
local give_integer = ffi.cast("void (*)(void *, uint32_t, double)", calls.integer)
local give_double = ffi.cast("void (*)(void *, uint32_t, double)", calls.double)
local give_text = ffi.cast("void (*)(void *, uint32_t, const char *, size_t)", calls.text)
local give_null = ffi.cast("void (*)(void *, uint32_t)", calls.null)
local execute = ffi.cast("int32_t (*)(void *, uint32_t, uint32_t)", calls.execute)
local DONE, ROWS, WORDS = calls.yes, calls.rows, calls.words

local function give(place, bound)
   local value = bound.value
   local kind = type(value)
   if kind == "number" then
      if bound.type == DOUBLE then
         give_double(edge, place, value)
      else
         give_integer(edge, place, value)
      end
   elseif kind == "string" then
      give_text(edge, place, value, #value)
   else
      give_null(edge, place)
   end
end

-- Rows of prepared statements are not kept, so their result is one object for all executions of a statement, as in sysbench.
function statement:execute()
   local binds, count = self.binds, self.count
   -- Most have a single value, and a loop makes compiled code of its own.
   if count == 1 then
      give(1, binds[1])
   else
      for place = 1, count do
         give(place, binds[place])
      end
   end
   local told, con = execute(edge, self.id, count), self.connection
   if told == ROWS then
      con.error = 0
      local rs = self.result
      rs.nrows, rs.generation = edge.rows, edge.generation
      return rs
   elseif told == DONE then
      con.error = 0
      return nil
   elseif told == WORDS then
      return settle(con, "<prepared statement>", ask(op.why_failed))
   end
   host.leave(told)
end

function statement:next_result()
   return self.connection:next_result()
end

function statement:close()
   if not self.closed then
      self.closed = true
      ask(CLOSE, self.id)
   end
   return 0
end

function result:fetch_row()
   local row, why = host.fetch_row(self.con.id, self.generation)
   if not row and why then
      host.alert(why)
   end
   return row
end

function result:free()
   if not host.free_result(self.con.id, self.generation) then
      host.alert("attempt to free an invalid result set")
      error("db_free_results() failed", 2)
   end
   return true
end
