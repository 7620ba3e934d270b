-- KEYS: index, bytes. ARGV: how many bytes all responses may take, for how long one is kept at most in ms, then bytes and URL of each
-- that was put. The index is a sorted set of "<bytes> <url>" by when each was put. Returns the URLs of those that are to go: the oldest.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most, longest = tonumber(ARGV[1]), tonumber(ARGV[2])
local bytes = tonumber(redis.call('GET', KEYS[2]) or 0)
for i = 3, #ARGV, 2 do
  bytes = bytes + ARGV[i] * redis.call('ZADD', KEYS[1], now, ARGV[i] .. ' ' .. ARGV[i + 1])
end
local gone = {}
for _ = 1, 5000 do
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  local is_over = oldest[1] and tonumber(oldest[2]) + longest < now
  if not oldest[1] or bytes <= most and not is_over then
    break
  end
  redis.call('ZREM', KEYS[1], oldest[1])
  local size, url = string.match(oldest[1], '^(%d+) (.*)$')
  bytes = bytes - (size or 0)
  if url and not is_over then
    gone[#gone + 1] = url
  end
end
-- When nothing was put for so long, nothing is left.
redis.call('SET', KEYS[2], string.format('%.0f', math.max(bytes, 0)), 'PX', longest + 1000)
redis.call('PEXPIRE', KEYS[1], longest + 1000)
return gone
