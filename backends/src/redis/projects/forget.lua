-- KEYS: the projects, the reports on the version of the project, the spiders of projects, and what is set of them. ARGV: a
-- project.
-- Returns whether there was such a project.
local spiders = redis.call('HGETALL', KEYS[3])
for at = 1, #spiders, 2 do
  if spiders[at + 1] == ARGV[1] then
    redis.call('HDEL', KEYS[3], spiders[at])
  end
end
for at = 4, #KEYS do
  redis.call('HDEL', KEYS[at], ARGV[1])
end
redis.call('UNLINK', KEYS[2])
return redis.call('HDEL', KEYS[1], ARGV[1])
