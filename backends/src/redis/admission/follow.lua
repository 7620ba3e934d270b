-- KEYS: crawl, seen and own (each plain, packed), pending, outbox, hosts. ARGV: worker, crawl id, the page with
-- the links, then url, short, lane, deadline, depth for each link, and its payload if it has one. Returns the
-- result for each link, or an empty list if the worker no longer holds the page.
local text = redis.call('HGET', KEYS[6], ARGV[3])
local status = redis.call('HGET', KEYS[1], 'status')
local page = read(KEYS[6], ARGV[3], text)
if not page or not is_held_by(page, ARGV[1]) or not status or is_over(status) then
  return {}
end
local most = tonumber(redis.call('HGET', KEYS[1], 'max_per_host') or nil)
local keys = {crawl = KEYS[1], pending = KEYS[6], outbox = KEYS[7], hosts = KEYS[8]}
return take_in(keys, seen_of(KEYS[1], 2), ARGV[2], entries_from(4, ARGV[3]), most)
