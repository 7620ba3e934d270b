-- A record, as text that reads well in redis-cli and is short, for there may be millions:
--   <state><since>[<+ms until its deadline>] <b for bulk, p for priority, t for a task><depth> <referrer> <holder> <starts> <attempts>
-- state: n new, q queued, p parked (since = the instant it is due), h held, f held and its fetch counted as
-- started. Absent parts are "-". What is as in most records (b0 - - 0 0) is left out where nothing else follows. That of a request
-- begins with `v3 `, its format: programs before do not know such keys.
local function now_ms()
  return math.floor(now_us() / 1000)
end

local NOW = now_ms()

local function int(number)
  return string.format('%.0f', number)
end

-- As records were written before they were short.
local function parse_long(text)
  local state, since, holder, starts, attempts, lane, depth, deadline, referrer =
    string.match(text, '^([nqphf]) (%d+) (%S+) (%d+) (%d+) (%a+) (%d+) (%S+) (%S+)$')
  return state and {
    state = state, since = tonumber(since), holder = holder, starts = tonumber(starts),
    attempts = tonumber(attempts), lane = lane, depth = depth, deadline = tonumber(deadline), referrer = referrer,
  }
end

-- Lanes by their letters; that of all others is the bulk lane.
local LANES = {p = 'priority', t = 'task'}

-- The deadline is nil where there is none.
local function parse_short(text)
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

-- A message is parked for no longer than the longest rung of the ladder, and somewhat more for its way there.
local LONGEST_PARKED = 3600000 + 60000

-- Whether a stamp lies ahead of what can be: it is from before the clock was set back.
local function is_stray(state, since)
  return since > NOW + (state == 'p' and LONGEST_PARKED or 0)
end

-- The mark of a format, and what follows it; nothing and the whole text if there is none. `v` is 118.
local function split_mark(text)
  if string.byte(text) == 118 then
    local format, rest = string.match(text, '^v(%d+) (.*)$')
    if format and tonumber(format) <= FORMAT then
      return 'v' .. format .. ' ', rest
    end
  end
  return '', text
end

-- Nil if the text is no record. A stray stamp is taken as now, and the record is `mended`.
local function parse(text)
  local mark, rest = split_mark(text)
  local record = parse_short(rest) or parse_long(rest)
  if record then
    record.mark = mark
  end
  if record and is_stray(record.state, record.since) then
    record.since, record.mended = NOW, true
  end
  return record
end

-- What is as in most records.
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

-- For how long a crawl has been paused: by so much the deadlines of its records have moved.
local function idle_of(crawl)
  return tonumber(redis.call('HGET', crawl, 'idle') or 0)
end

-- A deadline as a record has it, of how it is now; nil if there is none.
local function deadline_less(deadline, idle)
  return tonumber(deadline) and tonumber(deadline) - idle
end

-- Whether a key is a request's: `#request:` and 32 digits are its end. 41 is how long that is.
local function is_request(url)
  return string.sub(url, -41, -33) == '#request:'
end

-- The format of its record, where that is not the first.
local function mark_of(url)
  return is_request(url) and 'v3 ' or ''
end

-- What `format` makes of the record of a URL that was found at `since`, a text: no other is written as often. The deadline
-- is nil where there is none.
local function format_new(url, since, lane, depth, deadline, referrer)
  local text = mark_of(url) .. 'n' .. since .. lifetime(deadline, since)
  if lane == 'bulk' and depth == '0' and referrer == '-' then
    return text
  end
  return text .. ' ' .. string.sub(lane, 1, 1) .. depth .. ' ' .. referrer
end

-- The record of a URL that is known from its message alone.
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

-- In place of the holder of what was put aside because its crawl is paused: its message comes back by then, and goes round. As soon as the
-- crawl goes on, it is sent again. Programs before November 2026 take it for put aside until then, and wrote `q0` instead.
local PAUSED = 'paused'

