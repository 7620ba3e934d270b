-- Admits unseen URLs: marks each as seen, writes its record, and puts it in the outbox.
-- keys: crawl, pending, outbox, hosts. Each entry: url, short, lane, depth, deadline, referrer, and its payload if
-- it has one; with `most` for each host.
-- Returns for each: 1 new, 0 seen, 2 left out because its host has `most`.
local function take_in(keys, seen, id, entries, most)
  local answer = {}
  if #entries == 0 then
    return answer
  end
  local known = knows(seen, entries)
  local now = int(now_ms())
  local idle = idle_of(keys.crawl)
  local records, recipes, outbox, fresh, twice, hosts, stats = {}, {}, {}, {}, {}, {}, {}

  local function has_room(host)
    if not most or not host then
      return true
    end
    local taken = tonumber(redis.call('HGET', keys.hosts, host .. ' admitted') or 0) + (hosts[host .. ' admitted'] or 0)
    return taken < most
  end

  for i, entry in ipairs(entries) do
    local url, host = entry.url, host_of(entry.url)
    answer[i] = (known[i] == 0 and not twice[url]) and 1 or 0
    if answer[i] == 1 and not has_room(host) then
      answer[i] = 2
    end
    if answer[i] == 1 then
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
      redis.call('HSET', recipes_of(keys.pending), unpack(recipes))
    end
    redis.call('HSET', keys.pending, unpack(records))
    redis.call('ZADD', keys.outbox, unpack(outbox))
    add(stats, 'admitted', #fresh)
  end
  write(keys.crawl, stats)
  write(keys.hosts, hosts)
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
