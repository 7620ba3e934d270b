-- KEYS: crawl, pending, gone, outbox, own (plain, packed), begun, hosts, failed, corrupt. ARGV: crawl id, seconds
-- to keep failures.
-- One step of cleaning up after a crawl. If the crawl is over, its remaining records are cancelled, and later
-- crawls may find again the URLs that it did not fetch; if it has reached its limit of pages, its remaining
-- records are skipped. Returns the number of records left, then the URLs to forget next (forget.lua).
local status = redis.call('HGET', KEYS[1], 'status')
local over, kind = is_over(status), nil
if status == 'cancelled' then
  kind = 'cancelled'
elseif status == 'running' and room_in(KEYS[1]) == 0 then
  kind = 'skipped'
end
if kind then
  local recrawl, stats, hosts = is_recrawl(KEYS[1]), {}, {}
  for _, url in ipairs(redis.call('HRANDFIELD', KEYS[2], 500)) do
    redis.call('HDEL', KEYS[2], url)
    redis.call('ZREM', KEYS[4], ARGV[1] .. ' ' .. url)
    redis.call('SREM', KEYS[7], url)
    add(stats, kind, 1)
    add_host(hosts, url, kind, 1)
    if has_payload(url) then
      redis.call('HDEL', recipes_of(KEYS[2]), url)
    end
    if kind == 'skipped' then
      add(stats, 'skipped:limit', 1)
    end
    if not recrawl then
      redis.call('SADD', KEYS[3], url)
    end
  end
  write(KEYS[1], stats)
  write(KEYS[8], hosts)
end
if not kind and not over then
  return {0}
end
local left = redis.call('HLEN', KEYS[2])
if not over then
  end_if_done(KEYS[1], KEYS[2], now_ms())
elseif left == 0 then
  left = redis.call('SCARD', KEYS[3])
  if left > 0 then
    return {left, unpack(redis.call('SRANDMEMBER', KEYS[3], 500))}
  end
  left = drop(url_set(KEYS[5], KEYS[6]))
  if left == 0 then
    redis.call('UNLINK', KEYS[7])
    -- There may be a million hosts, so their stats are kept for a month only.
    redis.call('EXPIRE', KEYS[8], 30 * 24 * 3600)
    redis.call('EXPIRE', KEYS[9], ARGV[2])
    redis.call('EXPIRE', KEYS[10], ARGV[2])
    redis.call('EXPIRE', recipes_of(KEYS[2]), ARGV[2])
    redis.call('HSET', KEYS[1], 'cleared', 1)
  end
end
return {left}
