-- KEYS: watermarks. ARGV: queue, when it was sent, when the one before it was sent, for each probe that came back.
-- A watermark only rises. If the previous probe has not come back, the queue lost its messages. An instant in the
-- future was written before the clock was set back, and does not count.
for i = 1, #ARGV, 3 do
  local line, sent, previous = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local known = tonumber(redis.call('HGET', KEYS[1], line))
  known = known and known <= NOW and known
  if sent <= NOW then
    if not known or sent > known then
      redis.call('HSET', KEYS[1], line, ARGV[i + 1])
    end
    if known and known < previous then
      redis.call('HSET', KEYS[1], 'gap:' .. line, ARGV[i + 1])
    end
  end
end
return redis.status_reply('OK')
