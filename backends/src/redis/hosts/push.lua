-- KEYS: ratelimit:<host>. ARGV: by name, as JSON: asked (the wait that the host asked for; 0: none), first (the first wait),
-- jitter, most (the maximum wait), status, announced_from (the minimum wait for an event; 0: never), crawl (with its
-- spider; empty: not known). Returns the wait from now.
local now = now_us()
local host = load(KEYS[1], now)
local ask = cjson.decode(ARGV[1])
local most = ask.most
local asked = math.min(ask.asked, most)
if now < host['until'] then
  host['until'] = math.max(host['until'], now + asked)
else
  if now > host['until'] + calm(host) then
    host.strikes = 0
  end
  local wait = asked
  if asked == 0 then
    local doubled = math.min(ask.first, most) * 2 ^ math.min(host.strikes, 16)
    wait = math.floor(math.min(doubled * (1 + ask.jitter / 2), most))
    host.strikes = host.strikes + 1
  end
  host.since, host['until'] = now, now + wait
end
host.next = math.max(host.next, host['until'])
-- For a host that keeps refusing there is one event until it has been calm.
local from, was_told = ask.announced_from, now <= host.told
local is_long = from > 0 and host['until'] - host.since >= from
if is_long and not was_told then
  local crawl = ask.crawl == '' and '' or ' ' .. ask.crawl
  note(KEYS[1], host, 'backoff', now, int(math.floor(host['until'] / 1000)) .. ' ' .. ask.status .. crawl)
end
if is_long or was_told then
  redis.call('HSET', KEYS[1], 'told', int(host['until'] + calm(host)))
end
redis.call('HSET', KEYS[1], 'next', int(host.next), 'since', int(host.since), 'until', int(host['until']),
  'strikes', int(host.strikes), 'status', ask.status, 'at', int(now))
expire(KEYS[1], host, now)
return int(host['until'] - now)
