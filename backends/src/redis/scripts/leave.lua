-- KEYS: ratelimit:<host>. ARGV: the tokens of requests that are over.
local now = now_us()
local latency = tonumber(redis.call('HGET', KEYS[1], 'latency') or 0)
local known = false
for _, token in ipairs(ARGV) do
  local place = redis.call('HGET', KEYS[1], 'p:' .. token)
  if place then
    local took = math.max(now - tonumber(string.match(place, '^%d+')), 0)
    latency = latency == 0 and took or math.floor((latency * 7 + took) / 8)
    known = true
    redis.call('HDEL', KEYS[1], 'p:' .. token)
  end
end
if known then
  redis.call('HSET', KEYS[1], 'latency', int(latency))
end
