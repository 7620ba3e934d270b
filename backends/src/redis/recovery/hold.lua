-- KEYS: sweeper. ARGV: worker, ttl in ms. Returns whether this worker is the sweeper. A program that reads a newer
-- format replaces one that leaves such records alone; it adds its format to its name.
local me = FORMAT > 1 and ARGV[1] .. ' v' .. FORMAT or ARGV[1]
local holder = redis.call('GET', KEYS[1])
local format = holder and tonumber(string.match(holder, ' v(%d+)$') or 1)
if holder and holder ~= me and format >= FORMAT then
  return 0
end
redis.call('SET', KEYS[1], me, 'PX', ARGV[2])
return 1
