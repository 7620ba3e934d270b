-- ARGV: id, spider, priority, idempotency key (empty for none), then the fields of the job. Asks for a job. Returns the id of the
-- job that is there already, if there is one.
local id, idempotency_key = ARGV[3], ARGV[6]
if redis.call('EXISTS', PREFIX .. id) == 1 then
  return id
end
local known = idempotency_key ~= '' and redis.call('HGET', key('keys'), idempotency_key)
if known then
  return known
end
local number = int(redis.call('INCR', key('number')))
redis.call('HSET', PREFIX .. id, 'number', number, 'asked', int(now_ms()), 'status', 'pending', unpack(ARGV, 7))
redis.call('ZADD', key('all'), number, id)
if idempotency_key ~= '' then
  redis.call('HSET', key('keys'), idempotency_key, id)
end
enter_line({id = id, spider = ARGV[4], priority = ARGV[5], number = number})
set_head(ARGV[4])
return false
