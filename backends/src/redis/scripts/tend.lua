-- KEYS: crawl, pending, leases. ARGV: crawl id, the earliest tide of all lines, patience in ms.
-- Ends what can end in a running crawl. Returns "await" if it waits for what is parked.
local now = now_ms()
local tide, patience = tonumber(ARGV[2]), tonumber(ARGV[3])
local reader = living_leases(KEYS[3], now)[1]
local is_fed = reader and reader.crawl == ARGV[1]
local state = redis.call('HMGET', KEYS[1], 'discovery', 'barrier', 'pass')
local barrier = tonumber(state[2])
local told = ''
if state[1] == 'open' and not is_fed then
  -- Its producers died. Another run may go on with it for a while; what was not admitted by then will not be.
  redis.call('HSETNX', KEYS[1], 'unfed', int(now))
  if redis.call('HGET', KEYS[1], 'unfed') + patience < now then
    redis.call('HSET', KEYS[1], 'discovery', 'ended', 'incomplete', 1)
  end
end
if barrier and state[3] == '1' then
  -- Long enough for the broker to take back what a stopped worker has not heard yet.
  told = tide >= barrier + patience and 'await' or ''
elseif barrier and tide >= barrier then
  redis.call('HDEL', KEYS[1], 'barrier', 'pass')
  if state[1] == 'unknown' and not is_fed then
    redis.call('HSET', KEYS[1], 'discovery', 'ended', 'incomplete', 1)
  end
end
end_if_done(KEYS[1], KEYS[2], now)
return told
