-- KEYS: crawl, pending, outbox, begun, then the URLs seen by the spider and by the crawl itself, each plain and
-- packed, then gone. ARGV: crawl id, whether the crawl never ends (1 or 0), then key and short for each task. Ends
-- those that have a record. Returns their number.
local now, never_ends, recrawl = now_ms(), ARGV[2] == '1', is_recrawl(KEYS[1])
local cancelled, unseen = 0, {}
for i = 3, #ARGV, 2 do
  local task, short = ARGV[i], ARGV[i + 1]
  local record = read(KEYS[2], task, redis.call('HGET', KEYS[2], task))
  if record then
    cancelled = cancelled + 1
    redis.call('HDEL', KEYS[2], task)
    redis.call('HDEL', recipes_of(KEYS[2]), task)
    redis.call('ZREM', KEYS[3], ARGV[1] .. ' ' .. task)
    redis.call('SREM', KEYS[4], task)
    if never_ends then
      -- Its message may come at any time, and is dropped then (claim.lua). The message of a new record may not
      -- have been sent yet.
      unseen[#unseen + 1] = {url = task, short = short}
      if record.state ~= 'n' then
        redis.call('SADD', KEYS[9], task)
        redis.call('EXPIRE', KEYS[9], 7 * 24 * 3600)
      end
    elseif not recrawl then
      redis.call('SADD', KEYS[9], task)
    end
  end
end
if cancelled > 0 then
  redis.call('HINCRBY', KEYS[1], 'cancelled', cancelled)
  end_if_done(KEYS[1], KEYS[2], now)
end
if #unseen > 0 then
  forget(url_set(KEYS[5], KEYS[6]), unseen)
end
return cancelled
