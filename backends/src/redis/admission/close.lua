-- KEYS: leases, crawl, pending. ARGV: token, what came of its sources ("read", "once" for what nobody can read again, "unread", or "-" for
-- none), then what that adds to the stats: name and number. Discovery ends with the last lease. Returns 1 if the lease was this token's, or
-- was the last to be closed, or discovery has ended already; 2 if the crawl has ended with it, 3 if discovery alone has and is to be logged,
-- also again: an answer may have been lost; else 0.
local now = now_ms()
local lease = lease_of(KEYS[1], ARGV[1], now)
if not lease then
  local state = redis.call('HMGET', KEYS[2], 'discovery', 'closed')
  local is_ended, is_last = state[1] == 'ended', state[2] == ARGV[1]
  return is_ended and is_last and 3 or (is_ended or is_last) and 1 or 0
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], 'closed', ARGV[1])
local sources = 'unread ' .. sources_of(lease)
if ARGV[2] == 'read' then
  redis.call('HSET', KEYS[2], 'read', 1, sources, 0)
  redis.call('HDEL', KEYS[2], 'incomplete')
elseif ARGV[2] == 'once' then
  -- Each run gives them another name, so these would pile up.
  redis.call('HSET', KEYS[2], 'read', 1)
  redis.call('HDEL', KEYS[2], 'incomplete', sources)
elseif ARGV[2] == 'unread' then
  redis.call('HSET', KEYS[2], 'read', 1)
  redis.call('HSETNX', KEYS[2], sources, 1)
end
for i = 3, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[2], ARGV[i], ARGV[i + 1])
end
if #living_leases(KEYS[1], now) == 0 then
  redis.call('HSET', KEYS[2], 'discovery', 'ended')
  local is_settled = redis.call('HDEL', KEYS[2], 'settled') == 1
  return end_if_done(KEYS[2], KEYS[3], now) and 2 or is_settled and 1 or 3
end
return 1
