-- ARGV: crawl id, urls.
local urls, members = {}, {}
for i = 2, #ARGV do
  urls[i - 1] = ARGV[i]
  members[i - 1] = ARGV[1] .. ' ' .. ARGV[i]
end
local texts = redis.call('HMGET', PENDING, unpack(urls))
local changed = {}
for i, text in ipairs(texts) do
  -- The state is the first letter after the mark, if any, and nothing else changes.
  local mark, rest = split_mark(text or '')
  if string.sub(rest, 1, 1) == 'n' then
    changed[#changed + 1] = urls[i]
    changed[#changed + 1] = mark .. 'q' .. string.sub(rest, 2)
  end
end
if #changed > 0 then
  redis.call('HSET', PENDING, unpack(changed))
end
redis.call('ZREM', OUTBOX, unpack(members))
return redis.status_reply('OK')
