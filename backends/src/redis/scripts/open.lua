-- KEYS: lease, crawl. ARGV: token, holder, ttl, crawl id, spider, whether this holder had it before (1 or 0),
-- and the terms: recrawl, max_pages, max_per_host ("-": none).
-- Returns "ok" with whether it fetches again what was crawled before, "over", or "busy" with who holds the lease for how long.
-- The holder itself may open again: its first call's answer may have been lost.
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^%S+ %S+ (.*)$') ~= ARGV[2] then
  return {'busy', held, redis.call('PTTL', KEYS[1])}
end
local status = redis.call('HGET', KEYS[2], 'status')
if status and is_over(status) then
  return {'over', status}
end
if not status then
  local now = int(now_ms())
  redis.call('HSET', KEYS[2], 'spider', ARGV[5], 'status', 'running', 'started', now, 'run', run_id(),
    'recrawl', ARGV[7])
  if ARGV[6] == '1' then
    -- Forgotten: what it had admitted may be under way.
    redis.call('HSET', KEYS[2], 'barrier', now, 'pass', 1)
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
redis.call('SET', KEYS[1], table.concat({ARGV[1], ARGV[4], ARGV[2]}, ' '), 'PX', ARGV[3])
return {'ok', redis.call('HGET', KEYS[2], 'recrawl') or 'never'}
