-- KEYS: schedules. ARGV: spider, `paused` or the instant up to which its schedule is done, in ms. Brings it up to
-- the stream `journal`.
local known = redis.call('HGET', KEYS[1], ARGV[1])
if not (tonumber(known) and tonumber(ARGV[2]) and tonumber(known) > tonumber(ARGV[2])) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return redis.status_reply('OK')
