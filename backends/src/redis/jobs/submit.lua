-- ARGV: id, spider, priority, idempotency key (empty for none), then the fields of the job. Submits a job. Returns
-- its number and time of submission; or, for a job that exists already, its id and whether the stream `journal`
-- has it.
local id, idempotency_key = ARGV[3], ARGV[6]
local function known_as(other)
  local kept = redis.pcall('HGET', PREFIX .. other, 'kept')
  return {other, kept == '1' and kept or '', 'known'}
end
if redis.call('EXISTS', PREFIX .. id) == 1 then
  return known_as(id)
end
local known = idempotency_key ~= '' and redis.call('HGET', key('keys'), idempotency_key)
if known then
  return known_as(known)
end
local number, asked = int(redis.call('INCR', key('number'))), int(now_ms())
redis.call('HSET', PREFIX .. id, 'number', number, 'asked', asked, 'status', 'pending', unpack(ARGV, 7))
redis.call('ZADD', key('all'), number, id)
if idempotency_key ~= '' then
  redis.call('HSET', key('keys'), idempotency_key, id)
end
enter_line({id = id, spider = ARGV[4], priority = ARGV[5], number = number})
set_head(ARGV[4])
return {number, asked, 'new'}
