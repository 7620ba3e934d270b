-- ARGV: by name, as JSON: id, cursor, count (the number of records to examine), lost_after and possession in ms, and by
-- queue delivered (its watermark) and lost_before (the instant before which it lost its messages).
-- One step of a scan for lost records, which become new again.
-- Returns the next cursor, then of each: url, lane, depth, deadline, referrer, until, payload (empty: it has none), and
-- the instant since when it could have been fetched, so that it comes before those that wait for less long.
local now = now_ms()
local ask = cjson.decode(ARGV[1])
local lost_after, possession = ask.lost_after, ask.possession

-- A stamp in the future was written before the clock was set back, and does not count.
local function past(stamp)
  return stamp <= now and stamp or 0
end

local function by_queue(stamps)
  local known = {}
  for queue, stamp in pairs(stamps) do
    known[queue] = past(stamp)
  end
  return known
end

local delivered, lost_before = by_queue(ask.delivered), by_queue(ask.lost_before)
local answer = {'0'}
-- Number of bytes of payloads that may still be returned; the other records are found in the next round.
local room = 16 * 1024 * 1024

local is_running = redis.call('HGET', key_beside(PENDING, 'crawl'), 'status') == 'running'

local function is_lost(state, since, lane, was_let_go)
  if is_running and was_let_go then
    return true
  elseif state == 'n' then
    return since + lost_after < now
  elseif state == 'h' or state == 'f' then
    return since + possession < now
  end
  local line = state == 'p' and 'due' or lane
  -- Even a queue that lost nothing may have delivered the message a moment ago: a worker may be about to claim it.
  return since + lost_after < delivered[line] or since < lost_before[line]
end

-- Whether a record is worth parsing: of millions most are in order, as their first letters show.
local function is_worth_reading(text)
  local state, since, lane = string.match(text, '^([nqphf])(%d+)%S* ?([bpt]?)')
  since = tonumber(since)
  local was_let_go = state == 'p' and string.find(text, ' ' .. PAUSED, 1, true)
  return not since or is_stray(state, since) or is_lost(state, since, LANES[lane] or 'bulk', was_let_go)
end

local function revive(url, record)
  local payload = has_payload(url) and redis.call('HGET', recipes_of(PENDING), url) or ''
  if #payload > room then
    return
  end
  room = room - #payload
  local until_then = record.state == 'p' and not is_let_go(record) and record.since > now and int(record.since) or '-'
  local waits_since = int(math.min(record.since, now))
  lapse(PENDING, url, record)
  record.state, record.since, record.holder = 'n', now, '-'
  redis.call('HSET', PENDING, url, format(record))
  redis.call('ZADD', OUTBOX, int(now), ask.id .. ' ' .. url)
  local deadline = record.deadline and int(record.deadline) or '-'
  local depth = tostring(record.depth)
  for _, part in ipairs({url, record.lane, depth, deadline, record.referrer, until_then, payload, waits_since}) do
    answer[#answer + 1] = part
  end
end

if ask.cursor == '0' then
  -- Unconfirmed records, without a search: the outbox is in order of time.
  local prefix = ask.id .. ' '
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', OUTBOX, '-inf', int(now - lost_after), 'LIMIT', 0, 500)) do
    if string.sub(member, 1, #prefix) == prefix then
      local url = string.sub(member, #prefix + 1)
      local text = redis.call('HGET', PENDING, url)
      local record = read(PENDING, url, text)
      if not record and not (text and is_newer(text)) then
        redis.call('ZREM', OUTBOX, member)
      elseif record and (record.state == 'n' or record.state == 'p' and not is_let_go(record)) then
        revive(url, record)
      end
    end
  end
end
local scan = redis.call('HSCAN', PENDING, ask.cursor, 'COUNT', ask.count)
answer[1] = scan[1]
for i = 1, #scan[2], 2 do
  local url, text = scan[2][i], scan[2][i + 1]
  local record = is_worth_reading(text) and read(PENDING, url, text)
  if record and is_lost(record.state, record.since, record.lane, is_let_go(record)) then
    revive(url, record)
  elseif record and record.mended then
    redis.call('HSET', PENDING, url, format(record))
  end
end
return answer
