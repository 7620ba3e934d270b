-- KEYS: schedules. ARGV: spider, until when its schedule is done, in ms. What is done stays so, and what is held stays held. Returns
-- whether that has changed anything.
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known and not (tonumber(known) and tonumber(known) < tonumber(ARGV[2])) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
