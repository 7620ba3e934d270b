-- KEYS: lease, crawl, seen, pending, outbox. ARGV: token, crawl id, then url, lane, deadline for each.
-- Returns for each URL whether it was new, or an empty list if the right to admit is gone.
local held = redis.call('GET', KEYS[1])
local status = redis.call('HGET', KEYS[2], 'status')
if not held or string.match(held, '^%S+') ~= ARGV[1] or not status or is_over(status) then
  return {}
end
local urls = {}
for i = 3, #ARGV, 3 do
  urls[#urls + 1] = ARGV[i]
end
local known = redis.call('SMISMEMBER', KEYS[3], unpack(urls))
local now = int(now_ms())
local new, records, outbox, fresh, twice = {}, {}, {}, {}, {}
for i, url in ipairs(urls) do
  local is_new = known[i] == 0 and not twice[url]
  new[i] = is_new and 1 or 0
  if is_new then
    twice[url] = true
    fresh[#fresh + 1] = url
    records[#records + 1] = url
    records[#records + 1] = table.concat({'n', now, '- 0 0', ARGV[i * 3 + 1], '0', ARGV[i * 3 + 2], '-'}, ' ')
    outbox[#outbox + 1] = now
    outbox[#outbox + 1] = ARGV[2] .. ' ' .. url
  end
end
if #fresh > 0 then
  redis.call('SADD', KEYS[3], unpack(fresh))
  redis.call('HSET', KEYS[4], unpack(records))
  redis.call('ZADD', KEYS[5], unpack(outbox))
  redis.call('HINCRBY', KEYS[2], 'admitted', #fresh)
end
return new
