-- KEYS: schedules. ARGV: spider, the instant up to which its schedule is done, in ms. An earlier instant, or one
-- for a paused schedule, changes nothing. Returns whether anything has changed.
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known and not (tonumber(known) and tonumber(known) < tonumber(ARGV[2])) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
