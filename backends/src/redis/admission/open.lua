-- ARGV: by name, as JSON: token, holder (and after a blank the sources that it reads), ttl, id, terms. Returns "ok" with
-- whether it fetches again what was crawled before, whether this is to be logged (1 or 0), and the period of the crawl
-- that it replays ("-" for none); "unknown", "over", or "busy" with who reads sources for another crawl of the spider,
-- for which one, and for how long. The holder itself may open again: its first call's answer may have been lost.
local ask = cjson.decode(ARGV[1])
local now = now_ms()
local own
local holder = string.match(ask.holder, '^%S*')
for _, lease in ipairs(living_leases(LEASES, now)) do
  if lease.crawl ~= ask.id then
    return {'busy', lease.holder, lease.crawl, lease.left}
  elseif lease.holder == holder then
    own = lease.token
  end
end
local status = redis.call('HGET', CRAWL, 'status')
if not status then
  return {'unknown'}
elseif is_over(status) then
  return {'over', status}
end
-- The log goes on to say how reading the sources ended, until a lease reads some again or changes the terms (`settled`).
local before = redis.call('HMGET', CRAWL, TERMS[1], TERMS[2], TERMS[3], 'discovery', 'settled')
local is_settled = (before[4] == 'ended' or before[5]) and not string.find(ask.holder, ' ', 1, true)
for at = 1, #TERMS do
  is_settled = is_settled and (before[at] or '-') == ask.terms[TERMS[at]]
end
if is_settled then
  redis.call('HSET', CRAWL, 'settled', 1)
else
  redis.call('HDEL', CRAWL, 'settled')
end
redis.call('HSET', CRAWL, 'discovery', 'open')
write_terms(CRAWL, ask.terms)
redis.call('HDEL', CRAWL, 'unfed')
if own then
  redis.call('HDEL', LEASES, own)
end
grant(LEASES, ask.token, ask.id .. ' ' .. ask.holder, now, ask.ttl)
local first = redis.call('HMGET', CRAWL, 'recrawl', 'replays')
return {'ok', first[1] or 'never', is_settled and '0' or '1', first[2] or '-'}
