-- Ready-made bodies of the report hooks, and histograms.

local host = ...

local function rates(stat)
   local s = stat.time_interval
   return stat.events / s, (stat.reads + stat.writes + stat.other) / s, stat.reads / s, stat.writes / s, stat.other / s,
      stat.errors / s, stat.reconnects / s
end

function sysbench.report_default(stat)
   local tps, qps, reads, writes, other, errors, reconnects = rates(stat)
   print(("[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f")
      :format(stat.time_total, stat.threads_running, tps, qps, reads, writes, other, sysbench.opt.percentile,
              stat.latency_pct * 1000, errors, reconnects))
end

function sysbench.report_csv(stat)
   local tps, qps, reads, writes, other, errors, reconnects = rates(stat)
   print(("%.0f,%u" .. (",%4.2f"):rep(8)):format(stat.time_total, stat.threads_running, tps, qps, reads, writes, other,
                                                  stat.latency_pct * 1000, errors, reconnects))
end

-- An array of objects: its end is printed when the state ends.
local is_open = false
function sysbench.report_json(stat)
   io.write(is_open and ",\n" or "[\n")
   is_open = true
   local tps, qps, reads, writes, other, errors, reconnects = rates(stat)
   local function field(indent, name, format, value, last)
      return ("%s\"%s\": " .. format .. "%s\n"):format((" "):rep(indent), name, value, last and "" or ",")
   end
   io.write("  {\n" .. field(4, "time", "%4.0f", stat.time_total) .. field(4, "threads", "%u", stat.threads_running)
      .. field(4, "tps", "%4.2f", tps) .. "    \"qps\": {\n" .. field(6, "total", "%4.2f", qps)
      .. field(6, "reads", "%4.2f", reads) .. field(6, "writes", "%4.2f", writes) .. field(6, "other", "%4.2f", other, true)
      .. "    },\n" .. field(4, "latency", "%4.2f", stat.latency_pct * 1000) .. field(4, "errors", "%4.2f", errors)
      .. field(4, "reconnects", "%4.2f", reconnects, true) .. "  }")
end

function host.close()
   if is_open then
      is_open = false
      host.print("\n]\n")
   end
end

-- Counts in bins whose borders grow by the same factor.
sysbench.histogram = {}
local histogram = {}
local histogram_mt = { __index = histogram, __tostring = function() return "<sb_histogram>" end }

function sysbench.histogram.new(size, range_min, range_max)
   local first = math.log(range_min)
   return setmetatable({ size = size, first = first, factor = (size - 1) / (math.log(range_max) - first), bins = {} },
                       histogram_mt)
end

function histogram:update(value)
   local bin = math.floor((math.log(value) - self.first) * self.factor + 0.5)
   -- Also for what is no number, such as the logarithm of something negative.
   if not (bin >= 0) then
      bin = 0
   elseif bin >= self.size then
      bin = self.size - 1
   end
   self.bins[bin] = (self.bins[bin] or 0) + 1
end

function histogram:print()
   local most = 0
   for _, count in pairs(self.bins) do
      most = math.max(most, count)
   end
   if most == 0 then
      return
   end
   io.write("       value  ------------- distribution ------------- count\n")
   for bin = 0, self.size - 1 do
      local count = self.bins[bin]
      if count then
         local bar = ("*"):rep(math.floor(count * 40 / most + 0.5))
         io.write(("%12.3f |%-40s %u\n"):format(math.exp(bin / self.factor + self.first), bar, count))
      end
   end
end
