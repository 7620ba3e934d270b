-- KEYS: index, bytes. ARGV: maximum size of all values in bytes, then for each new value its size in bytes, its
-- time to live in ms, and its key. The index is a sorted set of "<bytes> <key>" by expiry. Returns the keys to
-- remove: those that expire first.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most = tonumber(ARGV[1])
local bytes = tonumber(redis.call('GET', KEYS[2]) or 0)
for i = 2, #ARGV, 3 do
  bytes = bytes + ARGV[i] * redis.call('ZADD', KEYS[1], now + ARGV[i + 1], ARGV[i] .. ' ' .. ARGV[i + 2])
end
local gone = {}
for _ = 1, 5000 do
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  local has_lapsed = first[1] and tonumber(first[2]) <= now
  if not first[1] or bytes <= most and not has_lapsed then
    break
  end
  redis.call('ZREM', KEYS[1], first[1])
  local size, key = string.match(first[1], '^(%d+) (.*)$')
  bytes = bytes - (size or 0)
  if key and not has_lapsed then
    gone[#gone + 1] = key
  end
end
-- The counters expire with the last value.
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
local left = last[1] and last[2] - now or 0
redis.call('SET', KEYS[2], string.format('%.0f', math.max(bytes, 0)), 'PX', string.format('%.0f', left + 1000))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', left + 1000))
return gone
