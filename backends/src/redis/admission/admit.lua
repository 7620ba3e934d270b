-- KEYS: leases, crawl, seen and own (each plain, packed), pending, outbox, hosts. ARGV: token, crawl id, then url,
-- short, lane, deadline, depth for each, and its payload if it has one.
-- Returns for each URL whether it was new, or an empty list if the caller may no longer admit.
local status = redis.call('HGET', KEYS[2], 'status')
if not lease_of(KEYS[1], ARGV[1], now_ms()) or not status or is_over(status) then
  return {}
end
local keys = {crawl = KEYS[2], pending = KEYS[7], outbox = KEYS[8], hosts = KEYS[9]}
return take_in(keys, seen_of(KEYS[2], 3), ARGV[2], entries_from(3, '-'))
