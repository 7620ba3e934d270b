-- ARGV: number of jobs to keep, minimum time to keep each in ms; or the id of one. Forgets the jobs that ended longest
-- ago, some hundreds in a call; or the one, if it has ended.
-- Returns the number forgotten.
local function forget(id)
  local idempotency_key = redis.pcall('HGET', PREFIX .. id, 'idempotency_key')
  if type(idempotency_key) == 'string' then
    redis.call('HDEL', key('keys'), idempotency_key)
  end
  redis.call('UNLINK', PREFIX .. id)
  redis.call('ZREM', key('ended'), id)
  redis.call('ZREM', key('all'), id)
end

local age = ARGV[4]
if not age then
  local id = ARGV[3]
  if not redis.call('ZSCORE', key('ended'), id) then
    return 0
  end
  forget(id)
  return 1
end
local many = redis.call('ZCARD', key('ended')) - ARGV[3]
if many <= 0 then
  return 0
end
local old = redis.call('ZRANGEBYSCORE', key('ended'), '-inf', int(now_ms() - age), 'LIMIT', 0, math.min(many, 500))
for _, id in ipairs(old) do
  forget(id)
end
return #old
