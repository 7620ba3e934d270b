-- KEYS: leases, crawl. ARGV: token, holder, ttl, crawl id, spider, whether this holder had it before (1 or 0),
-- and the terms: recrawl, max_pages, max_per_host ("-": none).
-- Returns "ok" with whether it fetches again what was crawled before, "over", or "busy" with who reads sources for another
-- crawl of the spider, for which one, and for how long. The holder itself may open again: its first call's answer may have been lost.
local now = now_ms()
local own
for _, lease in ipairs(living_leases(KEYS[1], now)) do
  if lease.crawl ~= ARGV[4] then
    return {'busy', lease.holder, lease.crawl, lease.left}
  elseif lease.holder == ARGV[2] then
    own = lease.token
  end
end
local status = redis.call('HGET', KEYS[2], 'status')
if status and is_over(status) then
  return {'over', status}
end
if not status then
  redis.call('HSET', KEYS[2], 'spider', ARGV[5], 'status', 'running', 'started', int(now), 'run', run_id(),
    'recrawl', ARGV[7])
  if ARGV[6] == '1' then
    -- Forgotten: what it had admitted may be under way.
    redis.call('HSET', KEYS[2], 'barrier', int(now), 'pass', 1)
  end
end
redis.call('HSET', KEYS[2], 'discovery', 'open')
for at, term in pairs({[8] = 'max_pages', [9] = 'max_per_host'}) do
  if ARGV[at] == '-' then
    redis.call('HDEL', KEYS[2], term)
  else
    redis.call('HSET', KEYS[2], term, ARGV[at])
  end
end
redis.call('HDEL', KEYS[2], 'unfed')
if own then
  redis.call('HDEL', KEYS[1], own)
end
grant(KEYS[1], ARGV[1], ARGV[4] .. ' ' .. ARGV[2], now, tonumber(ARGV[3]))
return {'ok', redis.call('HGET', KEYS[2], 'recrawl') or 'never'}
