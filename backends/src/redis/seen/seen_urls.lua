-- KEYS, after those of the set: the pending records of each crawl of the spider. ARGV: whether to forget (1 or 0), then
-- url, short for each. Returns for each URL whether it was seen; one that a crawl has pending is not forgotten.
local entries, urls = {}, {}
for i = 2, #ARGV, 2 do
  entries[#entries + 1], urls[#urls + 1] = {url = ARGV[i], short = ARGV[i + 1]}, ARGV[i]
end
local set = url_set(SEEN_PLAIN, SEEN_PACKED)
local reply, forgotten = knows(set, entries), {}
for at = 3, #KEYS do
  for i, record in ipairs(redis.call('HMGET', KEYS[at], unpack(urls))) do
    reply[i] = record and PENDING_NOW or reply[i]
  end
end
if ARGV[1] == '1' then
  for i, entry in ipairs(entries) do
    if reply[i] == ENDED then
      forgotten[#forgotten + 1] = entry
    end
  end
  forget(set, forgotten)
end
return reply
