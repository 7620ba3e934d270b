-- ARGV: crawl id, the lowest watermark of all lines, lost_after in ms. Ends what can end in a running crawl. Where no
-- lease has said of any source whether it was read, the crawl is incomplete. Returns "await" if it waits for what is
-- parked, "discovered" if discovery has ended now, "ended" if the crawl has.
local function end_discovery(crawl)
  redis.call('HSET', crawl, 'discovery', 'ended')
  local is_known = redis.call('HGET', crawl, 'read')
  for _, field in ipairs(redis.call('HKEYS', crawl)) do
    is_known = is_known or string.find(field, '^unread ')
  end
  if not is_known then
    redis.call('HSET', crawl, 'incomplete', 1)
  end
end

local now = now_ms()
local watermark, lost_after = tonumber(ARGV[2]), tonumber(ARGV[3])
local reader = living_leases(LEASES, now)[1]
local is_fed = reader and reader.crawl == ARGV[1]
local state = redis.call('HMGET', CRAWL, 'discovery', 'barrier', 'pass')
local barrier, pass = tonumber(state[2]), state[3]
local reply, is_discovered = '', false
-- The first pass begins now; the second, when what is parked has come back. What lies further ahead is from before the
-- clock was set back.
if state[2] and not (barrier and barrier <= now + (pass == '2' and LONGEST_PARKED + lost_after or 0)) then
  barrier = now
  redis.call('HSET', CRAWL, 'barrier', int(barrier))
end
if state[1] == 'open' and not is_fed then
  -- Its producers died. Another run may go on with it for a while; what was not admitted by then will not be.
  redis.call('HSETNX', CRAWL, 'unfed', int(now))
  local unfed = tonumber(redis.call('HGET', CRAWL, 'unfed'))
  if not unfed or unfed > now then
    redis.call('HSET', CRAWL, 'unfed', int(now))
  elseif unfed + lost_after < now then
    end_discovery(CRAWL)
    is_discovered = true
  end
end
if barrier and pass == '1' then
  -- Long enough for the broker to take back what a stopped worker has not claimed yet.
  reply = watermark >= barrier + lost_after and 'await' or ''
elseif barrier and watermark >= barrier then
  redis.call('HDEL', CRAWL, 'barrier', 'pass')
  if state[1] == 'unknown' and not is_fed then
    end_discovery(CRAWL)
    is_discovered = true
  end
end
is_evicted(CRAWL)
return end_if_done(CRAWL, PENDING, now) and 'ended' or is_discovered and 'discovered' or reply
