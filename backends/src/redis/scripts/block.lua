-- KEYS: ratelimit:<host>. ARGV: 1 to block, 0 to lift a block and a back-off; whether others are to be told (1 or 0). Returns whether
-- there was either.
local now = now_us()
local host = load(KEYS[1], now)
local was = host.blocked or host['until'] > now
local function changed(kind)
  if ARGV[2] == '1' then
    note(KEYS[1], host, kind, now, '')
  end
end
if ARGV[1] == '1' then
  if not host.blocked then
    redis.call('HSET', KEYS[1], 'blocked', int(math.floor(now / 1000)))
    changed('blocked')
  end
  redis.call('PERSIST', KEYS[1])
else
  if host.next <= host['until'] then
    redis.call('HDEL', KEYS[1], 'next')
    host.next = 0
  end
  if host.blocked then
    changed('unblocked')
  end
  redis.call('HDEL', KEYS[1], 'blocked', 'since', 'until', 'strikes', 'status', 'told')
  host.blocked, host.since, host['until'] = nil, 0, 0
  expire(KEYS[1], host, now)
end
return was and 1 or 0
