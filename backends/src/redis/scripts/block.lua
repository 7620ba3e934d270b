-- KEYS: ratelimit:<host>. ARGV: 1 to block, 0 to lift a block and a back-off. Returns whether there was either.
local now = now_us()
local host = load(KEYS[1], now)
local was = host.blocked or host['until'] > now
if ARGV[1] == '1' then
  redis.call('HSET', KEYS[1], 'blocked', host.blocked or int(math.floor(now / 1000)))
  redis.call('PERSIST', KEYS[1])
else
  if host.next <= host['until'] then
    redis.call('HDEL', KEYS[1], 'next')
    host.next = 0
  end
  redis.call('HDEL', KEYS[1], 'blocked', 'since', 'until', 'strikes', 'status')
  host.blocked, host.since, host['until'] = nil, 0, 0
  expire(KEYS[1], host, now)
end
return was and 1 or 0