local function let_go(record, until_then)
  record.state, record.since, record.holder = 'p', until_then, PAUSED
end

local function is_let_go(record)
  return record.state == 'p' and record.holder == PAUSED
end

-- Only a start without an end counts towards poison, and this one has ended. What has not begun here has ended nothing.
local function end_start(record)
  if record.state == 'f' then
    record.starts = 0
  end
end

-- Whether this server may have lost what was ordered of the crawl last: its data is of another run than the one in which all of that was known.
-- Then the log tells (command.lua). No page begins before.
local function is_unsure(crawl)
  return redis.call('HGET', crawl, 'orders_run') ~= run_id()
end

local function is_over(status)
  return status == 'finished' or status == 'cancelled'
end

-- Whether the crawl fetches again what was crawled before: then it has a set of its own of what it has seen.
local function is_recrawl(crawl)
  return (redis.call('HGET', crawl, 'recrawl') or 'never') ~= 'never'
end

-- What a crawl is bound to, but for `recrawl`, which is settled when it is made.
local function write_terms(crawl, max_pages, max_per_host, file)
  for term, value in pairs({max_pages = max_pages, max_per_host = max_per_host, file = file}) do
    if value == '-' then
      redis.call('HDEL', crawl, term)
    else
      redis.call('HSET', crawl, term, value)
    end
  end
end

-- How many more pages a crawl may have done; nil for any number. What it had done in a server that was emptied counts.
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

-- Whether what it says is kept beside its record.
local function has_payload(url)
  return is_task(url) or is_request(url)
end

-- A key of a crawl, by any other of its keys.
local function key_beside(key, name)
  local tag, id = string.match(key, '^({.-}):%a+:(.*)$')
  return tag .. ':' .. name .. ':' .. id
end

-- The hash of what the tasks and the requests of a crawl say.
local function recipes_of(key)
  return key_beside(key, 'recipes')
end

-- The set of what later crawls may find again; in a crawl of requests, which never ends, the tasks that were cancelled and whose
-- messages are still to come.
local function gone_of(key)
  return key_beside(key, 'gone')
end

-- The hash of the workers whose start of a URL had no end because their lease lapsed, by its URL. One that says so within an hour lives, and
-- its start is no step towards poison.
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

-- Its holder loses the record of a URL, as its lease has lapsed.
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

-- A worker that had lost the record because its lease lapsed lives after all.
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

-- What changes in a hash of counters, added up and written at once.
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

-- Counts what became of a URL by its host; of a task nothing is.
local function add_host(sums, url, what, count)
  local host = host_of(url)
  if host then
    add(sums, host .. ' ' .. what, count)
  end
end

-- How many keys the server has thrown away since it runs, and whether it may take such as do not expire.
local function evictions()
  local policy = string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:(%a+)')
  return tonumber(string.match(redis.call('INFO', 'stats'), 'evicted_keys:(%d+)')) or 0, policy ~= 'volatile'
end

-- Whether the server has thrown keys away while the crawl was open. What it lacks since then nobody knows: it does not end by itself.
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

-- A crawl ends when its sources are read to their end, no record is left, and nothing that the server may have
-- forgotten can still be under way. Returns whether it has ended now.
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

-- Whether a text is a record that only newer programs read: it begins with `v` and its format. It is left to them.
local function is_newer(text)
  local format = tonumber(string.match(text, '^v(%d+) '))
  return format ~= nil and format > FORMAT
end

-- Takes a record that cannot be read out of everyone's way. Its bytes go to `T:corrupt:<crawl>`; the URL has failed as
-- `corrupt`, so that the crawl can end. The set beside it names what was not reported yet.
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

-- The record of a URL in `pending`, which is `text`; nil if there is none, or none that this program can read.
local function read(pending, url, text)
  local record = text and parse(text)
  if text and not record then
    quarantine(pending, url, text)
  end
  return record or nil
end
