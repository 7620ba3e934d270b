-- ARGV: runner, lease in ms. Gives the first job in the line whose spider is free to the runner; returns its id and its fields.
local now = now_ms()
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('leases'), '-inf', int(now), 'LIMIT', 0, 500)) do
  local job = find(id)
  if job then
    give_up(job)
  else
    redis.call('ZREM', key('leases'), id)
  end
end
local first = redis.call('ZRANGE', key('ready'), 0, 0)[1]
if not first then
  return false
end
local job = find(id_of(first))
leave_line(job)
count_running(job, 1)
redis.call('HSET', job.key, 'status', 'running', 'runner', ARGV[3], 'started', int(now))
hold(job, now + ARGV[4])
set_head(job.spider)
return {job.id, redis.call('HGETALL', job.key)}
