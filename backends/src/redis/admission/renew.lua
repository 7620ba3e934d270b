-- ARGV: token, ttl (zero gives it back, with its sources unread). Returns 1 if the lease was this token's, or is
-- given back, also again.
local now, ttl = now_ms(), tonumber(ARGV[2])
local of = lease_of(LEASES, ARGV[1], now)
if not of then
  return ttl == 0 and 1 or 0
end
if ttl > 0 then
  grant(LEASES, ARGV[1], of, now, ttl)
else
  redis.call('HDEL', LEASES, ARGV[1])
  leave_unread(LEASES, string.match(of, '^%S+'), sources_of(of))
end
return 1
