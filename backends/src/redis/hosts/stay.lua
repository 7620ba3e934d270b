-- KEYS: ratelimit:<host>, of several hosts. ARGV for each host: number of long requests to it; for each of these:
-- its token, and the lapse from now.
local now = now_us()
local hosts = load_all(now)

local function stay(key, host, from, to)
  local last = 0
  for i = from, to, 2 do
    local place, till = host.places[ARGV[i]], now + tonumber(ARGV[i + 1])
    last = math.max(last, till)
    if place then
      redis.call('HSET', key, 'p:' .. ARGV[i], int(place.since) .. ' ' .. int(till), 'at', int(now))
    end
  end
  local rest = redis.call('PTTL', key)
  if rest > 0 then
    redis.call('PEXPIRE', key, int(math.max(rest, math.ceil((last - now) / 1000) + 60000)))
  end
end

local at = 1
for number, key in ipairs(KEYS) do
  local last = at + 2 * tonumber(ARGV[at])
  stay(key, hosts[number], at + 1, last)
  at = last + 1
end
