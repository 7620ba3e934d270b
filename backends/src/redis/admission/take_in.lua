-- ARGV: crawl id, then url, short, lane, deadline, depth for each, and for a task its payload. Admits work from pages
-- and tasks of other spiders. Returns for each whether it was new, or an empty list if the crawl is not known.
local status = redis.call('HGET', CRAWL, 'status')
if not status then
  return {}
end
local entries = entries_from(2, '-')
if is_over(status) then
  local answer = {}
  for i = 1, #entries do
    answer[i] = KNOWN
  end
  return answer
end
return take_in(ARGV[1], entries)
