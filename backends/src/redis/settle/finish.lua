-- ARGV: worker, crawl id, then for each url, short, kind, why (empty: no word), bytes, note (empty: none), the target
-- of its redirects (empty: none) and the short of that, and the additions of its page to the stats, a line of number
-- and name each. Returns for each whether it has ended, by this call or before; then whether the crawl has, by this
-- call, and whether its last pages are to be looked at (`crawls/quality.rs`). A counter changes only if a record was
-- removed, and only its holder removes a record.
local recrawl, room = is_recrawl(CRAWL), room_in(CRAWL)
local requests, asked = requests_of(CRAWL, OWN_PLAIN), {}
local is_limited = room or redis.call('EXISTS', BEGUN) == 1
local lapsed = lapsed_of(PENDING)
local has_lapsed = redis.call('EXISTS', lapsed) == 1
local answer, stats, hosts = {}, {}, {}
-- By text: the URLs that the spider has now seen, those that it has not seen after all, and those that the crawl
-- itself has seen.
local seen, unseen, own = {}, {}, {}

local function sees(entry)
  seen[entry.url], unseen[entry.url] = entry, nil
end

local function forgets(entry)
  seen[entry.url], unseen[entry.url] = nil, entry
end

local function entries(by_text)
  local list = {}
  for _, entry in pairs(by_text) do
    list[#list + 1] = entry
  end
  return list
end

-- Whether so many pages are done or failed that the crawl is to be looked at.
local function is_look_due()
  local look = redis.pcall('HGET', TOLD, 'look')
  if type(look) ~= 'string' then
    return false
  end
  local pages = redis.call('HMGET', CRAWL, 'done', 'failed')
  return (pages[1] or 0) + (pages[2] or 0) >= (tonumber(look) or 0)
end

-- The name under which more is counted: a program names the kinds of its items, so that there may be any number of
-- them. `MAX_REASONS` in stats_delta.rs.
local MAX_REASONS = 10000
local counted = redis.call('HLEN', CRAWL)
local function counted_as(name)
  if stats[name] then
    return name
  elseif counted < MAX_REASONS then
    counted = counted + 1
    return name
  end
  return redis.call('HEXISTS', CRAWL, name) == 1 and name or (string.match(name, '^[^:]*:') or 'more:') .. '*'
end

local urls = {}
for i = 3, #ARGV, 9 do
  urls[#urls + 1] = ARGV[i]
end
local texts = redis.call('HMGET', PENDING, unpack(urls))

-- Whether a URL without a record has ended. Otherwise this server has forgotten it.
local function is_past(url, short)
  if requests and was_asked(requests, url, now_ms()) then
    return 1
  end
  return is_over(redis.call('HGET', CRAWL, 'status')) and 1 or knows(seen_of(CRAWL), {{url = url, short = short}})[1]
end

for i = 3, #ARGV, 9 do
  local url, short, kind, why, bytes, note, landed, landed_short, more = unpack(ARGV, i, i + 8)
  local text = texts[#answer + 1]
  local record = read(PENDING, url, text)
  local is_mine = record and is_held_by(record, ARGV[1])
  -- A URL that is listed twice has no record the second time.
  local ended = is_mine and redis.call('HDEL', PENDING, url) or 0
  answer[#answer + 1] = is_mine and 1 or (record or text and is_newer(text)) and 0 or is_past(url, short)
  if is_limited and is_mine then
    redis.call('SREM', BEGUN, url)
  end
  if ended == 1 then
    if has_lapsed then
      redis.call('HDEL', lapsed, url)
    end
    -- A later crawl may find a URL again that was not even requested.
    local untouched = kind == 'expired' or kind == 'cancelled' or why == 'limit' or why == 'blocked'
    if kind == 'done' and room then
      -- More pages than begun cannot be done, unless the server forgot which had begun. A fetched URL stays seen.
      if room == 0 then
        kind, why = 'skipped', 'limit'
      else
        room = room - 1
      end
    end
    add(stats, kind, 1)
    add(stats, 'bytes', bytes)
    add_host(hosts, url, kind, 1)
    add_host(hosts, url, 'bytes', bytes)
    if why ~= '' then
      add(stats, kind .. ':' .. why, 1)
    end
    for number, name in string.gmatch(more, '(%d+) ([^\n]+)') do
      add(stats, counted_as(name), tonumber(number))
    end
    redis.call('ZREM', OUTBOX, ARGV[2] .. ' ' .. url)
    if note ~= '' and (kind == 'failed' or kind == 'expired' or why == 'blocked') then
      redis.call('HSET', FAILED, url, note)
    elseif has_payload(url) then
      redis.call('HDEL', recipes_of(PENDING), url)
    end
    asked[#asked + 1] = url
    if landed ~= '' then
      sees({url = landed, short = landed_short})
      asked[#asked + 1] = landed
      if recrawl then
        own[#own + 1] = {url = landed, short = landed_short}
      end
    end
    if recrawl and not untouched then
      sees({url = url, short = short})
    elseif untouched and requests then
      -- This crawl never ends; a late copy of its message does not revive what was requested just now.
      forgets({url = url, short = short})
    elseif untouched and not recrawl then
      redis.call('SADD', GONE, url)
    end
  end
end
write(CRAWL, stats)
write(HOSTS, hosts)
answer[#answer + 1] = end_if_done(CRAWL, PENDING, now_ms()) and 1 or 0
answer[#answer + 1] = is_look_due() and 1 or 0
if next(seen) then
  learn(url_set(SEEN_PLAIN, SEEN_PACKED), entries(seen))
end
if #own > 0 then
  learn(url_set(OWN_PLAIN, OWN_PACKED), own)
end
if requests then
  forget(url_set(SEEN_PLAIN, SEEN_PACKED), entries(unseen))
  note_asked(requests, asked, now_ms())
end
return answer
