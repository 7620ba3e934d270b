-- KEYS: ratelimit:<host>. ARGV: 1 to block, 0 to lift a block and a back-off; whether to create an event (1 or 0);
-- the instant of the command in ms, if it is from the log ("-": it is given now). A command from the log counts
-- only if no later one is known, and lifts no back-off.
-- Returns whether there was either, and the instant of the last command.
local now = now_us()
local host = load(KEYS[1], now)
local was = host.blocked or host['until'] > now
local now_ms, ordered = math.floor(now / 1000), tonumber(host.ordered or 0)
local is_logged = ARGV[3] ~= '-'
local at = is_logged and tonumber(ARGV[3]) or math.max(now_ms, ordered + 1)
if is_logged and (at <= ordered or (ARGV[1] == '1') == (host.blocked ~= nil)) then
  return {was and 1 or 0, int(ordered)}
end
local function changed(kind)
  if ARGV[2] == '1' then
    note(KEYS[1], host, kind, now, '')
  end
end
redis.call('HSET', KEYS[1], 'ordered', int(at))
if ARGV[1] == '1' then
  if not host.blocked then
    redis.call('HSET', KEYS[1], 'blocked', int(now_ms))
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
return {was and 1 or 0, int(at)}
