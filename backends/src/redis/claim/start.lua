-- KEYS: pending, crawl, begun. ARGV: worker, maximum starts, urls. Returns for each: 1 go, 2 poison, 3 the crawl
-- has reached its limit, 4 it has as many under way as it may still do, 0 lost. Returns an empty list if the crawl
-- is running, as far as is known, and this server may have lost a command.
local status = redis.call('HGET', KEYS[2], 'status')
if status == 'running' and is_unsure(KEYS[2]) then
  return {}
end
local room = room_in(KEYS[2])
local answer, changed = {}, {}

-- The begun records of a crawl with a limit are a set, so that none counts twice.
local function has_place(url)
  if not room or redis.call('SISMEMBER', KEYS[3], url) == 1 then
    return true
  elseif redis.call('SCARD', KEYS[3]) >= room then
    return false
  end
  redis.call('SADD', KEYS[3], url)
  return true
end

local function start(record, url)
  if record.state == 'f' then
    -- Called again: the first answer was lost.
    return 1
  elseif room == 0 then
    return 3
  elseif record.starts >= tonumber(ARGV[2]) then
    return 2
  elseif not has_place(url) then
    return 4
  end
  record.state, record.starts = 'f', record.starts + 1
  return 1
end

local texts = redis.call('HMGET', KEYS[1], unpack(ARGV, 3))
for i = 3, #ARGV do
  local text = texts[i - 2]
  local record = read(KEYS[1], ARGV[i], text)
  local reply = 0
  if record and is_held_by(record, ARGV[1]) then
    if status == 'paused' then
      let_go(record, NOW)
    elseif status == 'running' then
      reply = start(record, ARGV[i])
    end
    changed[#changed + 1] = ARGV[i]
    changed[#changed + 1] = format(record)
  end
  answer[#answer + 1] = reply
end
if #changed > 0 then
  redis.call('HSET', KEYS[1], unpack(changed))
end
return answer
