-- ARGV: id, status, problem (empty for none). Ends a job.
local job = find(ARGV[3])
if job and not is_over(job) then
  end_as(job, ARGV[4], ARGV[5], now_ms())
end
return redis.status_reply('OK')
