-- KEYS: lease. ARGV: token, ttl. Returns 1 if the lease is still this token's.
local held = redis.call('GET', KEYS[1])
if not held or string.match(held, '^%S+') ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
