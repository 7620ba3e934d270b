-- KEYS: worker. Asks it to end. Returns whether it is alive.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'drain', 1)
return 1
