-- ARGV: number of records to measure. Returns the number of records, and their approximate size in bytes with the
-- payloads of tasks and requests.
local function bytes(key)
  return redis.call('MEMORY', 'USAGE', key, 'SAMPLES', ARGV[1]) or 0
end
return {redis.call('HLEN', PENDING), bytes(PENDING) + bytes(RECIPES)}
