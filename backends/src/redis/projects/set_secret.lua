-- KEYS: the projects, their secrets. ARGV: a project, and its secret, if it has one.
-- Returns whether there is such a project.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if ARGV[2] then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
else
  redis.call('HDEL', KEYS[2], ARGV[1])
end
return 1
