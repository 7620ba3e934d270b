-- A record, as short text that is readable in redis-cli, as there may be millions:
--   <state><since>[<+ms until its deadline>] <b for bulk, p for priority, t for a task><depth> <referrer> <holder> <starts> <attempts>
-- state: n new, q queued, p parked (since = the instant it is due), h held, f held and its fetch counted as
-- started. Absent parts are "-". The most common values (b0 - - 0 0) are left out if nothing else follows. The
-- record of a request begins with `v3 `, its format, because earlier programs do not know such keys.
local function now_ms()
  return math.floor(now_us() / 1000)
end

local NOW = now_ms()

local function int(number)
  return string.format('%.0f', number)
end

-- Lanes by their letters; all others mean the bulk lane.
local LANES = {p = 'priority', t = 'task'}

-- The deadline is nil where there is none.
local function parse_fields(text)
  local state, since, left, lane, depth, referrer, holder, starts, attempts =
    string.match(text, '^([nqphf])(%d+)([+-]?%d*) ?([bpt]?)(%d*) ?(%S*) ?(%S*) ?(%d*) ?(%d*)$')
  local lifetime = tonumber(left)
  if not state or left ~= '' and not lifetime then
    return nil
  end
  return {
    state = state, since = tonumber(since), deadline = lifetime and since + lifetime,
    lane = LANES[lane] or 'bulk', depth = tonumber(depth) or 0,
    referrer = referrer ~= '' and referrer or '-', holder = holder ~= '' and holder or '-',
    starts = tonumber(starts) or 0, attempts = tonumber(attempts) or 0,
  }
end

-- A message is parked for at most the longest rung of the ladder, plus some time for its way there.
local LONGEST_PARKED = 3600000 + 60000

-- Whether a stamp lies further ahead than possible: it was written before the clock was set back.
local function is_stray(state, since)
  return since > NOW + (state == 'p' and LONGEST_PARKED or 0)
end

-- The mark of a format, and the text after it; nothing and the whole text if there is no mark. `v` is 118.
local function split_mark(text)
  if string.byte(text) == 118 then
    local format, rest = string.match(text, '^v(%d+) (.*)$')
    if format and tonumber(format) <= FORMAT then
      return 'v' .. format .. ' ', rest
    end
  end
  return '', text
end

-- Nil if the text is no record. A stray stamp is replaced by now, and the record is `mended`.
local function parse(text)
  local mark, rest = split_mark(text)
  local record = parse_fields(rest)
  if record then
    record.mark = mark
  end
  if record and is_stray(record.state, record.since) then
    record.since, record.mended = NOW, true
  end
  return record
end

-- The most common values.
local USUAL = {'b0', '-', '-', 0, 0}

local function lifetime(deadline, since)
  return deadline and string.format('%+.0f', deadline - since) or ''
end

local function format(record)
  local text = record.mark .. record.state .. int(record.since) .. lifetime(record.deadline, record.since)
  local rest = {
    string.sub(record.lane, 1, 1) .. record.depth, record.referrer, record.holder, record.starts, record.attempts,
  }
  local last = 5
  while last > 0 and rest[last] == USUAL[last] do
    last = last - 1
  end
  return last > 0 and text .. ' ' .. table.concat(rest, ' ', 1, last) or text
end

-- The time that a crawl has been paused, by which the deadlines of its records have moved.
local function idle_of(crawl)
  return tonumber(redis.call('HGET', crawl, 'idle') or 0)
end

-- The stored form of a current deadline; nil if there is none.
local function deadline_less(deadline, idle)
  return tonumber(deadline) and tonumber(deadline) - idle
end

-- Whether a key names a request: it ends in `#request:` and 32 digits, which are 41 characters.
local function is_request(url)
  return string.sub(url, -41, -33) == '#request:'
end

-- The mark of its record's format, if that is not the first.
local function mark_of(url)
  return is_request(url) and 'v3 ' or ''
end

-- The text that `format` makes of the record of a URL found at `since`, which is written most often. The deadline
-- is nil if there is none.
local function format_new(url, since, lane, depth, deadline, referrer)
  local text = mark_of(url) .. 'n' .. since .. lifetime(deadline, since)
  if lane == 'bulk' and depth == '0' and referrer == '-' then
    return text
  end
  return text .. ' ' .. string.sub(lane, 1, 1) .. depth .. ' ' .. referrer
end

-- The record of a URL of which only the message is known.
local function new_record(url, since, lane, depth, deadline, referrer)
  return {
    mark = mark_of(url), state = 'q', since = since, holder = '-', starts = 0, attempts = 0, lane = lane, depth = depth,
    deadline = deadline, referrer = referrer,
  }
