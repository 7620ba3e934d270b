-- KEYS: the projects, their sources, their wanted versions, the reports on that of the project. ARGV: a project, and its
-- source, if it has one.
-- Returns whether there is such a project.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if ARGV[2] then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
else
  redis.call('HDEL', KEYS[2], ARGV[1])
end
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('UNLINK', KEYS[4])
return 1
