-- KEYS: ratelimit:<host>, of several hosts. ARGV for each host: number of its requests in flight; for each of these: its
-- token; and the lapse from now if it goes on, `LEFT` if it has ended, or `WELCOME` if the host answered it without asking
-- to be left alone.
local now = now_us()

local function go_on(key, token, place, till)
  if place then
    redis.call('HSET', key, 'p:' .. token, int(place.since) .. ' ' .. int(till), 'at', int(now))
  end
  local rest = redis.call('PTTL', key)
  if rest > 0 then
    redis.call('PEXPIRE', key, int(math.max(rest, math.ceil((till - now) / 1000) + 60000)))
  end
end

local function leave(key, host, token, place)
  local took = math.max(now - place.since, 0)
  host.latency = host.latency == 0 and took or math.floor((host.latency * 7 + took) / 8)
  -- Ignore a token listed twice.
  host.places[token] = nil
  redis.call('HDEL', key, 'p:' .. token)
end

each_host(now, 2, function(key, host, from, to)
  local latency, is_welcome = host.latency, false
  for i = from, to, 2 do
    local token, what = ARGV[i], tonumber(ARGV[i + 1])
    local place = host.places[token]
    if what ~= LEFT and what ~= WELCOME then
      go_on(key, token, place, now + what)
    elseif place then
      leave(key, host, token, place)
    end
    is_welcome = is_welcome or what == WELCOME
  end
  if host.latency ~= latency then
    redis.call('HSET', key, 'latency', int(host.latency))
  end
  if is_welcome and host.strikes > 0 and now >= host['until'] then
    redis.call('HSET', key, 'strikes', 0)
  end
end)
