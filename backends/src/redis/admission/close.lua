-- ARGV: token, what came of its sources ("read", "once" for what nobody can read again, "unread", or "-" for none),
-- then what that adds to the stats: name and number. Discovery ends with the last lease. Returns `CLOSED` if the lease
-- was this token's, or was the last to be closed, or discovery has ended already; `FINISHED` if the crawl has ended with
-- it; `DISCOVERED` if discovery alone has and is to be logged, also again: an answer may have been lost; else `STALE`.
local token, read = ARGV[1], ARGV[2]
local now = now_ms()
local lease = lease_of(LEASES, token, now)
if not lease then
  local state = redis.call('HMGET', CRAWL, 'discovery', 'closed')
  local is_ended, is_last = state[1] == 'ended', state[2] == token
  return is_ended and is_last and DISCOVERED or (is_ended or is_last) and CLOSED or STALE
end
redis.call('HDEL', LEASES, token)
redis.call('HSET', CRAWL, 'closed', token)
local sources = 'unread ' .. sources_of(lease)
if read == 'read' then
  redis.call('HSET', CRAWL, 'read', 1, sources, 0)
  redis.call('HDEL', CRAWL, 'incomplete')
elseif read == 'once' then
  -- Each run gives them another name, so these would pile up.
  redis.call('HSET', CRAWL, 'read', 1)
  redis.call('HDEL', CRAWL, 'incomplete', sources)
elseif read == 'unread' then
  redis.call('HSET', CRAWL, 'read', 1)
  redis.call('HSETNX', CRAWL, sources, 1)
end
for i = 3, #ARGV, 2 do
  redis.call('HINCRBY', CRAWL, ARGV[i], ARGV[i + 1])
end
if #living_leases(LEASES, now) == 0 then
  redis.call('HSET', CRAWL, 'discovery', 'ended')
  local is_settled = redis.call('HDEL', CRAWL, 'settled') == 1
  return end_if_done(CRAWL, PENDING, now) and FINISHED or is_settled and CLOSED or DISCOVERED
end
return CLOSED
