-- Drivers, connections, statements and results.

local host = ...
local ffi = require("ffi")
local ask, op = host.ask, host.op
local CONNECT, DISCONNECT, RECONNECT, QUERY = op.connect, op.disconnect, op.reconnect, op.query
local PREPARE, CLOSE = op.prepare, op.close
local setmetatable, type, error, select, unpack = setmetatable, type, error, select, unpack
local getinfo = debug.getinfo
local calls, edge = host.calls, host.edge

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

-- Connections, statements, parameters and results are structures of C, as in sysbench: compiled code reaches their fields and
-- methods without looking anything up, and Rust reads what is to be sent where it lies.
ffi.cdef(calls.declarations)
ffi.cdef "typedef struct { double nrows; uint32_t nfields, generation, connection_id; } dbduel_result;"
local function structure(name, type_name, equal)
   local methods, metatable = class(name)
   return methods, ffi.metatype(type_name, { __index = methods, __tostring = metatable.__tostring, __eq = equal })
end
local statement, new_statement = structure("sql_statement", "dbduel_statement")
local param, new_param = structure("sql_param", "dbduel_param")

-- What a structure needs and cannot hold, for as long as the script has it: of a connection and of a statement a table, of a
-- parameter its text or false.
local kept = setmetatable({}, { __mode = "k" })

local connection, connection_mt = class("sql_connection")
ffi.cdef "typedef struct { uint32_t id, error, sql_errno; } dbduel_connection;"
local new_connection = ffi.metatype("dbduel_connection", {
   __index = function(self, name)
      local method = connection[name]
      if method ~= nil then
         return method
      end
      return kept[self][name]
   end,
   __tostring = connection_mt.__tostring,
})

-- What a statement without a result set returns. In sysbench it is a null pointer: true as a condition, and yet equal to nil.
local no_result
local result, new_result = structure("sql_result", "dbduel_result", function(a, b)
   return rawequal(a, b) or rawequal(a, no_result) and type(b) == "nil" or rawequal(b, no_result) and type(a) == "nil"
end)
no_result = new_result()

-- `ffi.istype` also says yes to the type itself and to a pointer, which keeps nothing.
local function is_param(thing)
   return ffi.istype(new_param, thing) and kept[thing] ~= nil
end

local driver_titles = { mysql = "MySQL driver", pgsql = "PostgreSQL driver" }

function sql.driver(name)
   if name == nil or name == "" then
      name = sysbench.opt.db_driver
      if name == nil or name == "" then
         name = host.driver_name
      end
   end
   if name ~= host.driver_name then
      -- Connections go where the command line says, for one driver.
      local hint = driver_titles[name] and "; give --db-driver=" .. name or ""
      host.fatal("invalid database driver name: '" .. tostring(name) .. "'" .. hint)
      error("failed to initialize the DB driver", 2)
   end
   host.driver_used()
   return setmetatable({ sname = name, lname = driver_titles[name] }, driver_mt)
end

function driver:name()
   return self.sname
end

function driver:connect()
   local id, handle = ask(CONNECT)
   if not id then
      error("connection creation failed", 2)
   end
   local con = new_connection(id)
   kept[con] = { handle = handle, driver = self }
   return con
end

-- A connection remembers its last statement's error. How many do is counted, so that a statement without one only looks at
-- the count. A connection that is collected with its error stays counted, which costs statements a look more.
local function remember(con, kind, errno, state, message)
   if con.error == 0 then
      edge.failed_connections = edge.failed_connections + 1
   end
   con.error, con.sql_errno = kind, errno
   local own = kept[con]
   own.sql_state, own.sql_errmsg = state, message
end

local function forget_error(con)
   if con.error ~= 0 then
      con.error = 0
      edge.failed_connections = edge.failed_connections - 1
   end
end

local function remember_failure(con, ok, a, b, c, d)
   if ok == nil then
      -- Wrong use: there is no error of the server to look at.
      remember(con, 2, 0, nil, nil)
      host.alert(a)
   else
      remember(con, d and 1 or 2, a, b, c)
   end
end

-- Turns an answer into what the script gets: a result or an error.
local function settle(con, query, ok, a, b, c, d)
   if ok == true then
      forget_error(con)
      return a and new_result(b, a, c, con.id) or no_result
   end
   remember_failure(con, ok, a, b, c, d)
   return con:check_error(nil, query)
end

-- Shows an error of the server with `show` unless it is in the list of ignored errors, and asks the script's hook. What the event
-- is begun again with, if one of them wants that.
local function restart_after(con, query, show)
   local problem = { connection = con, query = query, sql_errno = con.sql_errno, sql_state = con.sql_state,
                     sql_errmsg = con.sql_errmsg }
   if con.error ~= 1 then
      show(query)
      local hook = sysbench.hooks.sql_error_ignorable
      if type(hook) ~= "function" or not hook(problem) then
         return nil
      end
   end
   problem.errcode = sysbench.error.RESTART_EVENT
   return problem
end

