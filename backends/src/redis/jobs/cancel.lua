-- ARGV: id. Cancels a pending job, and marks a running one. Returns its previous status.
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
