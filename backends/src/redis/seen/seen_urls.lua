-- KEYS: seen (plain, packed), then the pending records of each crawl of the spider. ARGV: whether to forget (1 or
-- 0), then url, short for each. Returns for each URL 0 if it was never seen, 1 if it was, 2 if a crawl has it
-- pending, in which case it is not forgotten.
local entries, urls = {}, {}
for i = 2, #ARGV, 2 do
  entries[#entries + 1], urls[#urls + 1] = {url = ARGV[i], short = ARGV[i + 1]}, ARGV[i]
end
local set = url_set(KEYS[1], KEYS[2])
local reply, forgotten = knows(set, entries), {}
for at = 3, #KEYS do
  for i, record in ipairs(redis.call('HMGET', KEYS[at], unpack(urls))) do
    reply[i] = record and 2 or reply[i]
  end
end
if ARGV[1] == '1' then
  for i, entry in ipairs(entries) do
    if reply[i] == 1 then
      forgotten[#forgotten + 1] = entry
    end
  end
  forget(set, forgotten)
end
return reply
