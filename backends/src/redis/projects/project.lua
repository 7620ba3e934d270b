-- KEYS: the projects, their spiders, secrets, sources and wanted versions. ARGV: a project.
-- Returns when it was made, whether it has a secret, its source, its wanted version, and its spiders; nothing if there is
-- no such project.
local created = redis.call('HGET', KEYS[1], ARGV[1])
if not created then
  return false
end
local spiders, own = redis.call('HGETALL', KEYS[2]), {}
for at = 1, #spiders, 2 do
  if spiders[at + 1] == ARGV[1] then
    own[#own + 1] = spiders[at]
  end
end
local has_secret = redis.call('HEXISTS', KEYS[3], ARGV[1])
return { created, has_secret, redis.call('HGET', KEYS[4], ARGV[1]), redis.call('HGET', KEYS[5], ARGV[1]), own }
