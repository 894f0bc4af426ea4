-- What a script may rely on, checked from inside. Run on a real server.

sysbench.cmdline.commands = {
   check = { function() return check() end },
   parallel = { function() return parallel() end, sysbench.cmdline.PARALLEL_COMMAND },
}

local function raises(part, f, ...)
   local ok, err = pcall(f, ...)
   assert(not ok, "no error where one should say: " .. part)
   local text = type(err) == "table" and err.sql_errmsg or tostring(err)
   assert(text:find(part, 1, true), text .. " does not say: " .. part)
   return err
end

function parallel()
   assert(sysbench.tid >= 0 and sysbench.tid < 3 and thread_id == sysbench.tid)
   local con = sysbench.sql.driver():connect()
   assert(con:query_row("SELECT " .. sysbench.tid) == tostring(sysbench.tid))
end

function check()
   local drv = sysbench.sql.driver()
   assert(drv:name() == "mysql" and db_driver == "mysql")
   raises("failed to initialize the DB driver", sysbench.sql.driver, "nosuch")
   local con = drv:connect()
   assert(tostring(con) == "<sql_connection>" and tostring(drv) == "<sql_driver>")

   -- Results
   assert(con:query("CREATE TABLE t (id INT PRIMARY KEY, f DOUBLE, s VARCHAR(20))") == nil)
   con:bulk_insert_init("INSERT INTO t VALUES ")
   for i = 1, 1000 do
      con:bulk_insert_next(("(%d, %d.5, 'row %d')"):format(i, i, i))
   end
   con:bulk_insert_done()
   assert(con:query_row("SELECT COUNT(*) FROM t") == "1000")
   local rs = con:query("SELECT id, NULL, s FROM t ORDER BY id LIMIT 2")
   assert(rs.nrows == 2 and rs.nfields == 3 and tostring(rs) == "<sql_result>")
   local row = rs:fetch_row()
   assert(row[1] == "1" and row[2] == nil and row[3] == "row 1")
   assert(rs:fetch_row()[1] == "2" and rs:fetch_row() == nil)
   rs:free()
   raises("db_free_results() failed", rs.free, rs)
   assert(con:query_row("SELECT id FROM t WHERE id = 0") == nil)
   local a, b, c = con:query_row("SELECT 1, NULL, 3")
   assert(a == "1" and b == nil and c == "3")

   -- Several results at once
   rs = con:query("SELECT 1; SELECT 2, 3")
   assert(rs:fetch_row()[1] == "1" and con:more_results())
   rs = con:next_result()
   assert(rs.nfields == 2 and rs:fetch_row()[2] == "3" and not con:more_results())

   -- Statements
   local t = sysbench.sql.type
   local stmt = con:prepare("INSERT INTO t VALUES (?, ?, ?)")
   local id, f, s = stmt:bind_create(t.INT), stmt:bind_create(t.DOUBLE), stmt:bind_create(t.VARCHAR, 5)
   assert(stmt:bind_param() == nil)
   stmt:bind_param(id, f, s)
   id:set(5000)
   f:set(7)
   s:set("longer than five")
   assert(stmt:execute() == nil)
   id:set(5001.9)
   f:set(nil)
   s:set_rand_str("#@x")
   stmt:execute()
   local id1, f1, s1 = con:query_row("SELECT id, f, s FROM t WHERE id = 5000")
   assert(id1 == "5000" and f1 == "7" and s1 == "longe", tostring(f1) .. s1)
   local f2, s2 = con:query_row("SELECT f, s FROM t WHERE id = 5001")
   assert(f2 == nil and s2:match("^%d%lx$"), s2)
   id:set(-9007199254740993LL)
   raises("Out of range", stmt.execute, stmt)
   raises("cannot bind", id.set, id, "text")
   raises("Unsupported argument type: 9", stmt.bind_create, stmt, t.DATETIME)
   assert(con:prepare("SELECT id FROM t WHERE id < 4"):execute().nrows == 3)
   local many = con:prepare("SELECT " .. ("?, "):rep(19) .. "?")
   local params = {}
   for i = 1, 20 do
      params[i] = many:bind_create(t.BIGINT)
      params[i]:set(i)
   end
   many:bind_param(unpack(params))
   assert(many:execute().nrows == 1)
   assert(con.error == 0 and tostring(stmt) == "<sql_statement>" and tostring(id) == "<sql_param>")
   stmt:close()
   stmt:close()

   -- What only the statement still knows of stays; all 64 bits arrive, and texts that grow.
   con:query("CREATE TABLE wide (n BIGINT UNSIGNED, s VARCHAR(40))")
   local wide = con:prepare("INSERT INTO wide VALUES (?, ?)")
   local number = wide:bind_create(t.BIGINT)
   do
      local text = wide:bind_create(t.CHAR, 30)
      wide:bind_param(number, text)
      for _, value in ipairs { "", "longer", ("x"):rep(50) } do
         text:set(value)
         number:set(18446744073709551615ULL - #value)
         wide:execute()
      end
      text:set("kept")
   end
   collectgarbage()
   collectgarbage()
   number:set(true)
   wide:execute()
   local empty = wide:bind_create(t.CHAR, math.huge)
   wide:bind_param(number, empty)
   number:set(0)
   empty:set_rand_str("")
   wide:execute()
   assert(con:query_row("SELECT s FROM wide WHERE n = 0") == "")
   con:query("DELETE FROM wide WHERE n = 0")
   raises("greatest length", wide.bind_create, wide, t.CHAR, -1)
   raises("greatest length", wide.bind_create, wide, t.CHAR, 0 / 0)
   assert(con:query_row("SELECT GROUP_CONCAT(n, ' ', s ORDER BY n DESC) FROM wide") ==
             "18446744073709551615 ,18446744073709551609 longer,18446744073709551565 " .. ("x"):rep(30) .. ",1 kept")

   -- Errors
   local err = raises("errno = 1062", con.query, con, "INSERT INTO t VALUES (1, 1, 'x')")
   assert(con.error == sysbench.sql.error.FATAL and con.sql_errno == 1062 and con.sql_state == "23000")
   raises("SQL API error", con.prepare, con, "SELECT * FROM nowhere")
   assert(con.sql_errno == 1146 and con.sql_state == "42S02")
   local hooked
   function sysbench.hooks.sql_error_ignorable(problem)
      hooked = problem
      return problem.sql_errno == 1062
   end
   err = raises("Duplicate", con.query, con, "INSERT INTO t VALUES (1, 1, 'x')")
   assert(err.errcode == sysbench.error.RESTART_EVENT and hooked.connection == con)
   assert(hooked.query:find("INSERT") and hooked.sql_state == "23000")
   assert(type(con) == "cdata" and tostring(hooked.connection) == "<sql_connection>" and con.driver == drv)
   sysbench.hooks.sql_error_ignorable = nil

   -- Wrong use
   raises("db_bulk_insert_next() failed", con.bulk_insert_next, con, "(1)")
   con:reconnect()
   assert(con:query_row("SELECT 7") == "7")
   con:disconnect()
   local misused = raises("SQL API error", con.query, con, "SELECT 1")
   assert(misused:find("^api.lua:%d+: "), misused)

   -- Ten connections, and one that is left to the collector
   local cons = {}
   for i = 1, 10 do
      cons[i] = drv:connect()
   end
   for i = 1, 10 do
      assert(cons[i]:query_row("SELECT " .. i) == tostring(i))
   end
   cons = nil
   collectgarbage()
   collectgarbage()
   con = drv:connect()
   con:query("SELECT 1")

   -- Coroutines of the script's own
   local co = coroutine.wrap(function()
      for i = 1, 3 do
         coroutine.yield(con:query_row("SELECT " .. i))
      end
   end)
   assert(co() == "1" and co() == "2" and co() == "3")
   local failing = coroutine.create(function() con:query("nonsense") end)
   local ok, why = coroutine.resume(failing)
   assert(not ok and tostring(why):find("1064"), tostring(why))

   -- ffi as scripts use it
   local ffi = require("ffi")
   ffi.cdef [[ void sb_counter_inc(int, sb_counter_type); typedef uint32_t useconds_t; int usleep(useconds_t useconds); ]]
   ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
   assert(ffi.C.usleep(1000) == 0)
   assert(os.execute("exit 3") ~= 0 and os.execute("true") == 0)

   -- Old names
   db_connect()
   assert(db_query("SELECT 1") == nil)
   local old = db_prepare("SELECT ?, ?")
   local values = { 4, "four" }
   db_bind_param(old, values)
   local old_rs = db_execute(old)
   db_store_results(old_rs)
   assert(old_rs.nrows == 1)
   db_free_results(old_rs)
   db_close(old)
   db_bulk_insert_init("INSERT INTO t (id) VALUES")
   db_bulk_insert_next("(77777)")
   db_bulk_insert_done()
   assert(con:query_row("SELECT s FROM t WHERE id = 77777") == nil)
   db_disconnect()
   for _, draw in ipairs { sb_rand, sb_rand_uniform, sb_rand_gaussian, sb_rand_special, sb_rand_pareto,
                           sysbench.rand.zipfian, sysbench.rand.default } do
      for _ = 1, 100 do
         local n = draw(3, 9)
         assert(n >= 3 and n <= 9 and n == math.floor(n))
      end
   end
   assert(sb_rand_str("##-@@"):match("^%d%d%-%l%l$"))
   assert(#sysbench.rand.varstring(3, 5) >= 3)
   local seen = {}
   for _ = 1, 10000 do
      local n = sysbench.rand.unique()
      assert(not seen[n])
      seen[n] = true
   end
   assert(type(sysbench.rand.uniform_uint64()) == "cdata" and sysbench.rand.uniform_double() < 1 and sb_rnd() >= 0)

   local h = sysbench.histogram.new(1000, 1, 10)
   h:update(5)
   h:update(0.1)
   h:print()
   sysbench.report_csv { time_interval = 1, time_total = 1, threads_running = 2, events = 3, reads = 4, writes = 5,
                         other = 6, latency_pct = 0.007, errors = 8, reconnects = 9 }
   print("all is well")
end
