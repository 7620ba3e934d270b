-- ARGV: crawl id, seconds to keep failures. One step of cleaning up after a crawl. If the crawl is over, its
-- remaining records are cancelled, and later crawls may find again the URLs that it did not fetch; if it has reached
-- its limit of pages, its remaining records are skipped. Returns the number of records left, then the URLs to forget
-- next (forget.lua).
local status = redis.call('HGET', CRAWL, 'status')
local over, kind = is_over(status), nil
if status == 'cancelled' then
  kind = 'cancelled'
elseif status == 'running' and room_in(CRAWL) == 0 then
  kind = 'skipped'
end
if kind then
  local recrawl, stats, hosts = is_recrawl(CRAWL), {}, {}
  for _, url in ipairs(redis.call('HRANDFIELD', PENDING, 500)) do
    redis.call('HDEL', PENDING, url)
    redis.call('ZREM', OUTBOX, ARGV[1] .. ' ' .. url)
    redis.call('SREM', BEGUN, url)
    add(stats, kind, 1)
    add_host(hosts, url, kind, 1)
    if has_payload(url) then
      redis.call('HDEL', recipes_of(PENDING), url)
    end
    if kind == 'skipped' then
      add(stats, 'skipped:limit', 1)
    end
    if not recrawl then
      redis.call('SADD', GONE, url)
    end
  end
  write(CRAWL, stats)
  write(HOSTS, hosts)
end
if not kind and not over then
  return {0}
end
local left = redis.call('HLEN', PENDING)
if not over then
  end_if_done(CRAWL, PENDING, now_ms())
elseif left == 0 then
  left = redis.call('SCARD', GONE)
  if left > 0 then
    return {left, unpack(redis.call('SRANDMEMBER', GONE, 500))}
  end
  left = drop(url_set(OWN_PLAIN, OWN_PACKED))
  if left == 0 then
    redis.call('UNLINK', BEGUN)
    -- There may be a million hosts, so their stats are kept for a month only.
    redis.call('EXPIRE', HOSTS, 30 * 24 * 3600)
    redis.call('EXPIRE', FAILED, ARGV[2])
    redis.call('EXPIRE', CORRUPT, ARGV[2])
    redis.call('EXPIRE', recipes_of(PENDING), ARGV[2])
    redis.call('HSET', CRAWL, 'cleared', 1)
  end
end
return {left}
