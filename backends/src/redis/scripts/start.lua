-- KEYS: pending. ARGV: worker, most starts, urls. Returns for each: 1 go, 2 poison, 0 lost.
local answer, changed = {}, {}
for i = 3, #ARGV do
  local text = redis.call('HGET', KEYS[1], ARGV[i])
  local record = text and parse(text)
  if not record or record.state ~= 'h' or record.holder ~= ARGV[1] then
    answer[#answer + 1] = 0
  elseif record.starts >= tonumber(ARGV[2]) then
    answer[#answer + 1] = 2
  else
    record.starts = record.starts + 1
    changed[#changed + 1] = ARGV[i]
    changed[#changed + 1] = format(record)
    answer[#answer + 1] = 1
  end
end
if #changed > 0 then
  redis.call('HSET', KEYS[1], unpack(changed))
end
return answer
