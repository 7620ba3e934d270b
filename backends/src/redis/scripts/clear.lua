-- KEYS: crawl, pending, gone, seen, outbox. ARGV: crawl id. One step of clearing up after a crawl that is over: what
-- it left undone is cancelled, and later crawls may find again what it did not fetch. Returns how much is left.
if redis.call('HGET', KEYS[1], 'status') == 'cancelled' then
  for _, url in ipairs(redis.call('HRANDFIELD', KEYS[2], 500)) do
    redis.call('HDEL', KEYS[2], url)
    redis.call('ZREM', KEYS[5], ARGV[1] .. ' ' .. url)
    redis.call('SADD', KEYS[3], url)
    redis.call('HINCRBY', KEYS[1], 'cancelled', 1)
  end
end
local left = redis.call('HLEN', KEYS[2])
if left == 0 then
  local urls = redis.call('SPOP', KEYS[3], 500)
  if #urls > 0 then
    redis.call('SREM', KEYS[4], unpack(urls))
  end
  left = redis.call('SCARD', KEYS[3])
  if left == 0 then
    redis.call('HSET', KEYS[1], 'cleared', 1)
  end
end
return left
