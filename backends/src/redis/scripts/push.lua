-- KEYS: ratelimit:<host>. ARGV: for how long the host asked (0: it did not say), the first wait, jitter, status.
-- Returns for how long it is left alone from now.
local now = now_us()
local host = load(KEYS[1])
local asked = math.min(tonumber(ARGV[1]), MAX_BACKOFF)
if now < host['until'] then
  host['until'] = math.max(host['until'], now + asked)
else
  if now > host['until'] + calm(host) then
    host.strikes = 0
  end
  local doubled = tonumber(ARGV[2]) * 2 ^ math.min(host.strikes, 16) * (1 + tonumber(ARGV[3]) / 2)
  local wait = asked > 0 and asked or math.floor(math.min(doubled, MAX_BACKOFF))
  host.since, host['until'], host.strikes = now, now + wait, host.strikes + 1
end
host.next = math.max(host.next, host['until'])
redis.call('HSET', KEYS[1], 'next', int(host.next), 'since', int(host.since), 'until', int(host['until']),
  'strikes', int(host.strikes), 'status', ARGV[4])
expire(KEYS[1], host, now)
return int(host['until'] - now)
