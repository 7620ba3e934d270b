-- URLs that others published lately: `T:seen:adhoc`, a sorted set of URLs by the instant at which each was
-- requested, or fetched. Requests do not depend on what the spider has seen, because the publisher of a URL may
-- have added it there first.

-- The requests of a crawl for them; nil for any other crawl. `key` is the crawl's own set.
local function requests_of(crawl, key)
  local again = tonumber(redis.call('HGET', crawl, 'again') or nil)
  return again and {key = key, again = again}
end

local function was_asked(requests, url, now)
  local at = tonumber(redis.call('ZSCORE', requests.key, url) or nil)
  -- An instant in the future means that the clock was set back since.
  return at ~= nil and at <= now and now < at + requests.again
end

-- Notes that these URLs were requested just now, and forgets some that may be requested again: more than it notes.
local function note_asked(requests, urls, now)
  if #urls == 0 or requests.again == 0 then
    return
  end
  local entries = {}
  for i, url in ipairs(urls) do
    entries[2 * i - 1], entries[2 * i] = int(now), url
  end
  redis.call('ZADD', requests.key, unpack(entries))
  local old = redis.call('ZRANGE', requests.key, '-inf', int(now - requests.again), 'BYSCORE', 'LIMIT', 0, 2 * #urls)
  if #old > 0 then
    redis.call('ZREM', requests.key, unpack(old))
  end
  redis.call('PEXPIRE', requests.key, int(requests.again))
end
