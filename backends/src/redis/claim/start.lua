-- ARGV: worker, maximum starts, urls. Returns for each `GO`, `POISON`, `LIMIT` if the crawl has reached it, `AWAITED` if
-- it has as many under way as it may still do, or `LOST`. Returns an empty list if the crawl is running, as far as is
-- known, and this server may have lost a command.
local worker, most_starts = ARGV[1], tonumber(ARGV[2])
local status = redis.call('HGET', CRAWL, 'status')
if status == 'running' and is_unsure(CRAWL) then
  return {}
end
local room = room_in(CRAWL)
local answer, changed = {}, {}

-- The begun records of a crawl with a limit are a set, so that none counts twice.
local function has_place(url)
  if not room or redis.call('SISMEMBER', BEGUN, url) == 1 then
    return true
  elseif redis.call('SCARD', BEGUN) >= room then
    return false
  end
  redis.call('SADD', BEGUN, url)
  return true
end

local function start(record, url)
  if record.state == 'f' then
    -- Called again: the first answer was lost.
    return GO
  elseif room == 0 then
    return LIMIT
  elseif record.starts >= most_starts then
    return POISON
  elseif not has_place(url) then
    return AWAITED
  end
  record.state, record.starts = 'f', record.starts + 1
  return GO
end

local texts = redis.call('HMGET', PENDING, unpack(ARGV, 3))
for i = 3, #ARGV do
  local text = texts[i - 2]
  local record = read(PENDING, ARGV[i], text)
  local reply = LOST
  if record and is_held_by(record, worker) then
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
  redis.call('HSET', PENDING, unpack(changed))
end
return answer
