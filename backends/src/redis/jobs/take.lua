-- ARGV: runner, lease in ms. Gives the runner the first job in the queue whose spider is free. Returns the jobs
-- before it that cannot be read, its id and its fields.
local now = now_ms()
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('leases'), '-inf', int(now), 'LIMIT', 0, 500)) do
  local job = find(id)
  if job then
    give_up(job)
  else
    redis.call('ZREM', key('leases'), id)
  end
end
local passed, job = {}, nil
repeat
  local entry = redis.call('ZRANGE', key('ready'), #passed, #passed)[1]
  if not entry then
    return {passed, false, {}}
  end
  job = find(id_of(entry))
  if not job or job.status ~= 'pending' then
    passed[#passed + 1], job = id_of(entry), nil
  end
until job
leave_line(job)
count_running(job, 1)
redis.call('HSET', job.key, 'status', 'running', 'runner', ARGV[3], 'started', int(now))
hold(job, now + ARGV[4])
set_head(job.spider)
return {passed, job.id, fields_of(job.id)}
