-- KEYS: ratelimit:<host>. ARGV: for each request that is over its token, and whether the host answered it and did not want
-- to be left alone (1 or 0).
local now = now_us()
local known = redis.call('HMGET', KEYS[1], 'latency', 'strikes', 'until')
local latency, strikes, till = tonumber(known[1] or 0), tonumber(known[2] or 0), tonumber(known[3] or 0)
local ended, welcome = false, false
for i = 1, #ARGV, 2 do
  local place = redis.call('HGET', KEYS[1], 'p:' .. ARGV[i])
  if place then
    local took = math.max(now - tonumber(string.match(place, '^%d+')), 0)
    latency = latency == 0 and took or math.floor((latency * 7 + took) / 8)
    ended = true
    redis.call('HDEL', KEYS[1], 'p:' .. ARGV[i])
  end
  welcome = welcome or ARGV[i + 1] == '1'
end
if ended then
  redis.call('HSET', KEYS[1], 'latency', int(latency))
end
if welcome and strikes > 0 and now >= till then
  redis.call('HSET', KEYS[1], 'strikes', 0)
end
