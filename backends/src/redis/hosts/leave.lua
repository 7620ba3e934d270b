-- KEYS: ratelimit:<host>, of several hosts. ARGV for each host: number of its finished requests; for each of
-- these: its token, and whether the host answered it without asking to be left alone (1 or 0).
local now = now_us()
local hosts = load_all(now)

local function leave(key, host, from, to)
  local latency, ended, welcome = host.latency, false, false
  for i = from, to, 2 do
    local place = host.places[ARGV[i]]
    if place then
      local took = math.max(now - place.since, 0)
      latency = latency == 0 and took or math.floor((latency * 7 + took) / 8)
      ended = true
      -- Ignore a token listed twice.
      host.places[ARGV[i]] = nil
      redis.call('HDEL', key, 'p:' .. ARGV[i])
    end
    welcome = welcome or ARGV[i + 1] == '1'
  end
  if ended then
    redis.call('HSET', key, 'latency', int(latency))
  end
  if welcome and host.strikes > 0 and now >= host['until'] then
    redis.call('HSET', key, 'strikes', 0)
  end
end

local at = 1
for number, key in ipairs(KEYS) do
  local last = at + 2 * tonumber(ARGV[at])
  leave(key, hosts[number], at + 1, last)
  at = last + 1
end
