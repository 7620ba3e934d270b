-- ARGV: worker, crawl id, the page with the links, then url, short, lane, deadline, depth for each link, and its
-- payload if it has one. Returns the result for each link, or an empty list if the worker no longer holds the page.
local worker, id, from = ARGV[1], ARGV[2], ARGV[3]
local text = redis.call('HGET', PENDING, from)
local status = redis.call('HGET', CRAWL, 'status')
local page = read(PENDING, from, text)
if not page or not is_held_by(page, worker) or not status or is_over(status) then
  return {}
end
local most = tonumber(redis.call('HGET', CRAWL, 'max_per_host') or nil)
return take_in(id, entries_from(4, from), most)
