-- ARGV: crawl id, then url and the time for which its message is snoozed ("-" if it is not) for each.
local urls, wakes = {}, {}
for i = 2, #ARGV, 2 do
  urls[#urls + 1], wakes[#wakes + 1] = ARGV[i], ARGV[i + 1]
end
local texts = redis.call('HMGET', PENDING, unpack(urls))
local changed, members = {}, {}
for i, text in ipairs(texts) do
  -- The state is the first letter after the mark, if any.
  local mark, rest = split_mark(text or '')
  local state = string.sub(rest, 1, 1)
  local is_awaited = true
  if state == 'n' then
    is_awaited = wakes[i] == '-'
    if is_awaited then
      changed[#changed + 1] = urls[i]
      changed[#changed + 1] = mark .. 'q' .. string.sub(rest, 2)
    end
  elseif state == 'p' then
    local record = read(PENDING, urls[i], text)
    is_awaited = not record or is_let_go(record) or record.since == tonumber(wakes[i])
  end
  if is_awaited then
    members[#members + 1] = ARGV[1] .. ' ' .. urls[i]
  end
end
if #changed > 0 then
  redis.call('HSET', PENDING, unpack(changed))
end
if #members > 0 then
  redis.call('ZREM', OUTBOX, unpack(members))
end
return redis.status_reply('OK')
