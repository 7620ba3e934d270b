-- KEYS: crawl, seen and own (each plain, packed), pending, outbox, hosts. ARGV: crawl id, then url, short, lane,
-- deadline, depth for each, and for a task its payload. Admits work from pages and tasks of other spiders. Returns
-- for each whether it was new, or an empty list if the crawl is not known.
local status = redis.call('HGET', KEYS[1], 'status')
if not status then
  return {}
end
local entries = entries_from(2, '-')
if is_over(status) then
  local answer = {}
  for i = 1, #entries do
    answer[i] = 0
  end
  return answer
end
local keys = {crawl = KEYS[1], pending = KEYS[6], outbox = KEYS[7], hosts = KEYS[8]}
return take_in(keys, seen_of(KEYS[1], 2), ARGV[1], entries)
