-- ARGV: version, maximum number kept, then for each spider its name, the hash of its text, and the text. Adds a
-- version. Returns the number of this change, and its time.
local number = redis.call('HINCRBY', PROJECT, 'number', 1)
local version = {number = number, added = math.floor(now_us() / 1000), spiders = {}}
for at = 3, #ARGV, 3 do
  version.spiders[ARGV[at]] = ARGV[at + 1]
  redis.call('HSET', PROJECT, 't:' .. ARGV[at + 1], ARGV[at + 2])
end
redis.call('HSET', PROJECT, 'v:' .. ARGV[1], cjson.encode(version))
local all = versions()
for at = 1, #all - tonumber(ARGV[2]) do
  redis.call('HDEL', PROJECT, all[at].field)
end
drop_texts()
return {version.number, version.added}
