-- KEYS: lease, crawl, pending. ARGV: token. Returns 1 if the lease was still this token's, or discovery has
-- ended already: an answer may have been lost.
local held = redis.call('GET', KEYS[1])
if not held or string.match(held, '^%S+') ~= ARGV[1] then
  return redis.call('HGET', KEYS[2], 'discovery') == 'ended' and 1 or 0
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[2], 'discovery', 'ended')
end_if_done(KEYS[2], KEYS[3], now_ms())
return 1
