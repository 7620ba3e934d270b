-- KEYS: gone, seen (plain, packed). ARGV: url, short for each. What a crawl that is over did not fetch is new to a later one.
local entries = {}
for i = 1, #ARGV, 2 do
  -- What was sent again meanwhile is not gone any more.
  if redis.call('SISMEMBER', KEYS[1], ARGV[i]) == 1 then
    entries[#entries + 1] = {url = ARGV[i], short = ARGV[i + 1]}
  end
end
forget(url_set(KEYS[2], KEYS[3]), entries)
if #entries > 0 then
  redis.call('SREM', KEYS[1], unpack(column(entries, 'url')))
end
return redis.status_reply('OK')
