-- KEYS: pending, recipes. ARGV: how many records to measure. Returns how many there are, and about how many bytes they take, with
-- what tasks and requests say.
local function bytes(key)
  return redis.call('MEMORY', 'USAGE', key, 'SAMPLES', ARGV[1]) or 0
end
return {redis.call('HLEN', KEYS[1]), bytes(KEYS[1]) + bytes(KEYS[2])}
