-- KEYS: the projects. ARGV: a name, the time in ms, the maximum number of projects.
-- Returns 1 if the project is new, 0 if there is one, and -1 if there are too many.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return 0
end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then
  return -1
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
