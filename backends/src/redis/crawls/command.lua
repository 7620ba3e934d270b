-- ARGV: pause, resume, cancel, or empty for no command; crawl id; the instant of the command in ms, if it is from the
-- log ("-": it is given now). A command from the log counts only if no later one is known. Returns the status before,
-- and the instant of the last command; nothing if the crawl is not known; "unsure" if this server may have lost a
-- command (record.lua): the command has to be repeated once those in the log are known.
local now = now_ms()
local state = redis.call('HMGET', CRAWL, 'status', 'ordered')
local before, ordered = state[1], tonumber(state[2] or 0)
local is_logged = ARGV[3] ~= '-'
if not before then
  return {}
elseif is_logged then
  redis.call('HSET', CRAWL, 'orders_run', run_id())
elseif is_unsure(CRAWL) then
  return {'unsure'}
end
local at = is_logged and tonumber(ARGV[3]) or math.max(now, ordered + 1)
if ARGV[1] == '' or is_over(before) or is_logged and at <= ordered then
  return {before, int(ordered)}
end
if ARGV[1] == 'pause' and before == 'running' then
  redis.call('HSET', CRAWL, 'status', 'paused', 'paused_at', int(now))
elseif ARGV[1] == 'resume' and before == 'paused' then
  local paused_at = tonumber(redis.call('HGET', CRAWL, 'paused_at')) or now
  redis.call('HINCRBY', CRAWL, 'idle', int(math.max(now - paused_at, 0)))
  redis.call('HDEL', CRAWL, 'paused_at')
  redis.call('HSET', CRAWL, 'status', 'running')
  end_if_done(CRAWL, PENDING, now)
elseif ARGV[1] == 'cancel' then
  redis.call('HSET', CRAWL, 'status', 'cancelled', 'discovery', 'ended', 'ended', int(now), 'announced', 0)
  redis.call('HDEL', CRAWL, 'barrier', 'pass', 'paused_at')
  -- A process that reads sources for it does not delay other crawls of the spider.
  for _, lease in ipairs(living_leases(LEASES, now)) do
    if lease.crawl == ARGV[2] then
      redis.call('HDEL', LEASES, lease.token)
    end
  end
end
redis.call('HSET', CRAWL, 'ordered', int(at))
return {before, int(at)}
