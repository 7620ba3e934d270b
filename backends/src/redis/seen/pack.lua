-- ARGV: url, short for each. Moves URLs from a plain set to the packed one beside it,
-- to which new URLs are added from then on.
local set, entries = url_set(SEEN_PLAIN, SEEN_PACKED), {}
for i = 1, #ARGV, 2 do
  -- A URL that was forgotten meanwhile stays so.
  if redis.call('SISMEMBER', set.plain, ARGV[i]) == 1 then
    entries[#entries + 1] = {url = ARGV[i], short = ARGV[i + 1]}
  end
end
if #entries > 0 then
  pack_from_now_on(set)
  learn(set, entries)
  redis.call('SREM', set.plain, unpack(column(entries, 'url')))
end
return redis.status_reply('OK')
