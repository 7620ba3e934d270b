-- KEYS: ratelimit:<host>. ARGV: interval in us, burst, horizon in us, held slot in ms (or -1).
-- The arithmetic of common/src/gcra.rs. Returns 1 (granted) or 0 (later), the wait in us, the slot in ms.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, horizon, held = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
local function whole(number)
  return string.format('%.0f', number)
end
local function granted(slot)
  return {1, whole(math.max(slot - now, 0)), whole(math.ceil(slot / 1000))}
end
if held >= 0 and now <= held * 1000 + math.floor(interval / 4) then
  return granted(held * 1000)
end
local kept = redis.call('HMGET', KEYS[1], 'next', 'line', 'minute', 'requests')
local next_slot, line = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
local burst = interval * (tonumber(ARGV[2]) - 1)
local slot = math.max(now, next_slot - burst)
if slot > now + horizon then
  line = math.max(line, now + horizon) + interval
  redis.call('HSET', KEYS[1], 'line', whole(line))
  redis.call('PEXPIRE', KEYS[1], whole(math.ceil((line - now) / 1000) + 60000))
  return {0, whole(line - now), '0'}
end
next_slot = math.max(next_slot, now) + interval
local minute = math.floor(slot / 60000000)
local requests = tonumber(kept[3] or 0) == minute and tonumber(kept[4] or 0) or 0
redis.call('HSET', KEYS[1], 'next', whole(next_slot), 'interval', ARGV[1], 'minute', whole(minute), 'requests', requests + 1)
redis.call('PEXPIRE', KEYS[1], whole(math.ceil((math.max(next_slot, line) - now) / 1000) + 60000))
return granted(slot)
