-- KEYS: schedules. ARGV: spider, now in ms. Resumes a paused schedule with what comes after now. Returns the
-- instant up to which it is done; nothing if it is not known.
if redis.call('HGET', KEYS[1], ARGV[1]) == 'paused' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return redis.call('HGET', KEYS[1], ARGV[1])
