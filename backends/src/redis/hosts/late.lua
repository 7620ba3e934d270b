-- KEYS: ratelimit:<host>, of several hosts. ARGV for each host: number of requests to it that were sent late; for
-- each of these: the minimum time from now to the next one.
local now = now_us()
local hosts = load_all(now)

local at = 1
for number, key in ipairs(KEYS) do
  local host, last = hosts[number], at + tonumber(ARGV[at])
  for i = at + 1, last do
    host.taken = math.max(host.taken, now + tonumber(ARGV[i]))
  end
  redis.call('HSET', key, 'taken', int(host.taken), 'at', int(now))
  expire(key, host, now)
  at = last + 1
end