end

local function is_held(record)
  return record.state == 'h' or record.state == 'f'
end

local function is_held_by(record, worker)
  return is_held(record) and record.holder == worker
end

-- The holder of a record that was parked because its crawl is paused: its message comes back by then and is
-- requeued. When the crawl is resumed, it is sent again.
local PAUSED = 'paused'

local function let_go(record, until_then)
  record.state, record.since, record.holder = 'p', until_then, PAUSED
end

local function is_let_go(record)
  return record.state == 'p' and record.holder == PAUSED
end

-- Only a start without an end counts towards poison, and this one has ended. A record that has not begun here has
-- ended nothing.
local function end_start(record)
  if record.state == 'f' then
    record.starts = 0
  end
end

-- Whether this server may have lost the last command for the crawl: its data is of another run than the one in
-- which all commands were known. Then the log has it (command.lua). No page begins before that is read.
local function is_unsure(crawl)
  return redis.call('HGET', crawl, 'orders_run') ~= run_id()
end

local function is_over(status)
  return status == 'finished' or status == 'cancelled'
end

-- Whether the crawl is a recrawl, which has its own set of seen URLs.
local function is_recrawl(crawl)
  return (redis.call('HGET', crawl, 'recrawl') or 'never') ~= 'never'
end

-- The terms of a crawl, except `recrawl`, which is fixed when it is created.
local TERMS = {'max_pages', 'max_per_host', 'file'}

-- Writes these terms; "-" means none.
local function write_terms(crawl, terms)
  for _, term in ipairs(TERMS) do
    if terms[term] == '-' then
      redis.call('HDEL', crawl, term)
    else
      redis.call('HSET', crawl, term, terms[term])
    end
  end
end

-- The number of pages that a crawl may still do; nil if there is no limit. Pages that it did in a server that was
-- emptied count.
local function room_in(crawl)
  local state = redis.call('HMGET', crawl, 'max_pages', 'done', 'done_before')
  return state[1] and math.max(state[1] - (state[2] or 0) - (state[3] or 0), 0) or nil
end

-- Nil for a task, which has no host.
local function host_of(url)
  return string.match(url, '^%a+://([^/?#]*)')
end

local function is_task(url)
  return string.sub(url, 1, 5) == 'task:'
end

-- Whether it has a payload beside its record.
local function has_payload(url)
  return is_task(url) or is_request(url)
end

-- A key of a crawl, by any other of its keys.
local function key_beside(key, name)
  local tag, id = string.match(key, '^({.-}):%a+:(.*)$')
  return tag .. ':' .. name .. ':' .. id
end

-- The hash of the payloads of a crawl's tasks and requests.
local function recipes_of(key)
  return key_beside(key, 'recipes')
end

-- The set of URLs that later crawls may find again; in a crawl of requests, which never ends, the cancelled tasks
-- whose messages are still to come.
local function gone_of(key)
  return key_beside(key, 'gone')
end

-- The hash of the workers that started a URL without an end because their lease lapsed, by URL. A worker that
-- shows up within an hour is alive, and its start is no step towards poison.
local function lapsed_of(key)
  return key_beside(key, 'lapsed')
end

