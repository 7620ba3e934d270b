-- Admits unseen URLs: marks each as seen, writes its record, and puts it in the outbox.
-- Each entry: url, short, lane, depth, deadline, referrer, and its payload if
-- it has one; with `most` for each host.
-- Returns for each `NEW`, `KNOWN`, or `LEFT_OUT` because its host has `most`.
local function take_in(id, entries, most)
  local answer = {}
  if #entries == 0 then
    return answer
  end
  local seen = seen_of(CRAWL)
  local known = knows(seen, entries)
  local now = int(now_ms())
  local idle = idle_of(CRAWL)
  local records, recipes, outbox, fresh, twice, hosts, stats = {}, {}, {}, {}, {}, {}, {}

  local function has_room(host)
    if not most or not host then
      return true
    end
    local taken = tonumber(redis.call('HGET', HOSTS, host .. ' admitted') or 0) + (hosts[host .. ' admitted'] or 0)
    return taken < most
  end

  for i, entry in ipairs(entries) do
    local url, host = entry.url, host_of(entry.url)
    answer[i] = (known[i] == 0 and not twice[url]) and NEW or KNOWN
    if answer[i] == NEW and not has_room(host) then
      answer[i] = LEFT_OUT
    end
    if answer[i] == NEW then
      twice[url] = true
      fresh[#fresh + 1] = entry
      records[#records + 1] = url
      records[#records + 1] = format_new(url, now, entry.lane, entry.depth, deadline_less(entry.deadline, idle), entry.referrer)
      outbox[#outbox + 1] = now
      outbox[#outbox + 1] = id .. ' ' .. url
      if entry.payload then
        recipes[#recipes + 1] = url
        recipes[#recipes + 1] = entry.payload
      end
      add_host(hosts, url, 'admitted', 1)
    end
  end
  if #fresh > 0 then
    learn(seen, fresh)
    if #recipes > 0 then
      redis.call('HSET', recipes_of(PENDING), unpack(recipes))
    end
    redis.call('HSET', PENDING, unpack(records))
    redis.call('ZADD', OUTBOX, unpack(outbox))
    add(stats, 'admitted', #fresh)
  end
  write(CRAWL, stats)
  write(HOSTS, hosts)
  return answer
end

-- Reads the entries among the arguments from `at` on: url, short, lane, deadline, depth of each, and its payload
-- if it has one.
local function entries_from(at, referrer)
  local entries = {}
  while at <= #ARGV do
    local entry = {
      url = ARGV[at], short = ARGV[at + 1], lane = ARGV[at + 2], deadline = ARGV[at + 3], depth = ARGV[at + 4],
      referrer = referrer,
    }
    at = at + 5
    if has_payload(entry.url) then
      entry.payload, at = ARGV[at], at + 1
    end
    entries[#entries + 1] = entry
  end
  return entries
end
