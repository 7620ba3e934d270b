-- ARGV: url, short for each. Makes URLs that a finished crawl did not fetch new to a later one.
local entries = {}
for i = 1, #ARGV, 2 do
  -- A URL that was sent again meanwhile is no longer in `gone`.
  if redis.call('SISMEMBER', GONE, ARGV[i]) == 1 then
    entries[#entries + 1] = {url = ARGV[i], short = ARGV[i + 1]}
  end
end
forget(url_set(SEEN_PLAIN, SEEN_PACKED), entries)
if #entries > 0 then
  redis.call('SREM', GONE, unpack(column(entries, 'url')))
end
return redis.status_reply('OK')
