-- KEYS: ratelimit:<host>. ARGV: the wait that the host asked for (0: none), the first wait, jitter, the maximum
-- wait, status; the minimum wait for an event (0: never), the crawl and its spider (empty: not known). Returns the
-- wait from now.
local now = now_us()
local host = load(KEYS[1], now)
local most = tonumber(ARGV[4])
local asked = math.min(tonumber(ARGV[1]), most)
if now < host['until'] then
  host['until'] = math.max(host['until'], now + asked)
else
  if now > host['until'] + calm(host) then
    host.strikes = 0
  end
  local wait = asked
  if asked == 0 then
    local doubled = math.min(tonumber(ARGV[2]), most) * 2 ^ math.min(host.strikes, 16)
    wait = math.floor(math.min(doubled * (1 + tonumber(ARGV[3]) / 2), most))
    host.strikes = host.strikes + 1
  end
  host.since, host['until'] = now, now + wait
end
host.next = math.max(host.next, host['until'])
-- For a host that keeps refusing there is one event until it has been calm.
local from, was_told = tonumber(ARGV[6]), now <= host.told
local is_long = from > 0 and host['until'] - host.since >= from
if is_long and not was_told then
  local crawl = ARGV[7] == '' and '' or ' ' .. ARGV[7]
  note(KEYS[1], host, 'backoff', now, int(math.floor(host['until'] / 1000)) .. ' ' .. ARGV[5] .. crawl)
end
if is_long or was_told then
  redis.call('HSET', KEYS[1], 'told', int(host['until'] + calm(host)))
end
redis.call('HSET', KEYS[1], 'next', int(host.next), 'since', int(host.since), 'until', int(host['until']),
  'strikes', int(host.strikes), 'status', ARGV[5], 'at', int(now))
expire(KEYS[1], host, now)
return int(host['until'] - now)
