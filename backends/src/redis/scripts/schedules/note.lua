-- KEYS: schedules. ARGV: spider, until when its schedule is done, in ms. What is done stays so, and what is held stays held.
local known = redis.call('HGET', KEYS[1], ARGV[1])
if not known or tonumber(known) and tonumber(known) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return redis.status_reply('OK')
