-- Takes in what was not seen: marks it seen, writes its record, and puts it in the outbox.
-- keys: crawl, pending, outbox, hosts. Each entry: url, short, lane, depth, deadline, referrer; with `most` for each host.
-- Returns for each: 1 new, 0 seen, 2 left out because its host has `most`.
local function take_in(keys, seen, id, entries, most)
  local answer = {}
  if #entries == 0 then
    return answer
  end
  local known = knows(seen, entries)
  local now = int(now_ms())
  local idle = idle_of(keys.crawl)
  local records, outbox, fresh, twice, hosts, stats = {}, {}, {}, {}, {}, {}

  local function has_room(host)
    if not most then
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
      records[#records + 1] = format_new(now, entry.lane, entry.depth, deadline_less(entry.deadline, idle), entry.referrer)
      outbox[#outbox + 1] = now
      outbox[#outbox + 1] = id .. ' ' .. url
      add(hosts, host .. ' admitted', 1)
    end
  end
  if #fresh > 0 then
    learn(seen, fresh)
    redis.call('HSET', keys.pending, unpack(records))
    redis.call('ZADD', keys.outbox, unpack(outbox))
    add(stats, 'admitted', #fresh)
  end
  write(keys.crawl, stats)
  write(keys.hosts, hosts)
  return answer
end
