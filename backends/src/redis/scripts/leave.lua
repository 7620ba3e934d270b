-- KEYS: ratelimit:<host>. ARGV: for each request that is over its token, and whether the host answered it and did not want
-- to be left alone (1 or 0).
local now = now_us()
local host = load(KEYS[1], now)
local latency, ended, welcome = host.latency, false, false
for i = 1, #ARGV, 2 do
  local place = host.places[ARGV[i]]
  if place then
    local took = math.max(now - place.since, 0)
    latency = latency == 0 and took or math.floor((latency * 7 + took) / 8)
    ended = true
    -- What is named twice is over once.
    host.places[ARGV[i]] = nil
    redis.call('HDEL', KEYS[1], 'p:' .. ARGV[i])
  end
  welcome = welcome or ARGV[i + 1] == '1'
end
if ended then
  redis.call('HSET', KEYS[1], 'latency', int(latency))
end
if welcome and host.strikes > 0 and now >= host['until'] then
  redis.call('HSET', KEYS[1], 'strikes', 0)
end
