-- KEYS: pending, crawl. ARGV: worker, most starts, urls. Returns for each: 1 go, 2 poison, 0 lost.
local status = redis.call('HGET', KEYS[2], 'status')
local answer, changed = {}, {}
for i = 3, #ARGV do
  local text = redis.call('HGET', KEYS[1], ARGV[i])
  local record = text and parse(text)
  local told = 0
  if record and is_held_by(record, ARGV[1]) then
    if status == 'paused' then
      record.state, record.since, record.holder = 'q', 0, '-'
    elseif record.state == 'f' then
      -- Asked again: the first answer was lost on its way.
      told = 1
    elseif record.starts >= tonumber(ARGV[2]) then
      told = 2
    elseif status == 'running' then
      record.state, record.starts = 'f', record.starts + 1
      told = 1
    end
    changed[#changed + 1] = ARGV[i]
    changed[#changed + 1] = format(record)
  end
  answer[#answer + 1] = told
end
if #changed > 0 then
  redis.call('HSET', KEYS[1], unpack(changed))
end
return answer
