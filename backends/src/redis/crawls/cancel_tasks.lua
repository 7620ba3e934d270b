-- ARGV: crawl id, whether the crawl never ends (1 or 0), then key and short for each task. Ends those that have a
-- record. Returns their number.
local now, never_ends, recrawl = now_ms(), ARGV[2] == '1', is_recrawl(CRAWL)
local cancelled, unseen = 0, {}
for i = 3, #ARGV, 2 do
  local task, short = ARGV[i], ARGV[i + 1]
  local record = read(PENDING, task, redis.call('HGET', PENDING, task))
  if record then
    cancelled = cancelled + 1
    redis.call('HDEL', PENDING, task)
    redis.call('HDEL', recipes_of(PENDING), task)
    redis.call('ZREM', OUTBOX, ARGV[1] .. ' ' .. task)
    redis.call('SREM', BEGUN, task)
    if never_ends then
      -- Its message may come at any time, and is dropped then (claim.lua). The message of a new record may not
      -- have been sent yet.
      unseen[#unseen + 1] = {url = task, short = short}
      if record.state ~= 'n' then
        redis.call('SADD', GONE, task)
        redis.call('EXPIRE', GONE, 7 * 24 * 3600)
      end
    elseif not recrawl then
      redis.call('SADD', GONE, task)
    end
  end
end
if cancelled > 0 then
  redis.call('HINCRBY', CRAWL, 'cancelled', cancelled)
  end_if_done(CRAWL, PENDING, now)
end
if #unseen > 0 then
  forget(url_set(SEEN_PLAIN, SEEN_PACKED), unseen)
end
return cancelled
