-- KEYS: the wanted versions of projects, the reports on that of the project. ARGV: a project, the version reported on, the
-- machine, the report, the maximum number of reports.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return
end
if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 or redis.call('HLEN', KEYS[2]) < tonumber(ARGV[5]) then
  redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
end
