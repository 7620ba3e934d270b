-- KEYS: crawl, pending, failed, outbox, gone. ARGV: crawl id, then url, kind, note (empty: none) for each.
-- Returns for each whether this call ended it. A counter moves only where a record went.
local answer, counts = {}, {}
for i = 2, #ARGV, 3 do
  local url, kind, note = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local ended = redis.call('HDEL', KEYS[2], url)
  answer[#answer + 1] = ended
  if ended == 1 then
    counts[kind] = (counts[kind] or 0) + 1
    redis.call('ZREM', KEYS[4], ARGV[1] .. ' ' .. url)
    if note ~= '' and (kind == 'failed' or kind == 'expired') then
      redis.call('HSET', KEYS[3], url, note)
    end
    if kind == 'expired' then
      redis.call('SADD', KEYS[5], url)
    end
  end
end
for kind, count in pairs(counts) do
  redis.call('HINCRBY', KEYS[1], kind, count)
end
end_if_done(KEYS[1], KEYS[2], now_ms())
return answer
