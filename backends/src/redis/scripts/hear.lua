-- KEYS: crawl, seen, pending. ARGV: worker, spider, whether the crawl is the one that never ends (1 or 0), whether
-- the worker only keeps what it has (1 or 0), how long it may hold a record in ms, then
-- url, lane, depth, deadline, referrer for each message.
-- Returns whether the crawl is new, then for each message: attempts so far (-1: drop it, -2: send it again) and its
-- deadline.
local now = now_ms()
local worker, keeps, possession = ARGV[1], ARGV[4] == '1', tonumber(ARGV[5])
local state = redis.call('HMGET', KEYS[1], 'status', 'idle', 'barrier')
local status, idle, recovers = state[1], tonumber(state[2] or 0), state[3]
local created = not status
if created then
  -- Known only from its messages: a program of someone's sends them, or this server has forgotten the crawl.
  status = 'running'
  redis.call('HSET', KEYS[1], 'spider', ARGV[2], 'status', status, 'started', int(now), 'discovery', 'unknown',
    'run', run_id())
  if ARGV[3] == '0' then
    redis.call('HSET', KEYS[1], 'barrier', int(now), 'pass', 1)
    recovers = true
  end
end

-- The record of a URL; a new one if its spider never saw it.
local function record_of(url, at)
  local text = redis.call('HGET', KEYS[3], url)
  if text then
    return parse(text), false
  end
  if redis.call('SADD', KEYS[2], url) == 0 then
    return nil, false
  end
  redis.call('HINCRBY', KEYS[1], 'admitted', 1)
  return {
    state = 'q', since = now, holder = '-', starts = 0, attempts = 0, lane = ARGV[at + 1], depth = ARGV[at + 2],
    deadline = ARGV[at + 3], referrer = ARGV[at + 4],
  }, true
end

local function may_have(record, is_new)
  local mine = is_held_by(record, worker)
  if keeps then
    return mine or is_new
  end
  if is_held(record) then
    return mine or record.since + possession < now
  end
  -- Clocks differ a little; what comes a moment early waits in the worker.
  return record.state ~= 'p' or record.since <= now + 5000
end

local answer = {created and 1 or 0}
for at = 6, #ARGV, 5 do
  local record, is_new
  if not is_over(status) then
    record, is_new = record_of(ARGV[at], at)
  end
  local attempts, deadline = -1, '-'
  if record and may_have(record, is_new) then
    if recovers and is_new and not keeps then
      -- The queue goes round once, so that this server knows all that is in it long before all is fetched.
      attempts = -2
    elseif status == 'paused' and not keeps then
      -- Its message goes; since the beginning of time without one, the record is found after the pause.
      record.state, record.since, record.holder = 'q', 0, '-'
    else
      record.state = keeps and record.state == 'f' and 'f' or 'h'
      record.since, record.holder = now, worker
      attempts = record.attempts
      deadline = record.deadline == '-' and '-' or int(tonumber(record.deadline) + idle)
    end
    redis.call('HSET', KEYS[3], ARGV[at], format(record))
  end
  answer[#answer + 1] = attempts
  answer[#answer + 1] = deadline
end
return answer
