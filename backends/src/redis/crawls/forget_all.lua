-- KEYS, after those of the set: the crawl and the pending records of each crawl of the spider. Makes the spider
-- forget every URL, unless a crawl is not over: it would admit its URLs once more. The crawl of requests never is
-- over, so for that only the pending records count.
-- Returns the key of a crawl that prevents it; nothing if none does.
for at = 3, #KEYS, 2 do
  local state = redis.call('HMGET', KEYS[at], 'status', 'again')
  local is_going = state[1] and not is_over(state[1]) and not state[2]
  if is_going or redis.call('HLEN', KEYS[at + 1]) > 0 then
    return KEYS[at]
  end
end
local set = url_set(SEEN_PLAIN, SEEN_PACKED)
repeat
  set.buckets = drop(set)
until set.buckets == 0
return ''
