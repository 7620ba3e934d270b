-- KEYS: crawl, seen, pending. ARGV: worker, spider, number of dead workers, those, then
-- url, lane, depth, deadline, referrer for each message.
-- Returns whether the crawl is new, then for each message: attempts so far (take it), -1 (drop it), or the
-- name of another worker that holds it.
local now = now_ms()
local dead = {}
for i = 4, 3 + ARGV[3] do
  dead[ARGV[i]] = true
end
local status = redis.call('HGET', KEYS[1], 'status')
local created = not status
if created then
  status = 'running'
  redis.call('HSET', KEYS[1], 'spider', ARGV[2], 'status', status, 'started', int(now), 'discovery', 'unknown')
end
local answer = {created and 1 or 0}
for i = 4 + ARGV[3], #ARGV, 5 do
  local url = ARGV[i]
  local text = redis.call('HGET', KEYS[3], url)
  local record
  if text then
    record = parse(text)
  elseif status == 'running' and redis.call('SADD', KEYS[2], url) == 1 then
    redis.call('HINCRBY', KEYS[1], 'admitted', 1)
    record = {
      state = 'q', starts = 0, attempts = 0, lane = ARGV[i + 1], depth = ARGV[i + 2],
      deadline = ARGV[i + 3], referrer = ARGV[i + 4],
    }
  end
  local told
  if not record then
    told = -1
  elseif record.state == 'h' and record.holder ~= ARGV[1] and not dead[record.holder] then
    told = record.holder
  elseif record.state == 'p' and record.since > now + 5000 then
    -- Clocks differ a little; what comes a moment early waits in the worker.
    told = -1
  else
    record.state, record.since, record.holder = 'h', now, ARGV[1]
    redis.call('HSET', KEYS[3], url, format(record))
    told = record.attempts
  end
  answer[#answer + 1] = told
end
return answer
