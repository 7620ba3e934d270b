-- ARGV: by name, as JSON: spider, status, discovery, is_under_way (whether what was admitted to it may be), recrawl,
-- replays ("-" for none), terms, ordered (the instant of the last order, in ms), done (how many pages it has done in a server that was emptied), and
-- sources (what came of them: "read", "unread", or "-" if that is not known). Makes a crawl that is not known. Returns
-- whether it was not.
local ask = cjson.decode(ARGV[1])
if redis.call('EXISTS', CRAWL) == 1 then
  return 0
end
local now, run = int(now_ms()), run_id()
redis.call('HSET', CRAWL, 'spider', ask.spider, 'status', ask.status, 'started', now, 'discovery', ask.discovery, 'recrawl', ask.recrawl,
  'run', run, 'orders_run', run, 'ordered', ask.ordered)
write_terms(CRAWL, ask.terms)
if ask.replays ~= '-' then
  redis.call('HSET', CRAWL, 'replays', ask.replays)
end
if ask.done ~= '0' then
  redis.call('HSET', CRAWL, 'done_before', ask.done)
end
if ask.sources ~= '-' then
  redis.call('HSET', CRAWL, ask.sources == 'read' and 'read' or 'incomplete', 1)
end
if ask.is_under_way or is_over(ask.status) then
  -- Its counters begin anew.
  redis.call('HSET', CRAWL, 'restored', 1)
end
if is_over(ask.status) then
  -- Its end was announced when it came.
  redis.call('HSET', CRAWL, 'discovery', 'ended', 'ended', now, 'announced', 1)
elseif ask.is_under_way then
  redis.call('HSET', CRAWL, 'barrier', now, 'pass', 1)
end
local count, may_take_records = evictions()
redis.call('HSET', CRAWL, 'evictions', count)
if ask.is_under_way and may_take_records and count > 0 then
  -- It may be one that was thrown away.
  redis.call('HSET', CRAWL, 'evicted', 1)
end
if ask.status == 'paused' then
  redis.call('HSET', CRAWL, 'paused_at', now)
end
return 1
