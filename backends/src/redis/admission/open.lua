-- KEYS: leases, crawl. ARGV: token, holder (and after a blank the sources that it reads), ttl, crawl id, and the terms: max_pages, max_per_host, file ("-": none).
-- Returns "ok" with whether it fetches again what was crawled before, and whether this is to be logged (1 or 0); "unknown", "over", or
-- "busy" with who reads sources for another crawl of the spider, for which one, and for how long. The holder itself may open again: its
-- first call's answer may have been lost.
local now = now_ms()
local own
local holder = string.match(ARGV[2], '^%S*')
for _, lease in ipairs(living_leases(KEYS[1], now)) do
  if lease.crawl ~= ARGV[4] then
    return {'busy', lease.holder, lease.crawl, lease.left}
  elseif lease.holder == holder then
    own = lease.token
  end
end
local status = redis.call('HGET', KEYS[2], 'status')
if not status then
  return {'unknown'}
elseif is_over(status) then
  return {'over', status}
end
-- The log goes on to say how reading the sources ended, until a lease reads some again or changes the terms (`settled`).
local before = redis.call('HMGET', KEYS[2], 'max_pages', 'max_per_host', 'file', 'discovery', 'settled')
local is_settled = (before[4] == 'ended' or before[5]) and not string.find(ARGV[2], ' ', 1, true)
for at = 1, 3 do
  is_settled = is_settled and (before[at] or '-') == ARGV[4 + at]
end
if is_settled then
  redis.call('HSET', KEYS[2], 'settled', 1)
else
  redis.call('HDEL', KEYS[2], 'settled')
end
redis.call('HSET', KEYS[2], 'discovery', 'open')
write_terms(KEYS[2], ARGV[5], ARGV[6], ARGV[7])
redis.call('HDEL', KEYS[2], 'unfed')
if own then
  redis.call('HDEL', KEYS[1], own)
end
grant(KEYS[1], ARGV[1], ARGV[4] .. ' ' .. ARGV[2], now, tonumber(ARGV[3]))
return {'ok', redis.call('HGET', KEYS[2], 'recrawl') or 'never', is_settled and '0' or '1'}
