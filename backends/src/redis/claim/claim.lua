-- ARGV: worker; in a crawl of requests the time in ms after which a URL may be requested again (otherwise "-"); whether the
-- worker only extends its leases (1 or 0); how long it may hold a record in ms; crawl id; then for each message its url and
-- what the constants below name: `WAKE` is the time for which it was snoozed; only a task or a request has `PAYLOAD` (empty: it is
-- not sent along).
-- `TAKES_NEW`, defined before this text, says whether a URL without a record gets one.
-- Returns nothing if the crawl is not known; otherwise for each message: attempts so far, or a negative reply (`DROP` and so
-- on); starts without an end; deadline, or the time until which it is snoozed; and the time since when the URL could have
-- been claimed, if it is claimed now and that is known. If the worker only extends: 0 if it still holds the record, or `DROP`.
local SHORT, LANE, DEPTH, DEADLINE, REFERRER, SENDER, WAKE, PAYLOAD = 1, 2, 3, 4, 5, 6, 7, 8
local now = now_ms()
local worker, extends, possession, crawl_id = ARGV[1], ARGV[3] == '1', tonumber(ARGV[4]), ARGV[5]
local state = redis.call('HMGET', CRAWL, 'status', 'idle', 'barrier')
local status, idle, recovers = state[1], tonumber(state[2] or 0), state[3]
if not status then
  return {}
end
local is_adhoc = ARGV[2] ~= '-'
if is_adhoc and redis.call('HGET', CRAWL, 'again') ~= ARGV[2] then
  redis.call('HSET', CRAWL, 'again', ARGV[2])
end

local seen
local requests, asked, repeats = requests_of(CRAWL, OWN_PLAIN), {}, 0
local full = room_in(CRAWL) == 0

-- Whether a message requests its URL or task although the spider has seen it. The message of a task that was never
-- snoozed does not: the task may have been done before its message came (start_task.lua), however long ago.
local function asks_again(url, at)
  local whose, is_first = tonumber(ARGV[at + SENDER]), ARGV[at + WAKE] == '-' and is_task(url)
  return requests and whose ~= OUR_URL and not (whose == OUR_REQUEST and is_first)
end

-- The record of a URL, stored as `text`; a new one if there is none and its spider never saw the URL, or if it is
-- a request and was not requested lately.
local function record_of(url, text, at)
  if text then
    return read(PENDING, url, text), false
  end
  if requests and is_task(url) and redis.call('SISMEMBER', gone_of(PENDING), url) == 1 then
    -- It was cancelled, and this is its message. If the worker only extends, that message is still to come.
    if not extends then
      redis.call('SREM', gone_of(PENDING), url)
    end
    return nil, false
  end
  seen = seen or seen_of(CRAWL)
  local entries = {{url = url, short = ARGV[at + SHORT]}}
  if asks_again(url, at) then
    if was_asked(requests, url, now) then
      repeats = repeats + ((extends or tonumber(ARGV[at + SENDER]) == OUR_REQUEST) and 0 or 1)
      return nil, false
    end
  elseif knows(seen, entries)[1] == 1 then
    return nil, false
  end
  if not TAKES_NEW then
    return nil, true
  end
  learn(seen, entries)
  asked[#asked + 1] = url
  redis.call('HINCRBY', CRAWL, 'admitted', 1)
  if has_payload(url) then
    redis.call('HSET', recipes_of(PENDING), url, ARGV[at + PAYLOAD])
  end
  if not is_task(url) then
    redis.call('HINCRBY', HOSTS, host_of(url) .. ' admitted', 1)
  end
  return new_record(url, now, ARGV[at + LANE], ARGV[at + DEPTH], deadline_less(ARGV[at + DEADLINE], idle), ARGV[at + REFERRER]), true
end

local function is_free(record)
  if is_held(record) then
    return is_held_by(record, worker) or record.since + possession < now
  end
  -- Clocks differ a little; a message that comes slightly early waits in the worker.
  return record.state ~= 'p' or is_let_go(record) or record.since <= now + 5000
end

local function hold(record, state)
  record.state, record.since, record.holder = state, now, worker
end

-- The time until which a message is snoozed in a pause. It is only a copy, in case a server forgets its record,
-- and then the end of the crawl waits for it: eight times `recovery.lost_after`, and longer if more than a
-- thousand would come back each second.
local function after_a_while()
  return now + math.min(math.max(32 * possession, redis.call('HLEN', PENDING)), 3600000)
end

-- The time since when a free record waits for a worker; "-" if that is not known, as for one that was let go.
local function waits_since(record)
  return not is_held(record) and not is_let_go(record) and record.since > 0 and int(record.since) or '-'
end

-- Returns attempts, starts, deadline, and the time since when it has waited.
local function claim(url, record, is_new, wake)
  if not (recovers and is_new) and is_free(record) and not is_held_by(record, worker) then
    lapse(PENDING, url, record)
  end
  if recovers and is_new then
    -- The queue is gone through once, so that this server knows everything in it long before all is fetched.
    return SEND_AGAIN, 0, '-'
  elseif status == 'paused' and is_free(record) then
    let_go(record, after_a_while())
    return SNOOZE, 0, int(record.since)
  elseif is_free(record) then
    local since = waits_since(record)
    hold(record, 'h')
    if full then
      return FULL, 0, '-'
    end
    return record.attempts, record.starts, record.deadline and int(record.deadline + idle) or '-', is_new and '-' or since
  elseif is_held(record) then
    return SNOOZE, 0, int(record.since + possession + 1)
  elseif record.since == tonumber(wake) or redis.call('ZSCORE', OUTBOX, crawl_id .. ' ' .. url) then
    -- This is no copy, but the message that the record waits for: its rung, or a clock, has changed. Or nobody has
    -- confirmed that one, and its worker may have died before it was published.
    return SNOOZE, 0, int(record.since)
  end
  return DROP, 0, '-'
end

local function extend(url, record, is_new)
  if not is_new and not is_held_by(record, worker) then
    withdraw_start(PENDING, url, record, worker)
    return DROP, 0, '-'
  end
  hold(record, is_new and 'h' or record.state)
  return 0, 0, '-'
end

local urls, places = {}, {}
local next_at = 6
while next_at <= #ARGV do
  urls[#urls + 1], places[#places + 1] = ARGV[next_at], next_at
  next_at = next_at + (has_payload(ARGV[next_at]) and PAYLOAD + 1 or PAYLOAD)
end
local texts = redis.call('HMGET', PENDING, unpack(urls))
local answer, changed = {}, {}
for i, url in ipairs(urls) do
  local record, is_new
  if not is_over(status) then
    record, is_new = record_of(url, texts[i], places[i])
  end
  local attempts, starts, deadline, since = DROP, 0, '-', '-'
  if record then
    attempts, starts, deadline, since = (extends and extend or claim)(url, record, is_new, ARGV[places[i] + WAKE])
    changed[#changed + 1] = url
    changed[#changed + 1] = format(record)
  elseif is_new then
    attempts = NO_ROOM
  elseif texts[i] and is_newer(texts[i]) and not is_over(status) then
    attempts = NEWER
  end
  answer[#answer + 1] = attempts
  answer[#answer + 1] = starts
  answer[#answer + 1] = deadline
  answer[#answer + 1] = since or '-'
end
if #changed > 0 then
  redis.call('HSET', PENDING, unpack(changed))
end
if requests then
  note_asked(requests, asked, now)
end
if repeats > 0 then
  redis.call('HINCRBY', CRAWL, 'dropped:repeat', repeats)
end
return answer
