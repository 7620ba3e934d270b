-- KEYS: crawl, invalid. ARGV: maximum number kept, then text and note of each. Counts texts that were no URLs, and
-- keeps some.
-- Returns whether the crawl is known.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local room = ARGV[1] - redis.call('HLEN', KEYS[2])
for at = 2, #ARGV, 2 do
  if room > 0 or redis.call('HEXISTS', KEYS[2], ARGV[at]) == 1 then
    room = room - redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
  end
end
redis.call('HINCRBY', KEYS[1], 'dropped:invalid', (#ARGV - 1) / 2)
return 1
