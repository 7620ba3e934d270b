-- KEYS: crawl, pending, leases. ARGV: pause, resume or cancel, crawl id. Returns the status before.
local now = now_ms()
local before = redis.call('HGET', KEYS[1], 'status')
if ARGV[1] == 'pause' and before == 'running' then
  redis.call('HSET', KEYS[1], 'status', 'paused', 'paused_at', int(now))
elseif ARGV[1] == 'resume' and before == 'paused' then
  local paused_at = tonumber(redis.call('HGET', KEYS[1], 'paused_at')) or now
  redis.call('HINCRBY', KEYS[1], 'idle', int(math.max(now - paused_at, 0)))
  redis.call('HDEL', KEYS[1], 'paused_at')
  redis.call('HSET', KEYS[1], 'status', 'running')
  end_if_done(KEYS[1], KEYS[2], now)
elseif ARGV[1] == 'cancel' and (before == 'running' or before == 'paused') then
  redis.call('HSET', KEYS[1], 'status', 'cancelled', 'discovery', 'ended', 'ended', int(now), 'announced', 0)
  redis.call('HDEL', KEYS[1], 'barrier', 'pass', 'paused_at')
  -- Who reads sources for it holds up no other crawl of the spider.
  for _, lease in ipairs(living_leases(KEYS[3], now)) do
    if lease.crawl == ARGV[2] then
      redis.call('HDEL', KEYS[3], lease.token)
    end
  end
end
return before
