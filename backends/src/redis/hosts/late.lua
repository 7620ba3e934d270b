-- KEYS: ratelimit:<host>, of several hosts. ARGV for each host: number of requests to it that were sent late; for
-- each of these: the minimum time from now to the next one.
local now = now_us()

each_host(now, 1, function(key, host, from, to)
  for i = from, to do
    host.taken = math.max(host.taken, now + tonumber(ARGV[i]))
  end
  redis.call('HSET', key, 'taken', int(host.taken), 'at', int(now))
  expire(key, host, now)
end)
