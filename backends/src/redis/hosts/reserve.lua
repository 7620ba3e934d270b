-- KEYS: ratelimit:<host>, of several hosts. ARGV for each host: number of URLs; for each of these: interval, burst,
-- concurrency, held slot, deadline and turn in the waitlist in ms (or `NONE`; a turn of `ASIDE` stays off the waitlist),
-- token, lapse. Returns for each URL: `AT_ONCE`, `RESERVED`, `LATER`, `TOO_LATE` or `BLOCKED`; the wait; the slot or the
-- turn in ms.
local now = now_us()
-- For the current host: its schedule, the fields to write, and those to remove.
local host, changed, left

local function forget(token)
  host.places[token] = nil
  host.under_way = host.under_way - 1
  changed['p:' .. token] = nil
  left[#left + 1] = 'p:' .. token
end

local function set(name, value)
  host[name] = value
  changed[name] = value
end

-- The interval of the pace, but long enough for the limit in flight (Little's law).
local function effective(interval, concurrency)
  return math.max(interval, concurrency > 0 and math.floor(host.latency / concurrency) or 0)
end

-- The minimum time between two requests while late ones catch up.
local function step(interval)
  return interval - math.floor(interval / TOLERANCE)
end

-- The first instant at which another request is not too early after those that were sent. Without a rate, any is.
local function earliest(wish, interval)
  local quantum = interval < QUANTUM and QUANTUM or 0
  return wish.interval > 0 and host.taken - step(interval) * (wish.burst - 1) - quantum or 0
end

local function honours(held, interval)
  local honoured = interval < QUANTUM and QUANTUM or math.floor(interval / HONOURED)
  return now <= held + honoured and held >= host['until'] and held <= now + 2 * HORIZON
end

local function reserved(slot)
  return {RESERVED, int(slot - now), int(math.ceil(slot / 1000))}
end

local function count_request()
  local minute = math.floor(now / 60000000)
  set('requests', (host.minute == minute and host.requests or 0) + 1)
  set('minute', minute)
end

-- Lets a request be sent; at the limit in flight, reserves a slot for the time when one should have ended.
local function enter(wish, interval)
  if wish.concurrency > 0 and host.under_way >= wish.concurrency then
    -- If none has ended for a while, it may take as long again: waiting requests should not ask all the time.
    local youngest = 0
    for _, place in pairs(host.places) do
      youngest = math.max(youngest, place.since)
    end
    local wait = math.max(now - youngest, MIN_STEP)
    local slot = math.min(math.max(host.next, now + math.max(interval, wait)), now + HORIZON)
    set('next', math.max(host.next, slot + math.max(interval, math.floor(wait / wish.concurrency))))
    return reserved(slot)
  end
  set('taken', math.max(host.taken, now) + step(interval))
  if wish.concurrency > 0 then
    host.places[wish.token] = {since = now, till = now + wish.lapse}
    host.under_way = host.under_way + 1
    changed['p:' .. wish.token] = int(now) .. ' ' .. int(now + wish.lapse)
  end
  count_request()
  return {AT_ONCE, '0', '0'}
end

-- Keeps the turn in the waitlist, or joins its end. A turn after the deadline only counts if the waitlist was
-- still there when the URL came back.
local function wait_in_line(wish, turn, slot, interval)
  local known = turn
  turn = turn or math.max(host.line, slot)
  if wish.deadline < turn then
    if known then
      return {TOO_LATE, '0', '0'}
    end
  elseif not known then
    set('line', turn + interval)
  end
  return {LATER, int(math.max(turn - now - LEAD, 0)), int(math.floor(turn / 1000))}
end

local function reserve(wish)
  if host.places[wish.token] then
    forget(wish.token)
  end
  if host.blocked then
    return {BLOCKED, '0', '0'}
  end
  local interval = effective(wish.interval, wish.concurrency)
  local ready = earliest(wish, interval)
  if wish.held and honours(wish.held, interval) then
    local slot = math.max(wish.held, ready)
    return slot > now + EARLY and reserved(slot) or enter(wish, interval)
  end
  local free = wish.interval > 0 and host.next - interval * (wish.burst - 1) or 0
  local slot = math.max(now, free, host['until'], ready)
  if slot < now + REACH and host.line > 0 then
    set('line', 0)
  end
  if wish.deadline < slot then
    return {TOO_LATE, '0', '0'}
  end
  if slot > now + HORIZON and wish.aside then
    return {LATER, int(slot - now - HORIZON), int(math.floor(slot / 1000))}
  end
  local turn = wish.turn and wish.turn > slot and wish.turn <= host.line and wish.turn or nil
  if slot > now + HORIZON or turn and turn > now + LEAD + REACH then
    return wait_in_line(wish, turn, slot, interval)
  end
  local answer = slot > now and reserved(slot) or enter(wish, interval)
  if slot > now or answer[1] == AT_ONCE then
    set('next', math.max(host.next, now, host['until'], ready) + interval)
  end
  return answer
end

local function wish_at(i)
  local held, deadline, turn = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
  return {
    interval = tonumber(ARGV[i]), burst = tonumber(ARGV[i + 1]), concurrency = tonumber(ARGV[i + 2]),
    held = held ~= NONE and held * 1000, deadline = deadline ~= NONE and deadline * 1000 or math.huge,
    turn = turn >= 0 and turn * 1000, aside = turn == ASIDE, token = ARGV[i + 6], lapse = tonumber(ARGV[i + 7]),
  }
end

local function save(key)
  if #left > 0 then
    redis.call('HDEL', key, unpack(left))
  end
  if next(changed) then
    changed.at = now
    local fields = {}
    for name, value in pairs(changed) do
      fields[#fields + 1] = name
      fields[#fields + 1] = type(value) == 'number' and int(value) or value
    end
    redis.call('HSET', key, unpack(fields))
    expire(key, host, now)
  end
end

local answers = {}
each_host(now, 8, function(key, schedule, from, to)
  host, changed, left = schedule, {}, {}
  for token, place in pairs(host.places) do
    if place.till <= now then
      forget(token)
    end
  end
  for i = from, to, 8 do
    local wish = wish_at(i)
    for _, part in ipairs(reserve(wish)) do
      answers[#answers + 1] = part
    end
    if next(changed) then
      changed.interval = wish.interval
    end
  end
  save(key)
end)
return answers
