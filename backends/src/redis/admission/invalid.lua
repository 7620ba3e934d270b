-- ARGV: maximum number kept, then text and note of each. Counts texts that were no URLs, and keeps some. Returns
-- whether the crawl is known.
if redis.call('EXISTS', CRAWL) == 0 then
  return 0
end
local room = ARGV[1] - redis.call('HLEN', INVALID)
for at = 2, #ARGV, 2 do
  if room > 0 or redis.call('HEXISTS', INVALID, ARGV[at]) == 1 then
    room = room - redis.call('HSET', INVALID, ARGV[at], ARGV[at + 1])
  end
end
redis.call('HINCRBY', CRAWL, 'dropped:invalid', (#ARGV - 1) / 2)
return 1
