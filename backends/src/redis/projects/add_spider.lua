-- KEYS: the projects, their spiders. ARGV: a project, a spider, the maximum number of spiders.
-- Returns the project that has the spider now; nothing if there is no such project, and '' if there are too many spiders.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return false
end
local owner = redis.call('HGET', KEYS[2], ARGV[2])
if owner then
  return owner
end
if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[3]) then
  return ''
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
return ARGV[1]
