-- KEYS: tides. ARGV: line, instant of each probe that came back. A tide only rises.
for i = 1, #ARGV, 2 do
  local known = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0)
  if tonumber(ARGV[i + 1]) > known then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return redis.status_reply('OK')
