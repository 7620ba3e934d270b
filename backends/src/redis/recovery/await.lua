-- ARGV: maximum time until everything that is parked has come back, in ms. The second pass of the barrier.
if redis.call('HGET', CRAWL, 'pass') == '1' then
  redis.call('HSET', CRAWL, 'barrier', int(now_ms() + ARGV[1]), 'pass', 2)
end
return redis.status_reply('OK')
