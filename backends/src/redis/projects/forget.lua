-- KEYS: the projects, their spiders, and what is set of them. ARGV: a project.
-- Returns whether there was such a project.
local spiders = redis.call('HGETALL', KEYS[2])
for at = 1, #spiders, 2 do
  if spiders[at + 1] == ARGV[1] then
    redis.call('HDEL', KEYS[2], spiders[at])
  end
end
for at = 3, #KEYS do
  redis.call('HDEL', KEYS[at], ARGV[1])
end
return redis.call('HDEL', KEYS[1], ARGV[1])
