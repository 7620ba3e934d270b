-- ARGV: token, crawl id, then url, short, lane, deadline, depth for each, and its payload if it has one. Returns for
-- each URL whether it was new, or an empty list if the caller may no longer admit.
local status = redis.call('HGET', CRAWL, 'status')
if not lease_of(LEASES, ARGV[1], now_ms()) or not status or is_over(status) then
  return {}
end
return take_in(ARGV[2], entries_from(3, '-'))