local function workers_in(text)
  local workers = {}
  for worker in string.gmatch(text or '', '%S+') do
    workers[#workers + 1] = worker
  end
  return workers
end

-- Takes the record of a URL from its holder, whose lease has lapsed.
local function lapse(pending, url, record)
  if record.state ~= 'f' then
    return
  end
  local lapsed = lapsed_of(pending)
  local workers = workers_in(redis.call('HGET', lapsed, url))
  for _, worker in ipairs(workers) do
    if worker == record.holder then
      return
    end
  end
  workers[#workers + 1] = record.holder
  redis.call('HSET', lapsed, url, table.concat(workers, ' '))
  redis.call('PEXPIRE', lapsed, 3600000)
end

-- Uncounts the start of a worker that had lost the record because its lease lapsed, but is alive.
local function withdraw_start(pending, url, record, worker)
  local lapsed, left = lapsed_of(pending), {}
  local workers = workers_in(record.starts > 0 and redis.call('HGET', lapsed, url))
  for _, other in ipairs(workers) do
    if other ~= worker then
      left[#left + 1] = other
    end
  end
  if #left == #workers then
    return
  elseif #left > 0 then
    redis.call('HSET', lapsed, url, table.concat(left, ' '))
  else
    redis.call('HDEL', lapsed, url)
  end
  record.starts = record.starts - 1
end

-- Collects the changes of a hash of counters, to write them at once.
local function add(sums, name, count)
  sums[name] = (sums[name] or 0) + count
end

local function write(key, sums)
  local names = {}
  for name in pairs(sums) do
    names[#names + 1] = name
  end
  -- A call takes some thousands of values, and there may be more.
  for first = 1, #names, 1000 do
    local part, changed = {unpack(names, first, math.min(first + 999, #names))}, {}
    for i, before in ipairs(redis.call('HMGET', key, unpack(part))) do
      changed[2 * i - 1], changed[2 * i] = part[i], int((before or 0) + sums[part[i]])
    end
    redis.call('HSET', key, unpack(changed))
  end
end

-- Counts an event of a URL by its host; tasks are not counted.
local function add_host(sums, url, what, count)
  local host = host_of(url)
  if host then
    add(sums, host .. ' ' .. what, count)
  end
end

-- The number of keys that the server has evicted since it started, and whether it may evict keys without an
-- expiry.
local function evictions()
  local policy = string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:(%a+)')
  return tonumber(string.match(redis.call('INFO', 'stats'), 'evicted_keys:(%d+)')) or 0, policy ~= 'volatile'
end

-- Whether the server has evicted keys while the crawl was open. Nobody knows what it lacks since then, so it does
-- not end by itself.
local function is_evicted(crawl)
  local state = redis.call('HMGET', crawl, 'status', 'evicted', 'evictions')
  if not state[1] or state[2] then
    return state[2] == '1'
  end
  local count, may_take_records = evictions()
  local known = tonumber(state[3])
  if known and may_take_records and count > known then
    redis.call('HSET', crawl, 'evicted', 1)
    return true
  elseif known ~= count then
    redis.call('HSET', crawl, 'evictions', count)
  end
  return false
end

-- Ends a crawl once its sources are read to their end, no record is left, and nothing that the server may have
-- forgotten can still be in flight. Returns whether it has ended now.
local function end_if_done(crawl, pending, now)
  local state = redis.call('HMGET', crawl, 'status', 'discovery', 'barrier', 'run')
  if state[1] ~= 'running' or state[2] ~= 'ended' or state[3] or redis.call('HLEN', pending) > 0 then
    return false
  end
  local run = run_id()
  if is_evicted(crawl) then
    return false
  elseif state[4] == run then
    redis.call('HSET', crawl, 'status', 'finished', 'ended', int(now), 'announced', 0)
  else
    redis.call('HSET', crawl, 'run', run, 'barrier', int(now), 'pass', 1)
  end
  return state[4] == run
end

-- Whether a text is a record that only newer programs can read: it begins with `v` and its format. It is left to
-- them.
local function is_newer(text)
  local format = tonumber(string.match(text, '^v(%d+) '))
  return format ~= nil and format > FORMAT
end

-- Removes a record that cannot be read. Its bytes go to `T:corrupt:<crawl>`; the URL fails as `corrupt`, so that
-- the crawl can end. The set beside it names the unreported ones.
local function quarantine(pending, url, text)
  if is_newer(text) or redis.call('HDEL', pending, url) == 0 then
    return
  end
  local tag, id = string.match(pending, '^({.-}):pending:(.*)$')
  local function key(name)
    return tag .. ':' .. name .. ':' .. id
  end
  local note = {
    reason = 'corrupt', error = 'its record cannot be read: ' .. string.gsub(string.sub(text, 1, 500), '[^\32-\126]', '?'),
    attempts = 0, failed_at = NOW, lane = 'bulk', depth = 0,
  }
  redis.call('HSET', key('corrupt'), url, text)
  redis.call('SADD', key('corrupt') .. ':new', url)
  redis.call('HSET', key('failed'), url, cjson.encode(note))
  redis.call('ZREM', tag .. ':outbox', id .. ' ' .. url)
  redis.call('SREM', key('begun'), url)
  redis.call('HINCRBY', key('crawl'), 'failed', 1)
  redis.call('HINCRBY', key('crawl'), 'failed:corrupt', 1)
  if not is_task(url) then
    redis.call('HINCRBY', key('hosts'), (host_of(url) or '?') .. ' failed', 1)
  end
end

-- The record of a URL in `pending`, stored as `text`; nil if there is none, or if this program cannot read it.
local function read(pending, url, text)
  local record = text and parse(text)
  if text and not record then
    quarantine(pending, url, text)
  end
  return record or nil
end
