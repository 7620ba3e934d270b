-- KEYS: crawl. ARGV: spider, status, discovery, whether what was admitted to it may be under way (1 or 0), recrawl, the other
-- terms: max_pages, max_per_host, file ("-": none), the instant of the last order, in ms, how many pages it has done in a
-- server that was emptied, and what came of its sources ("read", "unread", or "-" if that is not known). Makes a crawl that is not known. Returns whether it was not.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
local now, run = int(now_ms()), run_id()
redis.call('HSET', KEYS[1], 'spider', ARGV[1], 'status', ARGV[2], 'started', now, 'discovery', ARGV[3], 'recrawl', ARGV[5],
  'run', run, 'orders_run', run, 'ordered', ARGV[9])
write_terms(KEYS[1], ARGV[6], ARGV[7], ARGV[8])
if ARGV[10] ~= '0' then
  redis.call('HSET', KEYS[1], 'done_before', ARGV[10])
end
if ARGV[11] ~= '-' then
  redis.call('HSET', KEYS[1], ARGV[11] == 'read' and 'read' or 'incomplete', 1)
end
if ARGV[4] == '1' or is_over(ARGV[2]) then
  -- Its counters begin anew.
  redis.call('HSET', KEYS[1], 'restored', 1)
end
if is_over(ARGV[2]) then
  -- Its end was announced when it came.
  redis.call('HSET', KEYS[1], 'discovery', 'ended', 'ended', now, 'announced', 1)
elseif ARGV[4] == '1' then
  redis.call('HSET', KEYS[1], 'barrier', now, 'pass', 1)
end
local count, may_take_records = evictions()
redis.call('HSET', KEYS[1], 'evictions', count)
if ARGV[4] == '1' and may_take_records and count > 0 then
  -- It may be one that was thrown away.
  redis.call('HSET', KEYS[1], 'evicted', 1)
end
if ARGV[2] == 'paused' then
  redis.call('HSET', KEYS[1], 'paused_at', now)
end
return 1
