-- KEYS: the session. ARGV: the revision that it must have (0: there is none), its state, how long it is kept in ms.
-- Returns the new revision; nil if it has another one, and then nothing is changed.
local revision = tonumber(redis.call('HGET', KEYS[1], 'revision') or 0)
if revision ~= tonumber(ARGV[1]) then
  return false
end
redis.call('HSET', KEYS[1], 'revision', string.format('%.0f', revision + 1), 'state', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return revision + 1
