-- Point selects with a rare long SELECT: one event in `rare_every` sleeps, or is a GROUP BY report whose temporary table has a
-- row for each row of the table. Every client begins at a random place of its cycle, so that the rare ones do not coincide.

sysbench.cmdline.options = {
   table_size = {"Rows of the table", 100000},
   rare_every = {"Events of a client, of which one is the rare SELECT", 20000},
   rare = {"The rare SELECT: sleep or group", "group"},
   sleep_min = {"Shortest sleep, seconds", 0.3},
   sleep_max = {"Longest sleep, seconds", 2.0}
}

local function text(id)
   return string.format("%010d-%s", id, string.rep("x", 100))
end

function prepare()
   local connection = sysbench.sql.driver():connect()
   connection:query([[CREATE TABLE rare_select (
      id INT NOT NULL PRIMARY KEY,
      k INT NOT NULL,
      c CHAR(120) CHARACTER SET latin1 NOT NULL
   ) ENGINE = InnoDB]])
   connection:bulk_insert_init("INSERT INTO rare_select (id, k, c) VALUES")
   for id = 1, sysbench.opt.table_size do
      connection:bulk_insert_next(string.format("(%d, %d, '%s')", id, id * 7 % sysbench.opt.table_size, text(id)))
   end
   connection:bulk_insert_done()
   connection:disconnect()
end

function cleanup()
   local connection = sysbench.sql.driver():connect()
   connection:query("DROP TABLE IF EXISTS rare_select")
   connection:disconnect()
end

function thread_init()
   connection = sysbench.sql.driver():connect()
   point = connection:prepare("SELECT c FROM rare_select WHERE id = ?")
   id = point:bind_create(sysbench.sql.type.INT)
   point:bind_param(id)
   until_rare = sysbench.rand.uniform(1, sysbench.opt.rare_every)
end

function thread_done()
   point:close()
   connection:disconnect()
end

local function rare_select()
   if sysbench.opt.rare == "sleep" then
      local share = sysbench.rand.uniform_double()
      local seconds = sysbench.opt.sleep_min + share * (sysbench.opt.sleep_max - sysbench.opt.sleep_min)
      connection:query(string.format("SELECT SLEEP(%.3f)", seconds))
   else
      connection:query("SELECT MAX(rows_of_c) FROM (SELECT c, COUNT(*) AS rows_of_c FROM rare_select GROUP BY c) AS report")
   end
end

function event()
   until_rare = until_rare - 1
   if until_rare <= 0 then
      until_rare = sysbench.opt.rare_every
      rare_select()
   else
      id:set(sysbench.rand.default(1, sysbench.opt.table_size))
      point:execute()
   end
end
