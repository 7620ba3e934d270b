-- KEYS: ratelimit:<host>. ARGV: lapse, then the tokens of requests that take long.
local now = now_us()
local till = now + tonumber(ARGV[1])
local host = load(KEYS[1], now)
for i = 2, #ARGV do
  local place = host.places[ARGV[i]]
  if place then
    redis.call('HSET', KEYS[1], 'p:' .. ARGV[i], int(place.since) .. ' ' .. int(till), 'at', int(now))
  end
end
local rest = redis.call('PTTL', KEYS[1])
if rest > 0 then
  redis.call('PEXPIRE', KEYS[1], int(math.max(rest, math.ceil((till - now) / 1000) + 60000)))
end
