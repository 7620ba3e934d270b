-- KEYS: lease, crawl, seen, own, pending, outbox, hosts. ARGV: token, crawl id, then url, lane, deadline, depth for each.
-- Returns for each URL whether it was new, or an empty list if the right to admit is gone.
local held = redis.call('GET', KEYS[1])
local status = redis.call('HGET', KEYS[2], 'status')
if not held or string.match(held, '^%S+') ~= ARGV[1] or not status or is_over(status) then
  return {}
end
local entries = {}
for i = 3, #ARGV, 4 do
  entries[#entries + 1] =
    {url = ARGV[i], lane = ARGV[i + 1], deadline = ARGV[i + 2], depth = ARGV[i + 3], referrer = '-'}
end
local keys = {crawl = KEYS[2], seen = KEYS[3], own = KEYS[4], pending = KEYS[5], outbox = KEYS[6], hosts = KEYS[7]}
return take_in(keys, ARGV[2], entries)
