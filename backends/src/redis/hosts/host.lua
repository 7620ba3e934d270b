-- One host's schedule, a hash that is readable in redis-cli. Instants and times are in us:
--   next taken line interval latency; since until strikes (and the status) of the latest back-off; told (the time until
--   which a back-off creates no further event); blocked (since when, ms); news:<kind>:<ms> (an unannounced event,
--   news.rs); minute and requests (slots given in it); p:<token> = since until, for each request in flight;
--   at (the time of the last write).
-- The arithmetic is that of common/src/policy/politeness/gcra.rs, as are the names in capitals, which are defined before
-- this text.
local function int(number)
  return string.format('%.0f', number)
end

local NUMBERS = {'next', 'taken', 'line', 'latency', 'since', 'until', 'told', 'strikes', 'minute', 'requests',
  'at'}

-- The clock was set back since the schedule was written: its instants are set back too.
local function set_back(key, host, now)
  local changed = {}
  local function go_back(instant)
    return math.max(instant - (host.at - now), 0)
  end
  for _, name in ipairs({'next', 'taken', 'line', 'since', 'until', 'told'}) do
    host[name] = go_back(host[name])
    changed[#changed + 1] = name
    changed[#changed + 1] = int(host[name])
  end
  for token, place in pairs(host.places) do
    place.since, place.till = go_back(place.since), go_back(place.till)
    changed[#changed + 1] = 'p:' .. token
    changed[#changed + 1] = int(place.since) .. ' ' .. int(place.till)
  end
  host.at = now
  redis.call('HSET', key, 'at', int(now), unpack(changed))
end

-- A default in place of an unreadable value would let the host be requested too soon.
local function number_of(key, name, text)
  return tonumber(text) or error({err = 'CORRUPT the field ' .. name .. ' of ' .. key .. ' is no number: remove it'})
end

local function load(key, now)
  local kept = redis.call('HGETALL', key)
  local host = {places = {}, under_way = 0, news = 0}
  for i = 1, #kept, 2 do
    local token = string.match(kept[i], '^p:(.+)$')
    if token then
      local since, till = string.match(kept[i + 1], '^(%d+) (%d+)$')
      host.places[token] = {since = number_of(key, kept[i], since), till = number_of(key, kept[i], till)}
      host.under_way = host.under_way + 1
    elseif string.sub(kept[i], 1, 5) == 'news:' then
      host.news = host.news + 1
    else
      host[kept[i]] = kept[i + 1]
    end
  end
  for _, name in ipairs(NUMBERS) do
    host[name] = number_of(key, name, host[name] or 0)
  end
  if host.at > now then
    set_back(key, host, now)
  end
  return host
end

-- Loads the schedules of all hosts in KEYS before any is written: if one cannot be read, none has changed.
local function load_all(now)
  local hosts = {}
  for number, key in ipairs(KEYS) do
    hosts[number] = load(key, now)
  end
  return hosts
end

-- Calls `act` for each host in KEYS with its schedule, and the positions of its first and last argument: before them is
-- their number, `size` values each.
local function each_host(now, size, act)
  local hosts, at = load_all(now), 1
  for number, key in ipairs(KEYS) do
    local last = at + size * tonumber(ARGV[at])
    act(key, hosts[number], at + 1, last)
    at = last + 1
  end
end

-- The time that a back-off is remembered after its end.
local function calm(host)
  return math.max(host['until'] - host.since, FORGIVEN_AFTER)
end

-- The time that unannounced events are kept, in us, and their maximum number: without a sweeper they could grow.
local UNTOLD_FOR, UNTOLD = 24 * 3600 * 1000000, 16

-- Stores an event of the host, which the sweeper announces. The host is listed in hosts:news by now.
local function note(key, host, kind, now, more)
  if host.news < UNTOLD then
    redis.call('HSET', key, 'news:' .. kind .. ':' .. int(math.floor(now / 1000)), more)
    host.news = host.news + 1
  end
end

-- Lets the hash expire when nothing in it matters any more.
local function expire(key, host, now)
  if host.blocked then
    redis.call('PERSIST', key)
    return
  end
  local last = math.max(host.next, host.taken, host.line, host['until'] > 0 and host['until'] + calm(host) or 0)
  if host.news > 0 then
    last = math.max(last, now + UNTOLD_FOR)
  end
  for _, place in pairs(host.places) do
    last = math.max(last, place.till)
  end
  redis.call('PEXPIRE', key, int(math.ceil(math.max(last - now, 0) / 1000) + 60000))
end