function connection:check_error(rs, query)
   if rs ~= nil or self.error == 0 then
      return rs
   end
   if self.sql_state == nil or self.sql_errmsg == nil then
      -- The line of the script, also when it was called by way of `pcall`, which has none.
      local caller = getinfo(2, "l")
      error("SQL API error", caller and caller.currentline > 0 and 2 or 3)
   end
   local problem = restart_after(self, query, host.fatal_sql)
   if problem then
      error(problem, 2)
   end
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
   if rs.nrows == 0 then
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
   return new_result(nrows, nfields, generation, self.id)
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
   local ok, id, placeholders, handle, d = ask(PREPARE, self.id, query)
   if ok ~= true then
      remember_failure(self, ok, id, placeholders, handle, d)
      local problem = self.sql_state ~= nil and restart_after(self, query, host.fatal_prepare)
      -- sysbench's words; the server's are shown, and in the connection.
      host.sql_failure = "SQL API error"
      error(problem or host.sql_failure, 2)
   end
   forget_error(self)
   local prepared = new_statement(placeholders, { id = id, connection_id = self.id, placeholders = placeholders })
   kept[prepared] = { handle = handle, connection = self }
   return prepared
end

-- Numbers travel as BIGINT or DOUBLE, text as VARCHAR.
local INTEGER, DOUBLE, TEXT = sql.type.BIGINT, sql.type.DOUBLE, sql.type.VARCHAR
local sent_as = { INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE, DOUBLE, nil, nil, nil, nil, TEXT, TEXT }
local given = calls.given
local NULL, NUMBER, REAL, SIGNED, UNSIGNED, CHARS =
   given.null, given.number, given.double, given.signed, given.unsigned, given.text

function statement:bind_create(kind, max_length)
   local sent = sent_as[kind]
   if not sent then
      error("Unsupported argument type: " .. tostring(kind), 2)
   end
   if sent ~= TEXT then
      max_length = 0
   elseif type(max_length) ~= "number" or not (max_length >= 0) then
      error("bind_create() of a text needs its greatest length", 2)
   end
   local created = new_param { type = sent, given = NULL, max_length = math.min(max_length, 0xffffffff) }
   kept[created] = false
   return created
end

-- Makes room for a text of a parameter; how long it may be. Wherever an error leaves this, nothing points to memory that is
-- not kept.
local function make_room(self, length)
   if length > self.max_length then
      length = self.max_length
   end
   if length > self.room then
      local text = ffi.new("char[?]", length)
      self.given, self.room = NULL, 0
      kept[self] = text
      self.text, self.room = text, length
   end
   return length
end

local function set_text(self, value)
   local length = make_room(self, #value)
   ffi.copy(self.text, value, length)
   self.length, self.given = length, CHARS
end

local function set_wide(self, value)
   if ffi.istype("uint64_t", value) then
      self.unsigned_number, self.given = value, UNSIGNED
   else
      self.signed_number, self.given = value, SIGNED
   end
end

function param:set(value)
   local kind, what = self.type, type(value)
   if kind == INTEGER then
      if what == "number" then
         self.number, self.given = value, NUMBER
      elseif what == "nil" then
         self.given = NULL
      elseif what == "cdata" then
         set_wide(self, value)
      elseif what == "boolean" then
         self.number, self.given = value and 1 or 0, NUMBER
      else
         error("cannot bind a " .. what .. " to an integer", 2)
      end
   elseif what == "nil" then
      self.given = NULL
   elseif kind == DOUBLE then
      if what ~= "number" and what ~= "cdata" then
         error("cannot bind a " .. what .. " to a double", 2)
      end
      self.number, self.given = tonumber(value), REAL
   else
      if what ~= "string" then
         error("cannot bind a " .. what .. " to a text", 2)
      end
      set_text(self, value)
   end
end

function param:set_rand_str(template)
   if self.type ~= TEXT then
      error("Unsupported argument type: " .. self.type, 2)
   end
   local length = make_room(self, #template)
   if length > 0 then
      ffi.copy(self.text, template, length)
      host.fill(self.text, length)
   end
   self.length, self.given = length, CHARS
end

function statement:bind_param(...)
   local count = select("#", ...)
   if count < 1 then
      return nil
   end
   if count ~= self.placeholders then
      host.fatal(host.wrong_number_of_parameters)
      return 1
   end
   local params = { ... }
   for i = 1, count do
      if not is_param(params[i]) then
         error(("bad argument #%d to 'bind_param' (a parameter expected, got %s)"):format(i, type(params[i])), 2)
      end
   end
   -- Until all are there, the statement has none.
   self.bound = 0
   kept[self].params = params
   for i = 1, count do
      self.params[i - 1] = params[i]
   end
   self.bound = count
   return 0
end

local execute = ffi.cast("int32_t (*)(void *, dbduel_statement *)", calls.execute)
local DONE, ROWS, WORDS = calls.yes, calls.rows, calls.words

-- Rows of prepared statements are not kept, as in sysbench.
function statement:execute()
   if not ffi.istype(new_statement, self) then
      error(("bad argument #1 to 'execute' (a statement expected, got %s)"):format(type(self)), 2)
   end
   local told = execute(edge, self)
   if told == WORDS then
      return settle(kept[self].connection, "<prepared statement>", ask(op.why_failed))
   elseif told ~= ROWS and told ~= DONE then
      host.leave(told)
   end
   if edge.failed_connections > 0 then
      forget_error(kept[self].connection)
   end
   return told == ROWS and new_result(edge.rows, 0, edge.generation, self.connection_id) or no_result
end

function statement:next_result()
   return kept[self].connection:next_result()
end

function statement:close()
   local own = kept[self]
   if not own.closed then
      own.closed = true
      ask(CLOSE, self.id)
   end
   return 0
end

function result:fetch_row()
   local row, why = host.fetch_row(self.connection_id, self.generation)
   if not row and why then
      host.alert(why)
   end
   return row
end

function result:free()
   if not host.free_result(self.connection_id, self.generation) then
      host.alert("attempt to free an invalid result set")
      error("db_free_results() failed", 2)
   end
   return true
end
