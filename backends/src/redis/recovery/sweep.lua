-- KEYS: pending, outbox. ARGV: crawl id, cursor, number of records to examine, lost_after and possession in ms,
-- for due, priority, bulk and task: their watermarks, then the instants before which each lost its messages.
-- One step of a scan for lost records, which become new again.
-- Returns the next cursor, then url, lane, depth, deadline, referrer, until, payload (empty: it has none) of each.
local now = now_ms()
local lost_after, possession = tonumber(ARGV[4]), tonumber(ARGV[5])

-- A stamp in the future was written before the clock was set back, and does not count.
local function past(stamp)
  return tonumber(stamp) <= now and tonumber(stamp) or 0
end

local watermark = {due = past(ARGV[6]), priority = past(ARGV[7]), bulk = past(ARGV[8]), task = past(ARGV[9])}
local lost_before = {due = past(ARGV[10]), priority = past(ARGV[11]), bulk = past(ARGV[12]), task = past(ARGV[13])}
local answer = {'0'}
-- Number of bytes of payloads that may still be returned; the other records are found in the next round.
local room = 16 * 1024 * 1024

local is_running = redis.call('HGET', key_beside(KEYS[1], 'crawl'), 'status') == 'running'

local function is_lost(state, since, lane, was_let_go)
  if is_running and was_let_go then
    return true
  elseif state == 'q' and since == 0 and not is_running then
    -- The older program that parked it in this pause did not say where its message is.
    return false
  elseif state == 'n' then
    return since + lost_after < now
  elseif state == 'h' or state == 'f' then
    return since + possession < now
  end
  local line = state == 'p' and 'due' or lane
  -- Even a queue that lost nothing may have delivered the message a moment ago: a worker may be about to claim it.
  return since + lost_after < watermark[line] or since < lost_before[line]
end

-- Whether a record is worth parsing: of millions most are in order, as their first letters show.
local function is_worth_reading(text)
  local state, since, lane = string.match(text, '^([nqphf])(%d+)%S* ?([bpt]?)')
  since = tonumber(since)
  local was_let_go = state == 'p' and string.find(text, ' ' .. PAUSED, 1, true)
  return not since or is_stray(state, since) or is_lost(state, since, LANES[lane] or 'bulk', was_let_go)
end

local function revive(url, record)
  local payload = has_payload(url) and redis.call('HGET', recipes_of(KEYS[1]), url) or ''
  if #payload > room then
    return
  end
  room = room - #payload
  local until_then = record.state == 'p' and not is_let_go(record) and record.since > now and int(record.since) or '-'
  lapse(KEYS[1], url, record)
  record.state, record.since, record.holder = 'n', now, '-'
  redis.call('HSET', KEYS[1], url, format(record))
  redis.call('ZADD', KEYS[2], int(now), ARGV[1] .. ' ' .. url)
  local deadline = record.deadline and int(record.deadline) or '-'
  for _, part in ipairs({url, record.lane, tostring(record.depth), deadline, record.referrer, until_then, payload}) do
    answer[#answer + 1] = part
  end
end

if ARGV[2] == '0' then
  -- Unconfirmed records, without a search: the outbox is in order of time.
  local prefix = ARGV[1] .. ' '
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', int(now - lost_after), 'LIMIT', 0, 500)) do
    if string.sub(member, 1, #prefix) == prefix then
      local url = string.sub(member, #prefix + 1)
      local text = redis.call('HGET', KEYS[1], url)
      local record = read(KEYS[1], url, text)
      if not record and not (text and is_newer(text)) then
        redis.call('ZREM', KEYS[2], member)
      elseif record and (record.state == 'n' or record.state == 'p' and not is_let_go(record)) then
        revive(url, record)
      end
    end
  end
end
local scan = redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
answer[1] = scan[1]
for i = 1, #scan[2], 2 do
  local url, text = scan[2][i], scan[2][i + 1]
  local record = is_worth_reading(text) and read(KEYS[1], url, text)
  if record and is_lost(record.state, record.since, record.lane, is_let_go(record)) then
    revive(url, record)
  elseif record and record.mended then
    redis.call('HSET', KEYS[1], url, format(record))
  end
end
return answer
