-- ARGV: number of the last change, number of versions, then for each its name, number, time of adding, number of
-- spiders, and for each spider its name, the hash of its text, and the text; then for each removed version its
-- name, and the number of that change.
-- Brings the project up to the stream `journal`, and never back.
local at = 3
for _ = 1, tonumber(ARGV[2]) do
  local name, number, spiders = 'v:' .. ARGV[at], tonumber(ARGV[at + 1]), {}
  local added, count = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local known = redis.call('HGET', PROJECT, name)
  local is_new = not known or cjson.decode(known).number < number
  at = at + 4
  for _ = 1, count do
    if is_new then
      spiders[ARGV[at]] = ARGV[at + 1]
      redis.call('HSET', PROJECT, 't:' .. ARGV[at + 1], ARGV[at + 2])
    end
    at = at + 3
  end
  if is_new then
    redis.call('HSET', PROJECT, name, cjson.encode({number = number, added = added, spiders = spiders}))
  end
end
for each = at, #ARGV, 2 do
  local known = redis.call('HGET', PROJECT, 'v:' .. ARGV[each])
  if known and cjson.decode(known).number < tonumber(ARGV[each + 1]) then
    redis.call('HDEL', PROJECT, 'v:' .. ARGV[each])
  end
end
if tonumber(redis.call('HGET', PROJECT, 'number') or 0) < tonumber(ARGV[1]) then
  redis.call('HSET', PROJECT, 'number', ARGV[1])
end
drop_texts()
return #versions()
