-- KEYS: sweeper. ARGV: worker, ttl in ms. Returns whether this worker is the one that sweeps.
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
