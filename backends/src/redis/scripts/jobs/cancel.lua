-- ARGV: id. Cancels a job that is pending, and marks one that runs. Returns what it was.
local job = find(ARGV[3])
if not job then
  return false
end
if job.status == 'pending' then
  end_as(job, 'cancelled', '', now_ms())
elseif job.status == 'running' then
  redis.call('HSET', job.key, 'cancel', 1)
end
return job.status
