-- KEYS: the projects, their secrets, sources and wanted versions. ARGV: projects.
-- Returns, for each key, the values of the projects.
local all = {}
for at, key in ipairs(KEYS) do
  all[at] = redis.call('HMGET', key, unpack(ARGV))
end
return all
