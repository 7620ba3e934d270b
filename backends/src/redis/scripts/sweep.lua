-- KEYS: crawl, pending, outbox, lease. ARGV: crawl id, cursor, patience in ms, live workers.
-- One step of a scan for records that were lost from sight; they become new again.
-- Returns the next cursor, then url, lane, depth, deadline, referrer of each.
local now = now_ms()
local patience = tonumber(ARGV[3])
local live = {}
for i = 4, #ARGV do
  live[ARGV[i]] = true
end
if ARGV[2] == '0' and redis.call('HGET', KEYS[1], 'discovery') == 'open' then
  local held = redis.call('GET', KEYS[4])
  if not held or string.match(held, '^%S+ (%S+)') ~= ARGV[1] then
    -- Its producer died: what was not admitted by then will not be.
    redis.call('HSET', KEYS[1], 'discovery', 'ended', 'incomplete', 1)
    end_if_done(KEYS[1], KEYS[2], now)
  end
end
local scan = redis.call('HSCAN', KEYS[2], ARGV[2], 'COUNT', 500)
local answer = {scan[1]}
for i = 1, #scan[2], 2 do
  local url, record = scan[2][i], parse(scan[2][i + 1])
  local late = record.since + patience < now
  local lost = (record.state == 'n' and late) or (record.state == 'p' and late)
    or (record.state == 'h' and not live[record.holder])
  if lost then
    record.state, record.since, record.holder = 'n', now, '-'
    redis.call('HSET', KEYS[2], url, format(record))
    redis.call('ZADD', KEYS[3], int(now), ARGV[1] .. ' ' .. url)
    for _, part in ipairs({url, record.lane, record.depth, record.deadline, record.referrer}) do
      answer[#answer + 1] = part
    end
  end
end
return answer
