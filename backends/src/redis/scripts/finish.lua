-- KEYS: crawl, pending, failed, outbox, gone, seen. ARGV: crawl id, then url, kind, note (empty: none), where it landed
-- (empty: there) for each.
-- Returns for each whether this call ended it. A counter moves only where a record went.
local answer, counts = {}, {}
for i = 2, #ARGV, 4 do
  local url, kind, note, landed = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
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
    if landed ~= '' then
      redis.call('SADD', KEYS[6], landed)
    end
  end
end
for kind, count in pairs(counts) do
  redis.call('HINCRBY', KEYS[1], kind, count)
end
end_if_done(KEYS[1], KEYS[2], now_ms())
return answer
