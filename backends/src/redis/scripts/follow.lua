-- KEYS: crawl, seen, own, pending, outbox, hosts. ARGV: worker, crawl id, the page that links, then url, lane, deadline, depth
-- for each link. Returns for each link what became of it, or an empty list if the worker no longer holds the page.
local text = redis.call('HGET', KEYS[4], ARGV[3])
local status = redis.call('HGET', KEYS[1], 'status')
if not text or not is_held_by(parse(text), ARGV[1]) or not status or is_over(status) then
  return {}
end
local entries = {}
for i = 4, #ARGV, 4 do
  entries[#entries + 1] =
    {url = ARGV[i], lane = ARGV[i + 1], deadline = ARGV[i + 2], depth = ARGV[i + 3], referrer = ARGV[3]}
end
local most = tonumber(redis.call('HGET', KEYS[1], 'max_per_host') or nil)
local keys = {crawl = KEYS[1], seen = KEYS[2], own = KEYS[3], pending = KEYS[4], outbox = KEYS[5], hosts = KEYS[6]}
return take_in(keys, ARGV[2], entries, most)
